"""Inner products that give the same bits for any number of threads.

NumPy adds pairwise, in one fixed order; a threaded BLAS splits a long product by the number of its threads.
"""

from __future__ import annotations

import math

import numpy as np

from isinglass.learning.optimisers.state import FloatArray


def dot(a: FloatArray, b: FloatArray) -> float:
    """Return aᵀb; what overflows is infinite or NaN.

    Examples
    --------
    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.sum(a * b))


def norm(a: FloatArray) -> float:
    """Return the Euclidean length."""
    return math.sqrt(dot(a, a))
