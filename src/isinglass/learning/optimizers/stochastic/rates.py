"""How a learning rate falls with time.

With t the number of epochs done, counted in fractions:

    constant   η_t = η
    inverse    η_t = η / (1 + decay · t)         Robbins and Monro 1951; Bottou 2012
    sqrt       η_t = η / √(1 + decay · t)

Counting in epochs makes `decay` mean the same for any number of examples and any batch size.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from isinglass.registry import Registry

RATES: Registry[Callable[[float], float]] = Registry("schedule")
"""From the time, in units of 1 / decay, to the share of the first rate."""

RATES.register("constant")(lambda time: 1.0)
RATES.register("inverse")(lambda time: 1.0 / (1.0 + time))
RATES.register("sqrt")(lambda time: 1.0 / math.sqrt(1.0 + time))
