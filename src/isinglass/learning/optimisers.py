"""The former spelling of `isinglass.learning.optimizers`."""

from isinglass.learning.optimizers import *  # noqa: F403
