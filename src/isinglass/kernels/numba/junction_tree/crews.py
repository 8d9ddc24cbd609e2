"""Several threads pass messages up, and beliefs down, through a run of buckets, together.

One leads (`arithmetic.together`): it does small buckets itself, and for a large one it makes the local table, before
all threads take pieces (`large`), and puts together what the pieces have found afterwards. The steps of a loop are
numbered from 1: a large bucket has two of them on the way up, its pieces and their scaling, and one on the way down.
Both ways are one loop, because it takes a millisecond until all threads have come: each needs Python's lock to do so.

So that the others need not wait for the leader, it does this while they work on pieces, where it can: after a step has
begun, it makes the local table of the next bucket, and sums the beliefs of the bucket before. The local tables of two
buckets that follow each other therefore lie apart (`room`), unless they are too large for that (`Cuts.light`).

A message is divided by its peak only where that is not near one (LEVEL), because this takes another step.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.together import (
    OVER,
    come,
    done,
    end_steps,
    finish_step,
    leave,
    next_step,
    start_step,
    stopped,
    take,
)
from isinglass.kernels.numba.junction_tree.buckets import (
    down_bucket,
    is_safe,
    multiply_inputs,
    sum_beliefs,
    up_bucket,
)
from isinglass.kernels.numba.junction_tree.large import (
    LIGHT,
    LIGHT_MARGINALS,
    down_piece,
    own_space,
    scale_values,
    set_places,
    set_views,
    size_of,
    up_piece,
)
from isinglass.runtime.compilation.jit import apart, cold, compiled, inner

LEAST, MOST = 2.0**-8, 2.0**4  # LEVEL: the peaks of large messages that need no normalisation


@inner
def room(cuts, b, i, size):
    """Return where the local table of a bucket lies, which is the i-th of the sequence."""
    return size * (i % 2) if cuts.light[b] else 0


@apart
def up_pieces(program, cuts, b, values, message, start, logs, local, ends, space, crew, step, place):
    """Take pieces of a bucket's message, until none is left; note their ends at the thread's place."""
    a, missing_axis, run_axis = program.first_axis[b], cuts.missing_axis[b], cuts.run_axis[b]
    tile, tiles, pieces = size_of(program.cards, a + missing_axis, a + run_axis), cuts.tiles[b], cuts.pieces[b]
    set_views(program, b, run_axis, space.offsets, space.contiguous)
    while True:
        i, after = take(crew, step, place, pieces)
        if i == after:
            return
        if not stopped(crew):
            first, last = tiles * i // pieces * tile, tiles * after // pieces * tile
            top, least = up_piece(program, b, run_axis, first, last, values, message, start, logs, local, space)
            known = ends[place, 0] == step
            ends[place, 1] = max(ends[place, 1], top) if known else top
            ends[place, 2] = min(ends[place, 2], least) if known else least
            ends[place, 0] = step
        done(crew, place, after - i)


@cold
def ends_of(ends, step):
    """Return the largest and the smallest non-zero value of a message, of all places where pieces of it were done."""
    top, least = -np.inf, np.inf
    for place in range(len(ends)):
        if ends[place, 0] == step:
            top, least = max(top, ends[place, 1]), min(least, ends[place, 2])
    return top, least


@cold
def scale_pieces(size, pieces, values, message, peak, logs, crew, step, place):
    """Take pieces of a message to be scaled, until none is left."""
    while True:
        i, after = take(crew, step, place, pieces)
        if i == after:
            return
        scale_values(values, message + size * i // pieces, message + size * after // pieces, peak, logs)
        done(crew, place, after - i)


@apart
def down_pieces(program, cuts, b, values, message, start, peak, logs, local, marginals, space, crew, step, place):
    """Take pieces of a bucket's beliefs, until none is left."""
    a, missing_axis, run_axis = program.first_axis[b], cuts.missing_axis[b], cuts.run_axis[b]
    run = size_of(program.cards, a + run_axis, program.first_axis[b + 1] - 1)
    size, tiles, pieces = program.local_size[b], cuts.tiles[b], cuts.pieces[b]
    set_views(program, b, run_axis, space.offsets, space.contiguous)
    set_places(program, b, missing_axis, run_axis, run, space.places, space.first_place)
    while True:
        first, after = take(crew, step, place, pieces)
        if first == after:
            return
        for i in range(first, after):
            if not stopped(crew):
                marginal = marginals[size * i : size * (i + 1)]
                down_piece(program, b, missing_axis, run_axis, tiles * i // pieces, tiles * (i + 1) // pieces, values,
                           message, start, peak, logs, local, marginal, space)  # fmt: skip
        done(crew, place, after - first)


@cold
def needs_scaling(peak, logs):
    """Tell whether a message with this peak is to be normalised."""
    if logs is None:
        return peak > 0 and not LEAST <= peak <= MOST
    return peak > -np.inf


@cold
def end_message(program, cuts, b, values, messages, peak, low, logs, ends, crew, step):
    """Note the peak of a large message and its smallest non-zero value, and divide it by the peak if need be."""
    pieces = cuts.pieces[b]
    top, least = ends_of(ends, step)
    peak[b] = top if logs is not None or not LEAST <= top <= MOST else 1.0
    if needs_scaling(top, logs):
        start_step(crew, step + 1, pieces)
        scale_pieces(program.message_size[b], pieces, values, messages + program.first_message[b], top, logs, crew,
                     step + 1, 0)  # fmt: skip
        finish_step(crew, pieces)
    scale = peak[b] if logs is None and top > 0 else 1.0
    low[program.input_of[b]] = min(1.0, least / scale)


@apart
def lead_up(program, cuts, sequence, first, last, values, messages, start, peak, low, wanted, flagged, logs, local,
            ends, scratch, space, crew):  # fmt: skip
    """Pass the messages of buckets ``sequence[first:last]``, small and large, as the leader."""
    made = first - 1  # the last bucket whose local table was made
    for i in range(first, last):
        b, step = sequence[i], 1 + 2 * (i - first)
        component = program.component[b]
        if cuts.pieces[b] == 0:
            up_bucket(program, b, values, messages, start, peak, low, wanted, flagged, logs, scratch)
        elif not wanted[component] or flagged[component] or stopped(crew):
            continue
        elif logs is None and not is_safe(b, program.first_input, low):
            flagged[component] = True
        else:
            own = local[room(cuts, b, i, LIGHT) :]
            if made < i:
                multiply_inputs(program, b, values, start, logs, own, scratch.offsets, scratch.counter)
            start_step(crew, step, cuts.pieces[b])
            made = i
            if i + 1 < last and cuts.by_pieces[b] and can_be_ahead(cuts, b, sequence[i + 1]):
                made = i + 1
                multiply_inputs(program, sequence[made], values, start, logs,
                                local[room(cuts, sequence[made], made, LIGHT) :], scratch.offsets,
                                scratch.counter)  # fmt: skip
            up_pieces(program, cuts, b, values, messages + program.first_message[b], start, logs, own, ends, space,
                      crew, step, 0)  # fmt: skip
            finish_step(crew, cuts.pieces[b])
            end_message(program, cuts, b, values, messages, peak, low, logs, ends, crew, step)


@inner
def can_be_ahead(cuts, b, after):
    """Tell whether there is room to make the local table of the next bucket while threads work at one."""
    return cuts.pieces[after] > 0 and cuts.light[b] and cuts.light[after]


@apart
def end_beliefs(program, cuts, i, sequence, values, start, peak, logs, into, marginals, scratch):
    """Sum the beliefs of all pieces of a bucket."""
    b, (variables, first_state, factors, first_belief) = sequence[i], into
    size, whole = program.local_size[b], marginals[room(cuts, b, i, LIGHT_MARGINALS) :]
    for piece in range(1, cuts.pieces[b]):
        for k in range(size):
            whole[k] += whole[piece * size + k]
    sum_beliefs(program, b, whole, values, start, peak, logs, variables, first_state, factors, first_belief,
                scratch.offsets, scratch.counter, scratch.sums)  # fmt: skip


@apart
def lead_down(program, cuts, sequence, first, last, values, messages, start, peak, wanted, flagged, logs, into, local,
              marginals, scratch, space, crew, before):  # fmt: skip
    """Pass beliefs down buckets ``sequence[last - 1], ..., sequence[first]``, as the leader, after so many steps."""
    variables, first_state, factors, first_belief = into
    made, left = last, last  # the last bucket whose local table was made; one whose beliefs are not summed yet, or last
    for i in range(last - 1, first - 1, -1):
        b, step = sequence[i], before + last - i
        component = program.component[b]
        if left < last and not (cuts.pieces[b] > 0 and cuts.light[b] and cuts.by_pieces[b]):
            end_beliefs(program, cuts, left, sequence, values, start, peak, logs, into, marginals, scratch)
            left = last
        if cuts.pieces[b] == 0:
            down_bucket(program, b, values, messages, start, peak, wanted, flagged, logs, variables, first_state,
                        factors, first_belief, scratch)  # fmt: skip
        elif wanted[component] and not flagged[component] and not stopped(crew):
            own = local[room(cuts, b, i, LIGHT) :]
            if made > i:
                multiply_inputs(program, b, values, start, logs, own, scratch.offsets, scratch.counter)
            start_step(crew, step, cuts.pieces[b])
            if left < last:
                end_beliefs(program, cuts, left, sequence, values, start, peak, logs, into, marginals, scratch)
            left, made = last, i
            if i > first and can_be_ahead(cuts, b, sequence[i - 1]):
                made = i - 1
                multiply_inputs(program, sequence[made], values, start, logs,
                                local[room(cuts, sequence[made], made, LIGHT) :], scratch.offsets,
                                scratch.counter)  # fmt: skip
            down_pieces(program, cuts, b, values, messages + program.first_message[b], start, peak, logs, own,
                        marginals[room(cuts, b, i, LIGHT_MARGINALS) :], space, crew, step, 0)  # fmt: skip
            finish_step(crew, cuts.pieces[b])
            left = i
            if not cuts.light[b]:
                end_beliefs(program, cuts, left, sequence, values, start, peak, logs, into, marginals, scratch)
                left = last
    if left < last:
        end_beliefs(program, cuts, left, sequence, values, start, peak, logs, into, marginals, scratch)


@apart
def follow_up(program, cuts, i, sequence, values, messages, start, peak, logs, local, ends, space, crew, step, place):
    """Take part in a step of a large bucket on the way up: its message, or the scaling of that."""
    b = sequence[i]
    message = messages + program.first_message[b]
    if step % 2 == 1:
        up_pieces(program, cuts, b, values, message, start, logs, local[room(cuts, b, i, LIGHT) :], ends, space, crew,
                  step, place)  # fmt: skip
    else:
        scale_pieces(program.message_size[b], cuts.pieces[b], values, message, peak[b], logs, crew, step, place)


@apart
def follow_down(program, cuts, i, sequence, values, messages, start, peak, logs, local, marginals, space, crew, step,
                place):  # fmt: skip
    """Take part in the step of a large bucket on the way down."""
    b = sequence[i]
    down_pieces(program, cuts, b, values, messages + program.first_message[b], start, peak, logs,
                local[room(cuts, b, i, LIGHT) :], marginals[room(cuts, b, i, LIGHT_MARGINALS) :], space, crew, step,
                place)  # fmt: skip


@compiled
def pass_through(program, cuts, sequence, up, down, values, messages, start, peak, low, wanted, flagged, logs, into,
                 local, ends, marginals, scratch, spaces, crew, leads):  # fmt: skip
    """Pass messages up through some buckets, then beliefs down through some, as the leader or one who follows.

    ``up`` and ``down`` are ranges (first, last) of the sequence, which is followed backwards on the way down. Marginals
    are added to the vectors of `into` (see `buckets.down`); None: there is no way down. ``ends[place]`` is the latest
    step in which a thread at this place did pieces of a message, and their largest and smallest non-zero value.
    """
    place, before = come(crew, leads), 2 * (up[1] - up[0])
    space = own_space(spaces, place)
    if leads:
        lead_up(program, cuts, sequence, up[0], up[1], values, messages, start, peak, low, wanted, flagged, logs, local,
                ends, scratch, space, crew)  # fmt: skip
        if into is not None:
            lead_down(program, cuts, sequence, down[0], down[1], values, messages, start, peak, wanted, flagged, logs,
                      into, local, marginals, scratch, space, crew, before)  # fmt: skip
        end_steps(crew)
        return
    step = next_step(crew, 0)
    while step != OVER:
        if step <= before:
            follow_up(program, cuts, up[0] + (step - 1) // 2, sequence, values, messages, start, peak, logs, local,
                      ends, space, crew, step, place)  # fmt: skip
        if into is not None and step > before:
            follow_down(program, cuts, down[1] + before - step, sequence, values, messages, start, peak, logs, local,
                        marginals, space, crew, step, place)  # fmt: skip
        step = next_step(crew, step)
    leave(crew)
