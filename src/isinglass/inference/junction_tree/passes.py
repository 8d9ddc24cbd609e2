"""The upward pass of messages and the downward pass of beliefs in a bucket tree, with several threads.

Runs of small buckets are processed by one compiled loop (`kernels.numba.junction_tree.buckets`). Runs with large
messages are processed by all threads together (`kernels.numba.junction_tree.crews`). `schedule` defines what threads
may do in parallel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import get_ident
from typing import TYPE_CHECKING

import numpy as np

from isinglass.inference.algorithm import Progress
from isinglass.inference.junction_tree.layout import Layout, Needs
from isinglass.inference.junction_tree.schedule import Part, chunks
from isinglass.runtime.interrupts import interruptible
from isinglass.runtime.threads import ThreadMap
from isinglass.typing import Array, DType, FloatArray, IntArray, Mask

if TYPE_CHECKING:
    from isinglass.kernels.numba.junction_tree.buckets import Scratch
    from isinglass.kernels.numba.junction_tree.large import Space

HUGE = 2  # chunks that one call may take before another thread makes it, while this one hears Ctrl-C
TOGETHER = 8  # chunks that threads do together, to which they come once; Ctrl-C stops them between pieces
WORTH_THREADS = 2**18  # entries of a run of buckets, about a millisecond
APART = 16  # numbers between what different threads write: two lines of a cache
ALONE = ThreadMap(1)
INTEGER, REAL, TRUTH = np.dtype(np.int64), np.dtype(float), np.dtype(bool)

Into = tuple[Array, IntArray, Array, IntArray]
"""Flat beliefs of the variables, and where those of each start; then the same of the factors."""


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

    def run(
        self, semiring: int, wanted: Mask, flagged: Mask, into: Into | None, progress: Progress | None, stage: str
    ) -> None:
        """Pass the messages of the wanted components in a semiring, and flag those that need logarithms.

        Then pass the beliefs of those that are not flagged, and add them to `into`, of zeros at first; None: no beliefs
        are wanted.
        """
        reports = _Report(self.layout, progress, stage), _Report(self.layout, progress, "marginals")
        _Walk(self, semiring, wanted, flagged, into, *reports).run()


class _Report:
    """Reports progress, from the thread that asked for it only."""

    def __init__(self, layout: Layout, progress: Progress | None, stage: str) -> None:
        self.layout, self.progress, self.stage = layout, progress, stage
        self.caller, self.done = get_ident(), 0

    def __call__(self, part: Part) -> None:
        if self.progress is None or part[0] == part[1]:
            return
        total = int(self.layout.tree.work.sum())
        self.done += self.layout.needs(part).work
        if get_ident() == self.caller and self.done < total:
            self.progress(self.stage, self.done / total)

    def end(self) -> None:
        if self.progress is not None:
            self.progress(self.stage, 1.0)


@dataclass(frozen=True, eq=False)
class _Walk:
    """A way up the tree and, if beliefs are wanted, down again."""

    passes: Passes
    semiring: int
    wanted: Mask
    flagged: Mask
    into: Into | None
    report_up: _Report
    report_down: _Report

    def run(self) -> None:
        """Do all jobs but the last one side by side, on the way up before it and on the way down after it."""
        threads, last = self.passes.threads, len(self.passes.layout.schedule.jobs) - 2
        threads(self.up_job, [(job,) for job in range(last)])
        self.last_job(last)
        if self.into is not None:
            threads(self.down_job, [(job,) for job in range(last)])
            self.report_down.end()

    def up_job(self, job: int) -> None:
        """Pass the messages of a job, on one thread."""
        for part in self.passes.layout.schedule.segments(job):
            self.call(part, True, False, ALONE)

    def down_job(self, job: int) -> None:
        """Pass the beliefs of a job, on one thread."""
        for part in reversed(self.passes.layout.schedule.segments(job)):
            self.call(part, False, True, ALONE)

    def last_job(self, job: int) -> None:
        """Go up and down through the last job, on all threads; its last segment is done both ways by one call."""
        threads, down = self.passes.threads, self.into is not None
        segments = self.passes.layout.schedule.segments(job, 1 if threads.threads == 1 else TOGETHER)
        for part in segments[:-1]:
            self.call(part, True, False, threads)
        for part in segments[-1:]:
            self.call(part, True, down, threads)
        self.report_up.end()
        for part in reversed(segments[:-1]) if down else ():
            self.call(part, False, True, threads)

    def call(self, part: Part, up: bool, down: bool, threads: ThreadMap) -> None:
        """Go through some buckets, up, down, or up and down."""
        needs = self.passes.layout.needs(part)
        call = interruptible if chunks(needs.work) > HUGE else _plainly
        if needs.pieces:
            self.by_all(part, up, down, needs, threads, call)
        else:
            call(self.small, part, up, down, self.scratch(needs))
        if up:
            self.report_up(part)
        if down:
            self.report_down(part)

    def small(self, part: Part, up: bool, down: bool, scratch: Scratch) -> None:
        """Go through some buckets, none of which has large messages."""
        from isinglass.kernels.numba.junction_tree import buckets

        passes, logs = self.passes, self.semiring or None
        program, sequence, start = passes.layout.program, passes.layout.schedule.sequence, self.start
        if up:
            buckets.up(
                program, sequence, *part, passes.values, passes.messages, start, passes.peak, passes.low, self.wanted,
                self.flagged, logs, scratch,
            )  # fmt: skip
        if down and self.into is not None:
            buckets.down(
                program, sequence, *part, passes.values, passes.messages, start, passes.peak, self.wanted, self.flagged,
                logs, *self.into, scratch,
            )  # fmt: skip

    def by_all(
        self, part: Part, up: bool, down: bool, needs: Needs, threads: ThreadMap, call: Callable[..., object]
    ) -> None:
        """Let all threads go through some buckets together, if there is enough to do."""
        from isinglass.kernels.numba.arithmetic.together import STOP, new_crew

        crew = new_crew(threads.threads if needs.work >= WORTH_THREADS else 1)
        try:
            call(self.together, part, up, down, needs, threads, crew)
        except BaseException:
            crew[STOP] = 1  # no further piece is worked on
            raise

    def together(self, part: Part, up: bool, down: bool, needs: Needs, threads: ThreadMap, crew: IntArray) -> None:
        """Lead the others; they do not wait for a leader that has failed."""
        from isinglass.kernels.numba.arithmetic.together import OVER, PLACES, STEP
        from isinglass.kernels.numba.junction_tree.crews import pass_through
        from isinglass.kernels.numba.junction_tree.large import LIGHT, LIGHT_MARGINALS

        passes, none, n, dtype = self.passes, (part[0], part[0]), int(crew[PLACES]), self.passes.values.dtype
        local, marginals = max(needs.local, 2 * LIGHT), max(needs.marginals, 2 * LIGHT_MARGINALS)
        shared = (
            passes.layout.program, passes.layout.cuts, passes.layout.schedule.sequence, part if up else none,
            part if down else none, passes.values, passes.messages, self.start, passes.peak, passes.low, self.wanted,
            self.flagged, self.semiring or None, self.into, np.empty(local, dtype), np.zeros((n, APART)),
            np.empty(marginals, dtype), self.scratch(needs), spaces(needs, n, dtype), crew,
        )  # fmt: skip
        try:
            with threads.beside(pass_through, [(*shared, False)] * (n - 1)):
                pass_through(*shared, True)
        finally:
            crew[STEP] = OVER

    @property
    def start(self) -> IntArray:
        """Where the inputs of the program start in the values."""
        found: IntArray = self.passes.start_of[self.semiring]
        return found

    def scratch(self, needs: Needs) -> Scratch:
        """Allocate what small buckets need."""
        from isinglass.kernels.numba.junction_tree.buckets import Scratch
        from isinglass.kernels.numba.junction_tree.strided import BLOCK

        dtype = self.passes.values.dtype
        return Scratch(
            offsets=np.empty(max(BLOCK, needs.card), np.int64),
            counter=np.empty(needs.axes, np.int64),
            local=np.empty(needs.small, dtype),
            sums=np.empty(needs.message, dtype),
        )


def spaces(needs: Needs, threads: int, dtype: DType) -> Space:
    """Allocate what each thread needs for large buckets."""
    from isinglass.kernels.numba.junction_tree.large import Space

    def empty(*shape: int, dtype: DType = INTEGER) -> Array:
        """Return an array for each thread; they are not in one line of a cache."""
        return np.empty((threads, *shape[:-1], shape[-1] // APART * APART + 2 * APART), dtype)

    inputs, axes, missing, run, block, sums = needs.own
    return Space(
        block=empty(block, dtype=dtype),
        top=empty(run, dtype=REAL),
        least=empty(run, dtype=REAL),
        offsets=empty(inputs, run),
        contiguous=empty(inputs, dtype=TRUTH),
        counter=empty(axes),
        sums=empty(sums, dtype=dtype),
        places=empty(inputs, missing),
        first_place=empty(inputs + 1),
    )


def _plainly(function: Callable[..., None], *arguments: object) -> None:
    function(*arguments)
