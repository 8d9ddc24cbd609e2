"""Threads that go through one compiled loop together, step by step.

One thread leads. It names a step, and each thread takes the next piece of it when it is free (`take`, `done`), the
leader too, which goes on when all pieces are done. Those that follow wait for the next step meanwhile. So a step takes
some microseconds more than its work, where a parallel map from Python takes some hundred (`isinglass.runtime.threads`).

The pieces of a step are as many ranges as there are places. A thread, whose place is its number (`come`), begins with
the range of its place, and goes on with those of the next places when nothing is left there. So it mostly gets the same
part of all steps, whose numbers are still in its cache.

Nobody waits for threads that have not come, or have gone: a leader alone does all pieces. Which thread does which piece
depends on timing, so a piece has memory of its own, and sums are taken in the order of the pieces.

`crew` is an array of zeros at first, but for the places:

    crew[STEP]                     the step that is under way, from 1 on; OVER at the end
    crew[STOP]                     set from Python after Ctrl-C: pieces are not worked on any more
    crew[COME]                     how many threads have come to follow
    crew[PLACES]                   how many places there are
    crew[FIRST + (p + 1) s]        how many pieces of step s are done, with p places
    crew[FIRST + (p + 1) s + 1 + r]   how many of range r were taken
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, types
from numba.core import cgutils

from isinglass.runtime.jit import cold
from isinglass.typing import IntArray

STEP, STOP, COME, PLACES, FIRST, OVER = 0, 8, 9, 10, 16, -1
SPINS = 200  # looks at a number before other threads are let run
PATIENCE = 1_000_000  # looks, for a second or so, before one who follows goes: the leader may have failed
intrinsic: Any = extending.intrinsic
let_others_run = types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32())


def new_crew(steps: int, places: int) -> IntArray:
    """Return the array for a loop of so many steps, and about so many threads."""
    crew = np.zeros(FIRST + (places + 1) * (steps + 1), np.int64)
    crew[PLACES] = places
    return crew


def _place(context, builder, array_type, array, index):
    """Return a pointer to an entry."""
    found = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, found, [index], wraparound=False)


def _changing(operation):
    """Return a function that changes an entry for all threads at once, and returns what it was."""

    @intrinsic
    def change(typing_context, array, index, value):
        def generate(context, builder, signature, arguments):
            place = _place(context, builder, signature.args[0], *arguments[:2])
            return builder.atomic_rmw(operation, place, arguments[2], "seq_cst")

        return types.int64(array, types.intp, types.int64), generate

    return change


fetch_and_add = _changing("add")
exchange = _changing("xchg")


@intrinsic
def look(typing_context, array, index):
    """Return an entry as other threads have left it."""

    def generate(context, builder, signature, arguments):
        place = _place(context, builder, signature.args[0], *arguments)
        typed = {} if not getattr(place.type, "is_opaque", False) else {"typ": ir.IntType(64)}
        return builder.load_atomic(place, "seq_cst", 8, **typed)

    return types.int64(array, types.intp), generate


@cold
def next_step(crew, seen):
    """Wait until there is another step than `seen`; return it, or OVER after a long time."""
    for spins in range(PATIENCE):
        step = look(crew, STEP)
        if step != seen:
            return step
        if spins > SPINS:
            let_others_run()
    return OVER


@cold
def come(crew, leads):
    """Return the place of a thread: the first one for the leader."""
    return 0 if leads else (fetch_and_add(crew, COME, 1) + 1) % crew[PLACES]


@cold
def take(crew, step, place, pieces):
    """Take the next piece of a step for a thread at a place; one beyond the last if there is none."""
    places = crew[PLACES]
    for i in range(places):
        here = (place + i) % places
        first, count = pieces * here // places, FIRST + (places + 1) * step + 1 + here
        size = pieces * (here + 1) // places - first
        if look(crew, count) < size:
            taken = fetch_and_add(crew, count, 1)
            if taken < size:
                return first + taken
    return pieces


@cold
def done(crew, step):
    """Tell that a piece is done."""
    fetch_and_add(crew, FIRST + (crew[PLACES] + 1) * step, 1)


@cold
def stopped(crew):
    """Tell whether to stop."""
    return look(crew, STOP) != 0


@cold
def start_step(crew, step):
    """Name the step that is under way, or that all is OVER."""
    exchange(crew, STEP, step)


@cold
def finish_step(crew, step, pieces):
    """Wait until all pieces of a step are done."""
    spins = 0
    while look(crew, FIRST + (crew[PLACES] + 1) * step) < pieces:
        spins += 1
        if spins > SPINS:
            let_others_run()
