"""Passing messages up and beliefs down a bucket tree, bucket by bucket, on some threads.

Small buckets are done in runs by one compiled loop (`kernels.numba.junction_tree.buckets`); those with large messages
one by one, in pieces (`kernels.numba.junction_tree.large`). `schedule` says what threads may do side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from isinglass.graph.elimination.bucket_tree import BucketTree
from isinglass.inference.algorithm import Progress
from isinglass.inference.junction_tree.arrangement import Arrangement, arranged
from isinglass.inference.junction_tree.schedule import CHUNK, Schedule, make_schedule
from isinglass.runtime.interrupts import interruptible
from isinglass.runtime.threads import ThreadMap
from isinglass.typing import Array, DType, FloatArray, IntArray, Mask

if TYPE_CHECKING:
    from isinglass.kernels.numba.junction_tree.buckets import Scratch
    from isinglass.kernels.numba.junction_tree.program import Program

HUGE = 4  # chunks that a single bucket of small messages may take before a thread does it
WORTH_THREADS = 2**17  # entries of a bucket, some tenths of a millisecond
LEVEL = 2.0**-8, 2.0**4  # the peaks of large messages that need no normalisation


class LargeBucket(NamedTuple):
    """What the loops for a bucket with large messages need to know of it, and the sizes of their scratch."""

    bounds: IntArray  # (pieces + 1,) the first tile of each piece
    missing_axis: int
    run_axis: int
    axes: int
    inputs: int  # that are large messages
    run: int
    block: int  # the states of its own variable, times the run
    sums: int  # entries of the large messages within a tile

    def scratch(self, dtype: DType) -> tuple[Array, IntArray, Mask, IntArray]:
        """Return working memory for one call: block, offsets, flags, counter."""
        offsets, flags = np.empty((self.inputs, self.run), np.int64), np.empty(self.inputs, bool)
        return np.empty(self.block, dtype), offsets, flags, np.empty(self.axes, np.int64)


@dataclass(frozen=True, eq=False)
class Layout:
    """What depends on the structure alone: tree, program, arrangement of large buckets, schedule.

    `widest` is, for each bucket, the entries of its largest local message; `message_entries` those of the vector of all
    messages.
    """

    tree: BucketTree
    program: Program
    arrangement: Arrangement
    schedule: Schedule
    widest: IntArray
    message_entries: int
    known: dict[int, LargeBucket] = field(default_factory=dict)

    def large_bucket(self, b: int) -> LargeBucket:
        """Describe a large bucket; once, as this takes longer than to share a small one out."""
        if b not in self.known:
            self.known[b] = self._large_bucket(b)
        return self.known[b]

    def _large_bucket(self, b: int) -> LargeBucket:
        program, pieces = self.program, int(self.schedule.pieces[b])
        missing, run_axis = int(self.arrangement.missing_axis[b]), int(self.arrangement.run_axis[b])
        cards = program.cards[program.first_axis[b] : program.first_axis[b + 1]]
        run, tiles = int(cards[run_axis:-1].prod()), int(cards[:missing].prod())
        inputs = range(int(program.first_large[b]), int(program.first_input[b + 1]))
        in_tile = [program.strides[program.first_stride[i] :][missing:run_axis] > 0 for i in inputs]
        entries = sum(int(cards[missing:run_axis][has].prod()) for has in in_tile)
        block = run * int(cards[-1])
        bounds = np.arange(pieces + 1) * tiles // pieces
        return LargeBucket(bounds, missing, run_axis, len(cards), len(inputs), run, block, entries * block)

    def with_messages(self, first_message: IntArray, entries: int) -> Layout:
        """Return the layout with other places for the messages."""
        return replace(self, program=self.program._replace(first_message=first_message), message_entries=entries)


def make_layout(tree: BucketTree) -> Layout:
    """Arrange the tables and write the program."""
    from isinglass.kernels.numba.junction_tree.program import make_program

    arrangement = arranged(tree)
    program = make_program(arrangement.arrays, arrangement.is_large)
    widest = np.ones(tree.n_buckets, np.int64)
    local = np.flatnonzero((tree.arrays.parent >= 0) & ~arrangement.is_large)
    np.maximum.at(widest, tree.arrays.parent[local], program.message_size[local])
    schedule = make_schedule(tree, arrangement, program.local_size)
    return Layout(tree, program, arrangement, schedule, widest, int(tree.arrays.first_message[-1]))


@dataclass(frozen=True, eq=False)
class Passes:
    """A bucket tree with its values (see `Upward`), and the threads that work on it."""

    layout: Layout
    values: Array
    messages: int
    start_of: IntArray
    peak: FloatArray
    low: FloatArray
    threads: ThreadMap

    def up(self, semiring: int, wanted: Mask, flagged: Mask, progress: Progress | None, stage: str) -> None:
        """Pass the messages of the wanted components in a semiring; flag those that need logarithms."""
        _Up(self, semiring, wanted, _Report(self.layout, progress, stage), flagged).run()

    def down(
        self,
        semiring: int,
        wanted: Mask,
        progress: Progress | None,
        variables: Array,
        first_state: IntArray,
        factors: Array,
        first_belief: IntArray,
    ) -> None:
        """Pass the beliefs of the wanted components; add them to the zero-filled vectors (see `buckets.down`)."""
        into = (variables, first_state, factors, first_belief)
        _Down(self, semiring, wanted, _Report(self.layout, progress, "marginals"), into).run()


class _Report:
    """Reports progress, from the thread that asked for it only."""

    def __init__(self, layout: Layout, progress: Progress | None, stage: str) -> None:
        self.progress, self.stage, self.caller = progress, stage, get_ident()
        self.work, self.total, self.done = layout.tree.work, max(float(layout.tree.work.sum()), 1.0), 0.0

    def __call__(self, buckets: IntArray) -> None:
        if self.progress is None:
            return
        self.done += float(self.work[buckets].sum())
        if get_ident() == self.caller and self.done < self.total:
            self.progress(self.stage, self.done / self.total)

    def end(self) -> None:
        if self.progress is not None:
            self.progress(self.stage, 1.0)


@dataclass(frozen=True, eq=False)
class _Direction:
    """One way through the tree; subclasses say what a bucket does."""

    passes: Passes
    semiring: int
    wanted: Mask
    report: _Report

    def small(self, first: int, last: int, scratch: Scratch) -> None:
        """Do buckets ``sequence[first:last]``, none of which has large messages."""
        raise NotImplementedError

    def large(self, b: int, scratch: Scratch, threads: ThreadMap) -> None:
        """Do a bucket with large messages."""
        raise NotImplementedError

    @property
    def logs(self) -> int | None:
        """The semiring for compiled loops: None for linear values."""
        return self.semiring or None

    @property
    def start(self) -> IntArray:
        """Where the inputs of the program start in the values."""
        found: IntArray = self.passes.start_of[self.semiring]
        return found

    def job(self, job: int, threads: ThreadMap, backwards: bool) -> None:
        """Do the buckets of a job, one after the other."""
        layout = self.passes.layout
        schedule = layout.schedule
        scratch = self.scratch(schedule.sequence[schedule.jobs[job] : schedule.jobs[job + 1]])
        segments = schedule.segments(job)
        for first, last in reversed(segments) if backwards else segments:
            b = int(schedule.sequence[first])
            if schedule.pieces[b]:
                self.large(b, scratch, threads)
            else:
                work = layout.tree.work[schedule.sequence[first:last]].sum()
                call = interruptible if work > HUGE * CHUNK else _plainly
                call(self.small, first, last, scratch)
            self.report(schedule.sequence[first:last])

    def scratch(self, buckets: IntArray) -> Scratch:
        """Allocate what the small buckets among these need."""
        from isinglass.kernels.numba.junction_tree.buckets import Scratch
        from isinglass.kernels.numba.junction_tree.strided import BLOCK

        layout, program = self.passes.layout, self.passes.layout.program
        small = buckets[layout.schedule.pieces[buckets] == 0]
        axes = np.diff(program.first_axis)[buckets].max(initial=1)
        return Scratch(
            offsets=np.zeros(max(BLOCK, int(program.cards.max(initial=1))), np.int64),
            counter=np.zeros(axes, np.int64),
            local=np.empty(program.local_size[small].max(initial=1), self.passes.values.dtype),
            sums=np.empty(layout.widest[buckets].max(initial=1), self.passes.values.dtype),
        )

    def local_table(self, b: int, scratch: Scratch) -> Array:
        """Multiply the local inputs of a large bucket."""
        from isinglass.kernels.numba.junction_tree.buckets import fill_local

        passes, program = self.passes, self.passes.layout.program
        local = np.empty(program.local_size[b], passes.values.dtype)
        fill_local(program, b, passes.values, self.start, self.logs, local, scratch.offsets, scratch.counter)
        return local

    def shared(self, b: int, threads: ThreadMap, loop: Callable[[int, int, int], None]) -> None:
        """Share the pieces of a large bucket out: in ranges, with not too much to do between two calls from Python."""
        pieces, work = int(self.passes.layout.schedule.pieces[b]), self.passes.layout.tree.work[b]
        ranges = 2 * threads.threads if threads.threads > 1 and work >= WORTH_THREADS else 1
        ranges = min(pieces, max(ranges, int(work // CHUNK)))
        threads(loop, [(b, pieces * i // ranges, pieces * (i + 1) // ranges) for i in range(ranges)])

    def message(self, b: int) -> int:
        """Return where the message of a bucket starts in the values."""
        return self.passes.messages + int(self.passes.layout.program.first_message[b])

    def jobs(self) -> Sequence[tuple[int, ThreadMap, bool]]:
        """List all jobs but the last; each is done by one thread."""
        one = ThreadMap(1)
        return [(job, one, isinstance(self, _Down)) for job in range(len(self.passes.layout.schedule.jobs) - 2)]


@dataclass(frozen=True, eq=False)
class _Up(_Direction):
    flagged: Mask

    def run(self) -> None:
        self.passes.threads(self.job, self.jobs())
        self.job(len(self.passes.layout.schedule.jobs) - 2, self.passes.threads, False)
        self.report.end()

    def small(self, first: int, last: int, scratch: Scratch) -> None:
        from isinglass.kernels.numba.junction_tree.buckets import up

        passes = self.passes
        up(
            passes.layout.program, passes.layout.schedule.sequence, first, last, passes.values, passes.messages,
            self.start, passes.peak, passes.low, self.wanted, self.flagged, self.logs, scratch,
        )  # fmt: skip

    def large(self, b: int, scratch: Scratch, threads: ThreadMap) -> None:
        from isinglass.kernels.numba.junction_tree.buckets import SAFE

        passes, program = self.passes, self.passes.layout.program
        component = program.component[b]
        if not self.wanted[component] or self.flagged[component]:
            return
        bound = passes.low[program.first_input[b] : program.first_input[b + 1]].prod()
        if self.logs is None and bound < SAFE:
            self.flagged[component] = True
            return
        local, bucket = self.local_table(b, scratch), passes.layout.large_bucket(b)
        ends = np.empty((len(bucket.bounds) - 1, 2))
        self.shared(b, threads, partial(self.pieces, bucket, local, ends))
        peak, least = float(ends[:, 0].max()), float(ends[:, 1].min())
        passes.peak[b] = self.normalised(b, peak, threads)
        scale = passes.peak[b] if self.logs is None and peak > 0 else 1.0
        passes.low[program.input_of[b]] = min(1.0, least / scale)

    def pieces(self, bucket: LargeBucket, local: Array, ends: FloatArray, b: int, first: int, last: int) -> None:
        from isinglass.kernels.numba.junction_tree.large import up_pieces

        passes, (block, *scratch) = self.passes, bucket.scratch(self.passes.values.dtype)
        up_pieces(
            passes.layout.program, b, bucket.missing_axis, bucket.run_axis, bucket.bounds, first, last, passes.values,
            self.message(b), self.start, self.logs, local, block, *np.empty((2, bucket.run)), *scratch, ends,
        )  # fmt: skip

    def normalised(self, b: int, peak: float, threads: ThreadMap) -> float:
        """Divide a message by its peak (subtract it), unless that is near one. Returns what was done."""
        from isinglass.kernels.numba.junction_tree.large import scale_values

        if self.logs is None and (LEVEL[0] <= peak <= LEVEL[1]):
            return 1.0
        if peak == (0.0 if self.logs is None else -np.inf):
            return peak
        size, start = int(self.passes.layout.program.message_size[b]), self.message(b)
        pieces = int(self.passes.layout.schedule.pieces[b])

        def scale(_: int, first: int, last: int) -> None:
            bounds = start + size * first // pieces, start + size * last // pieces
            scale_values(self.passes.values, *bounds, peak, self.logs)

        self.shared(b, threads, scale)
        return peak


@dataclass(frozen=True, eq=False)
class _Down(_Direction):
    into: tuple[Array, IntArray, Array, IntArray]

    def run(self) -> None:
        self.job(len(self.passes.layout.schedule.jobs) - 2, self.passes.threads, True)
        self.passes.threads(self.job, self.jobs())
        self.report.end()

    def small(self, first: int, last: int, scratch: Scratch) -> None:
        from isinglass.kernels.numba.junction_tree.buckets import down

        passes = self.passes
        down(
            passes.layout.program, passes.layout.schedule.sequence, first, last, passes.values, passes.messages,
            self.start, passes.peak, self.wanted, self.logs, *self.into, scratch,
        )  # fmt: skip

    def large(self, b: int, scratch: Scratch, threads: ThreadMap) -> None:
        from isinglass.kernels.numba.junction_tree.buckets import hand_down

        passes, program = self.passes, self.passes.layout.program
        if not self.wanted[program.component[b]]:
            return
        local, bucket = self.local_table(b, scratch), passes.layout.large_bucket(b)
        marginals = np.empty((len(bucket.bounds) - 1, len(local)), local.dtype)
        self.shared(b, threads, partial(self.pieces, bucket, local, marginals))
        for other in marginals[1:]:
            marginals[0] += other
        hand_down(
            program, b, marginals[0], passes.values, self.start, passes.peak, self.logs, *self.into, scratch.offsets,
            scratch.counter, scratch.sums,
        )  # fmt: skip

    def pieces(self, bucket: LargeBucket, local: Array, marginals: Array, b: int, first: int, last: int) -> None:
        from isinglass.kernels.numba.junction_tree.large import down_pieces

        passes, (block, *scratch) = self.passes, bucket.scratch(self.passes.values.dtype)
        sums, first_place = np.empty(bucket.sums, local.dtype), np.zeros(bucket.inputs + 1, np.int64)
        places = np.zeros((bucket.inputs, bucket.run_axis - bucket.missing_axis), np.int64)
        down_pieces(
            passes.layout.program, b, bucket.missing_axis, bucket.run_axis, bucket.bounds, first, last, passes.values,
            self.message(b), self.start, passes.peak, self.logs, local, marginals, block, sums, places, first_place,
            *scratch,
        )  # fmt: skip


def _plainly(loop: Callable[..., None], *arguments: object) -> None:
    loop(*arguments)
