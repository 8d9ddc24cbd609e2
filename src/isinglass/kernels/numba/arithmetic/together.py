"""Threads that go through one compiled loop together, step by step.

One thread leads. It names a step, and each thread takes pieces of it when it is free (`take`, `done`), the leader too,
which goes on when all pieces are done. Those that follow wait for the next step meanwhile. So a step takes some
microseconds more than its work, where a parallel map from Python takes some hundred (`isinglass.runtime.threads`).

The pieces of a step are as many ranges as there are places. A thread, whose place is its number (`come`), begins with
the range of its place, and goes on with those of the next places when nothing is left there. So it mostly gets the same
part of all steps, whose numbers are still in its cache. It takes half of what is left of a range at a time: many pieces
first, so that they cost little, and single ones in the end, so that no thread has much left when the others are done.

Nobody waits for threads that have not come, or have gone: a leader alone does all pieces. Which thread does which piece
depends on timing, so a piece has memory of its own, and sums are taken in the order of the pieces.

At the end the leader waits until those that have come are gone (`end_steps`, `leave`): who comes later finds that all
is over, and touches nothing. So when the leader's loop returns, the memory that it worked on may be used for something
else.

`crew` is an array of zeros at first, but for the places. What different threads write lies in different lines of the
cache: a line that two of them write goes to and fro between them, each time for as long as some hundred operations.

    crew[STEP]             the step that is under way, from 1 on; OVER at the end
    crew[STOP]             set from Python after Ctrl-C: pieces are not worked on any more
    crew[COME]             how many threads have come to follow
    crew[GONE]             how many of them have gone
    crew[PLACES]           how many places there are
    crew[ASKED]            how many pieces all steps so far have, for the leader
    crew[FIRST + LINE r]   the latest step in which pieces of range r were taken, times SHIFT, plus how many
    crew[... + DONE]       how many pieces of all steps the threads at place r have done
"""

from __future__ import annotations

import platform
import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, types
from numba.core import cgutils

from isinglass.runtime.compilation.jit import cold
from isinglass.typing import IntArray

LINE = 16  # numbers of two lines of a cache: processors fetch them in pairs
STEP, STOP, COME, GONE, PLACES, ASKED, FIRST, OVER = 0, LINE, LINE + 1, LINE + 2, LINE + 3, 2 * LINE, 3 * LINE, -1
DONE, SHIFT = 1, 2**32
SPINS, YIELDS = 200, 400  # looks before other threads are let run, and before this one sleeps: some 5 and 100 µs
LINGER = 1000  # looks before one who has followed returns to Python
PATIENCE = 10_000  # looks, for a second or so, before one who follows goes: the leader may have failed
intrinsic: Any = extending.intrinsic
IS_WINDOWS = sys.platform == "win32"
let_others_run = types.ExternalFunction("SwitchToThread" if IS_WINDOWS else "sched_yield", types.int32())
sleep: Any = types.ExternalFunction("Sleep" if IS_WINDOWS else "usleep", types.int32(types.uint32))
NAP = 1 if IS_WINDOWS else 50  # milliseconds there, microseconds here


def new_crew(places: int) -> IntArray:
    """Return the array for about so many threads."""
    crew = np.zeros(FIRST + LINE * places, np.int64)
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


@intrinsic
def change_if(typing_context, array, index, seen, value):
    """Change an entry if it is still as it was seen, and tell whether it was."""

    def generate(context, builder, signature, arguments):
        place = _place(context, builder, signature.args[0], *arguments[:2])
        pair = builder.cmpxchg(place, arguments[2], arguments[3], "seq_cst", "seq_cst")
        return builder.extract_value(pair, 1)

    return types.boolean(array, types.intp, types.int64, types.int64), generate


IS_X86 = platform.machine() in ("x86_64", "AMD64")


@intrinsic
def pause(typing_context):
    """Let the processor rest for a moment, so that a thread that waits does not slow down one on the same core."""

    def generate(context, builder, signature, arguments):
        if IS_X86:
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return types.none(), generate


@cold
def wait_a_little(looks):
    """Wait until another look at a number is worth while, after so many.

    Who waits for long sleeps. If a thread that works has lost its processor to another program, the system can move it
    to the one that is free then; it would leave it where it is while the others only ask again and again.
    """
    pause()
    if looks > YIELDS:
        sleep(NAP)
    elif looks > SPINS:
        let_others_run()


@cold
def next_step(crew, seen):
    """Wait until there is another step than `seen`; return it, or OVER after a long time."""
    for looks in range(PATIENCE):
        step = look(crew, STEP)
        if step != seen:
            return step
        wait_a_little(looks)
    return OVER


@cold
def come(crew, leads):
    """Return the place of a thread: the first one for the leader."""
    return 0 if leads else (fetch_and_add(crew, COME, 1) + 1) % crew[PLACES]


@cold
def leave(crew):
    """Tell that a thread that followed has gone; linger, so that the leader is the first to ask for Python's lock."""
    fetch_and_add(crew, GONE, 1)
    looks = 0
    while looks < LINGER and look(crew, STEP) == OVER:
        pause()
        looks += 1


@cold
def take_of_range(crew, step, here, size):
    """Take half of the pieces that are left of a range, which has so many; none if the step is over. First and last."""
    at = FIRST + LINE * here
    while True:
        seen = look(crew, at)
        taken = max(seen - step * SHIFT, 0)
        if taken >= size:
            return size, size
        after = taken + (size - taken + 1) // 2
        if change_if(crew, at, seen, step * SHIFT + after):
            return taken, after


@cold
def take(crew, step, place, pieces):
    """Take pieces of a step for a thread at a place: the first, and the first after them; none: both are alike."""
    places = crew[PLACES]
    for i in range(places):
        here = (place + i) % places
        first = pieces * here // places
        size = pieces * (here + 1) // places - first
        taken, after = take_of_range(crew, step, here, size)
        if taken < after:
            return first + taken, first + after
    return pieces, pieces


@cold
def done(crew, place, pieces):
    """Tell that a thread at a place has done some pieces."""
    fetch_and_add(crew, FIRST + LINE * place + DONE, pieces)


@cold
def stopped(crew):
    """Tell whether to stop."""
    return look(crew, STOP) != 0


@cold
def start_step(crew, step, pieces):
    """Name the step that is under way, if others can take some of its pieces."""
    if pieces > 1:
        exchange(crew, STEP, step)


@cold
def end_steps(crew):
    """Tell that all is over; wait until those that have come are gone."""
    exchange(crew, STEP, OVER)
    looks = 0
    while look(crew, GONE) < look(crew, COME):
        looks += 1
        wait_a_little(looks)


@cold
def pieces_done(crew):
    """Count the pieces that are done, of all steps."""
    total = 0
    for place in range(crew[PLACES]):
        total += look(crew, FIRST + LINE * place + DONE)
    return total


@cold
def finish_step(crew, pieces):
    """Wait until all pieces of a step are done."""
    crew[ASKED] += pieces
    looks = 0
    while pieces_done(crew) < crew[ASKED]:
        looks += 1
        wait_a_little(looks)
