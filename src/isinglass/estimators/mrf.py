"""Markov random fields: a distribution over the variables of a graph, fitted to samples or counts."""

from __future__ import annotations

import math
import warnings
from typing import Any, Self

import numpy as np

from isinglass.errors import InputError, no_convergence_warnings, warn_of_convergence
from isinglass.gradients import rule
from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference import Algorithm, Exact, infer
from isinglass.inference import sample as draw
from isinglass.inference.algorithm import make as make_algorithm
from isinglass.learning.combinations import require_valid
from isinglass.learning.markov import JOINT_STATES, Copies, MarkovObjective, Samples, TermCounts
from isinglass.learning.optimizers import Optimizer, make_optimizer
from isinglass.learning.optimizers.base import Progress
from isinglass.learning.optimizers.minibatch import MiniBatch
from isinglass.learning.training.checks import example_weights, observed, refuse_spins, renamed
from isinglass.learning.training.loop import warning_of
from isinglass.losses import Likelihood
from isinglass.models import Model, table_model
from isinglass.runtime.sklearn_base import BaseEstimator, NotFittedError
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import flag, integers, number, whole_number

METHODS = ("ml", "pseudo")


class MRF(BaseEstimator):  # type: ignore[misc]
    """A Markov random field.

    Parameters
    ----------
    graph : FactorGraph or Model
        A graph: every entry of every table is a parameter. A model (`isinglass.models`): a log-linear one, with the
        parameters that it has.
    method : "ml" or "pseudo", default="ml"
        Maximum likelihood, with the log Z of `inference` (a surrogate, where that is approximate), or
        pseudolikelihood, which needs no inference. Missing values are summed over, by the pseudolikelihood where the
        sum for a value has at most 256 joint states; other values are left out, with a warning, see `terms_`.
    inference : str or Algorithm, default="exact"
        Also what `log_likelihood` uses.
    iterations : int, optional
        Of the inference: exactly so many. By default until its tolerance.
    gradient : str or GradientRule, default="envelope"
    optimizer : str or Optimizer, default="lbfgs"
    l2 : float, default=0
        Weight of the squared parameters against the *sum* over samples. Without it, what was never seen gets a
        potential that only the tolerance of the optimiser keeps from minus infinity.
    tied : bool, default=False
        For a graph: whether all factors of one shape share a table.
    tol, max_iter
        Of an optimiser that is given by name.
    warm_start : bool
        Begin a further `fit` with the parameters of the last.
    callback : callable, optional
        Called with the progress of each iteration; training ends if it returns True.
    verbose : bool

    Attributes
    ----------
    potentials_ : Potentials
    parameters_ : dict of str to array
    theta_ : array
        All parameters in one vector.
    history_ : list of tuple (value, gradient norm)
    terms_ : TermCounts or None
        For "pseudo": how many values are observed, how many have a term (`given_neighbours` and `summed`), and how many
        are `left_out`.
    n_iter_, converged_, objective_, message_

    Examples
    --------
    >>> import isinglass as ig
    >>> graph = ig.chain_graph(3, 2)
    >>> X = np.array([[0, 0, 0], [1, 1, 1], [0, 0, 1]])
    >>> mrf = MRF(graph, l2=1e-3).fit(X, sample_weight=[4, 4, 2])
    >>> ig.infer(mrf.potentials_).variable(0).round(2)
    array([0.6, 0.4])
    >>> mrf.sample(2, random_state=0).shape
    (2, 3)
    """

    def __init__(
        self,
        graph: Any,
        method: Any = "ml",
        inference: Any = "exact",
        iterations: Any = None,
        gradient: Any = "envelope",
        optimizer: Any = "lbfgs",
        l2: Any = 0.0,
        tied: Any = False,
        tol: Any = 1e-5,
        max_iter: Any = 500,
        warm_start: Any = False,
        callback: Any = None,
        verbose: Any = False,
    ) -> None:
        self.graph = graph
        self.method = method
        self.inference = inference
        self.iterations = iterations
        self.gradient = gradient
        self.optimizer = optimizer
        self.l2 = l2
        self.tied = tied
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the parameters.

        Ctrl-C ends training in order: the best parameters so far are kept, with a warning.

        Parameters
        ----------
        X : int array (samples, variables)
            States; -1, or masked in a masked array, where a value is missing.
        y : None
            Ignored; for scikit-learn.
        sample_weight : array (samples,), optional
            How often each sample counts.

        Returns
        -------
        self
        """
        model = self._model()
        algorithm, optimizer = self._algorithm(), self._optimizer()
        chosen = rule(self.gradient)
        if self._method() == "ml":
            require_valid(Likelihood(), algorithm, chosen)
        samples = self._samples(model, X, sample_weight)
        penalty = number(self.l2, "l2", 0, math.inf)
        objective = MarkovObjective(model, samples, self.method, algorithm, chosen, penalty)
        start = self._start(model)
        self.terms_ = _counted(objective) if self.method == "pseudo" else None
        self.history_: list[tuple[float, float]] = []
        with no_convergence_warnings():
            found = optimizer.minimise(objective, start, callback=self._told)
        self.theta_ = found.x
        self.parameters_ = model.split(found.x)
        self.potentials_ = model.potentials(found.x)
        self.n_iter_, self.converged_, self.objective_ = found.iterations, found.converged, found.value
        self.message_ = found.message
        if (text := warning_of(found, remedy="raise max_iter, tol or l2")) is not None:
            warn_of_convergence(text, stacklevel=2)
        return self

    def score_samples(self, X: Any) -> FloatArray:
        """Return the log-probability of each sample; of what it shows, where values are missing."""
        self._require_fitted()
        model = self._model()
        states = _states(X, model.graph)
        ones = Samples(states, np.ones(len(states)))
        copies, algorithm = Copies(model, ones), self._algorithm()
        log_z = infer(self.potentials_, algorithm).log_z
        clamped = copies.potentials(self.potentials_)
        loss, n = Likelihood(), model.graph.n_components
        if loss.fully_observed(clamped, copies.labels):
            scores = loss.score(clamped, copies.labels)[0]
        else:
            scores = infer(loss.clamp(clamped, copies.labels), algorithm).component_log_z
        return np.asarray(scores.reshape(-1, n).sum(axis=1) - log_z, np.float64)

    def log_likelihood(self, X: Any, sample_weight: Any = None) -> float:
        """Return the log-likelihood of samples, summed; with approximate inference, a surrogate of it."""
        each = self.score_samples(X)
        weights = np.ones(len(each)) if sample_weight is None else example_weights(sample_weight, len(each))
        return float((weights * each).sum())

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log-likelihood of a sample."""
        weights = np.ones(len(X)) if sample_weight is None else example_weights(sample_weight, len(X))
        return self.log_likelihood(X, weights) / float(weights.sum())

    def sample(self, n: int, random_state: Any = None) -> IntArray:
        """Draw exact samples, an int array (n, variables)."""
        self._require_fitted()
        return draw(self.potentials_, n, Exact(), random_state=random_state)

    def _told(self, progress: Progress) -> bool:
        self.history_.append((progress.value, progress.gradient_norm))
        if self.verbose:
            print(f"{progress.iteration:5d}  {progress.value:.8g}  |g| {progress.gradient_norm:.2e}", flush=True)
        return self.callback is not None and bool(self.callback(progress))

    def _model(self) -> Model:
        if isinstance(self.graph, FactorGraph):
            return table_model(self.graph, flag(self.tied, "tied"))
        if not isinstance(self.graph, Model):
            expected = "a FactorGraph, or a Model"
            raise InputError("graph", expected, type(self.graph).__name__, "such as ig.grid_graph(8, 8, 2)")
        return self.graph

    def _method(self) -> str:
        if self.method not in METHODS:
            raise InputError("method", " or ".join(map(repr, METHODS)), repr(self.method))
        return str(self.method)

    def _algorithm(self) -> Algorithm:
        options = {} if self.iterations is None else {"iterations": whole_number(self.iterations, "iterations", 1)}
        with renamed("algorithm", "inference"):
            return make_algorithm(self.inference, options)

    def _optimizer(self) -> Optimizer[Any, Any]:
        steps, tol = whole_number(self.max_iter, "max_iter", 1), number(self.tol, "tol", 0, math.inf)
        if isinstance(self.optimizer, str) and self.optimizer in ("lbfgs", "steepest"):
            return make_optimizer(self.optimizer, max_iter=steps, tol=tol)
        made = make_optimizer(self.optimizer)
        if isinstance(made, MiniBatch):
            remedy = "samples are added up before training, so that it is no slower for many"
            raise InputError("optimizer", "one for whole objectives, such as 'lbfgs'", f"{made.name!r}", remedy)
        return made

    def _samples(self, model: Model, X: Any, sample_weight: Any) -> Samples:
        states = _states(X, model.graph)
        with renamed("Y", "X"):
            refuse_spins(states)
        weights = np.ones(len(states)) if sample_weight is None else example_weights(sample_weight, len(states))
        samples = Samples.of(states, weights)
        if not (samples.states >= 0).any():
            raise InputError("X", "at least one observed value", "none", "-1 is a missing value")
        return samples

    def _start(self, model: Model) -> FloatArray:
        if not (self.warm_start and hasattr(self, "theta_")):
            return np.zeros(model.size)
        if len(self.theta_) != model.size:
            got = f"{model.size} parameters after {len(self.theta_)}"
            raise InputError("warm_start", "the same parameters as in the last fit", got, "use warm_start=False")
        return self.theta_.copy()

    def _require_fitted(self) -> None:
        if not hasattr(self, "theta_"):
            raise NotFittedError("this MRF is not fitted yet; call fit first")


def _counted(objective: MarkovObjective) -> TermCounts:
    """Count the terms of a pseudolikelihood; warn of values that have none."""
    found = objective.term_counts()
    reason = f"with the missing values that they hang on, they have more than {JOINT_STATES} joint states"
    if found.left_out == found.observed:
        got = f"{found.observed} observed values, none of which can be used: {reason}"
        raise InputError("X", "fewer missing values for method='pseudo'", got, "use method='ml'")
    if found.left_out:
        rows = f"; nothing is used of {found.samples_left_out} of {found.samples} samples" * bool(
            found.samples_left_out
        )
        text = f"the pseudolikelihood leaves out {found.left_out} of {found.observed} observed values: {reason}{rows}"
        warnings.warn(f"{text}; method='ml' uses all", UserWarning, stacklevel=3)
    return found


def _states(X: Any, graph: FactorGraph) -> IntArray:
    """Check samples."""
    try:
        states = integers(observed(X, "X"), "X", 2)
    except InputError as error:
        remedy = f"{error.remedy}; " * bool(error.remedy) + "-1, not nan or None, is a missing value"
        raise InputError("X", error.expected, error.got, remedy) from None
    if states.shape[1] != graph.n_variables or not len(states):
        expected = f"an int array (samples, variables) with {graph.n_variables} variables and at least one sample"
        raise InputError("X", expected, f"shape {states.shape}")
    bad = (states < -1) | (states >= graph.cards)
    if bad.any():
        n, i = (int(v) for v in np.argwhere(bad)[0])
        remedy = "states count from 0, -1 is a missing value"
        got = f"{states[n, i]} for variable {i} of sample {n}"
        raise InputError("X", f"states from 0 to {graph.cards[i] - 1}", got, remedy)
    return states
