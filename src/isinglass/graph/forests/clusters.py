"""Clusters of variables that are trees: the links that structured mean field treats exactly.

Some links (factors of arity two or more) are *chosen*; what they connect is a cluster. A choice is admissible if

- the chosen links have no cycle (the bipartite graph of variables and chosen links is a forest), and
- every other link *crosses*: its variables lie in pairwise different clusters.

The greedy choice goes through the links in factor order and takes a link if the clusters that it would join share no
other link. A forest is taken whole; a grid whose horizontal links come first gives its rows. Of links that share two
variables, as parallel ones do, none is taken: with one, the others would lie inside its cluster and close a cycle.

Clusters that a crossing link joins get different colours, greedily, by their first variable; clusters of one colour do
not see each other. Choice and colours of a connected part do not depend on the other parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph, FactorGroup
from isinglass.graph.message_graph import edges_of
from isinglass.graph.neighbours import Neighbours, neighbours_of
from isinglass.typing import IntArray, Mask
from isinglass.validation import integers

Scopes = list[list[int]]


@dataclass(frozen=True, eq=False)
class ColourClass:
    """The clusters of one colour, as a forest of their own.

    Attributes
    ----------
    variables : int array
        The variables of these clusters; variable k of `graph` is ``variables[k]``.
    links : int array
        Their chosen links.
    graph : FactorGraph
        Factor k is variable k alone; then the links follow. Components are those of the whole graph.
    rows : list of int arrays
        For each group of `graph`: positions in `variables` (groups of arity one) or in `links`.
    """

    variables: IntArray
    links: IntArray
    graph: FactorGraph
    rows: list[IntArray]


@dataclass(frozen=True, eq=False)
class TreeClusters:
    """A choice of links, the cluster of each variable, the crossing links around it, and the colour classes."""

    chosen: Mask  # (links,)
    cluster: IntArray  # (variables,) numbered by first variable
    crossing: Neighbours
    classes: list[ColourClass]


def tree_clusters(graph: FactorGraph, forest: ArrayLike | None = None) -> TreeClusters:
    """Choose links, greedily or as given by factor numbers in `forest`.

    Examples
    --------
    >>> from isinglass.graph.builders import grid_graph
    >>> rows = tree_clusters(grid_graph(3, 4, 2))
    >>> rows.cluster.reshape(3, 4).tolist()
    [[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2]]
    >>> [c.variables.tolist() for c in rows.classes]
    [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7]]
    """
    given = None if forest is None else tuple(np.unique(integers(forest, "forest", 1)).tolist())
    return graph.cached(("tree_clusters", given), lambda: _make(graph, given))


class _Union:
    """Disjoint sets of variables, each with the links around it that are not chosen."""

    def __init__(self, n: int, scopes: Scopes) -> None:
        self.parent = list(range(n))
        self.around: list[set[int]] = [set() for _ in range(n)]
        for f, scope in enumerate(scopes):
            for i in scope:
                self.around[i].add(f)

    def find(self, i: int) -> int:
        """Return the representative of i's set."""
        while self.parent[i] != i:
            self.parent[i] = i = self.parent[self.parent[i]]
        return i

    def share_only(self, f: int, roots: Sequence[int]) -> bool:
        """Tell whether no other link than f has variables in two of the sets."""
        around = [self.around[r] for r in roots]
        for links in around:
            links.discard(f)
        alone = all(a.isdisjoint(b) for a, b in combinations(around, 2))
        for links in around:
            links.add(f)
        return alone

    def join(self, f: int, roots: Sequence[int]) -> None:
        """Choose link f: make its sets one."""
        largest = max(roots, key=lambda r: len(self.around[r]))
        for r in roots:
            if r != largest:
                self.parent[r] = largest
                self.around[largest] |= self.around[r]
                self.around[r] = set()
        self.around[largest].discard(f)


def _make(graph: FactorGraph, given: tuple[int, ...] | None) -> TreeClusters:
    edges = edges_of(graph)
    flat = edges.slot_variable.tolist()
    scopes = [flat[a:b] for a, b in pairwise(edges.first_slot.tolist())]
    union = _Union(graph.n_variables, scopes)
    chosen = np.zeros(len(scopes), bool)
    chosen[_grown(union, scopes) if given is None else _checked(graph, union, scopes, given)] = True
    roots = np.array([union.find(i) for i in range(graph.n_variables)], np.int64)
    _, first, inverse = np.unique(roots, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    cluster: IntArray = rank[inverse.ravel()]
    of = cluster.tolist()
    colour = _colours(len(first), [{of[i] for i in scopes[f]} for f in np.flatnonzero(~chosen).tolist()])
    of_variable = colour[cluster]
    classes = [_class(graph, chosen, of_variable == k) for k in range(int(colour.max(initial=-1)) + 1)]
    return TreeClusters(chosen, cluster, neighbours_of(graph, ~chosen), classes)


def _grown(union: _Union, scopes: Scopes) -> list[int]:
    """Take each link that leaves all others crossing."""
    taken = []
    for f, scope in enumerate(scopes):
        roots = [union.find(i) for i in scope]
        if union.share_only(f, roots):
            union.join(f, roots)
            taken.append(f)
    return taken


def _checked(graph: FactorGraph, union: _Union, scopes: Scopes, given: tuple[int, ...]) -> list[int]:
    """Take the given factors; refuse what is no link, closes a cycle, or leaves a link inside a cluster."""
    numbers = edges_of(graph).link_factor
    link_of = {int(a): f for f, a in enumerate(numbers)}
    taken = []
    for a in given:
        if a not in link_of:
            raise InputError("forest", f"factors of two or more variables, below {graph.n_factors}", f"factor {a}")
        roots = [union.find(i) for i in scopes[link_of[a]]]
        if len(set(roots)) < len(roots):
            raise InputError("forest", "factors without a cycle", f"factor {a}, which closes one", "leave it out")
        union.join(link_of[a], roots)
        taken.append(link_of[a])
    for f in set(range(len(scopes))) - set(taken):
        roots = [union.find(i) for i in scopes[f]]
        if len(set(roots)) < len(roots):
            got = f"factor {numbers[f]}, which has two variables in one tree"
            expected = "every other factor to have its variables in different trees"
            raise InputError("forest", expected, got, "leave out some factors")
    return taken


def _colours(n: int, meetings: list[set[int]]) -> IntArray:
    """Give each cluster the first colour that no earlier neighbour has."""
    beside: list[set[int]] = [set() for _ in range(n)]
    for clusters in meetings:
        for a in clusters:
            beside[a] |= clusters
    colour: list[int] = []
    for a in range(n):
        used = {colour[b] for b in beside[a] if b < a}
        colour.append(next(k for k in range(len(used) + 1) if k not in used))
    return np.array(colour, np.int64)


def _class(graph: FactorGraph, chosen: Mask, inside: Mask) -> ColourClass:
    """Make a forest of some variables and the chosen links among them."""
    edges = edges_of(graph)
    variables = np.flatnonzero(inside)
    links = np.flatnonzero(chosen & inside[edges.slot_variable[edges.first_slot[:-1]]])
    number = np.cumsum(inside) - 1
    groups: list[FactorGroup] = []
    rows: list[IntArray] = []
    for card in np.unique(graph.cards[variables]).tolist():
        rows.append(np.flatnonzero(graph.cards[variables] == card))
        groups.append(FactorGroup(rows[-1][:, None], (card,), rows[-1]))
    for shape, members, scopes in _by_shape(graph, edges.link_factor[links]):
        rows.append(members)
        groups.append(FactorGroup(number[scopes], shape, len(variables) + members))
    component = np.concatenate([graph.variable_component[variables], edges.component[links]])
    sub = FactorGraph._build(
        graph.cards[variables], groups, graph.variable_component[variables], component, graph.n_components
    )
    return ColourClass(variables, links, sub, rows)


def _by_shape(graph: FactorGraph, factors: IntArray) -> Iterator[tuple[tuple[int, ...], IntArray, IntArray]]:
    """Yield the shape, the positions in `factors` and the scopes of those in each group of the graph."""
    group, row = (array[factors] for array in graph.place)
    for k in np.unique(group).tolist():
        members = np.flatnonzero(group == k)
        yield graph.groups[k].shape, members, graph.groups[k].scopes[row[members]]
