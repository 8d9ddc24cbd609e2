"""The structure that message passing runs on: one edge for each (factor, slot) of arity two or more.

Edges are numbered by variable, so that the messages into a variable lie side by side. Factors of arity one
have no messages: they add to their variable's own potential. (Constants of arity zero only add to log Z.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.layout import first_beliefs
from isinglass.kernels.layout import Edges
from isinglass.runtime.array_pool import LIMIT, Pool
from isinglass.segments import starts
from isinglass.typing import IntArray

SETS = 6  # of messages that a graph keeps: those of an iteration with its gradient


def edges_of(graph: FactorGraph) -> Edges:
    """Return the edges of a graph (made once).

    Examples
    --------
    >>> from isinglass.graph.builders import chain_graph
    >>> edges_of(chain_graph(3, 2)).edge_link.tolist()
    [0, 0, 1, 1]
    """
    return graph.cached("edges", lambda: _make(graph))


def _make(graph: FactorGraph) -> Edges:
    flat = graph.flat_scopes
    arity = np.diff(flat.first_slot)
    links = np.flatnonzero(arity >= 2)
    keep = np.repeat(arity >= 2, arity)
    variable, stride = flat.variable[keep], flat.stride[keep]
    link = np.repeat(np.arange(len(links)), arity[links])
    by_variable = np.argsort(variable, kind="stable")
    edge = np.empty(len(variable), np.int64)
    edge[by_variable] = np.arange(len(variable))
    degree = np.bincount(variable, minlength=graph.n_variables)
    return Edges(
        cards=graph.cards.copy(),
        first_state=starts(graph.cards),
        first_edge=starts(degree),
        start=starts(graph.cards[variable[by_variable]]),
        edge_link=link[by_variable],
        link_factor=links,
        first_slot=starts(arity[links]),
        slot_variable=variable,
        slot_edge=edge,
        slot_stride=stride,
        size=_table_sizes(graph)[links],
        component=graph.factor_component[links],
        variable_component=graph.variable_component.copy(),
    )


def _table_sizes(graph: FactorGraph) -> IntArray:
    sizes = np.ones(graph.n_factors, np.int64)
    for group in graph.groups:
        sizes[group.factors] = group.table_size
    return sizes


def entry_components(edges: Edges) -> IntArray:
    """Return the component of each entry of a message.

    Examples
    --------
    >>> from isinglass.graph.builders import chain_graph
    >>> entry_components(edges_of(chain_graph(2, 2).repeat(2))).tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """
    return np.repeat(edges.component[edges.edge_link], np.diff(edges.start))


def partners_of(graph: FactorGraph) -> IntArray:
    """Return, for each edge, the one at the other end of its link; -1 unless that has two slots.

    Examples
    --------
    >>> from isinglass.graph.builders import chain_graph
    >>> partners_of(chain_graph(3, 2)).tolist()
    [1, 0, 3, 2]
    """
    return graph.cached("partners", lambda: _partners(edges_of(graph)))


def _partners(edges: Edges) -> IntArray:
    first = edges.first_slot[:-1][np.diff(edges.first_slot) == 2]
    one, two = edges.slot_edge[first], edges.slot_edge[first + 1]
    partner = np.full(len(edges.slot_edge), -1)
    partner[one], partner[two] = two, one
    return partner


def first_link_beliefs(graph: FactorGraph) -> IntArray:
    """Return where the belief of each link's factor starts in the flat vector of `first_beliefs`.

    Examples
    --------
    >>> from isinglass.graph.builders import chain_graph
    >>> first_link_beliefs(chain_graph(3, 2)).tolist()
    [6, 10]
    """
    return graph.cached("first_link_beliefs", lambda: first_beliefs(graph)[edges_of(graph).link_factor])


def pool_of(graph: FactorGraph) -> Pool:
    """Return the pool of arrays of a graph: with room for some sets of its messages, however large it is."""
    return graph.cached("pool", lambda: Pool(max(LIMIT, SETS * 8 * int(edges_of(graph).start[-1]))))


def share_pool(graph: FactorGraph, pool: Pool) -> None:
    """Let a graph that has not been used yet take its arrays from a pool of several graphs."""
    graph.cached("pool", lambda: pool)


def pairwise_components(graph: FactorGraph) -> NDArray[np.bool_]:
    """Tell which components have no link of more than two slots.

    Examples
    --------
    >>> from isinglass.graph.unions import disjoint_union
    >>> pairs, triple = FactorGraph([2, 2], [(0, 1)]), FactorGraph([2, 2, 2], [(0, 1, 2)])
    >>> pairwise_components(disjoint_union([pairs, triple])).tolist()
    [True, False]
    """
    return graph.cached("pairwise", lambda: _pairwise(graph))


def _pairwise(graph: FactorGraph) -> NDArray[np.bool_]:
    edges = edges_of(graph)
    pairwise = np.ones(graph.n_components, bool)
    pairwise[edges.component[np.diff(edges.first_slot) > 2]] = False
    return pairwise
