"""One link after the other, each from the current messages: in a given sequence, or by residual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from isinglass.inference.message_passing.moves.flood import flooding_of, measure
from isinglass.inference.message_passing.moves.move import Move
from isinglass.inference.message_passing.run import Derivatives, Run, Step
from isinglass.kernels.layout import Edges, Queue, Status
from isinglass.runtime.deferring import twin
from isinglass.typing import IntArray, Mask

ROUNDING = 4e-15  # of logarithms
NEGLIGIBLE = 1e-12  # a change that may be rounding, of logarithms of hundreds of nats


@dataclass(eq=False)
class LinkSequence(Move):
    """One link after the other, in a sequence."""

    in_place: ClassVar[bool] = True
    sequence: Callable[[], IntArray]

    def forward(self, run: Run, t: int, status: Status, taped: bool) -> Step:
        """Do iteration t."""
        sequence = _inside(run, self.sequence())
        log = np.empty(_log_size(run.edges, sequence) if taped else 0, run.m.dtype)
        run.kernels.update_in_sequence(run, run.values(t), sequence, log, status)
        return Step(self, t, status.active, log, sequence)

    def effects(self, run: Run, step: Step, status: Status) -> None:
        """Measure what one undamped flooding would change."""
        plain = run.damping == 0 and len(run.models) == 1
        undamped = run if plain else twin(run, damping=0.0, models=run.models[-1:])
        new = run.pool.take(run.m.shape, run.m.dtype)
        ignored = status._replace(residual=np.zeros(len(status.active)), watched=False)
        flooding_of(run).pass_messages(undamped, 0, new, ignored)
        measure(undamped, run.m, new, status)
        run.pool.give(new)

    def backward(self, run: Run, step: Step, moved: Mask, bars: Derivatives) -> None:
        """Reverse a step; run.m becomes what it was before."""
        assert step.sequence is not None
        run.kernels.update_in_sequence_back(
            run, run.values(step.t), step.sequence, step.before, bars.bars(step.t), moved
        )


@dataclass(eq=False)
class LargestResidual(LinkSequence):
    """Always the link of largest residual: the sequence is found while it runs, and recorded.

    The first iteration updates every link once, in the given sequence. So the messages depend on every table, also on
    one whose message happens to be what it was at the start, which has no residual: a derivative must know of it. For
    the same reason, a given number of iterations is done to its end: links whose residuals are within the tolerance
    take turns, by their numbers, in every other iteration from the last to the first.
    """

    stops: bool  # where all residuals are within the tolerance
    queue: Queue | None = field(default=None, init=False)  # its parts that stay from iteration to iteration

    def forward(self, run: Run, t: int, status: Status, taped: bool) -> Step:
        """Do iteration t."""
        if t == 0:
            return super().forward(run, t, status, taped)
        if run.spare is None:
            run.spare = np.empty_like(run.m)
        if self.queue is None:
            self.queue = _queue(run, len(status.active), self.stops)
        edges, links = run.edges, len(run.edges.size)
        most = int(np.diff(edges.first_slot).max(initial=0)) * int(edges.cards.max(initial=1))
        waiting = np.arange(1.0, links + 1)
        queue = self.queue._replace(
            pending=run.spare,
            change=np.ones(len(edges.edge_link)),
            log=np.empty(links * most if taped else 0, run.m.dtype),
            sequence=np.empty(links, np.int64),
            priority=np.ones(links),
            turn=-waiting[::-1] if t % 2 else -waiting,
        )
        updates, logged = run.kernels.update_by_residual(run, run.values(t), queue, status)
        return Step(self, t, status.active, queue.log[:logged].copy(), queue.sequence[:updates].copy())

    def effects(self, run: Run, step: Step, status: Status) -> None:
        """Keep the residuals, which are such effects already; after the first iteration, measure them."""
        if step.t == 0:
            super().effects(run, step, status)

    def at_rest(self, run: Run, active: Mask) -> Step:
        """Update all links in the given sequence: none has a residual."""
        return LinkSequence(self.sequence).at_rest(run, active)


def _queue(run: Run, n_components: int, stops: bool) -> Queue:
    """Return an empty queue."""
    component, links = run.edges.component, len(run.edges.size)
    members = np.argsort(component, kind="stable")
    first = np.searchsorted(component[members], np.arange(n_components + 1)).astype(np.int64)
    nothing, numbers = np.zeros(0), np.zeros((3, links), np.int64)
    low = _converged(run)
    limit, alike = (low, 1.0) if stops else (-np.inf, max(low, 1 + NEGLIGIBLE))
    return Queue(
        members, first, run.m, nothing, nothing, numbers[0], nothing, numbers[1], numbers[2], limit, nothing, alike
    )


def _converged(run: Run) -> float:
    """Return exp(osc) of a change, damped, whose effect without damping is just within the tolerance."""
    osc = 4 * np.arctanh(min(run.tol, 0.999)) * (1 - run.damping) - ROUNDING
    return float(np.exp(max(osc, 0.0)))


def _inside(run: Run, sequence: IntArray) -> IntArray:
    """Return the links of a sequence that lie in the span of a run."""
    if run.span.first_link == 0 and run.span.last_link == len(run.edges.size):
        return sequence
    return sequence[(sequence >= run.span.first_link) & (sequence < run.span.last_link)]


def _log_size(edges: Edges, sequence: IntArray) -> int:
    per_slot = np.diff(edges.start)[edges.slot_edge]
    total = np.concatenate([[0], np.cumsum(per_slot)])
    per_link = total[edges.first_slot[1:]] - total[edges.first_slot[:-1]]
    return int(per_link[sequence].sum())
