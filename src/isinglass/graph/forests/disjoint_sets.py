"""Disjoint sets as trees, each known by its root; greedy forests of the links that close no cycle (Kruskal 1956)."""

from __future__ import annotations

import numpy as np

from isinglass.typing import IntArray, Mask


def root_of(parent: list[int], i: int) -> int:
    """Return the root of a member's tree, in plain Python; paths become shorter on the way.

    Examples
    --------
    >>> parent = [0, 0, 1, 3]
    >>> root_of(parent, 2), parent
    (0, [0, 0, 0, 3])
    """
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


def acyclic_subset(first: IntArray, variables: IntArray, order: IntArray, n: int) -> Mask:
    """Take scopes in this order, each if its variables lie in different trees so far. Returns which were taken."""
    from isinglass.kernels.numba.structure.forests import take_acyclic

    taken = np.zeros(len(order), np.bool_)
    take_acyclic(first, variables, order, np.arange(n), taken)
    return taken
