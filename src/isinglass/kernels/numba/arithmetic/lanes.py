"""Eight numbers of a run at a time, as tuples: they stay in registers, and become vectors of the processor.

Each lane is computed by itself and in the written order, so the bits do not depend on the processor. Loops that use
these functions are `unrolled` (see `runtime.compilation.jit`): neighbouring lanes are then joined into vectors.
"""

from __future__ import annotations

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.compilation.jit import inner

ZEROS = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
ONES = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)


@inner
def eight(run, b):
    """Return eight numbers from b on."""
    return (
        run[ix(b)], run[ix(b + 1)], run[ix(b + 2)], run[ix(b + 3)],
        run[ix(b + 4)], run[ix(b + 5)], run[ix(b + 6)], run[ix(b + 7)],
    )  # fmt: skip


@inner
def put_eight(run, b, s):
    """Write eight numbers from b on."""
    run[ix(b)], run[ix(b + 1)], run[ix(b + 2)], run[ix(b + 3)] = s[0], s[1], s[2], s[3]
    run[ix(b + 4)], run[ix(b + 5)], run[ix(b + 6)], run[ix(b + 7)] = s[4], s[5], s[6], s[7]


@inner
def add_eight(s, x, v):
    """Return s + x v."""
    return (
        s[0] + x * v[0], s[1] + x * v[1], s[2] + x * v[2], s[3] + x * v[3],
        s[4] + x * v[4], s[5] + x * v[5], s[6] + x * v[6], s[7] + x * v[7],
    )  # fmt: skip


@inner
def add_products(s, u, v):
    """Return s + u v."""
    return (
        s[0] + u[0] * v[0], s[1] + u[1] * v[1], s[2] + u[2] * v[2], s[3] + u[3] * v[3],
        s[4] + u[4] * v[4], s[5] + u[5] * v[5], s[6] + u[6] * v[6], s[7] + u[7] * v[7],
    )  # fmt: skip


@inner
def larger(x, y):
    """Return the larger number; the second of two equal ones."""
    return x if x > y else y


@inner
def best_eight(s, x, v):
    """Return the larger of s and x + v."""
    return (
        larger(x + v[0], s[0]), larger(x + v[1], s[1]), larger(x + v[2], s[2]), larger(x + v[3], s[3]),
        larger(x + v[4], s[4]), larger(x + v[5], s[5]), larger(x + v[6], s[6]), larger(x + v[7], s[7]),
    )  # fmt: skip


@inner
def total_of(s):
    """Return the sum, added up pairwise."""
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))


@inner
def scaled_eight(x, v):
    """Return x v."""
    return (x * v[0], x * v[1], x * v[2], x * v[3], x * v[4], x * v[5], x * v[6], x * v[7])


@inner
def times_eight(u, v):
    """Return u v."""
    return (
        u[0] * v[0], u[1] * v[1], u[2] * v[2], u[3] * v[3],
        u[4] * v[4], u[5] * v[5], u[6] * v[6], u[7] * v[7],
    )  # fmt: skip


@inner
def larger_eight(u, v):
    """Return the larger of u and v."""
    return (
        larger(u[0], v[0]), larger(u[1], v[1]), larger(u[2], v[2]), larger(u[3], v[3]),
        larger(u[4], v[4]), larger(u[5], v[5]), larger(u[6], v[6]), larger(u[7], v[7]),
    )  # fmt: skip


@inner
def smaller(x, y):
    """Return the smaller number; the second of two equal ones."""
    return x if x < y else y


@inner
def smaller_eight(u, v):
    """Return the smaller of u and v."""
    return (
        smaller(u[0], v[0]), smaller(u[1], v[1]), smaller(u[2], v[2]), smaller(u[3], v[3]),
        smaller(u[4], v[4]), smaller(u[5], v[5]), smaller(u[6], v[6]), smaller(u[7], v[7]),
    )  # fmt: skip


@inner
def above(u, low, v, other):
    """Return v where u > low, else the other number."""
    return (
        v[0] if u[0] > low else other, v[1] if u[1] > low else other,
        v[2] if u[2] > low else other, v[3] if u[3] > low else other,
        v[4] if u[4] > low else other, v[5] if u[5] > low else other,
        v[6] if u[6] > low else other, v[7] if u[7] > low else other,
    )  # fmt: skip


@inner
def largest_of(s):
    """Return the largest number."""
    return larger(larger(larger(s[0], s[1]), larger(s[2], s[3])), larger(larger(s[4], s[5]), larger(s[6], s[7])))


@inner
def smallest_of(s):
    """Return the smallest number."""
    return smaller(smaller(smaller(s[0], s[1]), smaller(s[2], s[3])), smaller(smaller(s[4], s[5]), smaller(s[6], s[7])))


@inner
def plus_eight(u, v):
    """Return u + v."""
    return (
        u[0] + v[0], u[1] + v[1], u[2] + v[2], u[3] + v[3],
        u[4] + v[4], u[5] + v[5], u[6] + v[6], u[7] + v[7],
    )  # fmt: skip


@inner
def minus_eight(u, v):
    """Return u - v."""
    return (
        u[0] - v[0], u[1] - v[1], u[2] - v[2], u[3] - v[3],
        u[4] - v[4], u[5] - v[5], u[6] - v[6], u[7] - v[7],
    )  # fmt: skip


@inner
def over_eight(u, v):
    """Return u / v."""
    return (
        u[0] / v[0], u[1] / v[1], u[2] / v[2], u[3] / v[3],
        u[4] / v[4], u[5] / v[5], u[6] / v[6], u[7] / v[7],
    )  # fmt: skip


@inner
def negative_eight(u):
    """Return -u."""
    return (
        -u[0], -u[1], -u[2], -u[3],
        -u[4], -u[5], -u[6], -u[7],
    )  # fmt: skip


@inner
def reciprocals(u):
    """Return 1 / u."""
    return (
        1 / u[0], 1 / u[1], 1 / u[2], 1 / u[3],
        1 / u[4], 1 / u[5], 1 / u[6], 1 / u[7],
    )  # fmt: skip


@inner
def take_products(s, u, v):
    """Return s - u v."""
    return (
        s[0] - u[0] * v[0], s[1] - u[1] * v[1], s[2] - u[2] * v[2], s[3] - u[3] * v[3],
        s[4] - u[4] * v[4], s[5] - u[5] * v[5], s[6] - u[6] * v[6], s[7] - u[7] * v[7],
    )  # fmt: skip


@inner
def mixed_eight(a, u, b, v):
    """Return a u + b v, for numbers a and b."""
    return (
        a * u[0] + b * v[0], a * u[1] + b * v[1], a * u[2] + b * v[2], a * u[3] + b * v[3],
        a * u[4] + b * v[4], a * u[5] + b * v[5], a * u[6] + b * v[6], a * u[7] + b * v[7],
    )  # fmt: skip


@inner
def differences(a, u, b, v):
    """Return a u - b v, for numbers a and b."""
    return (
        a * u[0] - b * v[0], a * u[1] - b * v[1], a * u[2] - b * v[2], a * u[3] - b * v[3],
        a * u[4] - b * v[4], a * u[5] - b * v[5], a * u[6] - b * v[6], a * u[7] - b * v[7],
    )  # fmt: skip


@inner
def crossed(s, u, t, v):
    """Return s u - t v."""
    return (
        s[0] * u[0] - t[0] * v[0], s[1] * u[1] - t[1] * v[1], s[2] * u[2] - t[2] * v[2], s[3] * u[3] - t[3] * v[3],
        s[4] * u[4] - t[4] * v[4], s[5] * u[5] - t[5] * v[5], s[6] * u[6] - t[6] * v[6], s[7] * u[7] - t[7] * v[7],
    )  # fmt: skip


@inner
def blended(s, u, t, v):
    """Return s u + t v."""
    return (
        s[0] * u[0] + t[0] * v[0], s[1] * u[1] + t[1] * v[1], s[2] * u[2] + t[2] * v[2], s[3] * u[3] + t[3] * v[3],
        s[4] * u[4] + t[4] * v[4], s[5] * u[5] + t[5] * v[5], s[6] * u[6] + t[6] * v[6], s[7] * u[7] + t[7] * v[7],
    )  # fmt: skip


@inner
def number_over(x, u):
    """Return x / u, for a number x."""
    return (x / u[0], x / u[1], x / u[2], x / u[3], x / u[4], x / u[5], x / u[6], x / u[7])
