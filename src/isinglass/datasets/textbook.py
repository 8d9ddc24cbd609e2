"""Worked examples of textbooks, with numbers that are printed there."""

from __future__ import annotations

import numpy as np

from isinglass.graph import FactorGraph
from isinglass.potentials import Potentials

_MISCONCEPTION = {
    (0, 1): [[30, 5], [1, 10]],  # Anna, Bob
    (1, 2): [[100, 1], [1, 100]],  # Bob, Charles
    (2, 3): [[1, 100], [100, 1]],  # Charles, Debbie: they disagree
    (3, 0): [[100, 1], [1, 100]],  # Debbie, Anna
}


def misconception() -> Potentials:
    """Return the misconception network: four students in a ring, who mostly agree with whom they study with.

    Koller and Friedman (2009), example 4.1 and figure 4.1. Variables 0 to 3 are Anna, Bob, Charles and Debbie;
    state 1 is "has the misconception". Z = 7,201,840.

    Examples
    --------
    >>> p = misconception()
    >>> p.graph
    FactorGraph: 4 variables (2 states), 4 factors (arity 2)
    >>> float(np.exp(p.log_score([0, 1, 1, 0])).round())
    5000000.0
    """
    tables = [np.log(np.array(values, np.float64)) for values in _MISCONCEPTION.values()]
    return Potentials(FactorGraph([2, 2, 2, 2], list(_MISCONCEPTION)), tables)
