"""Chordal graphs and cliques.

A graph is chordal (triangulated, decomposable) if every cycle of four or more variables has a chord. Then, and only
then, there is a perfect elimination order: the later neighbours of each variable form a clique. Maximum cardinality
search finds one in linear time: visit next the variable with the most visited neighbours; the reverse is perfect if the
graph is chordal (Tarjan and Yannakakis 1984).

The maximal cliques of a graph that is not chordal are listed by Bron and Kerbosch's search with pivots (Tomita et al.
2006).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from isinglass.graph.builders import pairwise_graph
from isinglass.graph.elimination.order import partial_order
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.semantics.adjacency import Adjacency, adjacency
from isinglass.validation import integers

Clique = tuple[int, ...]


def is_chordal(graph: FactorGraph) -> bool:
    """Return whether the graph is chordal: every cycle of four or more variables has a chord.

    A distribution that factorises over the maximal cliques of a chordal graph is a closed-form function of its clique
    marginals. Chordal graphs express the independences that both directed and undirected graphs can express (Murphy
    2012, section 19.2.3).

    Examples
    --------
    >>> import isinglass as ig
    >>> ig.is_chordal(ig.chain_graph(5, 2)), ig.is_chordal(ig.grid_graph(2, 2, 2))
    (True, False)
    """
    near = adjacency(graph)
    return not any(fill_of(near, cardinality_order(near)))


def cliques(graph: FactorGraph) -> list[Clique]:
    """List the maximal cliques: sets of mutual neighbours that are in no larger such set.

    A graph can have exponentially many of them; a chordal graph has at most as many as variables.

    Examples
    --------
    >>> import isinglass as ig
    >>> ig.cliques(ig.FactorGraph([2] * 4, [(0, 1, 2), (2, 3)]))
    [(0, 1, 2), (2, 3)]
    """
    near = adjacency(graph)
    order = cardinality_order(near)
    found = maximal_cliques(near) if any(fill_of(near, order)) else chordal_cliques(near, order)
    return sorted(found)


def triangulate(graph: FactorGraph) -> FactorGraph:
    """Return a chordal graph, by adding factors of new pairs; the same graph if it is chordal already.

    The pairs are the fill-in edges of the elimination order of `elimination_order`. Few are added, but not always the
    fewest possible, which is NP-hard to find.

    Examples
    --------
    >>> import isinglass as ig
    >>> square = ig.grid_graph(2, 2, 2)
    >>> ig.triangulate(square).scopes[square.n_factors:]
    [(1, 2)]
    """
    added = fill_in(graph)
    return FactorGraph(graph.cards, [*graph.scopes, *added]).with_names(graph.names) if added else graph


def fill_in(graph: FactorGraph) -> list[tuple[int, int]]:
    """Return the pairs that `triangulate` adds, sorted."""
    near = adjacency(graph)
    if not any(fill_of(near, cardinality_order(near))):
        return []
    return sorted({pair for pairs in fill_of(near, greedy_order(graph)) for pair in pairs})


def greedy_order(graph: FactorGraph) -> list[int]:
    """Return an elimination order of all variables, those of one state included."""
    near = adjacency(graph)
    edges = integers([(i, j) for i, others in enumerate(near) for j in others if i < j] or np.zeros((0, 2)), "edges", 2)
    found: list[int] = partial_order(pairwise_graph(len(near), edges, np.maximum(graph.cards, 2))).tolist()
    return found + sorted(set(range(len(near))) - set(found))  # the search gives up where no table would fit


def cardinality_order(near: Adjacency) -> list[int]:
    """Return the reverse of a maximum cardinality search, from the lowest numbers: perfect if the graph is chordal.

    Examples
    --------
    >>> cardinality_order([{1}, {0, 2}, {1}])
    [2, 1, 0]
    """
    seen: list[dict[int, None]] = [{} for _ in range(len(near) + 1)]  # by the number of visited neighbours; ordered
    seen[0] = dict.fromkeys(range(len(near)))
    visited: list[int] = []
    count, top = [0] * len(near), 0
    while len(visited) < len(near):
        while not seen[top]:
            top -= 1
        i = next(iter(seen[top]))
        del seen[top][i]
        visited.append(i)
        count[i] = -1
        for j in sorted(near[i]):
            if count[j] >= 0:
                del seen[count[j]][j]
                count[j] += 1
                seen[count[j]][j] = None
        top += 1
    return visited[::-1]


def fill_of(near: Adjacency, order: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
    """Eliminate in an order: for each variable, the pairs of its later neighbours that were no neighbours yet."""
    now = [set(others) for others in near]
    for i in order:
        later = sorted(now[i])
        pairs = [(j, k) for a, j in enumerate(later) for k in later[a + 1 :] if k not in now[j]]
        for j, k in pairs:
            now[j].add(k)
            now[k].add(j)
        for j in later:
            now[j].discard(i)
        yield pairs


def chordal_cliques(near: Adjacency, order: Sequence[int]) -> list[Clique]:
    """Return the maximal cliques of a chordal graph, given a perfect order, in that order."""
    place = {i: p for p, i in enumerate(order)}
    later = {i: {j for j in near[i] if place[j] > place[i]} for i in order}
    maximal = dict.fromkeys(order, True)
    for i in order:  # the clique of i holds that of its first later neighbour, if it is larger by i alone
        if later[i]:
            parent = min(later[i], key=place.__getitem__)
            if len(later[i]) > len(later[parent]):
                maximal[parent] = False
    return [tuple(sorted({i, *later[i]})) for i in order if maximal[i]]


def maximal_cliques(near: Adjacency) -> Iterator[Clique]:
    """List the maximal cliques of any graph."""
    stack: list[tuple[frozenset[int], set[int], set[int]]] = [(frozenset(), set(range(len(near))), set())]
    while stack:
        clique, candidates, done = stack.pop()
        if not candidates and not done:
            yield tuple(sorted(clique))
            continue
        if not candidates:
            continue
        pivot = max(candidates | done, key=lambda i: len(candidates & near[i]))
        for i in sorted(candidates - near[pivot]):
            stack.append((clique | {i}, candidates & near[i], done & near[i]))
            candidates = candidates - {i}
            done = done | {i}
