"""Statistics of a fitted Markov random field: goodness of fit, degrees of freedom, and standard errors.

With counts n(x) of N samples and the model's probabilities p(x), over all cells x that are possible,

    deviance   G2 = 2 sum_x n(x) log( n(x) / (N p(x)) )
    Pearson    X2 = sum_x (n(x) - N p(x))² / (N p(x)) = sum_x n(x)² / (N p(x)) - N

Under the model and for many samples, both have a chi-squared distribution with (cells - 1 - free parameters) degrees of
freedom (Agresti 2013, chapter 9).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from isinglass.errors import InputError
from isinglass.estimators.field.problem import is_exact
from isinglass.estimators.field.queries import Queries
from isinglass.estimators.field.summary import Row, Summary
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.semantics.junction_tree import junction_tree
from isinglass.inference import Exact, infer
from isinglass.learning.markov import Samples, make_method
from isinglass.learning.markov.likelihood.closed_form import is_decomposable
from isinglass.learning.markov.likelihood.tables import maximal_factors
from isinglass.learning.markov.priors import make_prior
from isinglass.learning.markov.priors.bayesian_fitting import BayesianFitting
from isinglass.learning.markov.priors.hyper_dirichlet import HyperDirichlet
from isinglass.learning.markov.statistics.information import Information, contrasts, covariance, rounded, sandwich
from isinglass.learning.markov.statistics.support import Existence
from isinglass.learning.structure.learner import Observations
from isinglass.learning.training.checks import example_weights
from isinglass.models import Model
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray, IntArray, Mask

KINDS = ("fisher", "sandwich")


class FitTest(NamedTuple):
    """A test of a model against a larger one.

    Attributes
    ----------
    g2, x2 : float
        The likelihood ratio and Pearson's statistic.
    df : int
    p_g2, p_x2 : float
        The probability of larger values, if the smaller model is true.
    """

    g2: float
    x2: float
    df: int
    p_g2: float
    p_x2: float

    def __repr__(self) -> str:
        numbers = f"g2={self.g2:.6g}, x2={self.x2:.6g}, df={self.df}, p_g2={self.p_g2:.4g}, p_x2={self.p_x2:.4g}"
        return f"FitTest({numbers})"


class Statistics(Queries):
    """Fit, degrees of freedom and standard errors of a Markov random field."""

    method: Any
    inference: Any
    prior: Any
    tied: bool
    zeros_: tuple[Mask, ...] | None
    impossible_: IntArray | None
    _samples_: Samples | None
    _existence: Existence | None  # of a maximum of the likelihood, where it was asked for

    def _model(self) -> Model:
        raise NotImplementedError

    def deviance(self, X: Any = None, sample_weight: Any = None) -> float:
        """Return G2: twice the difference between the log-likelihoods of the saturated model and of this one.

        Parameters
        ----------
        X : array (samples, variables), optional
            Complete samples; those of the last `fit` by default.
        sample_weight : array (samples,), optional
        """
        samples, scores = self._scored(X, sample_weight)
        share = samples.weights / samples.weights.sum()
        return float(2 * (samples.weights * (np.log(share) - scores)).sum())

    def pearson(self, X: Any = None, sample_weight: Any = None) -> float:
        """Return Pearson's X2; see `deviance` for the parameters."""
        samples, scores = self._scored(X, sample_weight)
        total = samples.weights.sum()
        with np.errstate(divide="ignore", over="ignore"):  # samples that the model forbids, or almost: infinite
            return float((samples.weights**2 / (total * np.exp(scores))).sum() - total)

    def free_parameters(self) -> int:
        """Return how many parameters can be estimated: the rank of the Fisher information."""
        self._require_fitted()
        if self.zeros_ is None and self.impossible_ is None and self.model_.is_table_model:
            return _hierarchical_rank(self.model_.graph)
        return self._information()[1].rank

    def degrees_of_freedom(self) -> int:
        """Return the residual degrees of freedom: possible cells, less one, less free parameters.

        Cells of probability zero do not count: structural zeros, and cells whose estimated probability is zero.
        """
        self._require_fitted()
        return self._cells() - 1 - self.free_parameters()

    def aic(self, X: Any = None, sample_weight: Any = None) -> float:
        """Return Akaike's criterion, -2 log-likelihood + 2 free parameters."""
        self._require_maximum_likelihood("aic")
        samples, scores = self._scored(X, sample_weight)
        return float(-2 * (samples.weights * scores).sum() + 2 * self.free_parameters())

    def bic(self, X: Any = None, sample_weight: Any = None) -> float:
        """Return the Bayesian criterion of Schwarz, -2 log-likelihood + free parameters times log of the samples."""
        self._require_maximum_likelihood("bic")
        samples, scores = self._scored(X, sample_weight)
        total = float(samples.weights.sum())
        return float(-2 * (samples.weights * scores).sum() + self.free_parameters() * math.log(total))

    def goodness_of_fit(self) -> FitTest:
        """Test the model against the saturated one, with the samples of the last `fit`.

        The p-values are valid only with several samples for each cell of the table.

        Examples
        --------
        >>> import isinglass as ig
        >>> table = [[43, 9], [44, 4]]
        >>> independent = ig.MRF(ig.FactorGraph([2, 2], [(0,), (1,)]), method="ipf").fit(counts=table)
        >>> test = independent.goodness_of_fit()
        >>> round(test.g2, 3), test.df, round(test.p_g2, 3)
        (1.825, 1, 0.177)
        """
        self._require_maximum_likelihood("goodness_of_fit")
        return _test(self.deviance(), self.pearson(), self.degrees_of_freedom())

    def compare(self, larger: Statistics) -> FitTest:
        """Test this model against a larger one of the same variables, fitted to the same samples.

        Parameters
        ----------
        larger : MRF
            A model that contains this one: each scope of this graph is a subset of a scope of the larger one.
        """
        self._require_fitted()
        if not isinstance(larger, Statistics):
            raise InputError("larger", "a fitted MRF", type(larger).__name__)
        larger._require_fitted()
        for model in (self, larger):
            model._require_maximum_likelihood("compare")
        _require_nested(self._model().graph, larger._model().graph)
        mine, samples = self.potentials_, self._data(None, None)
        other = larger._data(None, None)
        same = samples.states.shape == other.states.shape and np.array_equal(samples.states, other.states)
        if not same or not np.allclose(samples.weights, other.weights):
            raise InputError("larger", "a model that was fitted to the same samples", "other samples")
        x2 = float(samples.weights.sum()) * _chi_squared(mine, larger.potentials_)
        df = self.degrees_of_freedom() - larger.degrees_of_freedom()
        g2 = self.deviance() - larger.deviance()
        if df < 0 or (df == 0 and g2 < -1e-3):
            got = f"one with {-df} fewer free parameters" if df else "one that fits worse with as many free parameters"
            raise InputError("larger", "a model that contains this one", got)
        return _test(g2, x2, df)

    def posterior(self) -> HyperDirichlet | BayesianFitting:
        """Return the posterior of a model of tables with a Dirichlet prior, given the samples of the last `fit`.

        Returns
        -------
        HyperDirichlet or BayesianFitting
            On chordal graphs with a factor for each maximal clique: exact posterior samples, credible intervals, and
            the log-evidence of the graph. Otherwise samples and credible intervals by Gibbs sampling.

        Examples
        --------
        >>> import isinglass as ig
        >>> chain = ig.FactorGraph([2, 2, 2], [(0, 1), (1, 2)])
        >>> table = [[[5, 1], [2, 2]], [[1, 3], [0, 6]]]
        >>> mrf = ig.MRF(chain, method="closed-form", prior="dirichlet").fit(counts=table)
        >>> mrf.posterior().intervals(0.9)[0, 1][:, 0, 0].round(3)
        array([0.149, 0.469])
        """
        self._require_fitted()
        graph, samples = self._model().graph, self._data(None, None)
        total = 0.0 if self.prior is None else make_prior(self.prior).penalties().virtual
        if not total or not self.model_.is_table_model or self.impossible_ is not None:
            raise InputError("prior", "a Dirichlet prior, on tables without structural zeros", f"{self.prior!r:.40}")
        data = Observations(samples.states, samples.weights, graph.cards)
        if not is_decomposable(graph):
            counts = {a: data.counts(graph.scopes[a]) for a in maximal_factors(graph)}
            return BayesianFitting(self.model_, counts, total)
        return HyperDirichlet(graph, {c: data.counts(c) for c in junction_tree(graph).cliques}, total)

    def standard_errors(self, kind: str = "fisher") -> dict[str, FloatArray]:
        """Return the standard errors of the parameters, by name, in the shapes of `parameters_`.

        NaN marks parameters that are not identifiable. With tables these are most of them, because a constant can be
        moved from one table to another. `summary` has the standard errors of contrasts, which are identifiable.

        Parameters
        ----------
        kind : "fisher" or "sandwich"
            From the Fisher information; or robust, for a model that may be misspecified.
        """
        variance, information = self._variance(kind)
        every = np.eye(self.model_.size)
        found = np.where(information.estimable(every), np.sqrt(np.maximum(np.diag(variance), 0.0)), np.nan)
        return {name: np.asarray(part, np.float64) for name, part in _split(self.model_, found).items()}

    def summary(self, kind: str = "fisher") -> Summary:
        """Return a table of the fit, with estimates, standard errors, z and p values.

        Models of tables are shown in treatment contrasts, with state 0 as the reference: the coefficients of a
        log-linear model. Other models are shown by their parameters.

        Parameters
        ----------
        kind : "fisher" or "sandwich"
        """
        variance, information = self._variance(kind)
        names, functions = self._functions()
        estimable = information.estimable(functions)
        errors = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", functions, variance, functions), 0.0))
        estimates = np.where(estimable, functions @ self.theta_, np.nan)
        found = zip(names, estimates.tolist(), np.where(estimable, errors, np.nan).tolist(), strict=True)
        samples, scores = self._scored(None, None)
        return Summary(
            samples=float(samples.weights.sum()),
            log_likelihood=float((samples.weights * scores).sum()),
            deviance=self.deviance(),
            pearson=self.pearson(),
            degrees_of_freedom=self.degrees_of_freedom(),
            free_parameters=self.free_parameters(),
            aic=self.aic(),
            bic=self.bic(),
            kind=kind,
            rows=tuple(Row.of(*one) for one in found),
        )

    def _functions(self) -> tuple[list[str], FloatArray]:
        """Return what a summary shows: names, and each as a linear function of the parameters."""
        if self.model_.is_table_model:
            found, functions = contrasts(self.model_)
            return [self._configuration(scope, states) for scope, states in found], functions
        return self._parameter_names(), np.eye(self.model_.size)

    def _parameter_names(self) -> list[str]:
        """Return the name of each parameter."""
        return [
            f"{name}{list(place)}" if shape else name
            for name, shape in self.model_.parameters.items()
            for place in np.ndindex(*shape)
        ]

    def _configuration(self, scope: Sequence[int], states: Sequence[int]) -> str:
        """Say which variables are in which states, by names where there are some."""
        names = self.model_.graph.names
        if names is None:
            return " ".join(f"x{i}={k}" for i, k in zip(scope, states, strict=True))
        cards = self.model_.graph.cards
        pairs = (
            (names.variables[i], names.state_names(i, int(cards[i]))[k]) for i, k in zip(scope, states, strict=True)
        )
        return " ".join(f"{name}={state}" for name, state in pairs)

    def _variance(self, kind: str) -> tuple[FloatArray, Information]:
        """Return the covariance of the estimates, up to what cannot be estimated."""
        self._require_fitted()
        if kind not in KINDS:
            raise InputError("kind", " or ".join(map(repr, KINDS)), repr(kind))
        self._require_maximum_likelihood("standard errors")
        samples = self._data(None, None)
        matrix, information = self._information()
        if kind == "fisher":
            return information.inverse / samples.weights.sum(), information
        return sandwich(self.model_, self.theta_, samples, matrix, information.inverse), information

    def _require_maximum_likelihood(self, purpose: str) -> None:
        """Refuse a fit whose statistics have not the distributions of maximum likelihood."""
        self._require_fitted()
        penalties = (getattr(self.optimizer, name, 0) for name in ("l1", "groups"))
        against = {
            "method": not make_method(self.method).facts.likelihood,
            "l2": self.l2,
            "prior": self.prior is not None,
            "optimizer": any(np.any(penalty) for penalty in penalties),
            "inference": not is_exact(self._algorithm(), self.model_.graph),
            "outputs": getattr(self, "_predicts", False),
        }
        for name in (name for name, wrong in against.items() if wrong):
            got, remedy = f"{getattr(self, name, 'a mask')!r:.40}", "fit with method='ml' or 'ipf', without a penalty"
            raise InputError(name, f"maximum likelihood, for {purpose}", got, remedy)

    def _information(self) -> tuple[FloatArray, Information]:
        matrix = covariance(self.model_, self.theta_, self.zeros_)
        return matrix, Information.of(matrix)

    def _never_seen(self) -> str:
        """Name an entry of a table that no sample shows; nothing, if there is none."""
        graph, samples = self._model().graph, self._data(None, None)
        data = Observations(samples.states, samples.weights, graph.cards)
        for scope in sorted(graph.scopes, key=len):
            empty = np.argwhere((data.counts(scope) == 0) & self._possible(scope))
            if len(empty):
                return self._configuration(scope, empty[0].tolist())
        return ""

    def _possible(self, scope: Sequence[int]) -> Mask:
        """Tell which states of a scope some joint state has that is no structural zero."""
        cards = self.model_.graph.cards
        shape = cards[list(scope)].tolist()
        if self.impossible_ is None:
            return np.ones(shape, np.bool_)
        lost = Observations(self.impossible_, np.ones(len(self.impossible_)), cards).counts(scope)
        return np.asarray(lost < math.prod(cards.tolist()) // math.prod(shape))

    def _cells(self) -> int:
        """Count the joint states that are possible."""
        support = [np.where(np.isfinite(tables), 0.0, -np.inf) for tables in self.potentials_.groups]
        if all((tables == 0).all() for tables in support):
            return math.prod(self.model_.graph.cards.tolist())
        flat = Potentials._build(self.potentials_.graph, support, self.potentials_.table_ids, {})
        return rounded(float(infer(flat, Exact()).log_z))

    def _data(self, X: Any, sample_weight: Any) -> Samples:
        """Return complete samples: given ones, or those of the last fit."""
        self._require_fitted()
        if X is None:
            if self._samples_ is None:
                raise InputError("X", "samples", "none", "an estimator from a file does not hold those of its fit")
            samples = self._samples_
        else:
            states = self._encoded(X)
            weights = np.ones(len(states)) if sample_weight is None else example_weights(sample_weight, len(states))
            samples = Samples.of(states, weights)
        if not samples.whole.all():
            remedy = "leave them out; log_likelihood(X) sums over what is missing"
            raise InputError("X", "complete samples", "some with missing values", remedy)
        return samples

    def _scored(self, X: Any, sample_weight: Any) -> tuple[Samples, FloatArray]:
        samples = self._data(X, sample_weight)
        return samples, self._score_states(samples.states)


def _test(g2: float, x2: float, df: int) -> FitTest:
    from scipy.stats import chi2

    if not 0 < df < 2**1000:  # nothing to test, or more degrees of freedom than a float can say
        return FitTest(g2, x2, df, math.nan, math.nan)
    return FitTest(g2, x2, df, float(chi2.sf(g2, df)), float(chi2.sf(x2, df)))


def _chi_squared(small: Potentials, large: Potentials) -> float:
    """Return sum_x (p(x) - q(x))² / q(x) = sum_x p(x)² / q(x) - 1, p of the larger and q of the smaller model.

    The sum is itself a partition function: that of the potentials 2 log p - log q on both graphs.
    """
    n = small.graph.n_variables
    graph = FactorGraph(small.graph.cards, [*large.graph.scopes, *small.graph.scopes])
    support = [np.where(np.isfinite(t), -t, 0.0) for t in small.log_tables]
    both = Potentials(graph, [*(2 * t for t in large.log_tables), *support])
    log_p, log_q = (infer(one, Exact()).log_z for one in (large, small))
    assert graph.n_variables == n
    return math.exp(infer(both, Exact()).log_z - 2 * log_p + log_q) - 1


def _require_nested(small: FactorGraph, large: FactorGraph) -> None:
    if not np.array_equal(small.cards, large.cards):
        raise InputError("larger", "a model of the same variables", "others")
    scopes = [frozenset(s) for s in large.scopes]
    outside = [s for s in small.scopes if not any(frozenset(s) <= other for other in scopes)]
    if outside:
        known = small.names
        scope = outside[0] if known is None else tuple(known.variables[i] for i in outside[0])
        raise InputError("larger", "a model that contains this one", f"no scope that contains {scope}")


def _hierarchical_rank(graph: FactorGraph) -> int:
    """Return the number of free parameters of a hierarchical model: treatment contrasts of all sets inside scopes.

    Examples
    --------
    >>> _hierarchical_rank(FactorGraph([2, 3], [(0, 1)])), _hierarchical_rank(FactorGraph([2, 3], [(0,), (1,)]))
    (5, 3)
    """
    sets: set[tuple[int, ...]] = set()
    for scope in graph.scopes:
        ordered = sorted(scope)
        sets.update(tuple(i for k, i in enumerate(ordered) if mask >> k & 1) for mask in range(1, 2 ** len(ordered)))
    return sum(math.prod(int(graph.cards[i]) - 1 for i in s) for s in sets)


def _split(model: Model, values: FloatArray) -> dict[str, FloatArray]:
    """Return the named parts of a vector that need not be finite."""
    ends = np.cumsum([0, *(math.prod(shape) for shape in model.parameters.values())]).tolist()
    parts = zip(model.parameters.items(), ends[:-1], ends[1:], strict=True)
    return {name: values[a:b].reshape(shape) for (name, shape), a, b in parts}
