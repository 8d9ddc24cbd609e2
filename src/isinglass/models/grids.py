"""Conditional random fields on images: nodes are pixels, edges join the four neighbours.

    phi_i(x) = sum_f X_if W_f(x)                       W: "node", (features, states)
    phi_ij(x, y) = V_d(x, y)  or  sum_f Z_ijf V_df(x, y)   d: "edge/horizontal" or "edge/vertical", or one "edge"

Tables of edges are directed: rows for the left or upper pixel. (Domke 2013.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from isinglass.errors import InputError, require
from isinglass.graph.builders import grid_graph
from isinglass.graph.factor_graph import FactorGraph, FactorGroup
from isinglass.graph.unions import disjoint_union
from isinglass.models.checks import Matrix, dense, examples_of, stacked, states, times
from isinglass.models.model import Model
from isinglass.models.terms import EdgeTerm, NodeTerm, SharedTerm, Term
from isinglass.runtime.caching import Cache
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import flag

Sides = list[tuple[int, int]]
"""Height and width of each image."""

_STRUCTURE = "sides of grids"
_KEPT_SIZE = 2**17  # pixels of a batch whose structure is kept from call to call: it takes longer than to predict it
_KEPT = Cache(2 * _KEPT_SIZE)


def grid_model(
    X: ArrayLike | Sequence[ArrayLike],
    n_states: int,
    *,
    edges: Literal["directions", "shared", "none"] = "directions",
    edge_features: ArrayLike | Sequence[ArrayLike] | None = None,
    bias: bool = False,
    edge_bias: bool = False,
    like: Model | None = None,
) -> Model:
    """Return the model of a batch of images; component c of its graph is image c, its variables row by row.

    Images of one size become copies of one grid, for which inference has its fastest loops.

    Parameters
    ----------
    X : array (images, height, width, features), or a sequence of arrays (height, width, features)
    n_states : int
    edges : "directions", "shared" or "none"
        Whether horizontal and vertical edges have parameters of their own, the same, or none: pixels by themselves.
    edge_features : array (images, edges, features), or a sequence of arrays (edges, features), optional
        Edges in the order of `grid_graph`: row by row the horizontal ones, then the vertical ones.
    bias, edge_bias : bool, default=False
        Append a constant feature to those of pixels and edges.
    like : Model, optional
        Of an earlier batch. If its images had the same sizes, the two models share one graph, and what was
        compiled for it; there must be as many features. Threads may use the two models at the same time.

    Returns
    -------
    Model
        With parameters "node" (features, states), and "edge/horizontal" and "edge/vertical", or "edge": each (states,
        states), or with edge features (features, states, states).

    Examples
    --------
    >>> model = grid_model(np.zeros((5, 3, 4, 2)), n_states=2)
    >>> model
    Model: 5 examples, 60 variables (2 states), 145 factors (arity 1-2), 12 parameters (node 2x2, edge/horizontal 2x2,
    edge/vertical 2x2)
    >>> model.potentials(np.zeros(12)).groups[1].shape
    (2, 2, 2)
    """
    k, (sides, pixels) = states(n_states), _images(X)
    nodes = stacked(pixels, "X", flag(bias, "bias"))
    found = None if edge_features is None else _edge_features(edge_features, sides, flag(edge_bias, "edge_bias"))
    if found is None and flag(edge_bias, "edge_bias"):
        raise InputError("edge_bias", "False where there are no edge features", "True", "tables are shared anyway")
    require(edges in ("directions", "shared", "none"), "edges", "'directions', 'shared' or 'none'", f"{edges!r:.60}")
    node, same = NodeTerm._build("node", nodes, (k,)), (sides, k, edges)
    if like is not None and found is None and like.graph.cached(_STRUCTURE, lambda: None) == same:
        return like.with_terms(0, [node])
    if found is None and len(nodes) <= _KEPT_SIZE and len(set(sides)) == 1:
        key = (sides[0], len(sides), k, edges, nodes.shape[1])
        blank = _KEPT.get(key, lambda: _blank(sides, k, edges, nodes.shape[1]), size=len(nodes))
        return blank.with_terms(0, [node])
    return _model(sides, k, edges, node, found)


def node_tables(X: FloatArray, nodes: Array, bias: bool) -> Array:
    """Return the tables (pixels, states) of the nodes of images, which are known to be valid, as in `grid_model`.

    Parameters
    ----------
    X : array (images, height, width, features)
    nodes : array (features, states)
        The parameters "node".
    bias : bool

    Examples
    --------
    >>> node_tables(np.ones((5, 3, 4, 2)), np.array([[1.0, 2.0], [0.5, 0.5]]), bias=False)[-1].tolist()
    [1.5, 2.5]
    """
    rows = X.reshape(-1, X.shape[-1])
    return times(stacked([rows], "X", bias) if bias else rows, nodes)


def _model(sides: Sides, k: int, edges: str, node: Term, features: Matrix | None) -> Model:
    graph = _graph(sides, k)
    if features is None:
        graph.cached(_STRUCTURE, lambda: (sides, k, edges))
    return Model(graph, [[node], _edge_terms(edges, features, _directions(sides), k)])


def _blank(sides: Sides, k: int, edges: str, features: int) -> Model:
    """Return the model of images without features: the structure that further batches share."""
    pixels = sum(height * width for height, width in sides)
    return _model(sides, k, edges, NodeTerm._build("node", np.broadcast_to(0.0, (pixels, features)), (k,)), None)


def _graph(sides: Sides, k: int) -> FactorGraph:
    """Put grids side by side: copies of one, where all are of one size. There is always a group for edges."""
    if len(set(sides)) == 1:
        graph = grid_graph(*sides[0], k).repeat(len(sides))
    else:
        grids = {side: grid_graph(*side, k) for side in set(sides)}
        graph = disjoint_union([grids[side] for side in sides])
    if len(graph.groups) == 2:
        return graph
    none = FactorGroup(np.zeros((0, 2), np.int64), (k, k), np.zeros(0, np.int64))
    components = graph.variable_component, graph.factor_component, graph.n_components
    return FactorGraph._build(graph.cards, [*graph.groups, none], *components)


def _directions(sides: Sides) -> IntArray:
    """Return the direction of each edge: 0 horizontal, 1 vertical."""
    counts = [(h * (w - 1), (h - 1) * w) for h, w in sides]
    return np.repeat(np.tile([0, 1], len(sides)), np.ravel(counts))


def _edge_terms(edges: str, features: Matrix | None, direction: IntArray, k: int) -> list[Term]:
    if edges == "none":
        require(features is None, "edge_features", "none with edges='none'", "some")
        return []
    if edges == "shared":
        return [SharedTerm("edge", (k, k)) if features is None else EdgeTerm._build("edge", features, (k, k))]
    terms: list[Term] = []
    for d, name in enumerate(("edge/horizontal", "edge/vertical")):
        here = direction == d
        if features is None:
            terms.append(SharedTerm(name, (k, k), table_ids=np.where(here, 0, -1)))
        else:
            terms.append(EdgeTerm._build(name, features[here], (k, k), np.where(here, np.cumsum(here) - 1, -1)))
    return terms


def _images(X: ArrayLike | Sequence[ArrayLike]) -> tuple[Sides, list[FloatArray]]:
    """Check images, of one size in an array or of any sizes in a sequence; return their sides, and rows of pixels."""
    axes = "height, width, features"
    require(not sparse.issparse(X), "X", f"a dense array (images, {axes})", "a sparse one")
    if isinstance(X, np.ndarray) and X.dtype != object:
        whole = dense(X, "X", f"images, {axes}")
        require(len(whole), "X", "at least one image", "none")
        return [_side(whole[0], 0)] * len(whole), [whole.reshape(-1, whole.shape[-1])]
    found = _listed(X, "X", axes)
    require(found, "X", "at least one image", "none")
    sides = [_side(image, i) for i, image in enumerate(found)]
    return sides, [image.reshape(-1, image.shape[-1]) for image in found]


def _side(image: FloatArray, i: int) -> tuple[int, int]:
    height, width, _ = image.shape
    require(height and width, f"X[{i}]", "an image of at least one pixel", f"shape {image.shape}")
    return height, width


def _listed(values: ArrayLike | Sequence[ArrayLike], argument: str, axes: str) -> list[FloatArray]:
    """Check arrays with these axes, one for each image, in a list or in one array."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return list(dense(values, argument, f"images, {axes}"))
    listed = examples_of(values, argument, f"arrays ({axes})")
    return [dense(one, f"{argument}[{i}]", axes) for i, one in enumerate(listed)]


def _edge_features(values: ArrayLike | Sequence[ArrayLike], sides: Sides, bias: bool) -> Matrix:
    """Check the features of edges: for each image a row for each edge."""
    rows = _listed(values, "edge_features", "edges, features")
    require(len(rows) == len(sides), "edge_features", f"an array for each of {len(sides)} images", f"{len(rows)}")
    for i, (one, (h, w)) in enumerate(zip(rows, sides, strict=True)):
        count = h * (w - 1) + (h - 1) * w
        expected = f"a row for each of {count} edges of a grid {h} x {w}"
        require(len(one) == count, f"edge_features[{i}]", expected, f"{len(one)} rows")
    return stacked(rows, "edge_features", bias)
