"""Several threads pass messages up, and beliefs down, through a run of buckets, together.

One leads (`arithmetic.together`): it does small buckets itself, and for a large one it makes the local table, before
all threads take pieces (`large`), and puts together what the pieces have found afterwards. The steps of a loop are
numbered from 1: a large bucket has two of them on the way up, its pieces and their scaling, and one on the way down.
Both ways are one loop, because it takes a millisecond until all threads have come: each needs Python's lock to do so.

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
    down_piece,
    own_space,
    scale_values,
    set_places,
    set_views,
    size_of,
    up_piece,
)
from isinglass.runtime.jit import cold, compiled

LEAST, MOST = 2.0**-8, 2.0**4  # LEVEL: the peaks of large messages that need no normalisation


@cold
def up_pieces(program, cuts, b, values, message, start, logs, local, ends, space, crew, step, place):
    """Take pieces of a bucket's message, until none is left."""
    a, missing_axis, run_axis = program.first_axis[b], cuts.missing_axis[b], cuts.run_axis[b]
    tile, tiles, pieces = size_of(program.cards, a + missing_axis, a + run_axis), cuts.tiles[b], cuts.pieces[b]
    set_views(program, b, run_axis, space.offsets, space.contiguous)
    while True:
        i = take(crew, step, place, pieces)
        if i >= pieces:
            return
        if not stopped(crew):
            first, last = tiles * i // pieces * tile, tiles * (i + 1) // pieces * tile
            up_piece(program, b, run_axis, first, last, values, message, start, logs, local, ends, i, space)
        done(crew, place)


@cold
def scale_pieces(size, pieces, values, message, peak, logs, crew, step, place):
    """Take pieces of a message to be scaled, until none is left."""
    while True:
        i = take(crew, step, place, pieces)
        if i >= pieces:
            return
        scale_values(values, message + size * i // pieces, message + size * (i + 1) // pieces, peak, logs)
        done(crew, place)


@cold
def down_pieces(program, cuts, b, values, message, start, peak, logs, local, marginals, space, crew, step, place):
    """Take pieces of a bucket's beliefs, until none is left."""
    a, missing_axis, run_axis = program.first_axis[b], cuts.missing_axis[b], cuts.run_axis[b]
    run = size_of(program.cards, a + run_axis, program.first_axis[b + 1] - 1)
    size, tiles, pieces = program.local_size[b], cuts.tiles[b], cuts.pieces[b]
    set_views(program, b, run_axis, space.offsets, space.contiguous)
    set_places(program, b, missing_axis, run_axis, run, space.places, space.first_place)
    while True:
        i = take(crew, step, place, pieces)
        if i >= pieces:
            return
        if not stopped(crew):
            marginal = marginals[size * i : size * (i + 1)]
            down_piece(program, b, missing_axis, run_axis, tiles * i // pieces, tiles * (i + 1) // pieces, values,
                       message, start, peak, logs, local, marginal, space)  # fmt: skip
        done(crew, place)


@cold
def needs_scaling(peak, logs):
    """Tell whether a message with this peak is to be normalised."""
    if logs is None:
        return peak > 0 and not LEAST <= peak <= MOST
    return peak > -np.inf


@cold
def up_large(program, cuts, b, values, messages, start, peak, low, logs, local, ends, scratch, space, crew, step):
    """Pass the message of a large bucket, as the leader."""
    message, pieces = messages + program.first_message[b], cuts.pieces[b]
    multiply_inputs(program, b, values, start, logs, local, scratch.offsets, scratch.counter)
    start_step(crew, step, pieces)
    up_pieces(program, cuts, b, values, message, start, logs, local, ends, space, crew, step, 0)
    finish_step(crew, pieces)
    top, least = ends[0, 0], ends[0, 1]
    for i in range(1, pieces):
        top, least = max(top, ends[i, 0]), min(least, ends[i, 1])
    peak[b] = top if logs is not None or not LEAST <= top <= MOST else 1.0
    if needs_scaling(top, logs):
        start_step(crew, step + 1, pieces)
        scale_pieces(program.message_size[b], pieces, values, message, top, logs, crew, step + 1, 0)
        finish_step(crew, pieces)
    scale = peak[b] if logs is None and top > 0 else 1.0
    low[program.input_of[b]] = min(1.0, least / scale)


@cold
def lead_up(program, cuts, sequence, first, last, values, messages, start, peak, low, wanted, flagged, logs, local,
            ends, scratch, space, crew):  # fmt: skip
    """Pass the messages of buckets ``sequence[first:last]``, small and large, as the leader."""
    for i in range(first, last):
        b = sequence[i]
        component = program.component[b]
        if cuts.pieces[b] == 0:
            up_bucket(program, b, values, messages, start, peak, low, wanted, flagged, logs, scratch)
        elif not wanted[component] or flagged[component] or stopped(crew):
            continue
        elif logs is None and not is_safe(b, program.first_input, low):
            flagged[component] = True
        else:
            up_large(program, cuts, b, values, messages, start, peak, low, logs, local, ends, scratch, space, crew,
                     1 + 2 * (i - first))  # fmt: skip


@cold
def lead_down(program, cuts, sequence, first, last, values, messages, start, peak, wanted, flagged, logs, into, local,
              marginals, scratch, space, crew, before):  # fmt: skip
    """Pass beliefs down buckets ``sequence[last - 1], ..., sequence[first]``, as the leader, after so many steps."""
    variables, first_state, factors, first_belief = into
    for i in range(last - 1, first - 1, -1):
        b, step = sequence[i], before + last - i
        component = program.component[b]
        if cuts.pieces[b] == 0:
            down_bucket(program, b, values, messages, start, peak, wanted, flagged, logs, variables, first_state,
                        factors, first_belief, scratch)  # fmt: skip
        elif wanted[component] and not flagged[component] and not stopped(crew):
            multiply_inputs(program, b, values, start, logs, local, scratch.offsets, scratch.counter)
            start_step(crew, step, cuts.pieces[b])
            down_pieces(program, cuts, b, values, messages + program.first_message[b], start, peak, logs, local,
                        marginals, space, crew, step, 0)  # fmt: skip
            finish_step(crew, cuts.pieces[b])
            for piece in range(1, cuts.pieces[b]):
                for k in range(program.local_size[b]):
                    marginals[k] += marginals[piece * program.local_size[b] + k]
            sum_beliefs(program, b, marginals, values, start, peak, logs, variables, first_state, factors, first_belief,
                        scratch.offsets, scratch.counter, scratch.sums)  # fmt: skip


@cold
def follow_up(program, cuts, b, values, messages, start, peak, logs, local, ends, space, crew, step, place):
    """Take part in a step of a large bucket on the way up: its message, or the scaling of that."""
    message = messages + program.first_message[b]
    if step % 2 == 1:
        up_pieces(program, cuts, b, values, message, start, logs, local, ends, space, crew, step, place)
    else:
        scale_pieces(program.message_size[b], cuts.pieces[b], values, message, peak[b], logs, crew, step, place)


@compiled
def pass_through(program, cuts, sequence, up, down, values, messages, start, peak, low, wanted, flagged, logs, into,
                 local, ends, marginals, scratch, spaces, crew, leads):  # fmt: skip
    """Pass messages up through some buckets, then beliefs down through some, as the leader or one who follows.

    ``up`` and ``down`` are ranges (first, last) of the sequence, which is followed backwards on the way down. Marginals
    are added to the vectors of `into` (see `buckets.down`); None: there is no way down.
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
            follow_up(program, cuts, sequence[up[0] + (step - 1) // 2], values, messages, start, peak, logs, local,
                      ends, space, crew, step, place)  # fmt: skip
        if into is not None and step > before:
            b = sequence[down[1] + before - step]
            down_pieces(program, cuts, b, values, messages + program.first_message[b], start, peak, logs, local,
                        marginals, space, crew, step, place)  # fmt: skip
        step = next_step(crew, step)
    leave(crew)
