"""The factors around each variable, laid out for samplers; and colours of variables.

An *incidence* is a factor of two or more variables as one of them sees it: the step ``own`` in the factor's table when
its own state grows, and the other variables with their steps. Incidences are numbered by variable.

Index arrays are unsigned: Numba checks every signed index for being negative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.message_graph import edges_of
from isinglass.segments import ranges, starts
from isinglass.typing import IntArray
from isinglass.validation import read_only

Unsigned = NDArray[np.uint64]
Indices = Unsigned | IntArray


class Incidences(NamedTuple):
    """Flat arrays; those of variable i are ``first[i]:first[i + 1]``, the others of e are ``rest[e]:rest[e + 1]``."""

    cards: Indices  # (variables,)
    first_state: Indices  # (variables,)
    first: Indices  # (variables + 1,)
    own: Indices  # (incidences,)
    rest: Indices  # (incidences + 1,)
    variable: Indices
    stride: Indices


def incidences_of(graph: FactorGraph) -> Incidences:
    """Return the incidences of a graph (made once).

    Examples
    --------
    >>> near = incidences_of(FactorGraph([2, 3, 2], [(0, 1), (2, 1, 0)]))
    >>> near.first.tolist(), near.variable.tolist(), near.own.tolist()
    ([0, 2, 4, 5], [1, 2, 1, 0, 2, 0, 1, 0], [3, 1, 1, 2, 6])
    """
    return graph.cached("incidences", lambda: _make(graph))


def _make(graph: FactorGraph) -> Incidences:
    edges = edges_of(graph)
    slot = np.empty(len(edges.slot_edge), np.int64)
    slot[edges.slot_edge] = np.arange(len(slot))
    link = edges.edge_link
    arity = np.diff(edges.first_slot)[link]
    slots = ranges(edges.first_slot[link], arity)
    others = slots[slots != np.repeat(slot, arity)]
    arrays = (
        edges.cards,
        edges.first_state[:-1],
        edges.first_edge,
        edges.slot_stride[slot],
        starts(arity - 1),
        edges.slot_variable[others],
        edges.slot_stride[others],
    )
    return Incidences(*(array.astype(np.uint64) for array in arrays))


def signed_incidences(graph: FactorGraph) -> Incidences:
    """Return the incidences of a graph as signed integers (made once)."""
    return graph.cached("signed incidences", lambda: Incidences(*(a.astype(np.int64) for a in incidences_of(graph))))


def colours_of(graph: FactorGraph) -> IntArray:
    """Return a colour for each variable, from 0 on, such that no factor has two variables of one colour.

    Each variable, in sequence, gets the first colour that no neighbour before it has. So the colours of an example do
    not depend on the rest of a batch; a grid has two.

    Examples
    --------
    >>> from isinglass.graph.builders import grid_graph
    >>> colours_of(grid_graph(2, 3, 2)).tolist()
    [0, 1, 0, 1, 0, 1]
    """
    return graph.cached("colours", lambda: _colours(graph))


def _colours(graph: FactorGraph) -> IntArray:
    from isinglass.kernels.numba.structure.colouring import colour_greedily

    near, colour = signed_incidences(graph), np.zeros(graph.n_variables, np.int64)
    colour_greedily(near.first, near.rest, near.variable, colour, np.full(graph.n_variables + 1, -1))
    return read_only(colour)
