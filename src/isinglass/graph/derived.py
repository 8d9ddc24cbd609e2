"""What is derived from the scopes of a graph: flat arrays for compiled loops, connected parts, forests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from isinglass.segments import starts
from isinglass.typing import IntArray, Mask
from isinglass.validation import read_only

if TYPE_CHECKING:
    from isinglass.graph.factor_graph import FactorGraph


FEW = 200  # edges


class FlatScopes(NamedTuple):
    """All scopes in factor order, as flat arrays for compiled loops.

    The slots of factor a are ``first_slot[a]:first_slot[a + 1]``; `variable` and `stride` give the
    variable of a slot and the step in the factor's table (C order) when that variable's state grows.
    """

    first_slot: IntArray
    variable: IntArray
    stride: IntArray


def flatten(graph: FactorGraph) -> FlatScopes:
    """Lay all scopes out in factor order."""
    arity = np.zeros(graph.n_factors, np.int64)
    for g in graph.groups:
        arity[g.factors] = g.arity
    first = starts(arity)
    variable, stride = np.empty((2, first[-1]), np.int64)
    for g in graph.groups:
        slots = first[g.factors][:, None] + np.arange(g.arity)
        variable[slots] = g.scopes
        stride[slots] = c_strides(g.shape)
    return FlatScopes(*map(read_only, (first, variable, stride)))


def places(graph: FactorGraph) -> tuple[IntArray, IntArray]:
    """Return the group of each factor, and its row in that group."""
    group, row = np.empty((2, graph.n_factors), np.int64)
    for i, g in enumerate(graph.groups):
        group[g.factors] = i
        row[g.factors] = np.arange(len(g))
    return read_only(group), read_only(row)


def _bipartite_labels(graph: FactorGraph) -> IntArray:
    """Label the connected parts of the graph of variables and factors: variables first, then factors."""
    flat = graph.flat_scopes
    factor = np.repeat(np.arange(graph.n_factors), np.diff(flat.first_slot))
    size = graph.n_variables + graph.n_factors
    if len(factor) <= FEW:
        return _joined(size, flat.variable.tolist(), (graph.n_variables + factor).tolist())
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = coo_array((np.ones(len(factor), np.int8), (flat.variable, graph.n_variables + factor)), (size, size))
    labels: IntArray = connected_components(edges, directed=False)[1].astype(np.int64)
    return labels


def _joined(size: int, one: list[int], two: list[int]) -> IntArray:
    """Label each node with the least of its part; for few edges, faster than sparse matrices are made."""
    least = list(range(size))

    def root(i: int) -> int:
        while least[i] != i:
            least[i] = i = least[least[i]]
        return i

    for a, b in zip(one, two, strict=True):
        low, high = sorted((root(a), root(b)))
        least[high] = low
    return np.array([root(i) for i in range(size)], np.int64)


def connected_parts(graph: FactorGraph) -> IntArray:
    """Number the connected parts by their first variable."""
    of_variable = _bipartite_labels(graph)[: graph.n_variables]
    _, first, inverse = np.unique(of_variable, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return read_only(rank[inverse.ravel()])


def forest_components(graph: FactorGraph) -> Mask:
    """A graph is a forest if it has as many edges as nodes, less its connected parts."""
    n = graph.n_components
    component = np.concatenate([graph.variable_component, graph.factor_component])
    _, first = np.unique(_bipartite_labels(graph), return_index=True)
    flat = graph.flat_scopes
    edges = np.bincount(graph.variable_component[flat.variable], minlength=n)
    nodes, parts = np.bincount(component, minlength=n), np.bincount(component[first], minlength=n)
    return read_only(edges == nodes - parts)


def c_strides(shape: Sequence[int]) -> IntArray:
    """Steps, in entries, of a C-ordered array of this shape."""
    return np.concatenate([np.cumprod(np.array([1, *shape[:0:-1]], np.int64))[::-1]])[: len(shape)]
