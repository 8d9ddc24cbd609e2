"""The flat arrays that inference and a backend exchange. Nothing here needs a compiler.

Compiled loops take these named tuples as arguments, so a field is an array or a number. *Links* are the factors of
arity two or more; an *edge* joins a link and one of its variables. m_ai is the message from link a to variable i, n_ia
the message from variable i to link a. A *component* is a connected component of the graph, such as one example of a
batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from isinglass.typing import Array, FloatArray, IntArray, Mask

SAFE = 1e-290  # the smallest linear value that is trusted; below it a product counts as an underflow
LANES = 8  # sites of a binary grid that are updated together
STRIP = 32  # rows of a large grid that are turned at a time; the last strip may have up to LANES - 1 more
WIDE = np.dtype(np.float64)

Semiring = tuple[()] | tuple[int]
"""In which arithmetic messages are computed. The length of the tuple is part of its type, so that linear values and
logarithms get loops of their own; both semirings of logarithms share theirs."""
SUM: Semiring = ()  # values are linear; + and *
LOG_SUM: Semiring = (0,)  # values are logarithms; log-sum-exp and +
LOG_MAX: Semiring = (1,)  # values are logarithms; max and +


def is_linear(semiring: Semiring) -> bool:
    """Tell whether values are linear numbers; else they are logarithms."""
    return len(semiring) == 0


def is_max(semiring: Semiring) -> bool:
    """Tell whether sums are replaced by maxima."""
    return semiring == LOG_MAX


def units(dtype: Any, semiring: Semiring) -> Array:
    """Return the zero and the one of a semiring."""
    return np.array([0.0, 1.0] if is_linear(semiring) else [-np.inf, 0.0], dtype)


class Edges(NamedTuple):
    """The structure that messages run on; links are in factor order, edges are numbered by variable.

    The edges of variable i are ``first_edge[i]:first_edge[i + 1]``, the slots of link f are
    ``first_slot[f]:first_slot[f + 1]``; a message on edge e has the entries ``start[e]:start[e + 1]``.
    """

    cards: IntArray  # (variables,)
    first_state: IntArray  # (variables + 1,)
    first_edge: IntArray  # (variables + 1,)
    start: IntArray  # (edges + 1,)
    edge_link: IntArray  # (edges,)
    link_factor: IntArray  # (links,) its number in the graph
    first_slot: IntArray  # (links + 1,)
    slot_variable: IntArray
    slot_edge: IntArray
    slot_stride: IntArray
    size: IntArray  # (links,) entries of the table
    component: IntArray  # (links,)
    variable_component: IntArray


class Values(NamedTuple):
    """The numbers of a model, in the representation of a semiring."""

    phi: Array  # potentials of the variables
    psi: Array  # effective tables; then the pairwise ones again with their axes exchanged
    table: IntArray  # (links,) where a link's effective table starts
    edge_table: IntArray  # (edges,) of pairwise links: where the table starts that has the edge's variable last
    counting: FloatArray  # (links,) counting numbers c_a
    raising: FloatArray  # (entries of messages,) the same; empty if all are one, or values are not real and linear
    limit: float  # SAFE over the smallest entry of psi that is not zero


class Scratch(NamedTuple):
    """Working memory."""

    powered: Array  # m^c; empty if every c is one
    own: Array  # m^(c - 1); empty if every c is one
    scale: Array  # (edges,) what n_ia was divided by; empty if every c is one
    row: Array  # the messages of one variable
    back: Array  # their derivatives
    out: Array  # the messages of one link
    raw: Array  # the same, unnormalised
    mixed: Array  # the same, damped
    bar: Array  # their derivatives
    totals: Array  # a link's slots
    prefix: Array  # a link's slots
    digits: IntArray


class Span(NamedTuple):
    """The part of a graph that one call works on; its components lie one after the other."""

    first_variable: int
    last_variable: int
    first_link: int
    last_link: int
    first_component: int
    last_component: int


class Status(NamedTuple):
    """The state of each component; a backend updates `flagged` and `residual`."""

    active: Mask  # whether its messages are updated
    flagged: Mask  # whether a product underflowed
    residual: FloatArray  # the largest change of a message
    watched: bool = True  # whether residuals are needed


class Beliefs(NamedTuple):
    """What is read out: beliefs are linear numbers, the Z are values of the semiring."""

    variables: Array
    factors: Array
    first_belief: IntArray  # (links,) where a link's belief starts in `factors`
    z_variables: Array  # (variables,) Z_i
    z_links: Array  # (links,) Z_a


class BeliefBars(NamedTuple):
    """Derivatives of a loss by what was read out."""

    log_z: Array  # (components,)
    variables: Array
    factors: Array  # empty unless `by_links`
    by_links: bool  # whether those by log Z or by the beliefs of links are not all zero


class Bars(NamedTuple):
    """The derivatives that are accumulated, all by logarithms."""

    m: Array  # by the current messages to variables
    n: Array  # by the messages to links; scratch
    phi: Array  # by the potentials of variables
    psi: Array  # by the effective tables; each component adds to its own copies
    table: IntArray  # (links,) where those of a link start
    edge_table: IntArray  # (edges,) the same, as `Values.edge_table`
    counting: Array  # (links,); empty if not wanted
    damping: Array  # (1,)


class Queue(NamedTuple):
    """The priority queue of the residual schedule, and the record of one iteration."""

    members: IntArray  # the links, component after component
    first_member: IntArray  # (components + 1,)
    pending: Array  # the next messages of each link
    change: FloatArray  # (edges,) their change
    log: Array  # the messages that were overwritten; empty if nothing is recorded
    sequence: IntArray  # (links,) the links in the sequence of their updates
    priority: FloatArray  # (links,)
    heap: IntArray  # (links,)
    place: IntArray  # (links,) of each link in the heap
    limit: float  # links whose change is at most this are not updated
    turn: FloatArray  # (links,) below zero: the priority of links whose change is too small to choose by
    alike: float  # a change of at most this is


class PlaneSteps(NamedTuple):
    """Where the numbers of regular grids lie in flat planes: how far it is from one to the next."""

    direction: int  # of messages: left, right, up, down
    state: int
    grid: int  # of messages
    potentials: int  # from the potentials of a grid to those of the next
    row: int
    site: int  # where the first site of the first grid is
    own_state: int  # of potentials


class CopyPlanes(NamedTuple):
    """Potentials and messages of one grid; the flat arrays are the same memory."""

    phi: FloatArray  # (states, rows, columns)
    flat_phi: FloatArray
    messages: FloatArray  # (2, 4, states, rows, columns) before and after an iteration, in turn
    flat_messages: FloatArray  # (2, entries)


class GridBeliefs(NamedTuple):
    """Where a loop reads the beliefs of variables out to, when a grid is done; without variables, nowhere."""

    variables: Array
    z: Array
    phi: FloatArray  # flat planes of all grids
    messages: FloatArray  # flat planes for one grid, of the last messages
    steps: PlaneSteps


class GridBeliefBars(NamedTuple):
    """Derivatives by beliefs of variables that a loop begins with, grid after grid; without variables, it does not."""

    variables: Array
    bars: Array
    kept: Array  # room for a copy of these
    phi: Array  # derivatives by potentials, to which a grid adds
    messages: FloatArray  # flat planes for one grid, for derivatives by its messages; zero on the border
    steps: PlaneSteps


class SweepWork(NamedTuple):
    """Working memory for one grid; planes are (states, rows, columns), strips (states, columns, some rows)."""

    up: FloatArray  # U1
    down: FloatArray  # D1
    strips: FloatArray  # (6, ...) of phi, U1, D1, L1, R1 and what the way to the right sends to the left
    sent: FloatArray  # (states, longest line)
    message: FloatArray  # (states, longest line)
    back: FloatArray  # (states, longest line)
    run: FloatArray  # (2, longest line)
    up_bar: FloatArray  # and derivatives of the same
    down_bar: FloatArray
    strip_bars: FloatArray  # (3, ...) of phi U1 D1, L1, R1
    sums: FloatArray  # (chunks, 4, LANES) by entries of a shared table, in lanes
    masks: FloatArray  # (LANES, LANES) entry i, j is one where i <= j, else zero
