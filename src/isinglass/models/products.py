"""Products of a real matrix, dense or sparse, with real or complex tables.

A complex array is two real ones side by side, so A (u + i v) is the product of A with those: the matrix is never
converted, and a complex step (Hessian-vector products) costs two real products.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = Any
"""A float64 array (m, n), or a scipy.sparse CSR or CSC array of that shape."""


def times(matrix: Matrix, array: NDArray[Any]) -> NDArray[Any]:
    """Multiply a real matrix (m, n) with an array (n, ...), giving (m, ...).

    Examples
    --------
    >>> times(np.array([[1.0, 2.0]]), np.array([3.0, 1j])).tolist()
    [(3+2j)]
    """
    tail = array.shape[1:]
    flat = np.ascontiguousarray(array).reshape(array.shape[0], prod(tail))
    if flat.dtype.kind != "c":
        return np.asarray(matrix @ flat).reshape(matrix.shape[0], *tail)
    halves = np.ascontiguousarray(matrix @ flat.astype(np.complex128, copy=False).view(np.float64))
    return halves.view(np.complex128).reshape(matrix.shape[0], *tail)
