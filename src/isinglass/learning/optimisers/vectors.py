"""Inner products that give the same bits for any number of threads.

NumPy adds pairwise, in one fixed order; a threaded BLAS splits a long product by the number of its threads. Long
vectors are done in pieces that stay in a cache.
"""

from __future__ import annotations

import math

import numpy as np

from isinglass.learning.optimisers.state import FloatArray

_PIECE = 2**15


def dot(a: FloatArray, b: FloatArray) -> float:
    """Return aᵀb; what overflows is infinite or NaN.

    Examples
    --------
    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if len(a) <= _PIECE:
            return float(np.sum(a * b))
        return float(np.sum([np.sum(a[i : i + _PIECE] * b[i : i + _PIECE]) for i in range(0, len(a), _PIECE)]))


def norm(a: FloatArray) -> float:
    """Return the Euclidean length."""
    return math.sqrt(dot(a, a))
