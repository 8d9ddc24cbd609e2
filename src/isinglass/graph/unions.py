"""Batches: graphs side by side in one, each a component of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isinglass.graph.factor_graph import FactorGraph, FactorGroup
from isinglass.graph.names import union_names
from isinglass.segments import starts
from isinglass.typing import IntArray
from isinglass.validation import instance, items


def disjoint_union(graphs: Sequence[FactorGraph]) -> FactorGraph:
    """Put graphs side by side in one; the components of each become components of the whole.

    Variables and factors are numbered graph after graph. Groups of equal shape are joined, the k-th of a
    shape with the k-th of that shape.

    Examples
    --------
    >>> a, b = FactorGraph([2], [(0,)]), FactorGraph([3, 2], [(0, 1)])
    >>> union = disjoint_union([a, b])
    >>> union.scopes[:], union.variable_component.tolist()
    ([(0,), (1, 2)], [0, 1, 1])
    """
    for i, graph in enumerate(items(graphs, "graphs", "a sequence of graphs")):
        instance(graph, FactorGraph, f"graphs[{i}]")
    variables, factors, components = (
        starts([getattr(g, name) for g in graphs]) for name in ("n_variables", "n_factors", "n_components")
    )
    joined: list[FactorGroup] = []
    for members in union_groups(graphs):
        scopes = [graphs[i].groups[j].scopes + variables[i] for i, j in members]
        numbers = [graphs[i].groups[j].factors + factors[i] for i, j in members]
        shape = graphs[members[0][0]].groups[members[0][1]].shape
        joined.append(FactorGroup(np.concatenate(scopes), shape, np.concatenate(numbers)))

    def concatenated(name: str, shift: IntArray) -> IntArray:
        parts = [getattr(g, name) + s for g, s in zip(graphs, shift, strict=False)]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    return FactorGraph._build(
        np.concatenate([np.zeros(0, np.int64), *(g.cards for g in graphs)]),
        joined,
        concatenated("variable_component", components),
        concatenated("factor_component", components),
        int(components[-1]),
        union_names(graphs),
    )


def union_groups(graphs: Sequence[FactorGraph]) -> list[list[tuple[int, int]]]:
    """Which (graph, group) pairs become one group of the disjoint union."""
    joined: dict[tuple[tuple[int, ...], int], list[tuple[int, int]]] = {}
    for i, graph in enumerate(graphs):
        seen: dict[tuple[int, ...], int] = {}
        for j, group in enumerate(graph.groups):
            k = seen.get(group.shape, 0)
            seen[group.shape] = k + 1
            joined.setdefault((group.shape, k), []).append((i, j))
    return list(joined.values())
