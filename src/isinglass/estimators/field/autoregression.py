"""Vector autoregression: a Gaussian chain graph, fitted to time series.

The likelihood, conditional on the first time slices, is maximised alternately: the coefficients by generalised least
squares with the precision of the noise, and the precision by covariance selection on the residuals. If no arrow is
missing, one round is enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError, warn_of_convergence
from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.gaussian import GaussianField
from isinglass.inference.gaussian.field import samples_of
from isinglass.learning.gaussian.autoregression import (
    ChainGraph,
    chain_graph,
    process,
    restricted_least_squares,
    slices,
)
from isinglass.learning.gaussian.moments import joined
from isinglass.learning.gaussian.selection import covariance_selection
from isinglass.runtime.sklearn_base import BaseEstimator, NotFittedError
from isinglass.typing import FloatArray, Mask
from isinglass.validation import RandomState, array_of, positive, whole_number


@dataclass(eq=False, repr=False)
class VectorAutoregression(BaseEstimator):  # type: ignore[misc]
    """A vector autoregression with chosen arrows from the past, and chosen edges inside a time slice.

    Parameters
    ----------
    lags : int, default=1
        The number of past time slices that a slice depends on.
    arrows : bool array (lags, variables, variables), optional
        Entry (k, i, j): whether variable i depends on variable j, k + 1 steps before. By default all do.
    graph : FactorGraph, pairs of variables or None, default=None
        The edges between variables of one slice, given the past; by default all pairs.
    tol : float, default=1e-9
        Fitting ends when the log-likelihood per slice changes by less than this.
    max_iter : int, default=200

    Attributes
    ----------
    coefficients_ : array (lags, variables, variables)
    constant_ : array (variables,)
    noise_ : GaussianField
        Of mean zero.

    Examples
    --------
    >>> import isinglass as ig
    >>> rng, Y = np.random.default_rng(0), np.zeros((3000, 2))
    >>> for t in range(1, 3000):
    ...     Y[t] = [0.5 * Y[t - 1, 0], 0.4 * Y[t - 1, 0] + 0.3 * Y[t - 1, 1]] + rng.normal(size=2)
    >>> model = ig.VectorAutoregression(1, arrows=[[[True, False], [True, True]]], graph=[]).fit(Y)
    >>> model.coefficients_[0].round(1)
    array([[0.5, 0. ],
           [0.4, 0.3]])
    >>> model.chain_graph()
    ChainGraph(arrows=[(1, 0, 0), (1, 0, 1), (1, 1, 1)], edges=[])
    """

    lags: int = 1
    arrows: ArrayLike | None = None
    graph: FactorGraph | ArrayLike | None = None
    tol: float = 1e-9
    max_iter: int = 200

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn coefficients and noise.

        Parameters
        ----------
        X : array (time, variables), or list of such arrays
        y : None
            Ignored; for scikit-learn.

        Returns
        -------
        self
        """
        lags = whole_number(self.lags, "lags", 1)
        tol, most = positive(self.tol, "tol"), whole_number(self.max_iter, "max_iter", 1)
        series = self._series(X, lags)
        Y, Z = slices(series, lags)
        n = Y.shape[1]
        if len(Y) <= Z.shape[1]:
            expected = f"more than {Z.shape[1]} slices that have a past, for {Z.shape[1]} inputs of each variable"
            raise InputError("X", expected, f"{len(Y)}", "lower lags, or give more series")
        free, graph = self._free(lags, n), joined(self.graph, n)
        K, before, turn = np.eye(n), -math.inf, 0
        while turn < most:
            turn += 1
            B = restricted_least_squares(Y, Z, free, K)
            S = self._residuals(Y, Z @ B.T)
            K = covariance_selection(S, graph).precision
            value = (float(np.linalg.slogdet(K)[1]) - float((S * K).sum()) - n * math.log(2 * math.pi)) / 2
            if free.all() or value - before <= tol:
                break
            before = value
        else:
            warn_of_convergence(f"the fit stopped after {most} rounds; raise max_iter or tol", stacklevel=3)
        self.constant_ = B[:, 0]
        self.coefficients_ = np.ascontiguousarray(B[:, 1:].reshape(n, lags, n).transpose(1, 0, 2))
        self.noise_, self.n_iter_, self.log_likelihood_ = GaussianField(K), turn, value * len(Y)
        return self

    def chain_graph(self) -> ChainGraph:
        """Return the arrows and edges of the fitted model."""
        self._require_fitted()
        return chain_graph(self.coefficients_, self.noise_.precision.toarray())

    def field(self, past: Any, steps: int) -> GaussianField:
        """Return the distribution of the next slices, one after the other, given the past.

        Parameters
        ----------
        past : array (time, variables)
            At least `lags` slices, the latest at the end.
        steps : int
        """
        self._require_fitted()
        seen = samples_of(past, len(self.constant_))
        lags = len(self.coefficients_)
        if len(seen) < lags:
            raise InputError("past", f"at least {lags} slices", f"{len(seen)}")
        precision = self.noise_.precision.toarray()
        whole = whole_number(steps, "steps", 1)
        return process(self.coefficients_, self.constant_, precision, seen[-lags:], whole)

    def forecast(self, past: Any, steps: int) -> FloatArray:
        """Return the expectations (steps, variables) of the next slices."""
        return self.field(past, steps).mean.reshape(steps, -1)

    def sample(self, past: Any, steps: int, random_state: RandomState = None) -> FloatArray:
        """Draw the next slices (steps, variables)."""
        return self.field(past, steps).sample(1, random_state).reshape(steps, -1)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-density of a slice, given those before it."""
        self._require_fitted()
        lags, n = len(self.coefficients_), len(self.constant_)
        Y, Z = slices(self._series(X, lags, n), lags)
        B = np.concatenate([self.constant_[:, None], *self.coefficients_], axis=1)
        return float(self.noise_.log_density(Y - Z @ B.T).mean())

    def _require_fitted(self) -> None:
        if not hasattr(self, "noise_"):
            raise NotFittedError("this VectorAutoregression is not fitted yet; call fit first")

    def _series(self, X: Any, lags: int, n: int | None = None) -> Sequence[FloatArray]:
        listed = X if isinstance(X, list | tuple) and X and np.ndim(X[0]) == 2 else [X]
        found = [samples_of(one, n if n is not None else None) for one in listed]
        if len({one.shape[1] for one in found}) > 1 or not found[0].shape[1]:
            raise InputError("X", "time series of the same variables", "others")
        if any(len(one) <= lags for one in found):
            raise InputError("X", f"more than {lags} slices", f"{min(map(len, found))}", "lower lags")
        return found

    def _residuals(self, Y: FloatArray, fitted: FloatArray) -> FloatArray:
        """Return the covariance of the residuals; refuse variables that the past determines."""
        S = (Y - fitted).T @ (Y - fitted) / len(Y)
        exact = np.diag(S) <= 1e-20 * (Y**2).mean(axis=0)
        if exact.any():
            got = f"variable {int(np.argmax(exact))}, which the past determines"
            raise InputError("X", "variables that the others do not determine", got, "leave it out")
        return np.asarray(S, np.float64)

    def _free(self, lags: int, n: int) -> Mask:
        """Return which coefficients (variables, 1 + lags * variables) are free."""
        if self.arrows is None:
            return np.ones((n, 1 + lags * n), np.bool_)
        expected = f"True or False, in shape {(lags, n, n)}"
        given = array_of(self.arrows, "arrows", expected)
        if given.shape != (lags, n, n) or given.dtype.kind != "b":
            raise InputError("arrows", expected, f"dtype {given.dtype} of shape {given.shape}")
        return np.concatenate([np.ones((n, 1), np.bool_), *given], axis=1)
