"""Gaussian Markov random fields, fitted to samples: a graph, and a distribution in information form.

With the covariance S of N samples of p variables, and a precision matrix K,

    log-likelihood  N/2 ( log det K - tr(S K) - p log 2 pi ),
    deviance        N ( tr(S K) - log det (S K) - p ),      against the model of all edges.

Under the model and for many samples, the deviance has a chi-squared distribution; its degrees of freedom are the number
of missing edges (Lauritzen 1996, section 5.2.2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csc_array, csr_array

from isinglass.errors import InputError
from isinglass.estimators.columns import columns_of, require_columns
from isinglass.estimators.estimator import Estimator
from isinglass.estimators.persistence import Saved, register
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.semantics.directed import parents_of
from isinglass.inference.gaussian import GaussianField
from isinglass.learning.gaussian.covariance_graph import covariance_graph
from isinglass.learning.gaussian.directed import regressions
from isinglass.learning.gaussian.moments import Moments, joined
from isinglass.learning.gaussian.selection import Fitted, closed_form, covariance_selection, graphical_lasso
from isinglass.learning.training.checks import example_weights, positive_weights
from isinglass.registry import Registry
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import RandomState, number, positive, whole_number

GAUSSIAN_METHODS: Registry[str] = Registry("method")
for _name, _line in {
    "ipf": "covariance selection: iterative proportional fitting on the cliques of the graph",
    "closed-form": "the same in one step, on chordal graphs",
    "lasso": "the graphical lasso, which finds the graph",
    "covariance": "a covariance graph: what is not joined is independent",
    "directed": "a regression of each variable on its parents; `graph` is directed",
}.items():
    GAUSSIAN_METHODS.register(_name)(_line)


@register
@dataclass(eq=False, repr=False)
class GaussianMRF(Estimator):
    """A Gaussian Markov random field.

    Parameters
    ----------
    graph : FactorGraph, pairs of variables or None, default=None
        The edges; by default all pairs. For method="directed" the parents of each variable. The numbers of states of a
        graph are ignored.
    method : str, default="ipf"
        "ipf": maximum likelihood by iterative proportional fitting. "closed-form": the same on chordal graphs, in one
        step. "lasso": the graphical lasso of scikit-learn, which also finds the graph. "covariance": a covariance
        graph, in which variables without an edge are marginally independent. "directed": a regression of each variable
        on its parents.
    alpha : float, default=0.01
        The penalty of "lasso", in the units of the covariance.
    tol : float, optional
        The maximal difference between the correlations of samples and model on edges: 1e-8, or 1e-4 for "lasso".
    max_iter : int, default=1000
        The maximal number of sweeps.

    Attributes
    ----------
    field_ : GaussianField
        The distribution.
    precision_ : sparse array (variables, variables)
    mean_ : array (variables,)
    edges_ : int array (edges, 2)
        Of the graph; parents and children for "directed".
    feature_names_in_ : list of str or None
        The columns of `X`, if it was a data frame. Later frames must have the same ones, in the same order.

    Examples
    --------
    >>> import isinglass as ig
    >>> truth = ig.GaussianField([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]])
    >>> X = truth.sample(2000, random_state=0)
    >>> chain = ig.GaussianMRF([(0, 1), (1, 2)]).fit(X)
    >>> chain.degrees_of_freedom(), chain.deviance() < 4
    (1, True)
    >>> chain.condition({1: 1.0}).mean.round(1)
    array([0.5, 0.5])
    """

    schema: ClassVar[str] = "gaussian-mrf"
    _as_arrays: ClassVar[tuple[str, ...]] = ("graph",)

    graph: FactorGraph | ArrayLike | None = None
    method: str = "ipf"
    alpha: float = 0.01
    tol: float | None = None  # type: ignore[assignment]
    max_iter: int = 1000

    def fit(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        covariance: Any = None,
        n_samples: float | None = None,
        mean: Any = None,
    ) -> Self:
        """Learn mean and precision.

        Parameters
        ----------
        X : array (samples, variables), or data frame
            Complete samples of real numbers.
        y : None
            Ignored; for scikit-learn.
        sample_weight : array (samples,), optional
            The weight of each sample.
        covariance : array (variables, variables), optional
            Instead of X: the covariance of the samples, divided by their number.
        n_samples : float, optional
            The number of samples behind `covariance`.
        mean : array (variables,), optional
            The mean of the samples behind `covariance`; zero by default.

        Returns
        -------
        self
        """
        self._check()
        moments = self._read(X, sample_weight, covariance, n_samples, mean)
        edges, found, centre = self._fitted(moments)
        self.edges_, self.history_, self.feature_names_in_ = edges, [], columns_of(X)
        self._moments_: Moments | None = moments
        self._set(GaussianField(found.precision, mean=centre))
        self.n_iter_, self.converged_ = found.iterations, found.converged
        self.message_ = f"largest residual {found.residual:.1e}"
        self.objective_ = -self._log_likelihood(moments)
        return self

    def sample(self, n: int, random_state: RandomState = None) -> FloatArray:
        """Draw samples (n, variables)."""
        self._require_fitted()
        return self.field_.sample(n, random_state)

    def score_samples(self, X: Any) -> FloatArray:
        """Return the log-density of each sample."""
        self._require_fitted()
        require_columns(X, self.feature_names_in_)
        return self.field_.log_density(X)

    def log_likelihood(self, X: Any = None, sample_weight: Any = None) -> float:
        """Return the log-likelihood, summed; of the samples of the last `fit` by default."""
        if X is None:
            return self._log_likelihood(self._data())
        each = self.score_samples(X)
        weights = np.ones(len(each)) if sample_weight is None else example_weights(sample_weight, len(each))
        return float(weights @ each)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log-density of a sample."""
        if not len(X):
            raise InputError("X", "at least one sample", "none")
        weights = np.ones(len(X)) if sample_weight is None else positive_weights(sample_weight, len(X))
        return self.log_likelihood(X, weights) / float(weights.sum())

    def variances(self) -> FloatArray:
        """Return the marginal variance of each variable."""
        self._require_fitted()
        return self.field_.variances()

    def partial_correlations(self) -> csr_array:
        """Return the partial correlations of all pairs that are joined; see `GaussianField.partial_correlations`."""
        self._require_fitted()
        return self.field_.partial_correlations()

    def marginal(self, variables: Sequence[int] | int) -> GaussianField:
        """Return the distribution of some variables."""
        self._require_fitted()
        return self.field_.marginal(variables)

    def condition(self, given: Mapping[int, float]) -> GaussianField:
        """Return the distribution of all other variables, given the values of some."""
        self._require_fitted()
        return self.field_.condition(given)

    def impute(self, X: Any) -> FloatArray:
        """Return samples with each NaN replaced by its expectation, given the rest of the sample."""
        self._require_fitted()
        require_columns(X, self.feature_names_in_)
        return self.field_.impute(X)

    def deviance(self) -> float:
        """Return twice the log-likelihood of the model of all edges less that of this one, for the last `fit`."""
        moments = self._data()
        values = np.linalg.eigvalsh(moments.correlation)
        if values[0] <= moments.n_variables * np.finfo(float).eps * values[-1]:
            got = f"{moments.count:g} samples of {moments.n_variables} variables with a singular covariance"
            raise InputError("X", "samples that determine the model of all edges, for a deviance", got)
        log_det = float(np.log(values).sum() + np.log(np.diag(moments.covariance)).sum())
        trace = float((self.field_.precision * moments.covariance).sum())
        return moments.count * (trace - log_det - self.field_.log_determinant - moments.n_variables)

    def degrees_of_freedom(self) -> int:
        """Return how many edges the graph lacks."""
        self._require_fitted()
        n = self.field_.n_variables
        return n * (n - 1) // 2 - len(self.edges_)

    def free_parameters(self) -> int:
        """Return the number of means, variances and edges."""
        self._require_fitted()
        return 2 * self.field_.n_variables + len(self.edges_)

    def aic(self) -> float:
        """Return Akaike's criterion for the samples of the last `fit`."""
        return -2 * self.log_likelihood() + 2 * self.free_parameters()

    def bic(self) -> float:
        """Return the Bayesian criterion of Schwarz for the samples of the last `fit`."""
        return -2 * self.log_likelihood() + self.free_parameters() * math.log(self._data().count)

    def _check(self) -> None:
        GAUSSIAN_METHODS[self.method]
        positive(self._tolerance(), "tol")
        whole_number(self.max_iter, "max_iter", 1)
        number(self.alpha, "alpha", 0, math.inf)
        if self.method != "lasso" and self.alpha != type(self).alpha:
            expected = f"the default for method={self.method!r}, which has no penalty"
            raise InputError("alpha", expected, f"{self.alpha!r:.40}", "leave it out, or use method='lasso'")
        if self.method == "lasso" and self.graph is not None:
            raise InputError("graph", "None for method='lasso', which finds the graph", type(self.graph).__name__)

    def _tolerance(self) -> float:
        default = 1e-4 if self.method == "lasso" else 1e-8
        return default if self.tol is None else self.tol

    def _read(self, X: Any, sample_weight: Any, covariance: Any, n_samples: Any, mean: Any) -> Moments:
        if covariance is None:
            for name, value in (("n_samples", n_samples), ("mean", mean)):
                if value is not None:
                    raise InputError(name, "None if no covariance is given", f"{value!r:.40}", "leave it out")
            if X is None:
                raise InputError("X", "samples, or covariance=", "nothing")
            return Moments.of(X, sample_weight)
        if X is not None or sample_weight is not None:
            raise InputError("X", "None if a covariance is given", "samples or weights", "leave one of them out")
        return Moments.given(covariance, n_samples, mean)

    def _fitted(self, moments: Moments) -> tuple[IntArray, Fitted, FloatArray]:
        """Return the edges, the precision matrix and the mean."""
        S, tol = moments.covariance, self._tolerance()
        if self.method == "directed":
            if self.graph is None:
                raise InputError("graph", "the parents of each variable, for method='directed'", "None")
            arcs = [(p, t) for t, before in enumerate(parents_of(self.graph)) for p in before]
            field = regressions(S, moments.mean, self.graph).field()
            return _pairs(arcs), Fitted(field.precision, 1, 0.0, True), moments.mean
        if self.method == "lasso":
            found = graphical_lasso(S, self.alpha, tol, self.max_iter)
            return np.argwhere(np.triu(found.precision, 1) != 0), found, moments.mean
        graph = joined(self.graph, moments.n_variables)
        edges = _pairs([s for s in graph.scopes if len(s) == 2])
        if self.method == "closed-form":
            return edges, closed_form(S, graph, tol), moments.mean
        fit = covariance_selection if self.method == "ipf" else covariance_graph
        return edges, fit(S, graph, tol, self.max_iter), moments.mean

    def _set(self, field: GaussianField) -> None:
        self.field_, self.precision_, self.mean_ = field, field.precision, field.mean
        self.theta_ = np.concatenate([field.mean, _upper(field.precision).data])

    def _data(self) -> Moments:
        self._require_fitted()
        if self._moments_ is None:
            raise InputError("X", "samples", "none", "an estimator from a file does not hold those of its fit")
        return self._moments_

    def _log_likelihood(self, moments: Moments) -> float:
        field = self.field_
        far = moments.mean - field.mean
        trace = float((field.precision * moments.covariance).sum()) + float(far @ (field.precision @ far))
        return moments.count / 2 * (field.log_determinant - trace - field.n_variables * math.log(2 * math.pi))

    def _contents(self) -> tuple[dict[str, Any], Mapping[str, ArrayLike]]:
        upper = _upper(self.precision_).tocoo()
        arrays: dict[str, ArrayLike] = {"edges": self.edges_, "rows": upper.row.astype(np.int64)}
        arrays["columns"] = upper.col.astype(np.int64)
        facts = {"variables": len(self.mean_), "given": self.graph is not None}
        return {**facts, "feature_names": self.feature_names_in_}, arrays

    @classmethod
    def _from_arrays(cls, saved: Saved) -> dict[str, Any]:
        n, edges = saved.entry("variables", int), saved.array("edges", "i", (-1, 2))
        saved.require(((edges >= 0) & (edges < n)).all(), f"edges of {n} variables", "others")
        if not saved.entry("given", bool):
            return {"graph": None}
        if saved.entry("parameters", dict).get("method") != "directed":
            return {"graph": edges}
        return {"graph": [edges[edges[:, 1] == t, 0].tolist() for t in range(n)]}

    def _restore(self, saved: Saved) -> None:
        n = saved.entry("variables", int)
        rows, columns = (saved.array(name, "i", (-1,)) for name in ("rows", "columns"))
        fits = len(rows) == len(columns) == len(self.theta_) - n and n > 0
        fits = fits and bool(((rows >= 0) & (rows <= columns) & (columns < n)).all())
        saved.require(fits, "a precision matrix", "something else")
        upper = csc_array((self.theta_[n:], (rows, columns)), shape=(n, n))
        try:
            field = GaussianField(upper + upper.T - csc_array(np.diag(upper.diagonal())), mean=self.theta_[:n])
        except InputError as error:
            raise saved.error("a positive definite precision matrix", f"{error!s:.100}") from None
        self.edges_, self._moments_ = saved.array("edges", "i", (-1, 2)), None
        self._set(field)
        known = self.feature_names_in_ = saved.optional("feature_names", list)
        fits = known is None or (len(known) == n and all(type(name) is str for name in known))
        saved.require(fits, "a name for each variable", f"{known!a:.60}")


def _pairs(edges: Sequence[Sequence[int]]) -> IntArray:
    return np.array(edges, np.int64).reshape(-1, 2)


def _upper(matrix: csc_array) -> csc_array:
    from scipy.sparse import triu

    found = csc_array(triu(matrix, format="csc"))
    found.sort_indices()
    return found
