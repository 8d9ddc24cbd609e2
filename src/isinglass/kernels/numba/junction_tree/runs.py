"""Products and sums along a run of a large bucket: vectors that lie side by side in memory.

Each function takes slices, whose indices are never negative, so that it is compiled to vector instructions; `logs` is
None for linear values (see `strided`). All of them become parts of the loops in `large`, with `fill_run` and
`write_ratios`: to optimise them alone first takes longer, and an 18 x 18 grid then takes 1.4 times as long.
"""

from __future__ import annotations

from isinglass.kernels.numba.junction_tree.strided import belief_of, product_of, ratio_of, sum_of
from isinglass.runtime.compilation.jit import inner


@inner
def scale(out, x, factor, logs):
    """Write a vector times a number."""
    for k in range(len(out)):
        out[k] = product_of(x[k], factor, logs)


@inner
def gather(out, table, offsets, factor, logs):
    """Write entries of a table times a number."""
    for k in range(len(out)):
        out[k] = product_of(table[offsets[k]], factor, logs)


@inner
def multiply(out, x, logs):
    """Multiply by a vector."""
    for k in range(len(out)):
        out[k] = product_of(out[k], x[k], logs)


@inner
def multiply_gathered(out, table, offsets, logs):
    """Multiply by entries of a table."""
    for k in range(len(out)):
        out[k] = product_of(out[k], table[offsets[k]], logs)


@inner
def add(out, x):
    """Add a vector."""
    for k in range(len(out)):
        out[k] += x[k]


@inner
def add_two(out, x, y):
    """Write the sum of two vectors."""
    for k in range(len(out)):
        out[k] = x[k] + y[k]


@inner
def sum_states(out, block, row, logs):
    """Sum (or maximise) a block (row, run) over its rows, of which there are two at least."""
    run = len(out)
    if logs is not None:
        for k in range(run):
            out[k] = sum_of(block, k, run, row, logs)
        return
    add_two(out, block[:run], block[run : 2 * run])
    for v in range(2, row):
        add(out, block[v * run : (v + 1) * run])


@inner
def widen(top, least, x):
    """Take a vector into the largest values and the smallest non-zero ones so far, place by place."""
    for k in range(len(x)):
        value = x[k].real
        top[k] = value if value > top[k] else top[k]
        least[k] = value if (value < least[k]) & (value > 0) else least[k]


@inner
def larger(x, y):
    """Take a vector into the largest values so far, place by place."""
    for k in range(len(x)):
        x[k] = y[k] if y[k] > x[k] else x[k]


@inner
def smaller(x, y):
    """Take a vector into the smallest values so far, place by place."""
    for k in range(len(x)):
        x[k] = y[k] if y[k] < x[k] else x[k]


@inner
def narrow(top, least, n):
    """Return the largest of n values and the smallest of n others, which are lost; one half is taken into the other."""
    while n > 1:
        half = (n + 1) // 2
        larger(top[: n - half], top[half:n])
        smaller(least[: n - half], least[half:n])
        n = half
    return top[0], least[0]


@inner
def to_beliefs(block, x, logs):
    """Multiply by a vector; exponentiate logarithms."""
    for k in range(len(x)):
        block[k] = belief_of(block[k], x[k], logs)


@inner
def to_ratios(x, sums, peak, logs):
    """Replace messages by their ratios."""
    for k in range(len(x)):
        x[k] = ratio_of(x[k], sums[k], peak, logs)


@inner
def to_ratios_gathered(table, offsets, sums, peak, logs):
    """Replace messages by their ratios, at some entries of a table."""
    for k in range(len(offsets)):
        table[offsets[k]] = ratio_of(table[offsets[k]], sums[k], peak, logs)


@inner
def total(x):
    """Sum a vector in eight strands: in a fixed order, and without waiting for each addition."""
    a = b = c = d = e = f = g = h = x[0] * 0
    for i in range(len(x) // 8):
        k = 8 * i
        a += x[k]
        b += x[k + 1]
        c += x[k + 2]
        d += x[k + 3]
        e += x[k + 4]
        f += x[k + 5]
        g += x[k + 6]
        h += x[k + 7]
    for k in range(len(x) // 8 * 8, len(x)):
        a += x[k]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))
