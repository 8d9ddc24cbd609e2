"""Schedules of message passing: in which sequence the factors of a graph are updated in one iteration.

A schedule lists links (factors of arity two or more, numbered as in `edges`), which are updated one after the
other; *flooding* updates all of them at once and needs no list.

- tree: on a forest, from the leaves to the roots and back: one iteration is exact.
- grid: Domke's (2009) figure 5.2: vertical factors from the top left, then horizontal ones from the top left,
  then both in reverse; every factor twice, and information reaches every site in one iteration.
- sequential: in the order of the factors; random: in a new random order for each iteration.
"""

from __future__ import annotations

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.edges import edges_of
from isinglass.graph.factor_graph import FactorGraph
from isinglass.validation import IntArray


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


def grid_shape(graph: FactorGraph) -> tuple[int, int] | None:
    """Tell the height and width of a grid (or of every copy of a repeated one), if the graph is one."""
    return graph.cached("grid_shape", lambda: _grid_shape(graph))


def grid_shapes(graph: FactorGraph) -> list[tuple[int, int]] | None:
    """Tell the height and width of each component, if all of them are grids that follow each other.

    Examples
    --------
    >>> from isinglass.graph.builders import grid_graph
    >>> from isinglass.graph.factor_graph import disjoint_union
    >>> grid_shapes(disjoint_union([grid_graph(2, 3, 2), grid_graph(4, 2, 2)]))
    [(2, 3), (4, 2)]
    """
    return graph.cached("grid_shapes", lambda: _grid_shapes(graph))


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


def _grid_shape(graph: FactorGraph) -> tuple[int, int] | None:
    n, copies = graph.n_variables, graph.n_components
    edges = edges_of(graph)
    arity = np.diff(edges.first_slot)
    if n == 0 or n % copies or len(arity) % copies or (arity != 2).any():
        return None
    sites, links = n // copies, len(arity) // copies
    pairs = edges.slot_variable.reshape(copies, links, 2) - (np.arange(copies) * sites)[:, None, None]
    return shape_of(pairs[0], sites) if (pairs == pairs[0]).all() else None


def _grid_shapes(graph: FactorGraph) -> list[tuple[int, int]] | None:
    edges, n, same = edges_of(graph), graph.n_components, grid_shape(graph)
    if same is not None:
        return [same] * n
    in_line = (np.diff(graph.variable_component) >= 0).all() and (np.diff(edges.component) >= 0).all()
    if not in_line or (np.diff(edges.first_slot) != 2).any():
        return None
    pairs = edges.slot_variable.reshape(-1, 2)
    sites = np.searchsorted(graph.variable_component, np.arange(n + 1))
    links = np.searchsorted(edges.component, np.arange(n + 1))
    shapes = []
    for c in range(n):
        shape = shape_of(pairs[links[c] : links[c + 1]] - sites[c], int(sites[c + 1] - sites[c]))
        if shape is None:
            return None
        shapes.append(shape)
    return shapes


def shape_of(pairs: IntArray, sites: int) -> tuple[int, int] | None:
    """Tell the height and width of a grid by its edges; none is without sites."""
    if sites == 0:
        return None
    # horizontal edges come first; the first vertical one is (0, width)
    from_zero = pairs[pairs[:, 0] == 0][:, 1]
    for width in sorted({sites, int(from_zero.max(initial=1)), 1}, reverse=True):
        height = sites // width
        if height * width != sites or height * (width - 1) + (height - 1) * width != len(pairs):
            continue
        if np.array_equal(pairs, _pairs_of(height, width)):
            return height, width
    return None


def _pairs_of(height: int, width: int) -> IntArray:
    """Return the horizontal, then the vertical edges of a grid."""
    site = np.arange(height * width).reshape(height, width)
    ends = [(site[:, :-1], site[:, 1:]), (site[:-1], site[1:])]
    return np.concatenate([np.stack([one.ravel(), two.ravel()], axis=1) for one, two in ends])


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
