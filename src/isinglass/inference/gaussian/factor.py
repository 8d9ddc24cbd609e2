"""The sparse factor of a positive definite matrix: A = P' L D L' P, its determinant, solutions and selected inverse.

The order P is that of minimum degree on the pattern of A, by SuperLU (SciPy). The pattern of L is analysed once; L D L'
is then computed by rows (`isinglass.kernels.numba.free_energy.ldl`), and the inverse on the pattern of L from its last
column to its first (`isinglass.kernels.numba.gaussian.selected`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isinglass.errors import InputError
from isinglass.runtime.cached_property import cached_property
from isinglass.segments import starts
from isinglass.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csc_array

REMEDY = "its eigenvalues must be positive: raise its diagonal, or check the signs"


def fill_order(matrix: csc_array) -> IntArray:
    """Return an order of the variables in which a symmetric matrix fills little: minimum degree.

    Examples
    --------
    >>> from scipy.sparse import csc_array
    >>> star = csc_array([[1, 1, 1], [1, 1, 0], [1, 0, 1]])
    >>> int(fill_order(star)[0]) != 0  # the centre is not the first
    True
    """
    from scipy.sparse import csc_array, eye_array
    from scipy.sparse.linalg import splu

    n = matrix.shape[0]
    pattern = csc_array((np.full(matrix.nnz, -1.0), matrix.indices, matrix.indptr), matrix.shape)
    dominant = csc_array(pattern + (n + 2.0) * eye_array(n, format="csc"))
    found = splu(dominant, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    return np.argsort(found.perm_c).astype(np.int64)


class SparseFactor:
    """The factor of a symmetric positive definite matrix.

    Parameters
    ----------
    matrix : csc_array (n, n)
        Symmetric, finite, with sorted indices.
    argument : str
        The name of the matrix in errors.
    """

    def __init__(self, matrix: csc_array, argument: str = "precision") -> None:
        from scipy.sparse import csc_array, triu

        from isinglass.kernels.numba.free_energy.ldl import PIECE, factorise, row_patterns

        n = matrix.shape[0]
        own = matrix.diagonal()
        if (own <= 0).any():
            i = int(np.argmin(own > 0))
            raise InputError(argument, "a positive definite matrix", f"{own[i]:g} on the diagonal at {i}", REMEDY)
        self.size, self.order = n, fill_order(matrix)
        upper = csc_array(triu(matrix[self.order][:, self.order], format="csc"))
        upper.sort_indices()
        first, rows = upper.indptr.astype(np.int64), upper.indices.astype(np.int64)
        bounds, columns = row_patterns(first, rows, n)
        self.starts = starts(np.bincount(columns, minlength=n))
        self.lower, self.where = np.empty(len(columns)), np.empty(len(columns), np.int64)
        self.diagonal = np.empty(n)
        room = (self.lower, self.where, np.empty(n, np.int64), self.diagonal, np.zeros(n))
        k = 0
        while 0 <= k < n:
            k = factorise(first, rows, bounds, columns, self.starts, upper.data, *room, k, PIECE)
        self._require_positive(k, own[self.order], argument)

    def _require_positive(self, k: int, own: FloatArray, argument: str) -> None:
        """Refuse pivots that are not positive, or that are nothing but rounding errors."""
        bad = np.flatnonzero(~(self.diagonal > self.size * np.finfo(float).eps * own))
        if k < 0 or len(bad):
            got = "one that is singular"
            if len(bad) and np.isfinite(self.diagonal[bad[0]]):
                got = f"a conditional precision of {self.diagonal[bad[0]]:.3g} at {self.order[bad[0]]}"
            raise InputError(argument, "a positive definite matrix", got, REMEDY)

    @property
    def log_determinant(self) -> float:
        """The logarithm of the determinant."""
        return float(np.log(self.diagonal).sum())

    def solve(self, right: FloatArray) -> FloatArray:
        """Return A^-1 times a vector (n,), or times the columns of a matrix (n, m)."""
        from isinglass.kernels.numba.free_energy.ldl import substitute

        found = np.array(right, np.float64).T.reshape(-1, self.size)
        room = np.empty(self.size)
        for x in found:
            substitute(self.starts, self.lower, self.where, self.diagonal, self.order, x, room)
        return np.ascontiguousarray(found.T).reshape(np.shape(right))

    def coloured(self, noise: FloatArray) -> FloatArray:
        """Return draws (samples, n) of covariance A^-1 from independent standard normal ones."""
        from isinglass.kernels.numba.gaussian.selected import solve_transposed

        found = np.empty(noise.shape)
        for x, one in zip(found, noise, strict=True):
            y = one / np.sqrt(self.diagonal)
            solve_transposed(self.starts, self.where, self.lower, y)
            x[self.order] = y
        return found

    @cached_property
    def selected_inverse(self) -> csc_array:
        """The inverse on the pattern of L + L': exact there, and not known elsewhere."""
        from scipy.sparse import coo_array

        from isinglass.kernels.numba.free_energy.ldl import PIECE
        from isinglass.kernels.numba.gaussian.selected import invert

        n = self.size
        below, own = np.empty(len(self.lower)), np.empty(n)
        column, total = np.zeros(n), np.empty(n)
        j = n
        while j > 0:
            j = invert(self.starts, self.where, self.lower, self.diagonal, below, own, column, total, j, PIECE)
        rows, columns = self.order[self.where], self.order[np.repeat(np.arange(n), np.diff(self.starts))]
        each = np.concatenate([below, below, own])
        places = np.concatenate([rows, columns, self.order]), np.concatenate([columns, rows, self.order])
        return coo_array((each, places), (n, n)).tocsc()

    @property
    def inverse_diagonal(self) -> FloatArray:
        """The diagonal of the inverse."""
        return np.asarray(self.selected_inverse.diagonal(), np.float64)
