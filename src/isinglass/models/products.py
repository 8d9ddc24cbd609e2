"""Products of a real matrix, dense or sparse, with real or complex tables.

A complex array is two real ones side by side, so A (u + i v) is the product of A with those: the matrix is never
converted, and a complex step (Hessian-vector products) costs two real products.

Long thin products are done in pieces that BLAS libraries do not share out to threads: where other processes are busy,
waiting for the threads takes a hundred times as long as the product.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = Any
"""A float64 array (m, n), or a scipy.sparse CSR or CSC array of that shape."""


SMALL = 2**18  # multiplications that OpenBLAS does in one thread
PIECE = 2**12  # rows of a piece at least


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
        return _product(matrix, flat).reshape(matrix.shape[0], *tail)
    halves = _product(matrix, flat.astype(np.complex128, copy=False).view(np.float64))
    return halves.view(np.complex128).reshape(matrix.shape[0], *tail)


def _product(matrix: Matrix, flat: NDArray[Any]) -> NDArray[Any]:
    """Multiply real matrices, in pieces along the long side if the other two are short."""
    (m, n), columns = matrix.shape, flat.shape[1]
    step = SMALL // max(min(m, n) * columns, 1)
    if not isinstance(matrix, np.ndarray) or step < PIECE or max(m, n) <= step:
        return np.ascontiguousarray(matrix @ flat)
    if m < n:
        pieces = (matrix[:, i : i + step] @ flat[i : i + step] for i in range(0, n, step))
        return np.ascontiguousarray(sum(pieces, np.zeros((m, columns))))
    out = np.empty((m, columns))
    for i in range(0, m, step):
        np.matmul(matrix[i : i + step], flat, out=out[i : i + step])
    return out
