"""The exponential function, written so that a loop over it becomes vector instructions.

    exp(x) = 2^k exp(r),   k = round(x / log 2),   |r| <= log(2) / 2

with the Taylor series of exp(r) up to r^13; the relative error is below 3e-16. `k` is read from the last bits of
x / log 2 + 1.5 * 2^52, and 2^k is put together from its bits.
"""

from __future__ import annotations

import numpy as np

from isinglass.runtime.compilation.jit import inner

LARGEST = 708.0  # the function is right for |x| up to this
_PER_LOG2, _HIGH, _LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
_SHIFT = 1.5 * 2.0**52
_BIAS, _MANTISSA = np.int64(1023), np.int64(52)


@inner
def exponential(x):
    """Return exp(x) for |x| <= LARGEST."""
    shifted = x * _PER_LOG2 + _SHIFT
    k = np.float64(shifted).view(np.int64)
    n = shifted - _SHIFT
    r = (x - n * _HIGH) - n * _LOW
    p = 1.6059043836821613e-10
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return np.int64((k + _BIAS) << _MANTISSA).view(np.float64) * p
