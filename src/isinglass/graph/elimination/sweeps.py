"""Elimination orders that sweep across a graph, and what a given order costs.

A sweep starts at the rim and eliminates the vertices level by level, those at distance one, two, and so on, so that
the separators are about as wide as a level. On grids this is far better than any greedy rule: from a corner, a grid of
n x n vertices has width n (Cuthill and McKee 1969; George and Liu 1979 for starts at the rim). The sequence in which
the vertices were numbered is often a sweep, too.

The separator of a vertex holds its later neighbours and the separators that name it as their first vertex to go,
without itself (the symbolic factorisation of a sparse matrix; Liu 1990).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, reverse_cuthill_mckee

from isinglass.typing import FloatArray, IntArray

Eliminated = tuple[IntArray, IntArray, IntArray]
"""The order, and the separators of its vertices: those of the i-th are ``separators[first[i]:first[i + 1]]``."""


def sweeps(first: IntArray, neighbours: IntArray) -> Iterator[IntArray]:
    """Yield some sweeps of a connected graph, the sequence of the vertices' numbers first, in both directions each.

    Parameters
    ----------
    first, neighbours : int64 arrays
        Adjacency: the neighbours of v are ``neighbours[first[v]:first[v + 1]]``, distinct, without v.
    """
    n = len(first) - 1
    matrix = csr_array((np.ones(len(neighbours)), neighbours, first), shape=(n, n))
    rim = 0
    for _ in range(2):
        rim = int(breadth_first_order(matrix, rim, return_predecessors=False)[-1])
    by_levels = breadth_first_order(matrix, rim, return_predecessors=False)
    by_degrees = reverse_cuthill_mckee(matrix, symmetric_mode=True)
    for order in (np.arange(n), by_levels, by_degrees):
        yield order.astype(np.int64)
        yield order[::-1].astype(np.int64)


def follow(
    order: IntArray, first: IntArray, neighbours: IntArray, log_cards: FloatArray, max_log2: float, max_entries: float
) -> Eliminated | None:
    """Eliminate in a given order; None as soon as a bucket has over ``2**max_log2`` states, or all over `max_entries`.

    Examples
    --------
    >>> path = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1])
    >>> order, first, separators = follow(np.array([0, 2, 1]), *path, np.ones(3), 48, np.inf)
    >>> first.tolist(), separators.tolist()
    ([0, 1, 2, 2], [1, 1])
    """
    n = len(order)
    places = np.empty(n, np.int64)
    places[order] = np.arange(n)
    place = places.tolist()
    around = [part.tolist() for part in np.split(neighbours, first[1:-1])]
    weight = log_cards[order].tolist()
    below: list[list[set[int]]] = [[] for _ in range(n)]  # separators that name a place as their first
    bounds, entries = [0], 0.0
    found: list[int] = []
    for i, v in enumerate(order.tolist()):
        separator = {place[u] for u in around[v] if place[u] > i}.union(*below[i])
        separator.discard(i)
        below[i] = []
        size = weight[i] + sum(weight[j] for j in separator)
        entries += 2.0 ** min(size, max_log2)
        if size > max_log2 or entries > max_entries:
            return None
        if separator:
            below[min(separator)].append(separator)
        found.extend(separator)
        bounds.append(len(found))
    return order, np.array(bounds, np.int64), order[np.array(found, np.int64)]
