"""Products and sums of tables over different variables.

A table is read, while the entries of another run in C order over some axes, at a base plus a sum of
strides (zero for an axis that it does not have). `inner_offsets` lists that sum for a block of the last
axes, by doubling; the axes before them are stepped through. So the inner loops are plain gathers.

Complex values are numbers with a derivative (`duals`).

Cards and strides are flat arrays that hold those of many tables; ``cards[a : a + d]`` and
``strides[s : s + d]`` are the ones meant. (A slice would cost an atomic count in a compiled loop.)
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.dual_numbers import exp_of, log_of, times
from isinglass.runtime.jit import compiled

SUM, LOG_SUM, LOG_MAX = 0, 1, 2
"""Semirings: linear values with + and *; their logarithms with log-sum-exp and +; logarithms with max and +."""

BLOCK = 1024  # entries of a block (more only if one axis is longer): block and offsets stay in the first cache


@compiled
def fill(array, first, last, value):
    """Set ``array[first:last]``; for short runs a loop is much faster than a slice assignment."""
    for i in range(first, last):
        array[i] = value


@compiled
def block_axes(cards, a, d):
    """Return the first axis of a block (the axes from it on have at most BLOCK entries) and its entries."""
    cut = d - 1
    size = cards[a + cut]
    while cut > 0 and size * cards[a + cut - 1] <= BLOCK:
        cut -= 1
        size *= cards[a + cut]
    return cut, size


@compiled
def inner_offsets(cards, a, strides, s, cut, d, offsets):
    """Write the offset of each entry of a block; return whether they are 0, 1, 2, ..."""
    offsets[0] = 0
    size = 1
    contiguous = True
    for axis in range(d - 1, cut - 1, -1):
        card, step = cards[a + axis], strides[s + axis]
        if card == 1:
            continue
        contiguous &= step == size
        for state in range(1, card):
            for k in range(size):
                offsets[state * size + k] = offsets[k] + state * step
        size *= card
    return contiguous


@compiled
def next_state(counter, cards, a, cut):
    """Step the axes before `cut`; tell whether there was another state."""
    for axis in range(cut - 1, -1, -1):
        counter[axis] += 1
        if counter[axis] < cards[a + axis]:
            return True
        counter[axis] = 0
    return False


@compiled
def offset_of(counter, strides, s, cut):
    """Offset of the current state of the axes before `cut`."""
    offset = 0
    for axis in range(cut):
        offset += counter[axis] * strides[s + axis]
    return offset


@compiled
def combine_block(out, start, size, table, base, offsets, contiguous, semiring):
    """Multiply (for logarithms: add) the viewed entries into ``out[start : start + size]``."""
    if semiring == SUM:
        if contiguous:
            for k in range(size):
                out[start + k] = times(out[start + k], table[base + k])
        else:
            for k in range(size):
                out[start + k] = times(out[start + k], table[base + offsets[k]])
    elif contiguous:
        for k in range(size):
            out[start + k] += table[base + k]
    else:
        for k in range(size):
            out[start + k] += table[base + offsets[k]]


@compiled
def scatter_block(values, start, size, table, base, offsets, contiguous):
    """Add ``values[start : start + size]`` to the viewed entries: the sum over the axes that the table lacks."""
    if contiguous:
        for k in range(size):
            table[base + k] += values[start + k]
    else:
        for k in range(size):
            table[base + offsets[k]] += values[start + k]


@compiled
def combine(out, cards, a, d, strides, s, table, base, semiring, offsets, counter):
    """Multiply the viewed table into `out`, whose axes have these cards."""
    cut, size = block_axes(cards, a, d)
    contiguous = inner_offsets(cards, a, strides, s, cut, d, offsets)
    fill(counter, 0, cut, 0)
    start = 0
    more = True
    while more:
        at = base + offset_of(counter, strides, s, cut)
        combine_block(out, start, size, table, at, offsets, contiguous, semiring)
        start += size
        more = next_state(counter, cards, a, cut)


@compiled
def scatter(values, cards, a, d, strides, s, table, base, offsets, counter):
    """Sum `values`, whose axes have these cards, into the viewed table."""
    cut, size = block_axes(cards, a, d)
    contiguous = inner_offsets(cards, a, strides, s, cut, d, offsets)
    fill(counter, 0, cut, 0)
    start = 0
    more = True
    while more:
        at = base + offset_of(counter, strides, s, cut)
        scatter_block(values, start, size, table, at, offsets, contiguous)
        start += size
        more = next_state(counter, cards, a, cut)


@compiled
def reduce_rows(values, size, row, semiring, out, start):
    """Sum (or maximise) each run of `row` values into ``out[start:]``."""
    n = size // row
    if semiring == SUM:
        if row == 2:
            for k in range(n):
                out[start + k] = values[2 * k] + values[2 * k + 1]
            return
        for k in range(n):
            total = values[k * row]
            for s in range(1, row):
                total += values[k * row + s]
            out[start + k] = total
        return
    for k in range(n):
        top = values[k * row]
        for s in range(1, row):
            if values[k * row + s].real > top.real:
                top = values[k * row + s]
        if semiring == LOG_SUM and top.real > -np.inf:
            total = exp_of(values[k * row] - top)
            for s in range(1, row):
                total += exp_of(values[k * row + s] - top)
            top += log_of(total)
        out[start + k] = top


@compiled
def combine_rows(values, size, row, semiring, table, start):
    """Multiply entry k of ``table[start:]`` into the k-th run of `row` values; exponentiate logarithms."""
    for k in range(size // row):
        value = table[start + k]
        if semiring == SUM:
            for s in range(k * row, (k + 1) * row):
                values[s] = times(values[s], value)
        else:
            for s in range(k * row, (k + 1) * row):
                values[s] = exp_of(values[s] + value)
