"""Buckets with large messages, as tensor contractions in tiles that stay in cache.

The axes of such a bucket (see `buckets` for what is computed) come in four runs, its own variable v last:

    common | missing | run | v

The local table does not have the axes of the run, and every large message has them; a message lacks some of the missing
axes, and has all others. A state of the common axes is a *tile*: it has all that is summed for its part of a message,
and no other tile has a share in it. So tiles can be done in any order and by any thread, and messages are replaced by
their ratios (`strided.ratio_of`) while they are in cache. Inner loops (`runs`) go along the run, over entries that lie
side by side in the result and, mostly, in the messages.

A piece is a range of tiles. Pieces depend on the bucket alone, not on the number of threads, and what is summed over
pieces is summed in their order.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.junction_tree.runs import (
    add,
    gather,
    multiply,
    multiply_gathered,
    scale,
    sum_states,
    to_beliefs,
    to_ratios,
    to_ratios_gathered,
    total,
    widen,
)
from isinglass.kernels.numba.junction_tree.strided import fill, inner_offsets, next_state, offset_of
from isinglass.runtime.jit import cold, compiled, inner


@inner
def size_of(cards, first, last):
    """Entries of a table over some axes."""
    size = 1
    for axis in range(first, last):
        size *= cards[axis]
    return size


@cold
def go_to(counter, cards, a, n, state):
    """Set the counter of the first n axes to a state, counted in C order."""
    for axis in range(n - 1, -1, -1):
        counter[axis] = state % cards[a + axis]
        state //= cards[a + axis]


@cold
def set_views(program, b, run_axis, offsets, contiguous):
    """List where the entries of a run lie in each large message, and tell for which of them side by side."""
    a, large = program.first_axis[b], program.first_large[b]
    d = program.first_axis[b + 1] - a
    for i in range(large, program.first_input[b + 1]):
        s, j = program.first_stride[i], i - large
        contiguous[j] = inner_offsets(program.cards, a, program.strides, s, run_axis, d - 1, offsets[j])


@cold
def fill_run(program, b, run_axis, run, counter, values, start, logs, local, block, offsets, contiguous):
    """Make the entries (v, run) of the current state: the local table times the large messages. Returns its place."""
    a, large, after = program.first_axis[b], program.first_large[b], program.first_input[b + 1]
    d = program.first_axis[b + 1] - a
    row = program.cards[a + d - 1]
    own = offset_of(counter, program.local_strides, a, run_axis)
    for i in range(large, after):
        s, j = program.first_stride[i], i - large
        base = start[i] + offset_of(counter, program.strides, s, run_axis)
        for v in range(row):
            out, factor = block[v * run : (v + 1) * run], local[own + v]
            if contiguous[j] and i == large:
                scale(out, values[base : base + run], factor, logs)
            elif contiguous[j]:
                multiply(out, values[base : base + run], logs)
            elif i == large:
                gather(out, values[base:], offsets[j], factor, logs)
            else:
                multiply_gathered(out, values[base:], offsets[j], logs)
            base += program.strides[s + d - 1]
    return own


@compiled
def up_pieces(program, b, missing_axis, run_axis, bounds, first, last, values, message, start, logs, local, block, top,
              least, offsets, contiguous, counter, ends):  # fmt: skip
    """Write pieces ``first:last`` of a message, which starts at ``values[message]``, without normalising it.

    Piece i has tiles ``bounds[i]:bounds[i + 1]``. ``ends[i]`` gets its largest and its smallest non-zero value (real
    parts); `top` and `least` are scratch, of a run.
    """
    a, cards = program.first_axis[b], program.cards
    d = program.first_axis[b + 1] - a
    row, run = cards[a + d - 1], size_of(cards, a + run_axis, a + d - 1)
    tile = size_of(cards, a + missing_axis, a + run_axis)
    set_views(program, b, run_axis, offsets, contiguous)
    go_to(counter, cards, a, run_axis, bounds[first] * tile)
    for piece in range(first, last):
        fill(top, run, -np.inf)
        fill(least, run, np.inf)
        for state in range(bounds[piece] * tile, bounds[piece + 1] * tile):
            fill_run(program, b, run_axis, run, counter, values, start, logs, local, block, offsets, contiguous)
            at = message + state * run
            out = values[at : at + run]
            sum_states(out, block, row, logs)
            widen(top, least, out)
            next_state(counter, cards, a, run_axis)
        ends[piece, 0], ends[piece, 1] = top[0], least[0]
        for k in range(1, run):
            ends[piece, 0] = max(ends[piece, 0], top[k])
            ends[piece, 1] = min(ends[piece, 1], least[k])


@compiled
def scale_values(values, first, last, peak, logs):
    """Divide some values by the peak (subtract it)."""
    if logs is None:
        scale = 1 / peak
        for i in range(first, last):
            values[i] *= scale
    else:
        for i in range(first, last):
            values[i] -= peak


@cold
def set_places(program, b, missing_axis, run_axis, run, places, first_place):
    """Number the entries of each large message within a tile (its own missing axes, v, run): strides and starts."""
    a, large = program.first_axis[b], program.first_large[b]
    d = program.first_axis[b + 1] - a
    for i in range(large, program.first_input[b + 1]):
        step = run * program.cards[a + d - 1]
        for axis in range(run_axis - 1, missing_axis - 1, -1):
            has = program.strides[program.first_stride[i] + axis] > 0
            places[i - large, axis - missing_axis] = step if has else 0
            step *= program.cards[a + axis] if has else 1
        first_place[i - large + 1] = first_place[i - large] + step


@cold
def write_ratios(program, b, missing_axis, run_axis, run, counter, values, start, peak, logs, sums, places, first_place,
                 offsets, contiguous):  # fmt: skip
    """Replace the entries of the large messages at the current state by their ratios, where they are first met."""
    a, large = program.first_axis[b], program.first_large[b]
    d = program.first_axis[b + 1] - a
    for i in range(large, program.first_input[b + 1]):
        s, j = program.first_stride[i], i - large
        at, repeated = first_place[j], False
        for axis in range(missing_axis, run_axis):
            at += counter[axis] * places[j, axis - missing_axis]
            repeated |= counter[axis] > 0 and places[j, axis - missing_axis] == 0
        if repeated:
            continue
        base = start[i] + offset_of(counter, program.strides, s, run_axis)
        for v in range(program.cards[a + d - 1]):
            own = sums[at + v * run : at + (v + 1) * run]
            if contiguous[j]:
                to_ratios(values[base : base + run], own, peak[program.source[i]], logs)
            else:
                to_ratios_gathered(values[base:], offsets[j], own, peak[program.source[i]], logs)
            base += program.strides[s + d - 1]


@compiled
def down_pieces(program, b, missing_axis, run_axis, bounds, first, last, values, message, start, peak, logs, local,
                marginals, block, sums, places, first_place, offsets, contiguous, counter):  # fmt: skip
    """Replace pieces ``first:last`` of the large messages by their ratios; write the local table of their beliefs.

    Piece i has tiles ``bounds[i]:bounds[i + 1]``, and its beliefs go to ``marginals[i]``.
    """
    a, cards, large, after = program.first_axis[b], program.cards, program.first_large[b], program.first_input[b + 1]
    d = program.first_axis[b + 1] - a
    row, run = cards[a + d - 1], size_of(cards, a + run_axis, a + d - 1)
    tile = size_of(cards, a + missing_axis, a + run_axis)
    set_views(program, b, run_axis, offsets, contiguous)
    set_places(program, b, missing_axis, run_axis, run, places, first_place)
    go_to(counter, cards, a, run_axis, bounds[first] * tile)
    piece = first
    marginal = marginals[piece]
    fill(marginal, len(marginal), 0.0)
    for which in range(bounds[first], bounds[last]):
        if which == bounds[piece + 1]:
            piece += 1
            marginal = marginals[piece]
            fill(marginal, len(marginal), 0.0)
        fill(sums, first_place[after - large], 0.0)
        for state in range(tile):
            own = fill_run(program, b, run_axis, run, counter, values, start, logs, local, block, offsets, contiguous)
            at = message + (which * tile + state) * run
            for v in range(row):
                out = block[v * run : (v + 1) * run]
                to_beliefs(out, values[at : at + run], logs)
                marginal[own + v] += total(out)
            for j in range(after - large):
                place = first_place[j]
                for axis in range(missing_axis, run_axis):
                    place += counter[axis] * places[j, axis - missing_axis]
                add(sums[place : place + row * run], block)
            next_state(counter, cards, a, run_axis)
        go_to(counter, cards, a, run_axis, which * tile)
        for _ in range(tile):
            write_ratios(program, b, missing_axis, run_axis, run, counter, values, start, peak, logs, sums, places,
                         first_place, offsets, contiguous)  # fmt: skip
            next_state(counter, cards, a, run_axis)
