"""Long vectors: a sum of products, and the same of a vector that is changed on the way, in one pass over memory.

    sums_p      =  sum_{i in piece p} a_i b_i                                          `dots`
    a           <- a + factor b,      sums_p  =  sum_{i in piece p} a_i c_i            `add_dots`

A piece is 2^k leaves of LEAF numbers. A leaf is added up in eight lanes, leaves are added pairwise: in the order of
`numpy.sum`, and so with its bits, however the pieces are shared out among threads.

Traffic bounds both: 16 bytes for each number, and 32. Measured: 20 to 23 GB/s on one thread from the third cache, where
NumPy, which writes the products down, needs two to three times as long.

`sums` has a row for each piece and a column for each of its leaves; the sum of the piece is in the first column.
"""

from __future__ import annotations

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.jit import inner, unrolled

LEAF = 128
"""Numbers that are added up in lanes: NumPy's choice."""


@inner
def fold(sums, piece):
    """Add the leaves of a piece pairwise."""
    width = sums.shape[1] // 2
    while width > 0:
        for i in range(width):
            sums[ix(piece), ix(i)] = sums[ix(piece), ix(2 * i)] + sums[ix(piece), ix(2 * i + 1)]
        width //= 2


@unrolled
def dots(first, last, a, b, sums):
    """Write the sums of a b over pieces `first` to `last`."""
    leaves = sums.shape[1]
    for leaf in range(first * leaves, last * leaves):
        c0 = c1 = c2 = c3 = c4 = c5 = c6 = c7 = 0.0
        for i in range(leaf * LEAF, leaf * LEAF + LEAF, 8):
            c0 += a[ix(i)] * b[ix(i)]
            c1 += a[ix(i + 1)] * b[ix(i + 1)]
            c2 += a[ix(i + 2)] * b[ix(i + 2)]
            c3 += a[ix(i + 3)] * b[ix(i + 3)]
            c4 += a[ix(i + 4)] * b[ix(i + 4)]
            c5 += a[ix(i + 5)] * b[ix(i + 5)]
            c6 += a[ix(i + 6)] * b[ix(i + 6)]
            c7 += a[ix(i + 7)] * b[ix(i + 7)]
        sums[ix(leaf // leaves), ix(leaf % leaves)] = ((c0 + c1) + (c2 + c3)) + ((c4 + c5) + (c6 + c7))
    for piece in range(first, last):
        fold(sums, piece)


@unrolled
def add_dots(first, last, a, factor, b, c, sums):
    """Add factor b to a, and write the sums of a c over pieces `first` to `last`."""
    leaves = sums.shape[1]
    for leaf in range(first * leaves, last * leaves):
        c0 = c1 = c2 = c3 = c4 = c5 = c6 = c7 = 0.0
        for i in range(leaf * LEAF, leaf * LEAF + LEAF, 8):
            a0 = a[ix(i)] + factor * b[ix(i)]
            a1 = a[ix(i + 1)] + factor * b[ix(i + 1)]
            a2 = a[ix(i + 2)] + factor * b[ix(i + 2)]
            a3 = a[ix(i + 3)] + factor * b[ix(i + 3)]
            a4 = a[ix(i + 4)] + factor * b[ix(i + 4)]
            a5 = a[ix(i + 5)] + factor * b[ix(i + 5)]
            a6 = a[ix(i + 6)] + factor * b[ix(i + 6)]
            a7 = a[ix(i + 7)] + factor * b[ix(i + 7)]
            a[ix(i)] = a0
            a[ix(i + 1)] = a1
            a[ix(i + 2)] = a2
            a[ix(i + 3)] = a3
            a[ix(i + 4)] = a4
            a[ix(i + 5)] = a5
            a[ix(i + 6)] = a6
            a[ix(i + 7)] = a7
            c0 += a0 * c[ix(i)]
            c1 += a1 * c[ix(i + 1)]
            c2 += a2 * c[ix(i + 2)]
            c3 += a3 * c[ix(i + 3)]
            c4 += a4 * c[ix(i + 4)]
            c5 += a5 * c[ix(i + 5)]
            c6 += a6 * c[ix(i + 6)]
            c7 += a7 * c[ix(i + 7)]
        sums[ix(leaf // leaves), ix(leaf % leaves)] = ((c0 + c1) + (c2 + c3)) + ((c4 + c5) + (c6 + c7))
    for piece in range(first, last):
        fold(sums, piece)
