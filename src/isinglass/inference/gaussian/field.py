"""Gaussian Markov random fields in information form (Rue and Held 2005; Murphy 2012, section 19.4.4).

    p(x) = exp( h . x - x' J x / 2 - log Z ),      log Z = ( h . m - log det J + n log 2 pi ) / 2,

J the precision matrix, h = J m the potential and m the mean. J_ij = 0 if, and only if, x_i and x_j are independent
given all others: the graph is the pattern of J. Given x_B the others have the precision J_AA and the potential
h_A - J_AB x_B; the marginal of A has the precision J_AA - J_AB J_BB^-1 J_BA. The partial correlation of i and j given
all others is -J_ij / sqrt(J_ii J_jj).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.inference.gaussian.factor import SparseFactor
from isinglass.runtime.cached_property import cached_property
from isinglass.segments import distinct_rows
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import RandomState, array_of, generator, real_numbers, variables_of, whole_number

if TYPE_CHECKING:
    from scipy.sparse import csc_array, csr_array

ASYMMETRY = 1e-9  # of a precision matrix, against its largest entry: rounding errors of an inverse


class GaussianField:
    """A Gaussian distribution in information form, with a sparse precision matrix.

    Parameters
    ----------
    precision : array or sparse array (n, n)
        Symmetric and positive definite.
    potential : array (n,), optional
        h = J m. By default zero.
    mean : array (n,), optional
        Instead of the potential.
    variables : int array (n,), optional
        The numbers of the variables in the field of which this one is a part; by default 0, 1, ...

    Examples
    --------
    >>> chain = GaussianField([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]], mean=[1.0, 0.0, 0.0])
    >>> chain.variances().round(2)
    array([0.75, 1.  , 0.75])
    >>> chain.condition({1: 2.0}).mean
    array([2., 1.])
    >>> chain.edges().tolist()
    [[0, 1], [1, 2]]
    """

    def __init__(
        self,
        precision: ArrayLike | csc_array,
        potential: ArrayLike | None = None,
        *,
        mean: ArrayLike | None = None,
        variables: ArrayLike | None = None,
    ) -> None:
        self.precision = _symmetric(precision)
        n = self.precision.shape[0]
        self.variables = np.arange(n) if variables is None else _called(variables, n)
        if potential is not None and mean is not None:
            raise InputError("mean", "None if a potential is given", "both", "leave out one of them")
        self.factor = SparseFactor(self.precision)
        centre = None if mean is None else _vector(mean, n, "mean")
        if centre is None:
            self.potential = np.zeros(n) if potential is None else _vector(potential, n, "potential")
            centre = self.factor.solve(self.potential)
        else:
            self.potential = np.asarray(self.precision @ centre, np.float64)
        self.mean: FloatArray = centre

    def __repr__(self) -> str:
        return f"GaussianField({self.n_variables} variables, {len(self.edges())} edges)"

    @property
    def n_variables(self) -> int:
        """The number of variables."""
        return len(self.mean)

    @property
    def log_determinant(self) -> float:
        """Log det J, of the precision matrix."""
        return self.factor.log_determinant

    @property
    def log_z(self) -> float:
        """The logarithm of the partition function."""
        return (float(self.potential @ self.mean) - self.log_determinant + self.n_variables * math.log(2 * math.pi)) / 2

    def edges(self) -> IntArray:
        """Return the edges (m, 2): the pairs of variables with a non-zero entry of the precision matrix."""
        entries = self.precision.tocoo()
        pairs = np.stack([entries.row, entries.col], axis=1)[entries.row < entries.col].astype(np.int64)
        return np.asarray(pairs[np.lexsort(pairs.T[::-1])], np.int64)

    def variances(self) -> FloatArray:
        """Return the marginal variance of each variable, by selected inversion."""
        return self.factor.inverse_diagonal

    def covariances(self) -> csr_array:
        """Return the variances, and the covariances of the edges; other entries are left out.

        The other entries are not zero; use `covariance` for them.
        """
        from scipy.sparse import csr_array

        entries, found = self.precision.tocoo(), self._selected
        values = np.asarray(found[entries.row, entries.col]).ravel()
        return csr_array((values, (entries.row, entries.col)), shape=self.precision.shape)

    @cached_property
    def _selected(self) -> csr_array:
        return self.factor.selected_inverse.tocsr()

    def covariance(self, rows: Sequence[int] | int, columns: Sequence[int] | int | None = None) -> FloatArray:
        """Return the covariances (rows, columns) of some variables, by one solution for each column."""
        one = self._chosen(rows, "rows")
        two = one if columns is None else self._chosen(columns, "columns")
        right = np.zeros((self.n_variables, len(two)))
        right[two, np.arange(len(two))] = 1.0
        return self.factor.solve(right)[one]

    def marginal(self, variables: Sequence[int] | int) -> GaussianField:
        """Return the distribution of some variables."""
        chosen = self._chosen(variables, "variables")
        if not len(chosen):
            raise InputError("variables", "at least one", "none")
        precision = np.linalg.inv(self.covariance(chosen.tolist()))
        return GaussianField((precision + precision.T) / 2, mean=self.mean[chosen], variables=self.variables[chosen])

    def condition(self, given: Mapping[int, float]) -> GaussianField:
        """Return the distribution of all other variables, given the values of some.

        Parameters
        ----------
        given : mapping of int to float
        """
        seen, values = self._given(given)
        rest = np.setdiff1d(np.arange(self.n_variables), seen)
        if not len(rest):
            raise InputError("given", "at least one variable left", "values of all")
        potential = self.potential[rest] - self.precision[rest][:, seen] @ values
        return GaussianField(self.precision[rest][:, rest], potential, variables=self.variables[rest])

    def partial_correlations(self) -> csr_array:
        """Return the partial correlation of each edge given all other variables, with ones on the diagonal."""
        from scipy.sparse import csr_array

        entries, scale = self.precision.tocoo(), np.sqrt(self.precision.diagonal())
        values = -entries.data / (scale[entries.row] * scale[entries.col])
        values[entries.row == entries.col] = 1.0
        return csr_array((values, (entries.row, entries.col)), shape=self.precision.shape)

    def sample(self, n: int, random_state: RandomState = None) -> FloatArray:
        """Draw samples (n, variables)."""
        noise = generator(random_state).standard_normal((whole_number(n, "n", 0), self.n_variables))
        return self.mean + self.factor.coloured(noise)

    def log_density(self, X: ArrayLike) -> FloatArray:
        """Return the log-density of each sample (samples, variables)."""
        far = samples_of(X, self.n_variables) - self.mean
        square = (far * (self.precision @ far.T).T).sum(axis=1)
        return np.asarray((self.log_determinant - self.n_variables * math.log(2 * math.pi) - square) / 2, np.float64)

    def impute(self, X: ArrayLike) -> FloatArray:
        """Return samples with each NaN replaced by its expectation, given the rest of the sample."""
        values = samples_of(X, self.n_variables, missing=True).copy()
        unknown = np.isnan(values)
        some = np.flatnonzero(unknown.any(axis=1))
        first, number = distinct_rows(unknown[some])
        for k, pattern in enumerate(unknown[some[first]]):
            rows = some[number == k]
            out, seen = np.flatnonzero(pattern), np.flatnonzero(~pattern)
            far = (values[np.ix_(rows, seen)] - self.mean[seen]).T
            step = SparseFactor(self.precision[out][:, out]).solve(self.precision[out][:, seen] @ far)
            values[np.ix_(rows, out)] = self.mean[out] - step.T
        return values

    def _chosen(self, variables: Sequence[int] | int, argument: str) -> IntArray:
        listed = [variables] if isinstance(variables, int | np.integer) else variables
        return variables_of(listed, self.n_variables, argument)

    def _given(self, given: Mapping[int, float]) -> tuple[IntArray, FloatArray]:
        if not isinstance(given, Mapping):
            raise InputError("given", "a mapping from variables to values", type(given).__name__, "such as {0: 1.5}")
        seen = variables_of(list(given), self.n_variables, "given")
        return seen, _vector(list(given.values()), len(seen), "given")


def _symmetric(matrix: Any) -> csc_array:
    """Check a precision matrix."""
    from scipy.sparse import csc_array, issparse

    expected = "a square matrix of finite numbers"
    found = (
        csc_array(matrix) if issparse(matrix) else csc_array(np.atleast_2d(real_numbers(matrix, "precision", expected)))
    )
    if found.dtype.kind not in "biuf":
        raise InputError("precision", expected, f"dtype {found.dtype}")
    found = found.astype(np.float64)
    if found.ndim != 2 or found.shape[0] != found.shape[1] or not found.shape[0]:
        raise InputError("precision", expected, f"shape {found.shape}")
    found.sum_duplicates()
    if not np.isfinite(found.data).all():
        raise InputError("precision", expected, f"{found.data[~np.isfinite(found.data)][0]}")
    scale = np.abs(found.data).max(initial=0.0)
    apart = abs(found - found.T)
    if apart.nnz and apart.data.max() > ASYMMETRY * scale:
        raise InputError("precision", "a symmetric matrix", f"entries that differ by {apart.data.max():.3g}")
    found = csc_array((found + found.T) / 2)
    found.eliminate_zeros()
    found.sort_indices()
    return found


def _vector(values: Any, n: int, argument: str) -> FloatArray:
    expected = f"{n} finite numbers"
    found = real_numbers(values, argument, expected)
    if found.shape != (n,) or not np.isfinite(found).all():
        got = f"shape {found.shape}" if found.shape != (n,) else f"{found[~np.isfinite(found)][0]}"
        raise InputError(argument, expected, got)
    return found


def _called(variables: Any, n: int) -> IntArray:
    found = np.asarray(variables)
    if found.shape != (n,):
        raise InputError("variables", f"a name for each of {n} variables", f"shape {found.shape}")
    return np.asarray(found, np.int64)


def samples_of(X: Any, n: int | None, missing: bool = False) -> FloatArray:
    """Check samples (samples, variables) of real numbers."""
    wanted = "" if n is None else f" with {n} variables"
    expected = f"an array (samples, variables) of finite numbers{wanted}"
    filled = np.ma.filled(X.astype(float), np.nan) if missing and isinstance(X, np.ma.MaskedArray) else X
    found = real_numbers(array_of(filled, "X", expected), "X", expected)
    if found.ndim != 2 or (n is not None and found.shape[1] != n):
        raise InputError("X", expected, f"shape {found.shape}")
    fine = np.isfinite(found) | (np.isnan(found) if missing else False)
    if not fine.all():
        row, column = (int(v) for v in np.argwhere(~fine)[0])
        raise InputError("X", expected, f"{found[row, column]} at sample {row}, variable {column}", "leave it out")
    return found
