"""The bucket tree of an elimination order: the junction tree that exact inference runs on.

Bucket b belongs to the b-th variable of the order, v_b. It holds v_b and its separator, the factors whose
first eliminated variable is v_b, and the messages of its children. Its message goes to the bucket of the
separator's first eliminated variable, its parent. Axes are sorted from the last eliminated to the first,
so v_b is the last axis of its bucket and of each child's message (Dechter 1999; Koller and Friedman 2009,
section 10.1).

Clamped and one-state variables have no bucket: they only shift where a factor's table is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isinglass.graph.elimination.order import EliminationOrder
from isinglass.graph.factor_graph import FactorGraph
from isinglass.segments import starts
from isinglass.typing import IntArray, Mask


class TreeArrays(NamedTuple):
    """The bucket tree as flat arrays for compiled loops; ``first_x[b]:first_x[b + 1]`` are the x of b."""

    first_axis: IntArray
    axis: IntArray  # variables, last eliminated first
    first_factor: IntArray
    factor: IntArray
    first_child: IntArray
    child: IntArray
    parent: IntArray  # -1 for a root
    first_message: IntArray  # into one flat vector of all messages
    component: IntArray
    cards: IntArray  # of all variables
    has_bucket: Mask  # for all variables
    first_slot: IntArray
    slot_variable: IntArray
    slot_stride: IntArray


@dataclass(frozen=True, eq=False)
class BucketTree:
    """A bucket tree.

    Attributes
    ----------
    order : EliminationOrder
    arrays : TreeArrays
    constants : int array
        Factors without a free variable; they only add to log Z.
    work : int array (buckets,)
        Entries of each bucket.
    """

    order: EliminationOrder
    arrays: TreeArrays
    constants: IntArray
    work: IntArray

    @property
    def n_buckets(self) -> int:
        """Number of buckets: one for each free variable."""
        return len(self.work)


def bucket_tree(graph: FactorGraph, order: EliminationOrder) -> BucketTree:
    """Return the bucket tree of an elimination order; variables without a place in it are clamped or have one state.

    Examples
    --------
    >>> from isinglass.graph.builders import chain_graph
    >>> from isinglass.graph.elimination.order import elimination_order
    >>> graph = chain_graph(5, 2)
    >>> bucket_tree(graph, elimination_order(graph)).n_buckets
    5
    """
    return graph.cached(("bucket_tree", order), lambda: _make(graph, order))


def _make(graph: FactorGraph, order: EliminationOrder) -> BucketTree:
    if not order.complete:
        raise ValueError("a bucket tree needs a complete order")
    n = len(order.order)
    position = np.full(graph.n_variables, n, np.int64)  # variables without a bucket come last
    position[order.order] = np.arange(n)
    first_axis, axis = _axes(order, position)
    sizes = np.multiply.reduceat(graph.cards[axis], first_axis[:-1]) if n else np.zeros(0, np.int64)
    messages = starts(sizes // graph.cards[order.order])
    parent = _parents(first_axis, axis, position)
    of_factor = _owners(graph, position, n)
    first_factor, factor = _members(of_factor, n)
    first_child, child = _members(parent, n)
    scopes = graph.flat_scopes
    arrays = TreeArrays(
        first_axis, axis, first_factor, factor, first_child, child, parent, messages,
        graph.variable_component[order.order], graph.cards.copy(), position < n,
        scopes.first_slot.copy(), scopes.variable.copy(), scopes.stride.copy(),
    )  # fmt: skip
    return BucketTree(order, arrays, np.flatnonzero(of_factor == n), sizes.astype(np.int64))


def _axes(order: EliminationOrder, position: IntArray) -> tuple[IntArray, IntArray]:
    """Separator and own variable of each bucket, sorted from last to first eliminated."""
    n = len(order.order)
    counts = np.diff(order.first)
    bucket = np.concatenate([np.repeat(np.arange(n), counts), np.arange(n)])
    variable = np.concatenate([order.separators, order.order])
    ranked = np.lexsort((-position[variable], bucket))
    first = starts(counts + 1)
    return first, variable[ranked]


def _parents(first_axis: IntArray, axis: IntArray, position: IntArray) -> IntArray:
    """Find the bucket of the last separator axis, or -1 where the separator is empty."""
    has_separator = np.diff(first_axis) > 1
    parent = np.full(len(first_axis) - 1, -1, np.int64)
    parent[has_separator] = position[axis[first_axis[1:][has_separator] - 2]]
    return parent


def _owners(graph: FactorGraph, position: IntArray, none: int) -> IntArray:
    """Find the bucket of each factor: that of its first eliminated variable, or `none`."""
    owner = np.full(graph.n_factors, none, np.int64)
    for group in graph.groups:
        if group.arity:
            owner[group.factors] = position[group.scopes].min(axis=1, initial=none)
    return owner


def _members(owner: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Sort the members of n owners into flat lists; members with another owner are left out."""
    members = np.argsort(owner, kind="stable")
    members = members[(owner[members] >= 0) & (owner[members] < n)]
    return np.searchsorted(owner[members], np.arange(n + 1)).astype(np.int64), members.astype(np.int64)
