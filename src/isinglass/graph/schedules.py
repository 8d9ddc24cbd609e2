"""Schedules of message passing: the order in which the factors of a graph are updated in one iteration.

A schedule lists links (factors of arity two or more, numbered as in `edges`), which are updated one after the
other; *flooding* updates all of them at once and needs no list.

- tree: on a forest, from the leaves to the roots and back: one iteration is exact.
- grid: Domke's (2009) figure 5.2: vertical factors from the top left, then horizontal ones from the top left,
  then both in reverse; every factor twice, and information reaches every site in one iteration.
- sequential: in the order of the factors.
"""

from __future__ import annotations

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.grids import grid_shapes
from isinglass.graph.message_graph import edges_of
from isinglass.typing import IntArray


def tree_schedule(graph: FactorGraph) -> IntArray:
    """Return the links of the components that are forests, from the leaves to the roots and back.

    Examples
    --------
    >>> from isinglass.graph.builders import chain_graph
    >>> tree_schedule(chain_graph(4, 2)).tolist()
    [0, 2, 1, 1, 2, 0]
    """
    return graph.cached("tree_schedule", lambda: _up_and_down(graph))


def grid_schedule(graph: FactorGraph) -> IntArray:
    """Return the links of regular grids, one after the other: vertical, horizontal, and both reversed.

    Examples
    --------
    >>> from isinglass.graph.builders import grid_graph
    >>> grid_schedule(grid_graph(2, 2, 2)).tolist()
    [2, 3, 0, 1, 1, 0, 3, 2]
    """
    return graph.cached("grid_schedule", lambda: _sweeps(graph))


def _sweeps(graph: FactorGraph) -> IntArray:
    shapes = grid_shapes(graph)
    if shapes is None:
        got = "a graph that grid_graph would not build"
        raise InputError("schedule", "a regular grid (horizontal, then vertical edges)", got, 'use "sequential"')
    links, parts = 0, []
    for height, width in shapes:
        horizontal = links + np.arange(height * (width - 1))
        vertical = links + len(horizontal) + np.arange((height - 1) * width)
        parts += [vertical, horizontal, horizontal[::-1], vertical[::-1]]
        links += len(horizontal) + len(vertical)
    return np.concatenate(parts)


def _up_and_down(graph: FactorGraph) -> IntArray:
    """Peel factors that have at most one variable shared with a factor that is left; on a forest that takes all."""
    edges = edges_of(graph)
    wanted = graph.forest_components[edges.component].tolist()
    first_slot, variables = edges.first_slot.tolist(), edges.slot_variable.tolist()
    n_links = len(first_slot) - 1
    left = np.diff(edges.first_edge).tolist()  # links not yet peeled, at each variable
    around: list[list[int]] = [[] for _ in range(graph.n_variables)]
    shared = [0] * n_links  # slots whose variable has another link left
    for f in range(n_links):
        for i in variables[first_slot[f] : first_slot[f + 1]]:
            around[i].append(f)
            shared[f] += left[i] > 1
    order: list[int] = []
    peeled = [False] * n_links
    ready = [f for f in range(n_links) if wanted[f] and shared[f] <= 1]
    for f in ready:
        if peeled[f]:
            continue
        peeled[f] = True
        order.append(f)
        for i in variables[first_slot[f] : first_slot[f + 1]]:
            left[i] -= 1
            if left[i] == 1:
                other = next(g for g in around[i] if not peeled[g])
                shared[other] -= 1
                if shared[other] <= 1:
                    ready.append(other)
    return np.array(order + order[::-1], np.int64)
