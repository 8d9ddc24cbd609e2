"""Sparse symmetric systems: A = L D L' by rows, for a pattern that is analysed once.

Row k of L solves a triangular system with the rows before it; which columns take part is found in the elimination tree
(Liu 1990; Davis 2005). D may have negative entries: the number of them is that of negative eigenvalues. Real or complex
(symmetric, not Hermitian).
"""

from __future__ import annotations

import numpy as np

from isinglass.compilation import allocating, compiled
from isinglass.kernels.numba.indexing import ix


@allocating
def row_patterns(first, rows, n):
    """Return the columns of each row of L below the diagonal, rising: (first_of_row, columns).

    Column k of the upper triangle of A has the `rows` ``first[k]:first[k + 1]``, the diagonal last.
    """
    parent, mark = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    bounds, columns = np.zeros(n + 1, np.int64), np.empty(max(16, 2 * len(rows)), np.int64)
    total = 0
    for k in range(n):
        mark[k] = k
        begin = total
        for at in range(first[k], first[k + 1]):
            i = rows[at]
            while mark[i] != k:
                mark[i] = k
                if total == len(columns):
                    larger = np.empty(2 * total, np.int64)
                    larger[:total] = columns
                    columns = larger
                columns[total] = i
                total += 1
                if parent[i] < 0:
                    parent[i] = k
                    break
                i = parent[i]
        columns[begin:total].sort()
        bounds[k + 1] = total
    return bounds, columns[:total].copy()


@compiled
def factorise(first, rows, bounds, columns, starts, values, lower, where, filled, diagonal, row):
    """Write L (`lower`, column by column, at the rows `where`) and D; return how many entries of D are negative.

    A zero or a number that is not finite ends it with -1. `starts` is where the columns of L begin.
    """
    n, negative = len(diagonal), 0
    for k in range(n):
        filled[k] = starts[k]
    for k in range(n):
        for at in range(first[k], first[k + 1]):
            row[rows[at]] = values[at]
        d = row[k]
        row[k] = d * 0
        for t in range(bounds[k], bounds[k + 1]):
            j = columns[t]
            value = row[j]
            row[j] = value * 0
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
        negative += 1 if d.real < 0 else 0
    return negative


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
