"""Greedy forests: the links of a sequence that close no cycle (Kruskal 1956)."""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.structure.acyclic import take_acyclic
from isinglass.typing import IntArray, Mask


def acyclic_subset(first: IntArray, variables: IntArray, order: IntArray, n: int) -> Mask:
    """Take scopes in this order, each if its variables lie in different trees so far. Returns which were taken."""
    taken = np.zeros(len(order), np.bool_)
    take_acyclic(first, variables, order, np.arange(n), taken)
    return taken
