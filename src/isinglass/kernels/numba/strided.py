"""Products and sums of tables over different variables, as loops over strided views.

A *view* describes how a table is read while the entries of another run in C order: `n` axes with `cards`
and `strides` (zero where the table does not have the axis). `coalesce` joins neighbouring axes that one
longer loop can run over, so that the inner loop is long and, mostly, contiguous.
"""

from __future__ import annotations

import numpy as np

from isinglass.compilation import compiled

SUM, LOG_SUM, LOG_MAX = 0, 1, 2
"""Semirings: linear values with + and *; their logarithms with log-sum-exp and +; logarithms with max and +."""


@compiled
def coalesce(cards, strides, first, last, view_cards, view_strides):  # type: ignore[no-untyped-def]
    """Write the view of axes ``first:last`` with as few axes as possible; return their number (at least 1)."""
    n = 0
    for i in range(first, last):
        if n > 0 and view_strides[n - 1] == strides[i] * cards[i]:
            view_cards[n - 1] *= cards[i]
            view_strides[n - 1] = strides[i]
        else:
            view_cards[n] = cards[i]
            view_strides[n] = strides[i]
            n += 1
    if n == 0:
        view_cards[0] = 1
        view_strides[0] = 0
        n = 1
    return n


@compiled
def advance(counter, n, cards, strides, offset):  # type: ignore[no-untyped-def]
    """Step to the next row of the view (all axes but the last) and return its offset."""
    axis = n - 2
    while axis >= 0:
        counter[axis] += 1
        offset += strides[axis]
        if counter[axis] < cards[axis]:
            return offset
        offset -= strides[axis] * cards[axis]
        counter[axis] = 0
        axis -= 1
    return offset


@compiled
def combine(out, size, n, cards, strides, table, offset, semiring, counter):  # type: ignore[no-untyped-def]
    """Multiply (or, for logarithms, add) the viewed table into ``out[:size]``."""
    row, step = cards[n - 1], strides[n - 1]
    counter[:n] = 0
    for k in range(0, size, row):
        if semiring == SUM:
            if step == 0:
                value = table[offset]
                for s in range(k, k + row):
                    out[s] *= value
            elif step == 1:
                for s in range(row):
                    out[k + s] *= table[offset + s]
            else:
                for s in range(row):
                    out[k + s] *= table[offset + s * step]
        elif step == 0:
            value = table[offset]
            for s in range(k, k + row):
                out[s] += value
        else:
            for s in range(row):
                out[k + s] += table[offset + s * step]
        offset = advance(counter, n, cards, strides, offset)


@compiled
def scatter(values, size, n, cards, strides, table, offset, counter):  # type: ignore[no-untyped-def]
    """Add ``values[:size]`` to the viewed entries of `table`: the sum over the axes that it lacks."""
    row, step = cards[n - 1], strides[n - 1]
    counter[:n] = 0
    for k in range(0, size, row):
        if step == 0:
            total = values[k]
            for s in range(k + 1, k + row):
                total += values[s]
            table[offset] += total
        elif step == 1:
            for s in range(row):
                table[offset + s] += values[k + s]
        else:
            for s in range(row):
                table[offset + s * step] += values[k + s]
        offset = advance(counter, n, cards, strides, offset)


@compiled
def reduce_rows(values, size, row, semiring, out, start):  # type: ignore[no-untyped-def]
    """Sum (or maximise) each run of `row` values into ``out[start:]``."""
    if semiring == SUM:
        for k in range(size // row):
            total = values[k * row]
            for s in range(1, row):
                total += values[k * row + s]
            out[start + k] = total
        return
    for k in range(size // row):
        top = values[k * row]
        for s in range(1, row):
            if values[k * row + s].real > top.real:
                top = values[k * row + s]
        if semiring == LOG_SUM and top.real > -np.inf:
            total = np.exp(values[k * row] - top)
            for s in range(1, row):
                total += np.exp(values[k * row + s] - top)
            top += np.log(total)
        out[start + k] = top
