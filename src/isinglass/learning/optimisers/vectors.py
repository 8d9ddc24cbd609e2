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


def add_and_dot(a: FloatArray, factor: float, b: FloatArray, c: FloatArray) -> float:
    """Add factor · b to a, in place, and return aᵀc of the sum: the bits of two steps, in one pass over memory.

    Examples
    --------
    >>> a = np.array([1.0, 2.0])
    >>> add_and_dot(a, 2.0, np.array([1.0, 0.0]), np.array([1.0, 1.0])), a.tolist()
    (5.0, [3.0, 2.0])
    """
    sums = []
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(0, len(a), _PIECE):
            part = a[i : i + _PIECE]
            part += factor * b[i : i + _PIECE]
            sums.append(np.sum(part * c[i : i + _PIECE]))
        return float(sums[0] if len(sums) == 1 else np.sum(sums))


def norm(a: FloatArray) -> float:
    """Return the Euclidean length."""
    return math.sqrt(dot(a, a))
