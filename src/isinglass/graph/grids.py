"""Which graphs are regular grids, and of which size."""

from __future__ import annotations

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.message_graph import edges_of
from isinglass.segments import place_in
from isinglass.typing import IntArray


def grid_shape(graph: FactorGraph) -> tuple[int, int] | None:
    """Tell the height and width of a grid (or of every copy of a repeated one), if the graph is one."""
    return graph.cached("grid_shape", lambda: _grid_shape(graph))


def grid_shapes(graph: FactorGraph) -> list[tuple[int, int]] | None:
    """Tell the height and width of each component, if all of them are grids that follow each other.

    Examples
    --------
    >>> from isinglass.graph.unions import disjoint_union
    >>> from isinglass.graph.builders import grid_graph
    >>> grid_shapes(disjoint_union([grid_graph(2, 3, 2), grid_graph(4, 2, 2)]))
    [(2, 3), (4, 2)]
    """
    return graph.cached("grid_shapes", lambda: _grid_shapes(graph))


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
    edges = edges_of(graph)
    in_line = (np.diff(graph.variable_component) >= 0).all() and (np.diff(edges.component) >= 0).all()
    if grid_shape(graph) is None and not (in_line and (np.diff(edges.first_slot) == 2).all()):
        return None
    found = [shape for shape in component_shapes(graph, np.arange(graph.n_components)) if shape is not None]
    return found if len(found) == graph.n_components else None


def component_shapes(graph: FactorGraph, components: IntArray) -> list[tuple[int, int] | None]:
    """Return (height, width) of components that have links of two variables only; None for one that is no grid."""
    same, edges = grid_shape(graph), edges_of(graph)
    if same is not None or not len(components):
        return [same] * len(components)
    sites = np.bincount(graph.variable_component, minlength=graph.n_components)
    order = np.argsort(edges.component, kind="stable")
    ends = place_in(graph.variable_component)[edges.slot_variable]
    starts = np.searchsorted(edges.component[order], np.arange(graph.n_components + 1))
    shapes = []
    for c in components.tolist():
        first = edges.first_slot[order[starts[c] : starts[c + 1]]]
        shapes.append(shape_of(np.stack([ends[first], ends[first + 1]], axis=1), int(sites[c])))
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
