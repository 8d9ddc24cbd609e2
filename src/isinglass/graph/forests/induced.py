"""Blocks of variables that form forests given all others (Hamze and de Freitas 2004).

Given the variables outside a block, a factor is a table of its members in the block. A block here has at most two
members in each factor, and the pairs that are left have no cycle. A block begins with the variables that no block has
yet, by number, and goes on with the others, from the last to the first; each joins unless it closes a cycle. So blocks
are large and overlap. On a grid there are two, each with about two thirds of the sites.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.incidences import Incidences, signed_incidences
from isinglass.graph.message_graph import edges_of
from isinglass.segments import ranges, starts
from isinglass.typing import IntArray, Mask


class Forests(NamedTuple):
    """Blocks one after the other; block b has the entries ``begin[b]:begin[b + 1]``, each after its parent."""

    begin: IntArray
    variable: IntArray
    parent: IntArray  # the variable above in its tree; -1 for a root
    tree: IntArray  # the incidence of the factor that joins it to its parent; -1 for a root
    first: IntArray  # (entries + 1,)
    fixed: IntArray  # incidences in whose factors no other variable is in the block


def forest_blocks(graph: FactorGraph, free: Mask) -> Forests:
    """Cover the free variables by forests.

    Examples
    --------
    >>> from isinglass.graph.builders import grid_graph
    >>> blocks = forest_blocks(grid_graph(3, 3, 2), np.ones(9, bool))
    >>> [blocks.variable[a:b].tolist() for a, b in zip(blocks.begin, blocks.begin[1:])]
    [[0, 3, 6, 7, 1, 2, 5], [4, 7, 8, 6, 1, 2, 0]]
    """
    near = signed_incidences(graph)
    factor = edges_of(graph).link_factor[edges_of(graph).edge_link]
    missing, parts = free.copy(), []
    while missing.any():
        open_components = np.zeros(graph.n_components, bool)
        open_components[graph.variable_component[missing]] = True
        again = free & ~missing & open_components[graph.variable_component]
        order = np.concatenate([np.flatnonzero(missing), np.flatnonzero(again)[::-1]])
        parts.append(_block(graph, near, factor, order))
        missing[parts[-1].variable] = False
    return _joined(parts)


def _block(graph: FactorGraph, near: Incidences, factor: IntArray, order: IntArray) -> Forests:
    """Choose one block and lay it out."""
    from isinglass.kernels.numba.structure.forests import choose_forest, order_forest

    n = graph.n_variables
    inside, count = np.zeros(n, bool), np.zeros(graph.n_factors, np.int64)
    choose_forest(order, near, factor, inside, count, np.arange(n), np.full(n, -1))
    members, above = np.empty(n, np.int64), np.full(n, -1)
    taken = order_forest(order, near, factor, inside, count, np.zeros(n, bool), np.empty(n, np.int64), members, above)
    variable = members[:taken]
    begin = near.first.astype(np.int64)
    degree = np.diff(begin)[variable]
    incidence = ranges(begin[variable], degree)
    entry = np.repeat(np.arange(taken), degree)
    alone = count[factor[incidence]] == 1
    tree = np.full(taken, -1)
    up = _points_up(near, incidence, above[variable][entry]) & ~alone
    tree[entry[up]] = incidence[up]
    first = starts(np.bincount(entry[alone], minlength=taken))
    return Forests(np.array([0, taken]), variable, above[variable], tree, first, incidence[alone])


def _points_up(near: Incidences, incidence: IntArray, parent: IntArray) -> Mask:
    """Tell which incidences have a given variable among the others."""
    begin = near.rest.astype(np.int64)
    count = np.diff(begin)[incidence]
    others = ranges(begin[incidence], count)
    owner = np.repeat(np.arange(len(incidence)), count)
    hit = near.variable[others] == parent[owner]
    return np.asarray(np.bincount(owner[hit], minlength=len(incidence)) > 0)


def _joined(parts: list[Forests]) -> Forests:
    """Put blocks one after the other."""
    none = np.zeros(0, np.int64)

    def joined(name: str) -> IntArray:
        return np.concatenate([none, *(getattr(part, name) for part in parts)])

    lengths = [np.diff(part.first) for part in parts]
    return Forests(
        starts([len(part.variable) for part in parts]),
        joined("variable"),
        joined("parent"),
        joined("tree"),
        starts(np.concatenate([none, *lengths])),
        joined("fixed"),
    )
