"""Separation in an undirected graph, and the independencies that it implies (Murphy 2012, section 19.2.1).

A and B are separated by C if every path from A to B meets C. Then every distribution that factorises over the graph
has A independent of B given C (the global Markov property). Two special cases:

    local      i and all others are independent, given the neighbours of i (its Markov blanket)
    pairwise   i and j that are not neighbours are independent, given all others

For positive distributions the three are equivalent (Koller and Friedman 2009, section 4.3.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations
from typing import NamedTuple

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.semantics.adjacency import Adjacency, Variables, adjacency, disjoint, reachable, variable_set

KINDS = ("pairwise", "local", "global")
MOST_GLOBAL = 12  # variables for which every separating set is listed


class Independence(NamedTuple):
    """A statement "a and b are independent, given c"; each a sorted tuple of variables.

    Examples
    --------
    >>> print(Independence((0,), (2, 3), (1,)))
    0 ⊥ 2, 3 | 1
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    given: tuple[int, ...]

    def __str__(self) -> str:
        a, b, given = (", ".join(map(str, part)) for part in self)
        return f"{a} ⊥ {b}" + (f" | {given}" if given else "")


def separated(graph: FactorGraph, A: Variables, B: Variables, given: Variables = ()) -> bool:
    """Tell whether every path between A and B meets `given`.

    Parameters
    ----------
    graph : FactorGraph
    A, B, given : int, or sequence of int
        By numbers, or by the names of a graph that has some.
        Disjoint; an empty set is separated from everything.

    Examples
    --------
    >>> import isinglass as ig
    >>> grid = ig.grid_graph(3, 3, 2)
    >>> ig.separated(grid, 0, 8, given=[2, 4, 6]), ig.separated(grid, 0, 8, given=[4])
    (True, False)
    """
    near = adjacency(graph)
    found = {name: variable_set(v, len(near), name, graph) for name, v in (("A", A), ("B", B), ("given", given))}
    disjoint(found)
    return found["B"].isdisjoint(reachable(near, found["A"], found["given"]))


def markov_blanket(graph: FactorGraph, variables: Variables) -> tuple[int, ...]:
    """Return the smallest set that separates variables from all others: their neighbours.

    Examples
    --------
    >>> import isinglass as ig
    >>> ig.markov_blanket(ig.grid_graph(3, 3, 2), 4)
    (1, 3, 5, 7)
    """
    near = adjacency(graph)
    inside = variable_set(variables, len(near), "variables", graph)
    return tuple(sorted(set(chain.from_iterable(near[i] for i in inside)) - inside))


def implied_independencies(graph: FactorGraph, kind: str = "pairwise") -> list[Independence]:
    """List the independencies that a graph implies.

    Parameters
    ----------
    graph : FactorGraph
    kind : "pairwise", "local" or "global"
        Global: all statements about two variables and any set that separates them, for at most 12 variables. The
        statements about larger sets follow from these: in an undirected graph, A and B are separated exactly if
        all their pairs are.

    Examples
    --------
    >>> import isinglass as ig
    >>> for statement in ig.implied_independencies(ig.chain_graph(4, 2)):
    ...     print(statement)
    0 ⊥ 2 | 1, 3
    0 ⊥ 3 | 1, 2
    1 ⊥ 3 | 0, 2
    """
    near = adjacency(graph)
    if kind not in KINDS:
        raise InputError("kind", " or ".join(map(repr, KINDS)), repr(kind))
    if kind == "global" and len(near) > MOST_GLOBAL:
        remedy = "ask ig.separated for the statement that you need, or kind='local'"
        raise InputError("graph", f"at most {MOST_GLOBAL} variables for kind='global'", f"{len(near)}", remedy)
    return list({"pairwise": _pairwise, "local": _local, "global": _global}[kind](near))


def _strangers(near: Adjacency) -> Iterator[tuple[int, int]]:
    """Pairs that are not neighbours."""
    return ((i, j) for i, j in combinations(range(len(near)), 2) if j not in near[i])


def _others(near: Adjacency, *without: int) -> tuple[int, ...]:
    return tuple(k for k in range(len(near)) if k not in without)


def _pairwise(near: Adjacency) -> Iterator[Independence]:
    return (Independence((i,), (j,), _others(near, i, j)) for i, j in _strangers(near))


def _local(near: Adjacency) -> Iterator[Independence]:
    for i, blanket in enumerate(near):
        if rest := _others(near, i, *blanket):
            yield Independence((i,), rest, tuple(sorted(blanket)))


def _global(near: Adjacency) -> Iterator[Independence]:
    for i, j in _strangers(near):
        others = _others(near, i, j)
        for given in chain.from_iterable(combinations(others, size) for size in range(len(others) + 1)):
            if j not in reachable(near, [i], frozenset(given)):
                yield Independence((i,), (j,), given)
