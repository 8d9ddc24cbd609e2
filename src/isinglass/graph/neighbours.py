"""The neighbours of each variable: the links around it, laid out for mean field.

A link of two variables is a rectangle of numbers: for the variable at one side, the other's states lie at ``place,
place + 1, ...`` in the flat vector of all states, and table entry (own state a, other state b) lies at ``a own + b
step`` from the start of the table. Links of three or more variables are listed by link and slot only.

Index arrays are unsigned: Numba checks every signed index for being negative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.message_graph import edges_of
from isinglass.segments import starts
from isinglass.typing import IntArray, Mask

Unsigned = NDArray[np.uint64]


class Neighbours(NamedTuple):
    """Flat arrays; the links around variable i are the entries ``first[i]:first[i + 1]``."""

    cards: Unsigned  # (variables,)
    first_state: Unsigned  # (variables,)
    first: Unsigned  # (variables + 1,)
    pairs: Mask  # (variables,) whether all links around it have two variables
    link: IntArray
    slot: IntArray
    states: Unsigned  # of the other variable; zero if the link has more than two
    place: Unsigned
    own: Unsigned
    step: Unsigned


def neighbours_of(graph: FactorGraph, kept: Mask | None = None) -> Neighbours:
    """Return the links around each variable: all of them, or those that are `kept`.

    Examples
    --------
    >>> near = neighbours_of(FactorGraph([2, 3, 2], [(0, 1), (1, 2)]))
    >>> near.first.tolist(), near.place.tolist(), near.own.tolist()
    ([0, 1, 3, 4], [2, 0, 5, 2], [3, 1, 2, 1])
    """
    edges = edges_of(graph)
    slot = np.empty(len(edges.slot_edge), np.int64)
    slot[edges.slot_edge] = np.arange(len(slot))
    variable = edges.slot_variable[slot]
    if kept is not None:
        inside = kept[edges.edge_link]
        slot, variable = slot[inside], variable[inside]
    link = np.repeat(np.arange(len(edges.size)), np.diff(edges.first_slot))[slot]
    is_pair = np.diff(edges.first_slot)[link] == 2
    other = np.where(slot == edges.first_slot[link], slot + 1, slot - 1) if len(slot) else slot
    beside = edges.slot_variable[np.where(is_pair, other, slot)]
    crowd = np.bincount(variable[~is_pair], minlength=graph.n_variables)
    degree = np.bincount(variable, minlength=graph.n_variables)
    return Neighbours(
        cards=_unsigned(edges.cards),
        first_state=_unsigned(edges.first_state[:-1]),
        first=_unsigned(starts(degree)),
        pairs=crowd == 0,
        link=link,
        slot=slot,
        states=_unsigned(np.where(is_pair, edges.cards[beside], 0)),
        place=_unsigned(edges.first_state[beside]),
        own=_unsigned(edges.slot_stride[slot]),
        step=_unsigned(edges.slot_stride[np.where(is_pair, other, slot)]),
    )


def _unsigned(values: IntArray) -> Unsigned:
    return values.astype(np.uint64)
