"""Passing messages up and beliefs down a bucket tree, bucket by bucket, on some threads.

Small buckets are done in runs by one compiled loop (`kernels.numba.junction_tree.buckets`). Runs with large messages
are done by all threads together (`kernels.numba.junction_tree.crews`). `schedule` says what threads may do side by
side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import get_ident
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from isinglass.graph.elimination.bucket_tree import BucketTree
from isinglass.inference.algorithm import Progress
from isinglass.inference.junction_tree.arrangement import Arrangement, arranged
from isinglass.inference.junction_tree.schedule import CHUNK, Schedule, make_schedule
from isinglass.runtime.interrupts import interruptible
from isinglass.runtime.threads import ThreadMap
from isinglass.typing import Array, FloatArray, IntArray, Mask

if TYPE_CHECKING:
    from isinglass.kernels.numba.junction_tree.buckets import Scratch
    from isinglass.kernels.numba.junction_tree.large import Cuts, Space
    from isinglass.kernels.numba.junction_tree.program import Program

HUGE = 1  # chunks that a single bucket may take before another thread does it, while this one hears Ctrl-C
TOGETHER = 8 * CHUNK  # entries that threads do together, to which they come once; Ctrl-C stops them between pieces
WORTH_THREADS = 2**18  # entries of a run of buckets, about a millisecond


class Shared(NamedTuple):
    """What threads share that do some buckets together (`kernels.numba.junction_tree.crews`)."""

    crew: IntArray
    local: Array  # the local table of a large bucket
    ends: FloatArray  # (pieces, 2) the largest and the smallest non-zero value of each
    marginals: Array  # the local tables of the beliefs of all pieces

    def stop(self) -> None:
        """Let no further piece be worked on."""
        from isinglass.kernels.numba.arithmetic.together import STOP

        self.crew[STOP] = 1

    def end(self) -> None:
        """Let nobody wait for a further step."""
        from isinglass.kernels.numba.arithmetic.together import OVER, STEP

        self.crew[STEP] = OVER


@dataclass(frozen=True, eq=False)
class Layout:
    """What depends on the structure alone: tree, program, arrangement of large buckets, schedule.

    `widest` is, for each bucket, the entries of its largest local message; `message_entries` those of the vector of all
    messages; `cuts` says how large buckets are cut into pieces, and `sizes` what a thread needs for them (`_sizes`).
    """

    tree: BucketTree
    program: Program
    arrangement: Arrangement
    schedule: Schedule
    widest: IntArray
    message_entries: int
    cuts: Cuts
    sizes: IntArray

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
    entries, cuts = int(tree.arrays.first_message[-1]), _cuts(program, arrangement, schedule)
    sizes = np.zeros((tree.n_buckets, 6), np.int64)
    for b in np.flatnonzero(schedule.pieces).tolist():
        sizes[b] = _sizes(program, cuts, b)
    return Layout(tree, program, arrangement, schedule, widest, entries, cuts, sizes)


def _cuts(program: Program, arrangement: Arrangement, schedule: Schedule) -> Cuts:
    """Count the tiles of large buckets."""
    from isinglass.kernels.numba.junction_tree.large import Cuts

    tiles, first, missing = np.zeros(len(schedule.pieces), np.int64), program.first_axis, arrangement.missing_axis
    for b in np.flatnonzero(schedule.pieces).tolist():
        tiles[b] = program.cards[first[b] : first[b] + missing[b]].prod()
    return Cuts(missing, arrangement.run_axis, tiles, schedule.pieces)


def _sizes(program: Program, cuts: Cuts, b: int) -> tuple[int, int, int, int, int, int]:
    """Return, for a large bucket, its large messages, axes, missing axes, run, block, and message entries in a tile."""
    missing, run_axis = int(cuts.missing_axis[b]), int(cuts.run_axis[b])
    cards = program.cards[program.first_axis[b] : program.first_axis[b + 1]]
    run = int(cards[run_axis:-1].prod())
    inputs = range(int(program.first_large[b]), int(program.first_input[b + 1]))
    has = [program.strides[program.first_stride[i] :][missing:run_axis] > 0 for i in inputs]
    entries = sum(int(cards[missing:run_axis][axes].prod()) for axes in has)
    block = run * int(cards[-1])
    return len(inputs), len(cards), run_axis - missing, run, block, entries * block


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
    """One way through the tree; subclasses say what is done with a run of buckets."""

    passes: Passes
    semiring: int
    wanted: Mask
    report: _Report

    def small(self, first: int, last: int, scratch: Scratch) -> None:
        """Do buckets ``sequence[first:last]``, none of which has large messages."""
        raise NotImplementedError

    def together(self, first: int, last: int, scratch: Scratch, shared: Shared, leads: bool) -> None:
        """Take part in buckets ``sequence[first:last]``."""
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
        schedule = self.passes.layout.schedule
        scratch = self.scratch(schedule.sequence[schedule.jobs[job] : schedule.jobs[job + 1]])
        segments = schedule.segments(job, CHUNK if threads.threads == 1 else TOGETHER)
        for first, last in reversed(segments) if backwards else segments:
            buckets = schedule.sequence[first:last]
            call = interruptible if schedule.work[buckets].sum() > HUGE * CHUNK else _plainly
            if schedule.pieces[buckets].any():
                self.by_all(first, last, scratch, threads, call)
            else:
                call(self.small, first, last, scratch)
            self.report(buckets)

    def by_all(self, first: int, last: int, scratch: Scratch, threads: ThreadMap, call: Callable[..., object]) -> None:
        """Let all threads do some buckets together, if there is enough to do."""
        work = int(self.passes.layout.tree.work[self.passes.layout.schedule.sequence[first:last]].sum())
        crew = threads.threads if work >= WORTH_THREADS else 1
        shared = self.shared(first, last, crew)
        try:
            call(threads, self.take_part, [(first, last, scratch, shared, i == 0) for i in range(crew)])
        except BaseException:
            shared.stop()
            raise

    def take_part(self, first: int, last: int, scratch: Scratch, shared: Shared, leads: bool) -> None:
        """Do some buckets together with others; they do not wait for a leader that has failed."""
        try:
            self.together(first, last, scratch, shared, leads)
        finally:
            if leads:
                shared.end()

    def shared(self, first: int, last: int, threads: int) -> Shared:
        """Allocate what threads share, for some buckets."""
        from isinglass.kernels.numba.arithmetic.together import new_crew

        layout, dtype = self.passes.layout, self.passes.values.dtype
        large = self.large(first, last)
        pieces, local = layout.schedule.pieces[large], layout.program.local_size[large]
        return Shared(
            new_crew(threads),
            np.empty(local.max(), dtype),
            np.empty((pieces.max(), 2)),
            np.empty((pieces * local).max(), dtype),
        )

    def large(self, first: int, last: int) -> IntArray:
        """Return the large buckets of ``sequence[first:last]``."""
        buckets = self.passes.layout.schedule.sequence[first:last]
        return buckets[self.passes.layout.schedule.pieces[buckets] > 0]

    def space(self, first: int, last: int) -> Space:
        """Allocate what a thread needs for the large ones of some buckets."""
        from isinglass.kernels.numba.junction_tree.large import Space

        layout, dtype = self.passes.layout, self.passes.values.dtype
        inputs, axes, missing, run, block, sums = layout.sizes[self.large(first, last)].max(axis=0).tolist()
        return Space(
            block=np.empty(block, dtype),
            top=np.empty(run),
            least=np.empty(run),
            offsets=np.empty((inputs, run), np.int64),
            contiguous=np.empty(inputs, bool),
            counter=np.empty(axes, np.int64),
            sums=np.empty(sums, dtype),
            places=np.empty((inputs, missing), np.int64),
            first_place=np.empty(inputs + 1, np.int64),
        )

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

    def together(self, first: int, last: int, scratch: Scratch, shared: Shared, leads: bool) -> None:
        from isinglass.kernels.numba.junction_tree.crews import up

        passes = self.passes
        up(
            passes.layout.program, passes.layout.cuts, passes.layout.schedule.sequence, first, last, passes.values,
            passes.messages, self.start, passes.peak, passes.low, self.wanted, self.flagged, self.logs, shared.local,
            shared.ends, scratch, self.space(first, last), shared.crew, leads,
        )  # fmt: skip


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

    def together(self, first: int, last: int, scratch: Scratch, shared: Shared, leads: bool) -> None:
        from isinglass.kernels.numba.junction_tree.crews import down

        passes = self.passes
        down(
            passes.layout.program, passes.layout.cuts, passes.layout.schedule.sequence, first, last, passes.values,
            passes.messages, self.start, passes.peak, self.wanted, self.logs, *self.into, shared.local,
            shared.marginals, scratch, self.space(first, last), shared.crew, leads,
        )  # fmt: skip


def _plainly(loop: Callable[..., None], *arguments: object) -> None:
    loop(*arguments)
