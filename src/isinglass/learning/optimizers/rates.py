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


@RATES.register("constant")
def constant(time: float) -> float:
    """Return one at all times."""
    return 1.0


@RATES.register("inverse")
def inverse(time: float) -> float:
    """Return 1 / (1 + t), for t in units of 1 / decay.

    Examples
    --------
    >>> RATES["inverse"](3.0), RATES["sqrt"](3.0)
    (0.25, 0.5)
    """
    return 1.0 / (1.0 + time)


@RATES.register("sqrt")
def inverse_sqrt(time: float) -> float:
    """Return 1 / √(1 + t), for t in units of 1 / decay."""
    return 1.0 / math.sqrt(1.0 + time)
