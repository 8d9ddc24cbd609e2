"""Ctrl-C in a fit ends the experiment that the fit is part of, not that fit alone."""

import numpy as np
import pytest

from isinglass.learning.optimizers import Lbfgs
from isinglass_experiments.common.experiment import Experiment


def interrupted(theta):
    raise KeyboardInterrupt


def test_an_experiment_ends():
    class Twice(Experiment):
        def run(self, progress=None):
            Lbfgs().minimise(interrupted, np.zeros(2))
            raise AssertionError("it went on")

    with pytest.raises(KeyboardInterrupt):
        Twice().run()
