"""Lower bounds on the width of every elimination order, for graphs with large grids or with dense minors.

The treewidth of a graph is at least that of each of its subgraphs, and the treewidth of a k x k grid is k (Robertson
and Seymour 1986; Bodlaender 1998, section 13.2). So if the graph contains such a grid, every elimination order has a
bucket of k + 1 variables or more. Greedy search would find that out, too, but after minutes on millions of variables.

Grids are looked for by number: the vertices ``v + i a + j b`` with i, j < k are one if all the edges between
neighbours are there. Builders number grids and lattices so, row by row, and clamped variables do not change the
numbers. The strides a and b are the most common differences between the numbers of neighbours.

Large random graphs contain no large grid by number, but they have dense minors. Contracting connected sets of vertices,
or leaving vertices out, does not raise the treewidth, and the treewidth is at least the degeneracy: the largest least
degree of a subgraph (Bodlaender and Koster 2011, "Treewidth computations II", section 3).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.typing import IntArray, Mask

STRIDES = 4  # the most common ones that are tried
LARGE_ARITY = 8  # factors of more variables are not looked at
CLUSTERS = 4  # that are grown, for each unit of the degeneracy that is wanted
GROWTH = 1.2  # of a round's new members over those of the round before; where it is less, no dense minor is expected


def square_grid(graph: FactorGraph, free: Mask, at_least: int) -> int:
    """Return the side of the largest square grid of free variables that is found; zero if it is below `at_least`.

    Examples
    --------
    >>> from isinglass.graph.builders import grid_graph
    >>> graph = grid_graph(9, 7, 2)
    >>> square_grid(graph, graph.cards > 1, 5), square_grid(graph, graph.cards > 1, 8)
    (7, 0)
    """
    at_least = max(at_least, 2)
    if np.count_nonzero(free) < at_least**2:
        return 0
    low, step = _pairs(graph, free)
    common = np.bincount(step) if len(step) else np.zeros(0, np.int64)
    strides = np.argsort(-common, kind="stable")[:STRIDES]
    enough = np.sort(strides[common[strides] >= at_least * (at_least - 1)])
    links = {int(stride): _linked(low[step == stride], len(free)) for stride in enough}
    return max((_largest(links[a], links[b], a, b, at_least) for a, b in combinations(links, 2)), default=0)


def dense_minor(graph: FactorGraph, free: Mask, at_least: int) -> int:
    """Return the degeneracy of a graph of connected clusters of free variables; zero if it is below `at_least`.

    Examples
    --------
    >>> from isinglass.graph.builders import random_graph
    >>> graph = random_graph(5000, 15000, 2, random_state=0)
    >>> dense_minor(graph, graph.cards > 1, 40) > 40
    True
    """
    low, step = _pairs(graph, free)
    if len(low) < GROWTH * np.count_nonzero(free):  # hardly more than a forest
        return 0
    owner = _clusters(low, low + step, free, CLUSTERS * at_least)
    a, b = owner[low], owner[low + step]
    tied = (a >= 0) & (b >= 0) & (a != b)
    near = np.zeros((CLUSTERS * at_least,) * 2, bool)
    near[a[tied], b[tied]] = near[b[tied], a[tied]] = True
    found = _degeneracy(near)
    return found if found >= at_least else 0


def _clusters(a: IntArray, b: IntArray, free: Mask, number: int) -> IntArray:
    """Grow connected clusters from random vertices, while they grow fast; return that of each vertex, or -1."""
    owner = np.full(len(free), -1)
    vertices = np.flatnonzero(free)
    if len(vertices) < number:
        return owner
    owner[np.random.default_rng(0).choice(vertices, number, replace=False)] = np.arange(number)
    before = 0
    while True:
        out, into = owner[a] >= 0, owner[b] >= 0
        edge, back = np.flatnonzero(out & ~into), np.flatnonzero(into & ~out)
        new = np.concatenate([b[edge], a[back]])
        owner[new] = owner[np.concatenate([a[edge], b[back]])]
        if len(new) <= GROWTH * before:
            return owner
        before = len(new)


def _degeneracy(near: Mask) -> int:
    """Return the largest least degree, as the vertex of least degree is taken away, one after the other."""
    degree, left, most = near.sum(axis=1), np.ones(len(near), bool), 0
    for _ in range(len(near)):
        v = int(np.argmin(np.where(left, degree, len(near))))
        most = max(most, int(degree[v]))
        left[v] = False
        degree = degree - near[v]
    return most


def _pairs(graph: FactorGraph, free: Mask) -> tuple[IntArray, IntArray]:
    """Return the lower numbers, and the differences of the numbers, of all pairs of free variables in a factor."""
    low, step = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for group in graph.groups:
        if not 2 <= group.arity <= LARGE_ARITY:
            continue
        for i, j in combinations(range(group.arity), 2):
            a, b = group.scopes[:, i], group.scopes[:, j]
            both = free[a] & free[b]
            low.append(np.minimum(a, b)[both])
            step.append(np.abs(a - b)[both])
    return np.concatenate(low), np.concatenate(step)


def _linked(low: IntArray, n: int) -> Mask:
    """Mark the vertices that are tied to the one a stride later."""
    mask = np.zeros(n, bool)
    mask[low] = True
    return mask


def _largest(beside: Mask, below: Mask, a: int, b: int, at_least: int) -> int:
    """Return the side of the largest grid with strides a and b, by bisection; zero if it is below `at_least`."""
    most = min(b // a, int(np.sqrt(len(beside))))  # so that no vertex is met twice
    if most < at_least or not _contains(beside, below, a, b, at_least):
        return 0
    least = most if _contains(beside, below, a, b, most) else at_least
    while least < most:
        middle = (least + most + 1) // 2
        if _contains(beside, below, a, b, middle):
            least = middle
        else:
            most = middle - 1
    return least


def _contains(beside: Mask, below: Mask, a: int, b: int, k: int) -> bool:
    """Tell whether there is a grid of side k: k rows of k - 1 links, and k - 1 times k links between them."""
    rows, ties = _runs(beside, a, k - 1), _runs(below, a, k)
    size = len(rows) - (k - 1) * b
    if size <= 0:
        return False
    tied = _runs(ties, b, k - 1)[:size]
    return bool((_runs(rows, b, k)[:size] & tied).any())


def _runs(mask: Mask, stride: int, length: int) -> Mask:
    """Mark where `length` vertices, each a stride after the other, are all marked."""
    rows = -(-len(mask) // stride) + length
    padded = np.zeros(rows * stride, bool)
    padded[: len(mask)] = mask
    count = np.zeros((rows + 1, stride), np.int32)
    np.cumsum(padded.reshape(rows, stride), axis=0, out=count[1:], dtype=np.int32)
    whole: Mask = count[length:] - count[:-length] == length
    return whole.reshape(-1)[: len(mask)]
