"""Random numbers by counting: number n of a stream is a function of the stream's key and of n alone.

    z = key + n g (mod 2^64),   mixed by two multiplications (SplitMix64: Steele, Lea and Flood 2014)

So no generator has a state. Numbers can be computed in any order, by any number of threads, and several at once.
"""

from __future__ import annotations

import numpy as np

from isinglass.runtime.compilation.jit import inner

STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _12 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(12)
_ONE = np.uint64(0x3FF0000000000000)  # the bits of 1.0
_LOW = 1.0 - 2.0**-53


@inner
def uniform_of(z):
    """Return a number between 0 and 1, both excluded, for ``z = key + STEP * n``: a multiple of 2^-52, plus 2^-53."""
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    z = z ^ (z >> _31)
    return np.uint64((z >> _12) | _ONE).view(np.float64) - _LOW


@inner
def uniform(key, n):
    """Return number n (unsigned) of a stream, between 0 and 1, both excluded."""
    return uniform_of(key + STEP * n)
