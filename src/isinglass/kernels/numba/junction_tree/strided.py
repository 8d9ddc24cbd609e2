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

from isinglass.kernels.numba.arithmetic.dual_numbers import exp_of, log_of, over, times
from isinglass.runtime.compilation.jit import cold, inner

SUM, LOG_SUM, LOG_MAX = 0, 1, 2
"""Semirings: linear values with + and *; their logarithms with log-sum-exp and +; logarithms with max and +.

Loops take `logs`: None for linear values, else LOG_SUM or LOG_MAX. None has a type of its own, so that the loops for
logarithms are compiled only where they are needed.
"""

BLOCK = 1024  # entries of a block (more only if one axis is longer): block and offsets stay in the first cache


@inner
def fill(array, size, value):
    """Set the first entries; for short runs a loop is much faster than a slice assignment."""
    for i in range(size):
        array[i] = value


@inner
def block_axes(cards, a, d):
    """Return the first axis of a block (the axes from it on have at most BLOCK entries) and its entries."""
    cut = d - 1
    size = cards[a + cut]
    while cut > 0 and size * cards[a + cut - 1] <= BLOCK:
        cut -= 1
        size *= cards[a + cut]
    return cut, size


@cold
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


@inner
def next_within(counter, cards, a, first, cut):
    """Step the axes from `first` to before `cut`, the last one first; after their last state comes the first."""
    for axis in range(cut - 1, first - 1, -1):
        counter[axis] += 1
        if counter[axis] < cards[a + axis]:
            return
        counter[axis] = 0


@inner
def next_state(counter, cards, a, cut):
    """Step the axes before `cut`, the last one first."""
    next_within(counter, cards, a, 0, cut)


@inner
def offset_of(counter, strides, s, cut):
    """Offset of the current state of the axes before `cut`."""
    offset = 0
    for axis in range(cut):
        offset += counter[axis] * strides[s + axis]
    return offset


@inner
def product_of(x, y, logs):
    """Return x y; for logarithms, x + y."""
    if logs is None:
        return times(x, y)
    return x + y


@inner
def combine_block(out, start, size, table, base, offsets, contiguous, logs):
    """Multiply (for logarithms: add) the viewed entries into ``out[start : start + size]``."""
    if contiguous:
        for k in range(size):
            out[start + k] = product_of(out[start + k], table[base + k], logs)
    else:
        for k in range(size):
            out[start + k] = product_of(out[start + k], table[base + offsets[k]], logs)


@inner
def scatter_block(values, start, size, table, base, offsets, contiguous):
    """Add ``values[start : start + size]`` to the viewed entries: the sum over the axes that the table lacks."""
    if contiguous:
        for k in range(size):
            table[base + k] += values[start + k]
    else:
        for k in range(size):
            table[base + offsets[k]] += values[start + k]


@cold
def combine(out, total, cards, a, d, strides, s, table, base, logs, offsets, counter):
    """Multiply the viewed table into `out`, of `total` entries, whose axes have these cards."""
    cut, size = block_axes(cards, a, d)
    contiguous = inner_offsets(cards, a, strides, s, cut, d, offsets)
    for axis in range(cut):
        counter[axis] = 0
    for start in range(0, total, size):
        at = base + offset_of(counter, strides, s, cut)
        combine_block(out, start, size, table, at, offsets, contiguous, logs)
        next_state(counter, cards, a, cut)


@cold
def scatter(values, total, cards, a, d, strides, s, table, base, offsets, counter):
    """Sum `values`, `total` of them, whose axes have these cards, into the viewed table."""
    cut, size = block_axes(cards, a, d)
    contiguous = inner_offsets(cards, a, strides, s, cut, d, offsets)
    for axis in range(cut):
        counter[axis] = 0
    for start in range(0, total, size):
        at = base + offset_of(counter, strides, s, cut)
        scatter_block(values, start, size, table, at, offsets, contiguous)
        next_state(counter, cards, a, cut)


@cold
def reduce_rows(values, size, row, logs, out, start):
    """Sum (or maximise) each run of `row` values into ``out[start:]``."""
    for k in range(size // row):
        out[start + k] = sum_of(values, k * row, 1, row, logs)


@inner
def sum_of(values, first, step, n, logs):
    """Return the sum (log-sum-exp, largest) of n values, one every `step`."""
    total = values[first]
    if logs is None:
        for s in range(1, n):
            total += values[first + s * step]
        return total
    for s in range(1, n):
        if values[first + s * step].real > total.real:
            total = values[first + s * step]
    if logs == LOG_SUM and total.real > -np.inf:
        top = total
        total = exp_of(values[first] - top)
        for s in range(1, n):
            total += exp_of(values[first + s * step] - top)
        total = top + log_of(total)
    return total


@cold
def combine_rows(values, size, row, logs, table, start):
    """Multiply entry k of ``table[start:]`` into the k-th run of `row` values; exponentiate logarithms."""
    for k in range(size // row):
        for s in range(k * row, (k + 1) * row):
            values[s] = belief_of(values[s], table[start + k], logs)


@inner
def ratio_of(value, mu, peak, logs):
    """Return mu / (m peak) for the message m, with 0/0 = 0; for logarithms of m and of the result, its logarithm."""
    if logs is None:
        return over(mu, value * peak) if value.real != 0 else value
    return log_of(mu) - value - peak if value.real > -np.inf else value


@inner
def belief_of(x, y, logs):
    """Return x y; for logarithms, exp(x + y)."""
    if logs is None:
        return times(x, y)
    return exp_of(x + y)
