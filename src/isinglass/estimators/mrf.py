"""Markov random fields: a distribution over the variables of a graph, fitted to samples or counts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.estimators.estimator import Estimator
from isinglass.estimators.parameters import Callback, Checkpoint, GradientLike, InferenceLike, OptimizerLike
from isinglass.estimators.persistence import Saved, register
from isinglass.gradients import GradientRule, rule
from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference import Algorithm, Exact, infer
from isinglass.inference import sample as draw
from isinglass.inference.algorithm import make as make_algorithm
from isinglass.inference.algorithm import threaded
from isinglass.learning.combinations import require_valid
from isinglass.learning.markov import JOINT_STATES, Copies, MarkovObjective, Samples, TermCounts
from isinglass.learning.training.checks import example_weights, observed, refuse_spins, renamed
from isinglass.learning.training.choices import Choices, training_choices
from isinglass.learning.training.fingerprints import fingerprint
from isinglass.learning.training.problem import TrainingProblem
from isinglass.learning.training.stages import Trained
from isinglass.losses import Likelihood, Loss, Pseudolikelihood
from isinglass.models import Model, table_model
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import flag, integers, whole_number

METHODS: dict[str, Loss] = {"ml": Likelihood(), "pseudo": Pseudolikelihood(JOINT_STATES)}


@dataclass(frozen=True, kw_only=True)
class MarkovChoices(Choices):
    """What the parameters of a Markov random field stand for."""

    method: str
    algorithm: Algorithm
    rule: GradientRule


@dataclass(frozen=True, eq=False)
class MarkovProblem(TrainingProblem):
    """The training of a Markov random field; equal samples are added up before it."""

    chosen: MarkovChoices
    model: Model
    samples: Samples

    @property
    def size(self) -> int:
        """The number of parameters."""
        return self.model.size

    @property
    def n_examples(self) -> int:
        """How many different samples there are."""
        return len(self.samples.weights)

    def objective(self) -> MarkovObjective:
        """Return what is minimised."""
        return self._objective

    def fingerprint(self, start: FloatArray) -> str:
        """Return a text that another problem, by data or choices, does not have; limits of the run may differ."""
        chosen, model, samples = self.chosen, self.model, self.samples
        made = chosen.method, chosen.algorithm, chosen.rule, chosen.optimizer, chosen.l2
        tables = model.potentials(np.linspace(-1.0, 1.0, model.size)).groups  # which tell one model from another
        graph = model.graph.cards, *(group.scopes for group in model.graph.groups), *model.table_ids
        return fingerprint(made, model.parameters, tables, graph, start, samples.states, samples.weights)

    @cached_property
    def _objective(self) -> MarkovObjective:
        chosen = self.chosen
        return MarkovObjective(self.model, self.samples, chosen.method, chosen.algorithm, chosen.rule, chosen.l2)


@register
@dataclass(eq=False, repr=False)
class MRF(Estimator):
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
    l2 : float, default=0
        Weight of the squared parameters against the *sum* over samples. Without it, what was never seen gets a
        potential that only the tolerance of the optimizer keeps from minus infinity.
    tied : bool, default=False
        For a graph: whether all factors of one shape share a table.
    tol, max_iter
        Of an optimizer that is given by name.
    n_jobs : int, optional
        Threads of `score_samples`, where inference is message passing; -1: one for each processor. Results have the
        same bits for any number.

    Attributes
    ----------
    potentials_ : Potentials
    parameters_ : dict of str to array
    terms_ : TermCounts or None
        For "pseudo": how many values are observed, how many have a term (`given_neighbours` and `summed`), and how many
        are `left_out`.

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

    schema: ClassVar[str] = "mrf"
    _as_arrays: ClassVar[tuple[str, ...]] = ("graph",)
    _remedy: ClassVar[str] = "raise max_iter, tol or l2"

    graph: FactorGraph | Model
    method: str = "ml"
    inference: InferenceLike = "exact"
    iterations: int | str | None = None
    gradient: GradientLike = "envelope"
    optimizer: OptimizerLike = "lbfgs"
    l2: float = 0.0
    tied: bool = False
    tol: float = 1e-5
    max_iter: int = 500
    warm_start: bool = False
    callback: Callback = None
    verbose: bool = False
    n_jobs: int | None = None
    checkpoint: Checkpoint = None

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
        return self._train(X, sample_weight)

    def score_samples(self, X: Any) -> FloatArray:
        """Return the log-probability of each sample; of what it shows, where values are missing."""
        self._require_fitted()
        model = self._model()
        states = _states(X, model.graph)
        ones = Samples(states, np.ones(len(states)))
        copies, algorithm = Copies(model, ones), threaded(self._algorithm(), self.n_jobs)
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

    def _choices(self) -> MarkovChoices:
        method = self._method()
        chosen = training_choices(self, METHODS[method])
        if chosen.optimizer.minibatch:
            remedy = "samples are added up before training, so that it is no slower for many"
            got = f"{chosen.optimizer.name!r}"
            raise InputError("optimizer", "one for whole objectives, such as 'lbfgs'", got, remedy)
        made = MarkovChoices(**vars(chosen), method=method, algorithm=self._algorithm(), rule=rule(self.gradient))
        require_valid(made.loss, made.algorithm, made.rule)
        return made

    def _problem(self, chosen: MarkovChoices, X: Any, sample_weight: Any) -> MarkovProblem:
        model = self._model()
        problem = MarkovProblem(chosen, model, self._samples(model, X, sample_weight))
        self.terms_ = _counted(problem.objective()) if chosen.method == "pseudo" else None
        return problem

    def _keep(self, stage: Any, trained: Trained) -> None:
        assert isinstance(trained.problem, MarkovProblem)
        self._set(trained.problem.model)

    def _set(self, model: Model) -> None:
        self.parameters_ = model.split(self.theta_)
        self.potentials_ = model.potentials(self.theta_)

    def _contents(self) -> tuple[dict[str, Any], Mapping[str, ArrayLike]]:
        if not isinstance(self.graph, FactorGraph):
            expected, got = "a FactorGraph, which a safe file can hold", type(self.graph).__name__
            raise InputError("graph", expected, got, "pickle the estimator, or save theta_")
        flat = self.graph.flat_scopes
        arrays = {"cards": self.graph.cards, "scopes": flat.variable, "scope-starts": flat.first_slot}
        return {"terms": None if self.terms_ is None else list(self.terms_)}, arrays

    @classmethod
    def _from_arrays(cls, saved: Saved) -> dict[str, Any]:
        cards, flat, starts = (saved.array(name, "i", (-1,)) for name in ("cards", "scopes", "scope-starts"))
        if not len(starts) or starts[0] != 0 or starts[-1] != len(flat) or (np.diff(starts) < 0).any():
            raise saved.error("scopes of factors, one after the other", "something else")
        return {"graph": FactorGraph(cards, [flat[a:b].tolist() for a, b in pairwise(starts.tolist())])}

    def _restore(self, saved: Saved) -> None:
        model, terms = self._model(), saved.optional("terms", list)
        if len(self.theta_) != model.size:
            raise saved.error(f"{model.size} parameters in theta", f"{len(self.theta_)}")
        if terms is not None and (len(terms) != len(TermCounts._fields) or any(type(n) is not int for n in terms)):
            raise saved.error("counts of terms", f"{terms!a:.60}")
        self.terms_ = None if terms is None else TermCounts(*terms)
        self._set(model)

    def _model(self) -> Model:
        if isinstance(self.graph, FactorGraph):
            return table_model(self.graph, flag(self.tied, "tied"))
        if not isinstance(self.graph, Model):
            expected = "a FactorGraph, or a Model"
            raise InputError("graph", expected, type(self.graph).__name__, "such as ig.grid_graph(8, 8, 2)")
        return self.graph

    def _method(self) -> str:
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise InputError("method", " or ".join(map(repr, METHODS)), repr(self.method))
        return str(self.method)

    def _algorithm(self) -> Algorithm:
        options = {} if self.iterations is None else {"iterations": whole_number(self.iterations, "iterations", 1)}
        with renamed("algorithm", "inference"):
            return make_algorithm(self.inference, options)

    def _samples(self, model: Model, X: Any, sample_weight: Any) -> Samples:
        states = _states(X, model.graph)
        with renamed("Y", "X"):
            refuse_spins(states)
        weights = np.ones(len(states)) if sample_weight is None else example_weights(sample_weight, len(states))
        samples = Samples.of(states, weights)
        if not (samples.states >= 0).any():
            raise InputError("X", "at least one observed value", "none", "-1 is a missing value")
        return samples


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
        warnings.warn(f"{text}; method='ml' uses all", UserWarning, stacklevel=6)  # where `fit` is called
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
