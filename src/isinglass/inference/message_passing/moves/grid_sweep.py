"""The grid schedule on regular grids, in planes; see `isinglass.kernels.numba.grids.sweeps`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.message_passing import shares
from isinglass.inference.message_passing.moves.plane_move import PlaneMove, Way, grid_kernels
from isinglass.inference.message_passing.moves.planes import (
    BeliefDerivatives,
    beliefs_back,
    collect,
    grid_pieces,
    largest_of_grids,
    used_places,
    work_of,
)
from isinglass.inference.message_passing.moves.sequence import LinkSequence
from isinglass.inference.message_passing.moves.sheets import (
    Sheets,
    SweepModel,
    sheets_of,
    sweep_model,
    sweep_room,
    with_own_lines,
)
from isinglass.inference.message_passing.moves.sweep_bars import SweepBars
from isinglass.inference.message_passing.run import Derivatives, Run, Step, unwatched
from isinglass.kernels.layout import LANES, WIDE, Status, SweepWork
from isinglass.segments import Largest
from isinglass.typing import Array, FloatArray, Mask

T = TypeVar("T")


@dataclass(eq=False)
class GridSweep(PlaneMove):
    """The grid schedule, line by line."""

    general: LinkSequence
    sheets: Sheets
    models: list[SweepModel]
    bars: SweepBars | None = field(default=None, init=False)
    used: Mask | None = field(default=None, init=False)  # the places in planes that hold messages
    collected: FloatArray | None = field(default=None, init=False)  # that were last moved to the edges
    room_on_edges: FloatArray | None = field(default=None, init=False)  # for messages
    rooms: list[SweepWork] = field(default_factory=list, init=False)  # that nobody uses now

    @classmethod
    def of(cls, graph: FactorGraph, run: Run, general: LinkSequence) -> GridSweep | None:
        """Return the move for a run, if it can be used."""
        sheets, kernels = sheets_of(graph), grid_kernels(run)
        if sheets is None or kernels is None:
            return None
        return cls(kernels, general, sheets, [sweep_model(sheets, values, run) for values in run.models])

    @property
    def planes(self) -> Sheets:
        """Where the messages lie."""
        return self.sheets

    @property
    def n_models(self) -> int:
        """How many models there are."""
        return len(self.models)

    @property
    def last_potentials(self) -> FloatArray:
        """The potentials of the last model."""
        return self.models[-1].phi

    @property
    def is_large(self) -> bool:
        """Whether threads share a grid."""
        return self.sheets.is_large

    def iterate(self, run: Run, way: Way, status: Status, tol: float = -1.0) -> Mask:
        """Do iterations; return in which grids a product came near to an underflow."""
        if self.is_large:
            return self._iterate_in_stages(run, way, status)
        model, suspect = self._model(way.t), np.zeros(len(status.active), bool)

        def sweep(first: int, last: int) -> None:
            with self.room(run) as room, self._between(run, way) as between:
                self.kernels.sweep(
                    model.phi, way.source, between, way.out, way.iterations, self._again(way.t), model.across,
                    model.along, status.active, suspect, status.residual, status.watched, room, model.limit, first,
                    last, model.own, model.lanes,
                )  # fmt: skip

        run.spread(sweep, self._pieces(run, way.iterations))
        return suspect

    def _iterate_in_stages(self, run: Run, way: Way, status: Status) -> Mask:
        """Do the same on large grids, one after the other: threads share the lines of each stage."""
        model, suspect = self._model(way.t), np.zeros(len(status.active), bool)
        for c in range(run.span.first_component, run.span.last_component):
            before = way.source
            if not status.active[c]:
                shares.copy(run.spread, way.out[c], before[c if len(before) > 1 else 0])
                continue
            for done in range(way.iterations):
                left, again = way.iterations - 1 - done, done > 0 or self._again(way.t)
                after, watched = way.after(done), status.watched and left == 0
                last = left <= status.watched  # whose U2 somebody reads
                status.residual[c], suspect[c] = self._stages(run, model, (before, after), c, again, last, watched)
                if suspect[c]:
                    break
                before = after
            if suspect[c]:
                break
        return suspect

    def _stages(
        self,
        run: Run,
        model: SweepModel,
        messages: tuple[FloatArray, FloatArray],
        c: int,
        again: bool,
        last: bool,
        watched: bool,
    ) -> tuple[float, bool]:
        """Do an iteration on a large grid; return the largest change, and whether it is suspect."""
        with self.room(run) as room:

            def stage(number: int, begin: int, end: int, chunk: int) -> tuple[float, bool]:
                return self.kernels.sweep_stage(
                    number, model.phi, *messages, model.across, model.along, c, again, last, watched, begin, end,
                    chunk, with_own_lines(self.sheets, room), model.limit, model.own, model.lanes,
                )  # fmt: skip

            found = self._in_stages(run, stage)
        return max(residual for residual, _ in found), any(suspect for _, suspect in found)

    def _in_stages(self, run: Run, stage: Callable[[int, int, int, int], T]) -> list[T]:
        """Let threads do the stages of an iteration: ranges of columns, of rows, of columns."""
        sheets = self.sheets
        columns, rows = (sheets.width, sheets.column_chunk), (sheets.height, sheets.row_chunk)
        in_turn = enumerate((columns, rows, columns))
        return [one for number, lines in in_turn for one in self._in_ranges(run, stage, number, *lines)]

    @staticmethod
    def _in_ranges(run: Run, stage: Callable[[int, int, int, int], T], number: int, length: int, chunk: int) -> list[T]:
        """Let threads do a stage: ranges of so many columns, or rows, as wide as possible.

        They consist of whole chunks: so nothing but the time depends on the number of threads. A last chunk that is
        shorter than the loops for binary grids work on belongs to the range before.
        """
        count = max(1, -(-(length - LANES + 1) // chunk))
        ranges = shares.cut(count, run.spread.threads)
        return run.spread(stage, [(number, a * chunk, length if b == count else b * chunk, chunk) for a, b in ranges])

    def _pieces(self, run: Run, iterations: int) -> list[tuple[int, int]]:
        """Cut small grids into as many as a loop may do at once."""
        span, work = run.span, iterations * work_of(self.planes)
        return grid_pieces(run.spread, span.first_component, span.last_component, work)

    @contextmanager
    def _between(self, run: Run, way: Way) -> Iterator[FloatArray]:
        """Lend planes for one grid, for the messages between iterations, unless there is a stack for all grids."""
        alone = way.iterations > 1 and not len(way.stack)
        planes = run.pool.take((2, *self.sheets.shape_of_one), WIDE) if alone else way.stack
        yield planes
        if alone:
            run.pool.give(planes)

    @contextmanager
    def room(self, run: Run) -> Iterator[SweepWork]:
        """Lend working memory for a grid, to one user at a time."""
        try:
            room = self.rooms.pop()
        except IndexError:
            room = sweep_room(self.sheets, run.pool, self)
        yield room
        self.rooms.append(room)

    def backward(self, run: Run, step: Step, moved: Mask, bars: Derivatives) -> None:
        """Reverse a step."""
        if len(bars.counting):
            self._backward_by_links(run, step, moved, bars)
            return
        if self.bars is None:
            self.bars = SweepBars.of(self.kernels, self.sheets, self.models, run, bars.m)
        stack = step.stack if step.after is None else step.after[None]
        assert stack is not None
        model, mine, planes = self._model(step.t), self.bars.models[min(step.t, len(self.models) - 1)], self.bars.m
        fresh = self.bars.fresh
        if self.sheets.is_large:
            for c in np.flatnonzero(moved).tolist():
                for t in range(step.iterations - 1, -1, -1):
                    before, again = step.before if t == 0 else stack[t - 1], t > 0 or self._again(step.t)
                    known = again and t < step.iterations - 2  # U1 is in the place of U2
                    self._stages_back(run, model, mine, (before, stack[t]), c, again, known)
            return

        def sweep_back(first: int, last: int) -> None:
            with self.room(run) as room:
                self.kernels.sweep_back(
                    model.phi, step.before, stack, step.iterations, self._again(step.t), fresh, planes, mine.phi,
                    model.across, mine.across, model.along, mine.along, moved, room, first, last, model.own,
                    model.lanes,
                )  # fmt: skip

        run.spread(sweep_back, self._pieces(run, step.iterations))

    def _stages_back(
        self,
        run: Run,
        model: SweepModel,
        mine: SweepModel,
        messages: tuple[FloatArray, FloatArray],
        c: int,
        again: bool,
        known: bool,
    ) -> None:
        """Reverse an iteration on a large grid."""
        assert self.bars is not None
        planes, fresh = self.bars.m, bool(self.bars.fresh[c])
        with self.room(run) as room:

            def stage(number: int, begin: int, end: int, chunk: int) -> None:
                self.kernels.sweep_stage_back(
                    number, model.phi, *messages, again, known, fresh, planes, mine.phi, model.across, mine.across,
                    model.along, mine.along, c, begin, end, chunk, with_own_lines(self.sheets, room), model.own,
                    model.lanes,
                )  # fmt: skip

            self._in_stages(run, stage)
        self.bars.fresh[c] = False

    def before(self, run: Run, step: Step, t: int) -> FloatArray:
        """Return the planes before iteration t of a step; between iterations U2 was left out, so one is done again."""
        if t == 0 or step.stack is None or not len(step.stack):
            return super().before(run, step, t)
        again, none = np.empty(self.planes.shape), step.stack[:0]
        way = Way(step.t + t - 1, 1, super().before(run, step, t - 1), none, again)
        self.iterate(run, way, unwatched(step.active))
        return again

    def _backward_by_links(self, run: Run, step: Step, moved: Mask, bars: Derivatives) -> None:
        """Reverse a step by the loops that know counting numbers, which do it again first."""
        for t in range(step.iterations - 1, -1, -1):
            run.m = self.messages_before(run, step, t)
            again = self.general.forward(run, step.t + t, unwatched(moved), True)
            self.general.backward(run, again, moved, bars)

    def read_out_back(self, run: Run, beliefs: Array, beliefs_bar: Array, bars: Derivatives) -> bool:
        """Carry derivatives by beliefs to the messages in planes."""
        self.bars = SweepBars.zeros(self.sheets, self.models, run, run.pool.take(self.sheets.shape, WIDE))
        given = BeliefDerivatives(beliefs, beliefs_bar, bars.phi[-1])
        beliefs_back(self.kernels, run.spread, self.sheets, self.sheets.grids, given, self.bars.m)
        return True

    def finish_back(self, run: Run, bars: Derivatives) -> None:
        """Move the derivatives back to edges, variables and tables."""
        if self.bars is not None:
            self.bars.give(self.kernels, run, bars)
        self.bars = None

    def effects(self, run: Run, step: Step, status: Status) -> None:
        """Measure one undamped flooding, as for other sequences, so that a residual does not depend on the batch."""
        assert self.inbox is not None
        if self.room_on_edges is None:
            self.room_on_edges = run.pool.take(run.n.shape, run.dtype)
            run.pool.give_back_with(run, self.room_on_edges)
        collect(self.kernels, run.spread, self.inbox, self.room_on_edges, self.planes.of_edges)
        run.m, self.collected = self.room_on_edges, self.inbox
        self.general.effects(run, step, status)

    def finish(self, run: Run) -> None:
        """Move the messages back to the edges, unless that has been done."""
        if self.inbox is not None and self.inbox is self.collected:
            self.inbox = None
        self.collected = None
        super().finish(run)

    def sizes_back(self, run: Run, bars: Derivatives, largest: Largest) -> FloatArray:
        """Measure the derivatives where they are."""
        if self.bars is None:
            return super().sizes_back(run, bars, largest)
        if self.used is None:
            self.used = used_places(self.bars.m.size, self.planes.of_edges)
        span = run.span
        bounds = span.first_component, span.last_component
        return largest_of_grids(self.kernels, run.spread, self.bars.m, self.used, 1, self.sheets.grids, bounds)[None]

    def _model(self, t: int) -> SweepModel:
        return self.models[min(t, len(self.models) - 1)]

    def _again(self, t: int) -> bool:
        """Tell whether the iteration before had the same potentials; this move did it then."""
        return t > 0 and self._model(t) is self._model(t - 1)

    def into_planes(self, run: Run, taped: bool) -> FloatArray:
        """Return the messages in planes."""
        self.collected = None  # an iteration begins
        return super().into_planes(run, taped)
