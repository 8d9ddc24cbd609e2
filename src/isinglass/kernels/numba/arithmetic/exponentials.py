"""The exponential of numbers that are not positive, in plain operations, so that a loop over it becomes vectors.

    exp(x)  =  2^k exp(r),      k = round(x / log 2),   r = x - k log 2,    |r| <= log(2) / 2

exp(r) is its Taylor polynomial of degree 13, whose remainder is below 5e-18; log 2 is in two parts, so that r is exact
to its last bit (Cody and Waite 1980). The result is within 2 units in the last place. Below -708, where it would lose
digits, it is 0; NaN stays NaN.

Adding ROUND, 1.5 · 2^52, rounds to a whole number, whose last bits are then those of k; 2^k is put into the exponent.
"""

from __future__ import annotations

from math import factorial

import numpy as np

from isinglass.runtime.compilation.jit import inner

LEAST = -708.0
PER_LOG2 = 1.4426950408889634
LOG2_HIGH, LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
ROUND = 6755399441055744.0
TAYLOR = tuple(1 / factorial(k) for k in range(13, 1, -1))


@inner
def exp_of_negative(x):
    """Return exp(x) for x <= 0."""
    y = LEAST if x < LEAST else x
    shifted = y * PER_LOG2 + ROUND
    k = shifted - ROUND
    r = (y - k * LOG2_HIGH) - k * LOG2_LOW
    c = TAYLOR
    p = ((((c[0] * r + c[1]) * r + c[2]) * r + c[3]) * r + c[4]) * r + c[5]
    p = (((((p * r + c[6]) * r + c[7]) * r + c[8]) * r + c[9]) * r + c[10]) * r + c[11]
    p = (p * r + 1.0) * r + 1.0
    bits = np.float64(p).view(np.int64) + (np.float64(shifted).view(np.int64) << 52)
    value = np.int64(bits).view(np.float64)
    return 0.0 if x < LEAST else value


@inner
def exp_eight(s):
    """Return the exponentials of eight numbers."""
    return (
        exp_of_negative(s[0]), exp_of_negative(s[1]), exp_of_negative(s[2]), exp_of_negative(s[3]),
        exp_of_negative(s[4]), exp_of_negative(s[5]), exp_of_negative(s[6]), exp_of_negative(s[7]),
    )  # fmt: skip
