"""The neighbours of each variable as sets, for the functions that say what a graph means.

Two variables are neighbours if they share a factor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.elimination.order import interaction_graph
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.names import VariableLike, is_name, variable_numbers
from isinglass.validation import instance, variables_of

Adjacency = Sequence[frozenset[int]]
Variables = VariableLike | Iterable[VariableLike]


def adjacency(graph: FactorGraph) -> Adjacency:
    """Return the set of neighbours of each variable.

    Examples
    --------
    >>> [sorted(near) for near in adjacency(FactorGraph([2, 2, 2], [(0, 1), (1, 2)]))]
    [[1], [0, 2], [1]]
    """
    instance(graph, FactorGraph, "graph")
    return graph.cached("adjacency", lambda: _adjacency(graph))


def _adjacency(graph: FactorGraph) -> Adjacency:
    first, neighbours = interaction_graph(graph, np.arange(graph.n_variables))
    listed, ends = neighbours.tolist(), first.tolist()
    return tuple(frozenset(listed[a:b]) for a, b in pairwise(ends))


def variable_set(
    variables: Variables, n_variables: int, argument: str, graph: FactorGraph | None = None
) -> frozenset[int]:
    """Check one variable, or several distinct ones; with a graph, they may be given by its names.

    Examples
    --------
    >>> sorted(variable_set([2, 0], 3, "A")), sorted(variable_set(1, 3, "A"))
    ([0, 2], [1])
    """
    listed = list(variables) if isinstance(variables, set | frozenset | range) else variables
    if isinstance(listed, int | np.integer):
        listed = [int(listed)]
    if graph is not None and not isinstance(listed, np.ndarray):
        return frozenset(variable_numbers(graph, [listed] if is_name(listed) else listed, argument).tolist())
    return frozenset(variables_of(listed, n_variables, argument).tolist())  # type: ignore[arg-type]


def disjoint(named: dict[str, frozenset[int]]) -> None:
    """Refuse sets of variables that overlap."""
    names = list(named)
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            both = named[a] & named[b]
            if both:
                raise InputError(b, f"variables that are not in {a}", f"{min(both)}, which is in both")


def reachable(near: Adjacency, start: Iterable[int], blocked: frozenset[int]) -> set[int]:
    """Return what can be reached from `start` without entering `blocked`; start included.

    Examples
    --------
    >>> sorted(reachable([{1}, {0, 2}, {1}], [0], frozenset([1])))
    [0]
    """
    found = set(start) - blocked
    todo = list(found)
    while todo:
        for j in near[todo.pop()]:
            if j not in found and j not in blocked:
                found.add(j)
                todo.append(j)
    return found
