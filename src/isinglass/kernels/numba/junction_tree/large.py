"""Buckets with large messages, as tensor contractions in tiles that stay in cache.

The axes of such a bucket (see `buckets` for what is computed) come in four runs, its own variable v last:

    common | missing | run | v

The local table does not have the axes of the run, and every large message has them; a message lacks some of the missing
axes, and has all others. A state of the common axes is a *tile*: it has all that is summed for its part of a message,
and no other tile has a share in it. So tiles can be done in any order and by any thread, and messages are replaced by
their ratios (`strided.ratio_of`) while they are in cache. Inner loops (`runs`) go along the run, over entries that lie
side by side in the result and, mostly, in the messages.

A piece is a range of tiles (`Cuts`). Pieces depend on the bucket alone, not on the number of threads, and what is
summed over pieces is summed in their order (`crews`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isinglass.kernels.numba.junction_tree.runs import (
    add,
    gather,
    multiply,
    multiply_gathered,
    narrow,
    scale,
    sum_states,
    to_beliefs,
    to_ratios,
    to_ratios_gathered,
    total,
    widen,
)
from isinglass.kernels.numba.junction_tree.strided import fill, inner_offsets, next_state, next_within, offset_of
from isinglass.runtime.compilation.jit import cold, inner
from isinglass.typing import IntArray, Mask

LIGHT, LIGHT_MARGINALS = 2**9, 2**13  # entries of a local table, and of those of all pieces: see `Cuts.light`


class Cuts(NamedTuple):
    """How large buckets are cut, each (buckets,)."""

    missing_axis: IntArray  # the first
    run_axis: IntArray  # the first
    tiles: IntArray
    pieces: IntArray  # 0: the bucket is not large
    light: Mask  # whether there is room for the local tables of two such buckets at a time (LIGHT)
    by_pieces: Mask  # whether the bucket's message is large, so that pieces of its parent read and replace it


class Space(NamedTuple):
    """Working memory for some large buckets; for several threads, each array has one more axis in front."""

    block: np.ndarray  # the states of a bucket's own variable, times the run
    top: np.ndarray  # (run,)
    least: np.ndarray  # (run,)
    offsets: np.ndarray  # (large messages, run)
    contiguous: np.ndarray  # (large messages,)
    counter: np.ndarray  # (axes,)
    sums: np.ndarray  # entries of the large messages within a tile
    places: np.ndarray  # (large messages, missing axes)
    first_place: np.ndarray  # (large messages + 1,)


@inner
def own_space(spaces, place):
    """Return the working memory of the thread at a place."""
    return Space(spaces.block[place], spaces.top[place], spaces.least[place], spaces.offsets[place],
                 spaces.contiguous[place], spaces.counter[place], spaces.sums[place], spaces.places[place],
                 spaces.first_place[place])  # fmt: skip


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


@inner
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


@cold
def up_piece(program, b, run_axis, first, last, values, message, start, logs, local, space):
    """Write a piece of a message, states ``first:last`` of the axes before the run, without normalising it.

    The message starts at ``values[message]``. Returns the largest and the smallest non-zero value (real parts).
    """
    a, cards = program.first_axis[b], program.cards
    d = program.first_axis[b + 1] - a
    row, run = cards[a + d - 1], size_of(cards, a + run_axis, a + d - 1)
    top, least, counter = space.top, space.least, space.counter
    fill(top, run, -np.inf)
    fill(least, run, np.inf)
    go_to(counter, cards, a, run_axis, first)
    for state in range(first, last):
        fill_run(program, b, run_axis, run, counter, values, start, logs, local, space.block, space.offsets,
                 space.contiguous)  # fmt: skip
        at = message + state * run
        out = values[at : at + run]
        sum_states(out, space.block, row, logs)
        widen(top, least, out)
        next_state(counter, cards, a, run_axis)
    return narrow(top, least, run)


@cold
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
    first_place[0] = 0
    d = program.first_axis[b + 1] - a
    for i in range(large, program.first_input[b + 1]):
        step = run * program.cards[a + d - 1]
        for axis in range(run_axis - 1, missing_axis - 1, -1):
            has = program.strides[program.first_stride[i] + axis] > 0
            places[i - large, axis - missing_axis] = step if has else 0
            step *= program.cards[a + axis] if has else 1
        first_place[i - large + 1] = first_place[i - large] + step


@inner
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
                to_ratios_gathered(values[base:], offsets[j, :run], own, peak[program.source[i]], logs)
            base += program.strides[s + d - 1]


@cold
def down_piece(program, b, missing_axis, run_axis, first, last, values, message, start, peak, logs, local, marginal,
               space):  # fmt: skip
    """Replace a piece of the large messages, tiles ``first:last``, by its ratios; write the local table of its beliefs.

    The table, `marginal`, is filled with zeros here.
    """
    a, cards, large, after = program.first_axis[b], program.cards, program.first_large[b], program.first_input[b + 1]
    d = program.first_axis[b + 1] - a
    row, run = cards[a + d - 1], size_of(cards, a + run_axis, a + d - 1)
    tile = size_of(cards, a + missing_axis, a + run_axis)
    block, sums, counter, first_place, places = space.block, space.sums, space.counter, space.first_place, space.places
    fill(marginal, len(marginal), 0.0)
    go_to(counter, cards, a, run_axis, first * tile)
    for which in range(first, last):
        fill(sums, first_place[after - large], 0.0)
        for state in range(tile):
            own = fill_run(program, b, run_axis, run, counter, values, start, logs, local, block, space.offsets,
                           space.contiguous)  # fmt: skip
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
            next_within(counter, cards, a, missing_axis, run_axis)
        for _ in range(tile):
            write_ratios(program, b, missing_axis, run_axis, run, counter, values, start, peak, logs, sums, places,
                         first_place, space.offsets, space.contiguous)  # fmt: skip
            next_within(counter, cards, a, missing_axis, run_axis)
        next_within(counter, cards, a, 0, missing_axis)
