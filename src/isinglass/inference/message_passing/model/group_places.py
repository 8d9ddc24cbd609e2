"""Where the groups of factors of a graph lie in the flat arrays of message passing; found once for each graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isinglass.graph.factor_graph import FactorGraph, iter_groups
from isinglass.graph.layout import first_states
from isinglass.graph.message_graph import edges_of
from isinglass.inference.message_passing.shares import add, copy
from isinglass.kernels.layout import Edges
from isinglass.runtime.threads import ThreadMap, team
from isinglass.segments import sum_at
from isinglass.typing import Array, FloatArray, IntArray

ALONE = team(1)

Places = slice | IntArray
"""Positions in an array, as a slice where they follow each other."""


class UnaryPlaces(NamedTuple):
    """Where the factors of arity one of a group add to the potentials of variables: flat, factor by factor."""

    entries: Places
    distinct: bool  # whether no variable occurs twice


class Links(NamedTuple):
    """The links that a group's factors are; of a pair, the edges at its first and second end."""

    links: Places
    factors: Places
    ends: tuple[IntArray, ...]


class Layout(NamedTuple):
    """How the groups of a graph lie in flat arrays; made once."""

    card: int  # of every variable, or 0 if they differ
    variable_starts: IntArray | None  # where a component's variables start, if they are side by side
    factor_starts: IntArray | None
    link_starts: IntArray | None
    unary: dict[int, UnaryPlaces]
    links: dict[int, Links]


def ones_of(graph: FactorGraph) -> FloatArray:
    """Return counting numbers of one, always the same array: who gets it need not look."""
    return graph.cached("ones", lambda: np.ones(len(edges_of(graph).size)))


def layout_of(graph: FactorGraph) -> Layout:
    """Return the layout of a graph."""
    return graph.cached("layout", lambda: _layout(graph))


def _layout(graph: FactorGraph) -> Layout:
    edges, link_of = edges_of(graph), _link_of(graph, edges_of(graph))
    unary, links = {}, {}
    for g, group in enumerate(graph.groups):
        if group.arity == 1:
            entries = (first_states(graph)[group.scopes[:, 0]][:, None] + np.arange(group.shape[0])).ravel()
            unary[g] = UnaryPlaces(as_places(entries), bool((np.bincount(entries) <= 1).all()))
        elif group.arity >= 2 and len(group):
            members = link_of[group.factors]
            first = edges.first_slot[members]
            ends = (edges.slot_edge[first], edges.slot_edge[first + 1]) if group.arity == 2 else ()
            links[g] = Links(as_places(members), as_places(group.factors), ends)
    card = int(graph.cards[0]) if graph.n_variables and (graph.cards == graph.cards[0]).all() else 0
    starts = (_starts(graph.variable_component), _starts(graph.factor_component), _starts(edges.component))
    return Layout(card, *starts, unary, links)


def _starts(component: IntArray) -> IntArray | None:
    """Return where each component starts, if its members are side by side."""
    return np.flatnonzero(np.diff(component, prepend=-1)) if (component[1:] >= component[:-1]).all() else None


def as_places(members: IntArray) -> Places:
    """Return a slice, if that is what the members are."""
    if len(members) and (np.diff(members) == 1).all():
        return slice(int(members[0]), int(members[-1]) + 1)
    return members


def add_at(flat: Array, places: UnaryPlaces, values: Array, spread: ThreadMap = ALONE) -> None:
    """Add values at the places of factors of arity one."""
    if isinstance(places.entries, slice):
        add(spread, flat[places.entries], values)
    elif places.distinct:
        flat[places.entries] += values
    else:
        entries = np.arange(len(flat))[places.entries]
        flat += sum_at(entries, values, len(flat))


def share_unary_beliefs(graph: FactorGraph, variables: Array, factors: Array, spread: ThreadMap = ALONE) -> None:
    """Give factors of arity one their variable's belief, and constants theirs."""
    for g, (group, part) in enumerate(iter_groups(graph)):
        if group.arity == 0:
            factors[part] = 1
        elif group.arity == 1:
            copy(spread, factors[part], variables[layout_of(graph).unary[g].entries])


def move_unary_bars(graph: FactorGraph, factors_bar: Array, variables_bar: Array) -> None:
    """Add derivatives by the beliefs of factors of arity one to those by their variables' beliefs, which they are."""
    for g, (group, part) in enumerate(iter_groups(graph)):
        if group.arity == 1:
            add_at(variables_bar, layout_of(graph).unary[g], factors_bar[part])


def _link_of(graph: FactorGraph, edges: Edges) -> IntArray:
    """Return the link that each factor is, or -1."""
    link_of = np.full(graph.n_factors, -1, np.int64)
    link_of[edges.link_factor] = np.arange(len(edges.link_factor))
    return link_of
