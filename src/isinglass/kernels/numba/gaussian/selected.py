"""Selected inversion (Takahashi, Fagan and Chen 1973) and half solves with a factor A = L D L'.

For Z = A^-1, from the last column to the first, and rows i below the diagonal that column j of L has,

    Z_ij = - sum_k Z_ik L_kj,        Z_jj = 1 / D_j - sum_k L_kj Z_kj,        k over the rows of column j of L.

All entries on the right lie in the pattern of L, too: rows that a column shares are joined by elimination.
"""

from __future__ import annotations

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.compilation.jit import compiled


@compiled
def invert(starts, where, lower, diagonal, inverse, inverse_diagonal, column, total, j, work):
    """Write the inverse on the pattern of L, from column j - 1 down; return the number of columns that are left.

    It goes on for about `work` multiplications. `column` is zero before and after, `total` is room, both (n,).
    """
    while j > 0 and work > 0:
        j -= 1
        for at in range(starts[j], starts[j + 1]):
            column[where[at]] = lower[at]
            total[where[at]] = 0.0
        for at in range(starts[j], starts[j + 1]):
            k, value = where[at], lower[at]
            own = value * inverse_diagonal[k]
            work -= starts[k + 1] - starts[k]
            for t in range(starts[k], starts[k + 1]):  # rows that column j does not have get sums that nobody reads
                i = ix(where[ix(t)])
                own += column[i] * inverse[ix(t)]
                total[i] += value * inverse[ix(t)]
            total[k] += own
        own = 1.0 / diagonal[j]
        for at in range(starts[j], starts[j + 1]):
            inverse[at] = -total[where[at]]
            own -= lower[at] * inverse[at]
            column[where[at]] = 0.0
        inverse_diagonal[j] = own
    return j


@compiled
def solve_transposed(starts, where, lower, x):
    """Solve L' y = x in place."""
    for k in range(len(x) - 1, -1, -1):
        value = x[k]
        for at in range(starts[k], starts[k + 1]):
            value -= lower[ix(at)] * x[ix(where[ix(at)])]
        x[k] = value
