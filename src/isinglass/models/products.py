"""Products of a real matrix, dense or sparse, with real or complex tables.

A complex array is two real ones side by side, so A (u + i v) is the product of A with those: the matrix is never
converted, and a complex step (Hessian-vector products) costs two real products.

A row of the product has the same bits whatever other rows there are: SciPy multiplies sparse matrices row by row, and
dense ones are multiplied by loops of our own (`isinglass.kernels.numba.arithmetic.products`), not by a BLAS.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from isinglass.typing import Array, FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Matrix: TypeAlias = "FloatArray | csr_array"
"""A float64 array (m, n), or a scipy.sparse CSR or CSC array of that shape."""
Features: TypeAlias = "ArrayLike | csr_array"
"""What the caller gives for a matrix."""


def times(matrix: Matrix, array: Array) -> Array:
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


def _product(matrix: Matrix, flat: Array) -> Array:
    """Multiply real matrices."""
    if not isinstance(matrix, np.ndarray):
        return np.ascontiguousarray(matrix @ flat)
    right = np.require(flat, np.float64, ("C", "W"))  # as the loops were compiled for
    if matrix.flags.f_contiguous and not matrix.flags.c_contiguous:
        return _transposed(matrix.T, right)
    return _by_rows(np.ascontiguousarray(matrix), right)


def _by_rows(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return left · right. The loop takes columns two by two."""
    from isinglass.kernels.numba.arithmetic.products import rows_times

    columns = right.shape[1]
    if columns % 2:
        right = np.concatenate([right, np.zeros((len(right), 1))], axis=1)
    out = np.empty((len(left), right.shape[1]))
    rows_times(left, right, out)
    return np.ascontiguousarray(out[:, :columns])


def _transposed(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return leftᵀ · right. The inner loop runs over the longer rows."""
    from isinglass.kernels.numba.arithmetic.products import transposed_times

    if left.shape[1] > right.shape[1]:
        return np.ascontiguousarray(_transposed(right, left).T)
    total = np.zeros((left.shape[1], right.shape[1]))
    transposed_times(left, right, np.empty_like(total), total)
    return total
