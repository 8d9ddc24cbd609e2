"""Powers of many positive numbers, x^c = exp(c log x), in one loop that the compiler vectorises.

The mathematical library takes one number at a time. Here both functions are polynomials, with the usual reductions:

    x = 2^e f,  f in [sqrt(1/2), sqrt(2)):    log x = e log 2 + 2 artanh s,   s = (f - 1) / (f + 1)
    y = c log x,  y = k log 2 + r,  |r| <= log(2) / 2:    exp y = 2^k exp r

An error of log x grows with c log x, so the logarithm and its product with c are kept as sums of two numbers (Dekker
1971); results are right to one unit in the last place. Exponents are moved as bits: 64-bit shifts and sums are vector
instructions, conversions are not. Where x is zero or smaller than normal, or the result leaves the range of normal
numbers, what is written is nonsense, and the caller is told.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.compilation.jit import inner

SMALLEST = float(np.finfo(float).tiny)
WIDEST = 700.0  # exp(+-700) is normal
ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
MANTISSA = 52
UPPER = -(1 << 27)  # leaves the upper 26 bits of a mantissa: products of two such numbers are exact
SHIFT, SHIFT_BITS = 2.0**52, 0x4330000000000000
ROUND = 1.5 * 2.0**52  # adding it rounds to a whole number, whose bits are the lowest ones
LOG_2, LOG_2_REST = 0.6931471803691238, 1.9082149292705877e-10  # the first has 32 zeros at its end
PER_LOG_2 = 1.4426950408889634


def _cast(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.bitcast(args[0], context.get_value_type(signature.return_type))


def _bits(context: Any, number: Any) -> Any:
    """Return the bits of a number."""
    return types.int64(types.float64), _cast


def _number(context: Any, bits: Any) -> Any:
    """Return the number that has some bits."""
    return types.float64(types.int64), _cast


bits_of: Any = intrinsic(_bits)
number_of: Any = intrinsic(_number)


@inner
def log_of(x):
    """Return log x as a sum of two numbers."""
    bits = bits_of(x)
    above = bits - ROOT_HALF + (np.int64(1024) << MANTISSA)
    exponent = above >> MANTISSA  # 1024 more than e
    f = number_of(bits - ((exponent - 1024) << MANTISSA))
    e = number_of(exponent | SHIFT_BITS) - (SHIFT + 1024)
    s = (f - 1) / (f + 1)
    z = s * s
    p = 1 / 21.0
    p = p * z + 1 / 19.0
    p = p * z + 1 / 17.0
    p = p * z + 1 / 15.0
    p = p * z + 1 / 13.0
    p = p * z + 1 / 11.0
    p = p * z + 1 / 9.0
    p = p * z + 1 / 7.0
    p = p * z + 1 / 5.0
    p = p * z + 1 / 3.0
    rest = 2 * (s * (z * p))
    d = f - 1
    half = s * d  # 2 s = d - s d, where d is exact
    near = (rest - half) + e * LOG_2_REST
    far = e * LOG_2
    first = far + d
    second = (d - (first - far)) if abs(far) >= abs(d) else (far - (first - d))
    total = first + (second + near)
    return total, (first - total) + (second + near)


@inner
def exp_of(y, rest):
    """Return exp(y + rest)."""
    shifted = y * PER_LOG_2 + ROUND
    k = shifted - ROUND
    r = ((y - k * LOG_2) - k * LOG_2_REST) + rest
    q = 1 / 6227020800.0
    q = q * r + 1 / 479001600.0
    q = q * r + 1 / 39916800.0
    q = q * r + 1 / 3628800.0
    q = q * r + 1 / 362880.0
    q = q * r + 1 / 40320.0
    q = q * r + 1 / 5040.0
    q = q * r + 1 / 720.0
    q = q * r + 1 / 120.0
    q = q * r + 1 / 24.0
    q = q * r + 1 / 6.0
    q = q * r + 0.5
    near = 1 + (r + r * r * q)
    return number_of(bits_of(near) + (bits_of(shifted) << MANTISSA))


@inner
def product_of(c, total, rest):
    """Return c (total + rest) as a sum of two numbers."""
    y = c * total
    upper, large = number_of(bits_of(c) & UPPER), number_of(bits_of(total) & UPPER)
    lower, small = c - upper, total - large
    missing = ((upper * large - y) + upper * small + lower * large) + lower * small
    return y, missing + c * rest


@inner
def is_strange(x, c):
    """Tell whether x or x^c is no normal number, or nearly so."""
    if x < SMALLEST:
        return True
    return abs(c * log_of(x)[0]) > WIDEST


@inner
def raise_run(x, c, out):
    """Write x^c. Returns whether none is strange."""
    strange = 0
    for k in range(len(out)):
        value = x[ix(k)]
        total, rest = log_of(value)
        y, y_rest = product_of(c[ix(k)], total, rest)
        strange += (value < SMALLEST) | (abs(y) > WIDEST)
        out[ix(k)] = exp_of(y, y_rest)
    return strange == 0
