"""One run of message passing: its messages and working memory, the steps that it did, and derivatives on the way back.

A `Step` is one iteration (or several at once) that a move did, with the messages that it overwrote: enough to go back.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.message_graph import edges_of
from isinglass.inference.message_passing.model.table_places import TablePlaces
from isinglass.inference.message_passing.shares import Share
from isinglass.kernels.backend import MessagePassingKernels
from isinglass.kernels.layout import Bars, Edges, Scratch, Semiring, Span, Status, Values, is_linear
from isinglass.runtime.array_pool import Pool
from isinglass.runtime.compilation.calls import Calls
from isinglass.runtime.deferring import defer
from isinglass.runtime.threads import ThreadMap
from isinglass.typing import Array, DType, FloatArray, IntArray, Mask

if TYPE_CHECKING:
    from isinglass.inference.message_passing.moves.flood_back import FloodBack
    from isinglass.inference.message_passing.moves.move import Move


@dataclass(eq=False)
class Run:
    """Message passing in one semiring, over the components that it is responsible for."""

    kernels: MessagePassingKernels
    edges: Edges
    semiring: Semiring
    units: Array
    states: tuple[int, ...]
    span: Span
    models: list[Values]  # one for all iterations, or one for each
    least: float  # the smallest logarithm of a potential of theirs, or NaN
    damping: float
    settled: bool  # whether one iteration gives a fixed point, wherever it starts
    tol: float  # links that change by less have converged: the residual schedule does not prefer any of them
    scratch: Scratch
    wanted: Mask
    m: Array
    n: Array
    log_zi: Array
    log_za: Array
    pool: Pool
    partner: IntArray | None  # for loops over pairs: the edge at the other end of a link; None if they do not apply
    steps: FloatArray  # (components,) the largest imaginary part of a log table; empty if they are real
    back: FloodBack  # the reverse of flooding
    spread: ThreadMap  # the threads that share its work
    shares: list[Share]  # the parts of the graph that they work on; none for a single thread
    calls: Calls  # of loops in its iterations
    uniform: bool = False  # whether m starts uniform
    spare: Array | None = None  # a second array for messages, where no tape keeps them
    variables: Array | None = None  # where the beliefs of variables are read out to

    @property
    def dtype(self) -> DType:
        """Of messages; to look at `m` itself would compute them, where they are deferred."""
        return self.units.dtype

    @property
    def is_linear(self) -> bool:
        """Whether messages are linear numbers; else they are logarithms."""
        return is_linear(self.semiring)

    @property
    def is_plain(self) -> bool:
        """Whether messages are linear, without damping and powers: what loops for special graphs expect."""
        return self.is_linear and self.damping == 0 and not len(self.scratch.own)

    def values(self, t: int) -> Values:
        """Return the model of iteration t."""
        return self.models[min(t, len(self.models) - 1)]

    def make_room(self, taped: bool) -> Array:
        """Return an array for new messages; a tape keeps the old ones."""
        if taped:
            return self.pool.take(self.n.shape, self.dtype)
        return np.empty_like(self.m) if self.spare is None else self.spare

    def step(self, step: Step, taped: bool, content: Hashable = None) -> Step:
        """Return a step whose arrays go back to the pool when it is no longer referenced; `content`: of `before`."""
        if taped:
            self.pool.give_back_with(step, step.before, content)
            if step.stack is not None and step.stack.size:
                self.pool.give_back_with(step, step.stack)
        return step


defer(Run, "m")


class Widths(NamedTuple):
    """The most states and edges of a variable, and the most slots of a link."""

    card: int
    degree: int
    slots: int


def widths_of(graph: FactorGraph) -> Widths:
    """Return the widths of a graph; at least one.

    Examples
    --------
    >>> import isinglass as ig
    >>> widths_of(ig.FactorGraph([2, 3], [(0, 1), (0,)]))
    Widths(card=3, degree=1, slots=2)
    """
    return graph.cached("widths", lambda: _widths(edges_of(graph)))


def _widths(edges: Edges) -> Widths:
    degree, slots = (int(np.diff(first).max(initial=1)) for first in (edges.first_edge, edges.first_slot))
    return Widths(int(edges.cards.max(initial=1)), degree, slots)


def scratch_of(graph: FactorGraph, dtype: DType, powers: bool) -> Scratch:
    """Return working memory; `powers`: with room for powers of messages."""
    edges, (card, degree, slots) = edges_of(graph), widths_of(graph)

    def room(length: int) -> Array:
        return np.empty(length, dtype)

    return Scratch(
        powered=room(edges.start[-1] * powers),
        own=room(edges.start[-1] * powers),
        scale=room(len(edges.edge_link) * powers),
        row=room(max(degree, 1) * card),
        back=room(max(degree, 1) * card),
        out=room(slots * card),
        raw=room(slots * card),
        mixed=room(slots * card),
        bar=room(slots * card),
        totals=room(slots),
        prefix=room(slots),
        digits=np.empty(slots, np.int64),
    )


def unwatched(active: Mask) -> Status:
    """Return the status of components of which only the messages are wanted."""
    return Status(active, np.zeros(len(active), bool), np.zeros(len(active)), watched=False)


@dataclass(frozen=True, eq=False)
class Step:
    """One iteration: the move that did it, the components that it updated, and the messages that it overwrote.

    Or several `iterations` at once; then `stack` holds the messages after each of them, or nothing, if they are to be
    done again on the way back.
    """

    move: Move
    t: int
    active: Mask
    before: Array
    sequence: IntArray | None = None
    stack: Array | None = None
    iterations: int = 1
    after: Array | None = None  # the messages after one iteration, where they are kept until all steps go


@dataclass(eq=False)
class Derivatives:
    """The derivatives that the reverse of a run has accumulated so far."""

    m: Array
    n: Array
    phi: list[Array]  # for each model
    psi: list[Array]
    places: list[TablePlaces]  # of those by psi
    counting: Array
    damping: Array
    flagged: Mask  # scratch

    def bars(self, t: int) -> Bars:
        """Return them, with those by the model of iteration t, as a backend takes them."""
        at = min(t, len(self.phi) - 1)
        phi, psi, places = self.phi[at], self.psi[at], self.places[at]
        return Bars(self.m, self.n, phi, psi, places.table, places.edge_table, self.counting, self.damping)


defer(Derivatives, "m")
