"""The system of a convex free energy by preconditioned conjugate gradients, if a factorisation would be too large.

The matrix K is positive definite for positive weights, and with entropies A to C on grids a few dozen iterations solve
it (Hestenes and Stiefel 1952). Preconditioners:

- *iterative*: an incomplete Cholesky factorisation without fill, with a diagonal shift if it breaks down. Unknowns are
  in the order of their diagonal entries, the smallest first. If beliefs differ by many orders of magnitude, this takes
  a sixth of the iterations of the given order (57 instead of 351 on 60 x 60 with beliefs down to 1e-23).
- *multigrid*: smoothed aggregation (Vanek, Mandel and Brezina 1996) by PyAMG. The near-nullspace vector that
  aggregation must preserve is not known, because the signs of the unknowns depend on which states they represent. Ten
  Gauss-Seidel sweeps on K x = 0, starting from ones, give an approximation.

If K is positive definite, p'Kp is positive for all directions p. If the weights do not guarantee this, a system with a
random right-hand side is solved as a test: it has a component in every eigenvector, so a negative eigenvalue is found.

A complex system (K + iM)(x + iy) = a + ic, from complex-step derivatives, is solved by iterative refinement with its
real part. Real and imaginary parts each converge relative to their own size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from isinglass.errors import MissingDependencyError
from isinglass.inference.free_energy.linear.system import Pattern
from isinglass.runtime.blas import one_blas_thread
from isinglass.typing import Array, DType, FloatArray

Precondition = Callable[[FloatArray], FloatArray]

ACCURACY = 1e-12  # of a solution: the residual, relative to the right-hand side, in the norm of the preconditioner
TRIAL = 1e-8  # of the system that tells whether the matrix is positive definite
MOST = 2000  # iterations
REFINEMENTS = 4
SHIFTS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0, 10.0)


class IterativeFactor:
    """A matrix with a preconditioner in the place of a factor.

    Parameters
    ----------
    pattern : Pattern
        With `preconditioner` "iterative" or "multigrid".
    dtype : dtype
        Of the matrix.
    sure : bool
        Whether it is known to be positive definite.
    """

    def __init__(self, pattern: Pattern, dtype: DType, sure: bool) -> None:
        from scipy.sparse import csr_matrix

        self.first, self.columns = pattern.sparse
        self.multigrid, self.sure = pattern.preconditioner == "multigrid", sure
        n = len(pattern.order)
        self.rows = rows = np.repeat(np.arange(n), np.diff(self.first))
        off = np.flatnonzero(rows != self.columns)
        places = np.concatenate([np.arange(len(rows)), off]) + 1.0
        both = (np.concatenate([rows, self.columns[off]]), np.concatenate([self.columns, rows[off]]))
        matrix = csr_matrix((places, both), (n, n))
        matrix.sort_indices()
        self.places = matrix.data.astype(np.int64) - 1
        self.matrix = csr_matrix((np.zeros(len(places), dtype), matrix.indices, matrix.indptr), (n, n))
        self.diagonal, self.iterations = np.zeros(n), 0
        self.precondition: Precondition = lambda r: r

    @one_blas_thread()
    def factorise(self, values: Array) -> bool:
        """Set up the preconditioner; tell whether the matrix is positive definite."""
        self.diagonal = values[self.first[1:] - 1].real.copy()
        if not (np.isfinite(values).all() and (self.diagonal > 0).all()):
            return False
        self.matrix.data[:] = values[self.places]
        self.real = self.matrix if values.dtype.kind == "f" else self.matrix.real.tocsr()
        try:
            self.precondition = self._multigrid() if self.multigrid else self._incomplete(values.real.copy())
        except np.linalg.LinAlgError:  # the coarsest matrix has no Cholesky factor
            return False
        if self.sure:
            return True
        right = np.random.default_rng(0).normal(size=len(self.diagonal)) * np.sqrt(self.diagonal)
        return self._conjugate_gradients(right, TRIAL)[1] <= TRIAL

    @one_blas_thread()
    def solve(self, right: Array) -> float:
        """Solve in place; return the relative residual.

        The solve is repeated for the true residual, because recurrences drift away from it.
        """
        x, largest, left, given_up = np.zeros_like(right), np.zeros(2), 0.0, False
        for turn in range(REFINEMENTS + 1):
            rest = right - self.matrix @ x
            parts = (rest,) if right.dtype.kind == "f" else (rest.real.copy(), rest.imag.copy())
            sizes = [self._size(part) for part in parts]
            largest[: len(parts)] = np.maximum(largest[: len(parts)], sizes)
            shares = [size / most if most > 0 else size for size, most in zip(sizes, largest, strict=False)]
            left = float(np.max(shares))
            if given_up or turn == REFINEMENTS or not left > ACCURACY:
                break
            for part, share, unit in zip(parts, shares, (1, 1j), strict=False):
                if share > ACCURACY:
                    more, found = self._conjugate_gradients(part, ACCURACY / 10 / share)
                    if not np.isfinite(found):
                        return np.inf
                    x += unit * more
                    given_up |= found > ACCURACY / share
        right[:] = x
        return left

    def _size(self, r: FloatArray) -> float:
        """Return the norm by the preconditioner; nan if that is not positive definite."""
        square = float(r @ self.precondition(r))
        return float(np.sqrt(square)) if square >= 0 else np.nan

    def _conjugate_gradients(self, right: FloatArray, accuracy: float) -> tuple[FloatArray, float]:
        """Return x and the relative residual; inf if a direction shows that the matrix is not positive definite."""
        x, r = np.zeros_like(right), right.copy()
        z = self.precondition(r)
        p, rz = z.copy(), float(r @ z)
        begin = rz
        for _ in range(MOST):
            if not rz > accuracy**2 * begin:
                break
            self.iterations += 1
            product = self.real @ p
            curvature = float(p @ product)
            if not curvature > 0:
                return x, np.inf
            x += (rz / curvature) * p
            r -= (rz / curvature) * product
            z = self.precondition(r)
            rz, before = float(r @ z), rz
            p *= rz / before
            p += z
        if rz < 0 or begin <= 0:
            return x, np.inf if rz < 0 or begin < 0 else 0.0
        return x, float(np.sqrt(rz / begin))

    def _incomplete(self, values: FloatArray) -> Precondition:
        """Factorise incompletely, in the order of the diagonal, with the smallest shift that allows it."""
        from scipy.sparse import csr_matrix

        from isinglass.kernels.numba.free_energy.incomplete import apply_incomplete, incomplete

        order, n = np.argsort(self.diagonal, kind="stable"), len(self.diagonal)
        rank = np.empty(n, np.int64)
        rank[order] = np.arange(n)
        one, two = rank[self.rows], rank[self.columns]
        matrix = csr_matrix((values, (np.maximum(one, two), np.minimum(one, two))), (n, n))
        matrix.sort_indices()
        lower = np.zeros(len(values))
        if not any(incomplete(matrix.indptr, matrix.indices, matrix.data, shift, lower) for shift in SHIFTS):
            return lambda r: r / self.diagonal

        def apply(r: FloatArray) -> FloatArray:
            ranked, out = np.empty(n), np.empty(n)
            apply_incomplete(matrix.indptr, matrix.indices, lower, r[order], ranked)
            out[order] = ranked
            return out

        return apply

    def _multigrid(self) -> Precondition:
        """Aggregate the matrix with a diagonal of ones; no step of it is random."""
        from scipy.sparse import csr_matrix

        amg, scale = require_multigrid(), 1 / np.sqrt(self.diagonal)
        sweeps = ("gauss_seidel", {"sweep": "symmetric", "iterations": 10})
        rows = np.repeat(scale, np.diff(self.real.indptr))
        scaled = csr_matrix((self.real.data * rows * scale[self.real.indices], self.real.indices, self.real.indptr))
        hierarchy = amg.smoothed_aggregation_solver(
            scaled, B=np.ones((len(scale), 1)), smooth=("jacobi", {"omega": 4 / 3, "weighting": "local"}),
            improve_candidates=[sweeps, None], max_coarse=50, coarse_solver="cholesky",
        )  # fmt: skip
        cycle = hierarchy.aspreconditioner()
        cycle @ scale  # which factorises the coarsest matrix, or fails
        return lambda r: scale * (cycle @ (scale * r))


def require_multigrid() -> Any:
    """Return PyAMG, or say how to get it."""
    try:
        import pyamg
    except ImportError as error:
        raise MissingDependencyError(
            "system='multigrid' needs PyAMG: pip install isinglass[amg], or use 'iterative'"
        ) from error
    return pyamg
