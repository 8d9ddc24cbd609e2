"""Loops over runs of numbers, each short enough for the compiler to vectorise: one result, few operands."""

from __future__ import annotations

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.compilation.jit import inner


@inner
def multiply(out, one, two):
    """Write products."""
    for x in range(len(out)):
        out[ix(x)] = one[ix(x)] * two[ix(x)]


@inner
def add(out, one, two):
    """Write sums."""
    for x in range(len(out)):
        out[ix(x)] = one[ix(x)] + two[ix(x)]


@inner
def subtract(out, one, two):
    """Write differences."""
    for x in range(len(out)):
        out[ix(x)] = one[ix(x)] - two[ix(x)]


@inner
def add_product(out, one, two):
    """Add products."""
    for x in range(len(out)):
        out[ix(x)] += one[ix(x)] * two[ix(x)]


@inner
def add_scaled(out, number, one):
    """Add a multiple."""
    for x in range(len(out)):
        out[ix(x)] += number * one[ix(x)]


@inner
def combine(out, number, one, other, two):
    """Write the sum of two multiples."""
    for x in range(len(out)):
        out[ix(x)] = number * one[ix(x)] + other * two[ix(x)]


@inner
def combine_runs(out, weight, one, other, two):
    """Write the sum of two products."""
    for x in range(len(out)):
        out[ix(x)] = weight[ix(x)] * one[ix(x)] + other[ix(x)] * two[ix(x)]


@inner
def reciprocals_of_sums(out, one, two):
    """Write one over sums."""
    for x in range(len(out)):
        out[ix(x)] = 1.0 / (one[ix(x)] + two[ix(x)])


@inner
def store(out, change, message, scale, old):
    """Write normalised messages; raise `change` to how far they are from the old ones."""
    for x in range(len(out)):
        value = message[ix(x)] * scale[ix(x)]
        moved = abs(value - old[ix(x)])
        change[ix(x)] = moved if moved > change[ix(x)] else change[ix(x)]
        out[ix(x)] = value


@inner
def any_product_below(one, two, limit):
    """Tell whether a product is below a limit."""
    count = 0
    for x in range(len(one)):
        count += one[ix(x)] * two[ix(x)] < limit
    return count > 0


@inner
def largest(run):
    """Return the largest entry, at least zero, in four parts."""
    n = len(run)
    a = b = c = d = 0.0
    for x in range(0, n - 3, 4):
        a, b = max(a, run[ix(x)]), max(b, run[ix(x + 1)])
        c, d = max(c, run[ix(x + 2)]), max(d, run[ix(x + 3)])
    for x in range(n - n % 4, n):
        a = max(a, run[ix(x)])
    return max(max(a, b), max(c, d))


@inner
def dot(one, two):
    """Inner product, in eight parts."""
    n = len(one)
    a = b = c = d = p = q = r = s = 0.0
    for x in range(0, n - 7, 8):
        a += one[ix(x)] * two[ix(x)]
        b += one[ix(x + 1)] * two[ix(x + 1)]
        c += one[ix(x + 2)] * two[ix(x + 2)]
        d += one[ix(x + 3)] * two[ix(x + 3)]
        p += one[ix(x + 4)] * two[ix(x + 4)]
        q += one[ix(x + 5)] * two[ix(x + 5)]
        r += one[ix(x + 6)] * two[ix(x + 6)]
        s += one[ix(x + 7)] * two[ix(x + 7)]
    for x in range(n - n % 8, n):
        a += one[ix(x)] * two[ix(x)]
    return ((a + p) + (b + q)) + ((c + r) + (d + s))


@inner
def copy_run(out, one):
    """Copy."""
    for x in range(len(out)):
        out[ix(x)] = one[ix(x)]


@inner
def product_of_two_pairs(out, one, two, three, four):
    """Write (one two) (three four)."""
    for x in range(len(out)):
        out[ix(x)] = (one[ix(x)] * two[ix(x)]) * (three[ix(x)] * four[ix(x)])


@inner
def product_from_left(out, one, two, three, four):
    """Write ((one two) three) four."""
    for x in range(len(out)):
        out[ix(x)] = one[ix(x)] * two[ix(x)] * three[ix(x)] * four[ix(x)]


@inner
def product_from_right(out, one, two, three, four):
    """Write one ((two three) four)."""
    for x in range(len(out)):
        out[ix(x)] = one[ix(x)] * (two[ix(x)] * three[ix(x)] * four[ix(x)])


@inner
def slopes_of(message, bar, mean):
    """Turn messages before their normalisation into derivatives by them: bar / message - mean."""
    for x in range(len(message)):
        message[ix(x)] = bar[ix(x)] / message[ix(x)] - mean[ix(x)]


@inner
def add_four(out, one, two, three, four):
    """Write sums of four."""
    for x in range(len(out)):
        out[ix(x)] = one[ix(x)] + two[ix(x)] + three[ix(x)] + four[ix(x)]
