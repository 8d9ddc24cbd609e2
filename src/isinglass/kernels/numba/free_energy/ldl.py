"""Sparse symmetric systems: A = L D L' by rows, for a pattern that is analysed once.

Row k of L solves a triangular system with the rows before it; which columns take part is found in the elimination tree
(Liu 1990; Davis 2005). D may have negative entries: the number of them is that of negative eigenvalues. Real or complex
(symmetric, not Hermitian).
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.compilation.jit import compiled
from isinglass.typing import IntArray

PIECE = 200_000_000  # multiplications between two moments at which Ctrl-C is heard, about a quarter of a second


def row_patterns(first: IntArray, rows: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Return the columns of each row of L below the diagonal, rising: (first_of_row, columns).

    Column k of the upper triangle of A has the `rows` ``first[k]:first[k + 1]``, the diagonal last.
    """
    parent, mark = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    bounds, columns = np.zeros(n + 1, np.int64), np.empty(2 * len(rows) + n, np.int64)
    done = find_columns(first, rows, 0, parent, mark, bounds, columns)
    while done < n:
        columns = np.concatenate([columns, np.empty_like(columns)])
        done = find_columns(first, rows, done, parent, mark, bounds, columns)
    columns = columns[: bounds[-1]].copy()
    filled = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=n))[:-1]]).astype(np.int64) if n else mark
    sort_columns(bounds, bounds[:-1].copy(), filled, np.empty_like(columns), columns)
    return bounds, columns


@compiled
def find_columns(first, rows, k, parent, mark, bounds, columns):
    """Write the columns of rows from k on, as long as there is room; return the row that has none."""
    n, total = len(parent), bounds[k]
    while k < n and total + k <= len(columns):
        mark[k] = k
        for at in range(first[k], first[k + 1]):
            i = rows[at]
            while mark[i] != k:
                mark[i] = k
                columns[total] = i
                total += 1
                if parent[i] < 0:
                    parent[i] = k
                    break
                i = parent[i]
        k += 1
        bounds[k] = total
    return k


@compiled
def sort_columns(bounds, next_in_row, next_in_column, row_of, columns):
    """Sort the columns of each row, by going over the rows of each column; `next_in_x` are the first places of x."""
    for k in range(len(next_in_row)):
        for at in range(bounds[k], bounds[k + 1]):
            j = columns[at]
            row_of[next_in_column[j]] = k
            next_in_column[j] += 1
    at = 0
    for j in range(len(next_in_row)):
        while at < next_in_column[j]:
            k = row_of[at]
            columns[next_in_row[k]] = j
            next_in_row[k] += 1
            at += 1


@compiled
def factorise(first, rows, bounds, columns, starts, values, lower, where, filled, diagonal, row, k, work):
    """Write rows of L from k on (`lower`, column by column, at the rows `where`) and D; return the row that is next.

    It goes on for about `work` multiplications. A zero in D, or a number that is not finite, ends it with -1. `starts`
    is where the columns of L begin, `filled` where they end so far.
    """
    n = len(diagonal)
    if k == 0:
        for j in range(n):
            filled[j] = starts[j]
    while k < n and work > 0:
        for at in range(first[k], first[k + 1]):
            row[rows[at]] = values[at]
        d = row[k]
        row[k] = d * 0
        for t in range(bounds[k], bounds[k + 1]):
            j = columns[t]
            value = row[j]
            row[j] = value * 0
            work -= filled[j] - starts[j]
            for at in range(starts[j], filled[j]):
                row[ix(where[ix(at)])] -= lower[ix(at)] * value
            scaled = value / diagonal[j]
            d -= value * scaled
            lower[filled[j]] = scaled
            where[filled[j]] = k
            filled[j] += 1
        if d.real == 0 or not np.isfinite(d.real):
            for j in range(n):
                row[j] = row[j] * 0
            return -1
        diagonal[k] = d
        k += 1
    return k


@compiled
def substitute(starts, lower, where, diagonal, order, right, x):
    """Solve for x with the right-hand side, both numbered before the permutation `order`."""
    n = len(diagonal)
    for k in range(n):
        x[k] = right[order[k]]
    for k in range(n):
        value = x[k]
        for at in range(starts[k], starts[k + 1]):
            x[ix(where[ix(at)])] -= lower[ix(at)] * value
    for k in range(n - 1, -1, -1):
        value = x[k] / diagonal[k]
        for at in range(starts[k], starts[k + 1]):
            value -= lower[ix(at)] * x[ix(where[ix(at)])]
        x[k] = value
    for k in range(n):
        right[order[k]] = x[k]
