"""Random restarts: the best of several runs of an optimizer, by the value that each ends with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.learning.optimizers.base import Callback, Function, Optimizer, OptimResult
from isinglass.validation import RandomState, array_of, generator, positive, whole_number


def minimise_with_restarts(
    optimizer: Optimizer[Any],
    f: Function,
    x0: ArrayLike,
    *,
    restarts: int = 5,
    scale: float = 1.0,
    random_state: RandomState = None,
    callback: Callback | None = None,
) -> tuple[OptimResult, list[float]]:
    """Minimise from several starts, and keep the run of least value.

    Parameters
    ----------
    optimizer : Optimizer
    f : callable
        From x to (value, gradient).
    x0 : array (n,)
        The first start.
    restarts : int
        How many runs there are; all but the first start at x0 plus normal noise.
    scale : float
        The standard deviation of that noise.
    random_state : int, Generator or None
    callback : callable, optional
        Called with a `Progress` after each iteration of each run; if it returns True, that run ends.

    Returns
    -------
    best : OptimResult
    values : list of float
        Where each run ended; nan if it ended nowhere.

    Examples
    --------
    >>> from isinglass.learning.optimizers import Lbfgs
    >>> wave = lambda x: (float((x**2 / 20 + np.cos(x)).sum()), x / 10 - np.sin(x))  # with local minima
    >>> best, values = minimise_with_restarts(Lbfgs(), wave, [9.0], restarts=6, scale=5.0, random_state=0)
    >>> len(values), best.value == min(values) < values[0]
    (6, True)
    """
    runs, deviation = whole_number(restarts, "restarts", 1), positive(scale, "scale")
    first, rng = np.asarray(array_of(x0, "x0", "a vector"), np.float64), generator(random_state)
    found = []
    for i in range(runs):
        start = first + deviation * rng.standard_normal(first.shape) if i else first
        found.append(optimizer.minimise(f, start, callback=callback))
        if found[-1].message == "interrupted":
            break
    values = [one.value for one in found]
    if not any(map(math.isfinite, values)):
        raise InputError("f", "a function that is finite somewhere", "none of the runs ended at a finite value")
    return found[int(np.nanargmin(np.where(np.isfinite(values), values, np.nan)))], values
