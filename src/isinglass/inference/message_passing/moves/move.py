"""The ways in which one iteration can be done, each with its reverse: flooding, a sequence of links, by residual.

A move takes a run from the messages of iteration t to those of t + 1, and hands out a `Step`, from which it can go
back. Where several moves can serve a schedule, all give the same messages, to the last bit. Their reverses would differ
in the last bits: which one serves a component depends on that component only (see `flood_back`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isinglass.graph.message_graph import Edges
from isinglass.inference.message_passing.table_places import TablePlaces
from isinglass.runtime.array_pool import Pool
from isinglass.segments import Largest
from isinglass.typing import IntArray

if TYPE_CHECKING:
    from isinglass.inference.message_passing.moves.flood_back import FloodBack
    from isinglass.kernels.numba.arithmetic.semiring import Ring
    from isinglass.kernels.numba.messages.adjoints import Bars
    from isinglass.kernels.numba.messages.passes import Scratch, Span, Values

Mask = NDArray[np.bool_]

NOISE = 1e-15  # of a derivative along a step of size one
ROUNDING = 4e-15  # of logarithms


@dataclass(eq=False)
class Run:
    """Message passing in one representation, over the components that it is responsible for."""

    edges: Edges
    ring: Ring
    units: NDArray[Any]
    states: tuple[int, ...]
    span: Span
    stages: list[Values]  # one for all iterations, or one for each
    damping: float
    settled: bool  # whether one iteration is a fixed point, wherever it starts
    tol: float  # below which the residual schedule leaves a link alone
    scratch: Scratch
    wanted: Mask
    m: NDArray[Any]
    n: NDArray[Any]
    log_zi: NDArray[Any]
    log_za: NDArray[Any]
    pool: Pool
    partner: IntArray | None  # for loops that go by pairs: the edge at the other end; None if they cannot
    steps: NDArray[np.float64]  # (components,) the largest imaginary part of a log table; empty if they are real
    back: FloodBack  # the reverse of flooding
    uniform: bool = False  # whether m is, to begin with
    spare: NDArray[Any] | None = None  # a second place for messages, where nothing is taped

    def values(self, t: int) -> Values:
        """Return the numbers of iteration t."""
        return self.stages[min(t, len(self.stages) - 1)]

    def make_room(self, taped: bool) -> NDArray[Any]:
        """Return a place for new messages; the old ones are kept on a tape."""
        if taped:
            return self.pool.take(self.m.shape, self.m.dtype)
        return np.empty_like(self.m) if self.spare is None else self.spare

    def step(self, step: Step, taped: bool) -> Step:
        """Return a step whose messages are used again when nobody needs it any more."""
        if taped:
            self.pool.give_back_with(step, step.before)
            if step.stack is not None:
                self.pool.give_back_with(step, step.stack)
        return step


class Fate(NamedTuple):
    """What becomes of each component: whether it moves, whether a product underflowed, how far its messages moved.

    How far is only asked for in iterations that are `watched`.
    """

    active: Mask
    flagged: Mask
    residual: NDArray[np.float64]
    watched: bool = True


def unwatched(active: Mask) -> Fate:
    """Return the fate of components of which only the messages are wanted."""
    return Fate(active, np.zeros(len(active), bool), np.zeros(len(active)), watched=False)


@dataclass(eq=False)
class Derivatives:
    """What the reverse of a run has found so far."""

    m: NDArray[Any]
    n: NDArray[Any]
    phi: list[NDArray[Any]]  # for each stage
    psi: list[NDArray[Any]]
    places: list[TablePlaces]  # of those by psi
    counting: NDArray[Any]
    damping: NDArray[Any]
    flagged: Mask  # scratch

    def bars(self, t: int) -> Bars:
        """Return them as the kernels take them."""
        from isinglass.kernels.numba.messages.adjoints import Bars

        stage = min(t, len(self.phi) - 1)
        phi, psi, places = self.phi[stage], self.psi[stage], self.places[stage]
        return Bars(self.m, self.n, phi, psi, places.table, places.edge_table, self.counting, self.damping)


@dataclass(frozen=True, eq=False)
class Step:
    """One iteration that was done: by which move, on which components, and the messages that it overwrote.

    Or several `iterations` at once; then `stack` holds the messages after each of them.
    """

    move: Move
    t: int
    active: Mask
    before: NDArray[Any]
    sequence: IntArray | None = None
    stack: NDArray[Any] | None = None
    iterations: int = 1


class Move(ABC):
    """One way to do an iteration."""

    in_place: ClassVar[bool] = False  # whether it writes new messages over the old ones
    floods: ClassVar[bool] = False  # whether its reverse is that of flooding, which is one for all steps of a run

    @abstractmethod
    def forward(self, run: Run, t: int, fate: Fate, taped: bool) -> Step:
        """Do iteration t on the active components; set their residuals, flag those in which a product underflows."""

    def forward_all(self, run: Run, iterations: int, fate: Fate, taped: bool) -> Step | None:
        """Do all iterations at once, if that is possible and better; else do nothing."""
        return None

    def effects(self, run: Run, step: Step, fate: Fate) -> None:
        """Set the residuals of the active components to what a further iteration can do to any probability.

        Residuals of `forward` are changes of normalised messages, which are never larger and cost nothing. This is
        the measure that convergence is judged by (see `kernels.numba.messages.changes`); by default, that of one
        undamped flooding.
        """
        undamped = replace(run, damping=0.0, stages=run.stages[-1:])
        new = run.pool.take(run.m.shape, run.m.dtype)
        run.pool.give_back_with(undamped, new)
        flood = Flood() if run.partner is None else FloodPairs(run.partner)
        flood.pass_messages(undamped, 0, new, Fate(fate.active, fate.flagged, np.zeros(len(fate.active)), False))
        _measure(undamped, run.m, new, fate)

    def at_rest(self, run: Run, active: Mask) -> Step:
        """Return a step that begins with the messages of a run at a fixed point, and updates all of them."""
        step = self.forward_all(run, 1, unwatched(active), True) or self.forward(run, 0, unwatched(active), True)
        step.move.finish(run)
        return step

    @abstractmethod
    def backward(self, run: Run, step: Step, moved: Mask, bars: Derivatives) -> None:
        """Turn derivatives by the messages after a step into those by the messages before it."""

    def messages_before(self, step: Step, t: int) -> NDArray[Any]:
        """Return the messages before iteration t of a step, on edges, if it keeps all of them."""
        return step.before

    def planes_of(self, step: Step) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Return the messages before a step and after each of its iterations, where they are kept in planes."""
        return None

    def finish(self, run: Run) -> None:  # noqa: B027
        """Leave the messages in run.m; most moves never take them elsewhere."""

    def sizes_back(self, run: Run, bars: Derivatives, largest: Largest) -> NDArray[np.float64]:
        """Return the largest derivative by a log message so far, of real and imaginary parts, (parts, components)."""
        return largest.parts(bars.m)

    def finish_back(self, run: Run, bars: Derivatives) -> None:  # noqa: B027
        """Leave the derivatives in bars.m."""


class Flood(Move):
    """All links at once, on any graph."""

    floods: ClassVar[bool] = True

    def forward(self, run: Run, t: int, fate: Fate, taped: bool) -> Step:
        """Do iteration t."""
        new, old = run.make_room(taped), run.m
        self.pass_messages(run, t, new, fate)
        run.m, run.spare = new, None if taped else old
        return run.step(Step(self, t, fate.active, old), taped)

    def pass_messages(self, run: Run, t: int, new: NDArray[Any], fate: Fate) -> None:
        """Write the messages after iteration t to `new`."""
        from isinglass.kernels.numba.messages.passes import flood

        flood(
            run.edges, run.span, run.values(t), run.m, new, run.n, run.damping, *fate[:3], run.scratch,
            run.states, run.units, run.ring,
        )  # fmt: skip

    def at_rest(self, run: Run, active: Mask) -> Step:
        """Return a step that need not be done: to go back, the messages before it are enough."""
        return Step(self, 0, active, run.m)

    def effects(self, run: Run, step: Step, fate: Fate) -> None:
        """Compare the messages before and after the step."""
        _measure(run, step.before, run.m, fate)

    def backward(self, run: Run, step: Step, moved: Mask, bars: Derivatives) -> None:
        """Reverse a step."""
        run.back.backward(run, step, moved, bars)

    def sizes_back(self, run: Run, bars: Derivatives, largest: Largest) -> NDArray[np.float64]:
        """Look at the derivatives where they are."""
        return run.back.sizes(run, bars, largest)

    def finish_back(self, run: Run, bars: Derivatives) -> None:
        """Leave the derivatives in bars.m."""
        run.back.finish(run, bars)


@dataclass(eq=False)
class FloodPairs(Flood):
    """All links at once, variable by variable: pairwise graphs and linear values."""

    partner: IntArray

    def pass_messages(self, run: Run, t: int, new: NDArray[Any], fate: Fate) -> None:
        """Write the messages after iteration t to `new`."""
        from isinglass.kernels.numba.messages.pairs import flood_pairs

        flood_pairs(
            run.edges, self.partner, run.span, run.values(t), run.m, new, run.damping, *fate, run.scratch,
            run.states, run.units,
        )  # fmt: skip


@dataclass(eq=False)
class Follow(Move):
    """One link after the other, in a sequence for each iteration."""

    in_place: ClassVar[bool] = True
    sequence: Callable[[int], IntArray]

    def forward(self, run: Run, t: int, fate: Fate, taped: bool) -> Step:
        """Do iteration t."""
        from isinglass.kernels.numba.messages.passes import follow

        sequence = _inside(run, self.sequence(t))
        log = np.empty(_log_size(run.edges, sequence) if taped else 0, run.m.dtype)
        follow(
            run.edges, run.values(t), sequence, run.m, run.n, log, run.damping, *fate[:3], run.scratch,
            run.states, run.units, run.ring,
        )  # fmt: skip
        return Step(self, t, fate.active, log, sequence)

    def backward(self, run: Run, step: Step, moved: Mask, bars: Derivatives) -> None:
        """Reverse a step; run.m becomes what it was before."""
        from isinglass.kernels.numba.messages.adjoints import follow_back

        follow_back(
            run.edges, run.values(step.t), step.sequence, run.m, run.n, step.before, len(step.before),
            bars.bars(step.t), run.damping, moved, run.scratch, run.states, run.units, run.ring,
        )  # fmt: skip


@dataclass(eq=False)
class Chase(Follow):
    """By residual: the sequence is found while it runs, and logged."""

    sequence: Callable[[int], IntArray] = field(default=lambda t: np.zeros(0, np.int64), init=False)
    heap: tuple[IntArray, ...] = field(default=(), init=False)

    def forward(self, run: Run, t: int, fate: Fate, taped: bool) -> Step:
        """Do iteration t."""
        from isinglass.kernels.numba.messages.residual import chase

        edges, links = run.edges, len(run.edges.size)
        if not self.heap:
            members = np.argsort(edges.component, kind="stable")
            first = np.searchsorted(edges.component[members], np.arange(len(fate.active) + 1)).astype(np.int64)
            self.heap = (members, first, np.zeros(links, np.int64), np.zeros(links, np.int64))
        members, first, heap, place = self.heap
        sequence = np.empty(links, np.int64)
        most = int(np.diff(edges.first_slot).max(initial=0)) * int(edges.cards.max(initial=1))
        log = np.empty(links * most if taped else 0, run.m.dtype)
        if run.spare is None:
            run.spare = np.empty_like(run.m)
        count, logged = chase(
            edges, run.span, run.values(t), members, first, run.m, run.n, run.spare, np.ones(len(edges.edge_link)),
            log, sequence, np.ones(links), heap, place, self._limit(run), run.damping, *fate[:3], run.scratch,
            run.states, run.units, run.ring,
        )  # fmt: skip
        return Step(self, t, fate.active, log[:logged].copy(), sequence[:count].copy())

    @staticmethod
    def _limit(run: Run) -> float:
        """Return exp(osc) of a change, damped, whose effect without damping is just within the tolerance."""
        if run.tol < 0:
            return 0.0
        osc = 4 * np.arctanh(min(run.tol, 0.999)) * (1 - run.damping) - ROUNDING
        return float(np.exp(max(osc, 0.0)))

    def effects(self, run: Run, step: Step, fate: Fate) -> None:
        """Leave the residuals alone: they are such effects already."""

    def at_rest(self, run: Run, active: Mask) -> Step:
        """Follow a sequence of all links: nothing has a residual."""
        return Follow(lambda t: np.arange(len(self.heap[0]))).at_rest(run, active)


def _measure(run: Run, old: NDArray[Any], new: NDArray[Any], fate: Fate) -> None:
    """Set residuals by messages before and after an iteration; of complex ones, also by how far imaginary parts moved.

    Those stand for derivatives, which change relative to their size.
    """
    from isinglass.kernels.numba.messages.changes import effects, imaginary_effects

    effects(run.edges, run.span, old, new, run.damping, fate.active, fate.residual, run.ring)
    if run.m.dtype.kind == "c":
        moved, size = np.zeros(len(fate.active)), np.zeros(len(fate.active))
        imaginary_effects(run.edges, old, new, run.damping, fate.active, moved, size, run.ring)
        moved[moved <= NOISE * run.steps] = 0  # nothing but rounding
        share = np.divide(moved, size, out=np.zeros_like(moved), where=size > 0)
        np.maximum(fate.residual, share, out=fate.residual, where=fate.active)


def _inside(run: Run, sequence: IntArray) -> IntArray:
    """Return the links of a sequence that the run looks at."""
    if run.span.first_link == 0 and run.span.last_link == len(run.edges.size):
        return sequence
    return sequence[(sequence >= run.span.first_link) & (sequence < run.span.last_link)]


def _log_size(edges: Edges, sequence: IntArray) -> int:
    per_slot = np.diff(edges.start)[edges.slot_edge]
    total = np.concatenate([[0], np.cumsum(per_slot)])
    per_link = total[edges.first_slot[1:]] - total[edges.first_slot[:-1]]
    return int(per_link[sequence].sum())
