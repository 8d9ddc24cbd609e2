"""Markov random fields: a distribution over the variables of a graph, fitted to samples or counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import ImpossibleEvidenceError, InputError
from isinglass.estimators.field.conditional import (
    ConditionalProblem,
    conditional_choices,
    conditional_problem,
    require_outputs,
)
from isinglass.estimators.field.problem import MarkovChoices, MarkovProblem, is_exact, used_terms
from isinglass.estimators.field.saved import graph_arrays, names_contents, saved_categories, saved_graph, saved_zeros
from isinglass.estimators.field.statistics import Statistics
from isinglass.estimators.field.steps import (
    for_groups,
    for_weight,
    is_default,
    optimizer_for,
    refuse_unused,
    unpenalised,
)
from isinglass.estimators.parameters import (
    Callback,
    Checkpoint,
    DecoderLike,
    GradientLike,
    InferenceLike,
    LossLike,
    OptimizerLike,
    StagesLike,
)
from isinglass.estimators.persistence import Saved, register
from isinglass.gradients import rule
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.names import VariableLike
from isinglass.inference import Algorithm, Exact, infer
from isinglass.inference import sample as draw
from isinglass.inference.algorithm import make as make_algorithm
from isinglass.inference.algorithm import threaded
from isinglass.learning.combinations import require_valid
from isinglass.learning.markov import Copies, Method, Samples, TermCounts, make_method
from isinglass.learning.markov.data import Categories, decode, encode, is_table, read_table
from isinglass.learning.markov.frames import (
    frame_graph,
    is_frame,
    refuse_unused_counts,
    refuse_weights,
    require_same_rows,
)
from isinglass.learning.markov.likelihood.maximum import random_start
from isinglass.learning.markov.objective import with_zeros
from isinglass.learning.markov.priors import Penalties, Prior, make_prior
from isinglass.learning.markov.statistics.support import MOST_CELLS, MOST_COLUMNS, existence
from isinglass.learning.optimizers import OwlQn
from isinglass.learning.optimizers.base import OptimResult
from isinglass.learning.training.checks import example_weights, positive_weights, refuse_spins, renamed
from isinglass.learning.training.choices import Choices, GraphChoices, l2_of, training_choices
from isinglass.learning.training.stages import ENDS_ALL, Trained
from isinglass.losses import Likelihood
from isinglass.models import Model, ModelFamily, table_model
from isinglass.models.constant import forbidding
from isinglass.typing import Array, FloatArray, IntArray, Mask
from isinglass.validation import flag, whole_number


@register
@dataclass(eq=False, repr=False)
class MRF(Statistics):
    """A Markov random field: the joint distribution of the variables of a graph.

    Parameters
    ----------
    graph : FactorGraph, Model, Ising or Potts
        For a graph, every entry of every table is a parameter. A model (`isinglass.models`) is log-linear, with its own
        parameters, such as the fields and couplings of ``ig.models.Ising(graph)``. If None, `fit` makes a graph from a
        data frame and `edges`.
    method : str or Method, default="ml"
        How the parameters are learned. Maximum likelihood: "ml" by gradients, with the log Z of `inference` (a
        surrogate likelihood, if that is approximate); "closed-form" on chordal graphs; "ipf", iterative proportional
        fitting; "scaling", iterative scaling; "em", expectation maximisation. Without log Z: "pseudo", the
        pseudolikelihood; "composite", "piecewise", "mpf", "pmm" and "camel". By sampling:
        "cd", contrastive divergence; "pcd", persistent contrastive divergence; "sml", stochastic maximum likelihood;
        "importance", importance sampling. `isinglass.learning.markov.METHODS` lists all methods, with their facts.
        Missing values are summed out by "ml" and "em". "pseudo" leaves out values with a missing neighbour, with a
        warning (see `terms_`). "cd", "pcd" and "sml" sample missing values. Other methods refuse them.
    inference : str or Algorithm, default="exact"
        The inference algorithm; `log_likelihood` also uses it.
    iterations : int, optional
        The number of iterations of the inference; by default until its tolerance.
    gradient : str or GradientRule, default="envelope"
        How derivatives are propagated back through the inference.
    optimizer : str or Optimizer, default="auto"
        "auto": "lbfgs", or with ``fit(X, outputs=mask)`` what suits the loss, such as "averaged-perceptron" for
        "perceptron" and "viterbi"; see `GraphCRF`. Methods with their own updates ("closed-form", "ipf", "scaling",
        "em") take no other. Methods that sample make `max_iter` steps of "sgd", or of another minibatch optimizer; they
        have no test of convergence.
    l2 : float, default=0
        The squared penalty, added to the *sum* over samples. Without a penalty the optimal potential of a configuration
        that never occurs is minus infinity, and only the tolerance of the optimizer keeps it finite.
    prior : "gaussian", "laplace", "group", "dirichlet" or Prior, optional
        A prior of the parameters, instead of `l2` (`isinglass.learning.markov.priors`). "group" sets whole edge
        tables to exactly zero. A Dirichlet prior adds pseudo-counts, and needs "closed-form" or "ipf"; see
        `posterior`.
    tied : bool, default=False
        For a graph: whether all factors of one shape share a table. For Ising and Potts: whether there is one field
        and one coupling for all.
    tol, max_iter
        The tolerance and the maximal number of iterations of an optimizer given by name, or of the updates of a method.
        For these, `tol` bounds the norm of the difference between the expectations under samples and model. Where the
        weights of all samples sum to less than one, tolerances of other optimizers are multiplied by their sum. "lbfgs"
        also stops when the objective hardly decreases (`ftol`, which a `tol` below 1e-4 lowers, too).
    loss : str or Loss, optional
        With ``fit(X, outputs=mask)``: the loss of the predicted outputs given the inputs, summed over samples. Any loss
        of conditional random fields; by default "cl", the conditional likelihood. Losses of beliefs and decisions need
        ``gradient="unrolled"`` or another suitable rule.
    decoder : str or Decoder, default="auto"
        How `predict` turns beliefs into states; losses of decisions use it, too. "auto": as for `GraphCRF`.
    stages : sequence of str or mapping, optional
        With `loss`: train in stages, each starting from the parameters of the one before; see `GraphCRF`.
    n_jobs : int, optional
        The number of threads for Markov chains, and for `score_samples` with message passing; -1: one for each
        processor. The result has the same bits for any number of threads.
    edges : sequence of tuples of str, optional
        Instead of `graph`, for data frames: which columns interact, such as ``[("hair", "eyes"), ("eyes", "sex")]``.
        Every column is a variable, with a unary factor; its states are its categories, or its different values.
        Integers are taken as states, starting at 0; if they are names (such as years), convert them to strings.

    Attributes
    ----------
    graph_ : FactorGraph
    feature_names_in_ : array (variables,)
        The names of the variables, if they have some.
    potentials_ : Potentials
        The fitted model. Where the exact likelihood has no maximum, because the mean of the features lies on the
        boundary of their polytope, this is its limit: the extended maximum likelihood estimate, with hard zeros where
        probabilities vanish (Fienberg and Rinaldo 2012). `converged_` is then False, and `message_` names a direction
        along which the likelihood grows without end. Decided by linear programs for "ml", "closed-form", "ipf", "em"
        and "scaling" without missing values, in tables of at most 20,000 cells; else `message_` says that it was not.
    parameters_ : dict of str to array
    model_ : Model
        The model, which maps parameters to potentials.
    impossible_ : int array (cells, variables) or None
        Joint states of probability zero that no hard zero of a table makes so: structural zeros, and those that lose
        their mass where the likelihood has no maximum.
    categories_ : list or None
        The labels of the states of each variable, if they are strings.
    terms_ : TermCounts or None
        For "pseudo": the number of values that are observed, and that are `left_out`.

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
    _as_arrays: ClassVar[tuple[str, ...]] = ("graph", "edges")
    _remedy: ClassVar[str] = "raise max_iter, tol or l2"

    graph: FactorGraph | Model | ModelFamily | None = None
    method: str | Method = "ml"
    inference: InferenceLike = "exact"
    iterations: int | str | None = None
    gradient: GradientLike = "envelope"
    optimizer: OptimizerLike = "auto"
    l2: float = 0.0
    prior: str | Prior | None = None
    tied: bool = False
    tol: float = 1e-5
    max_iter: int = 500
    warm_start: bool = False
    callback: Callback = None
    verbose: bool = False
    n_jobs: int | None = None
    checkpoint: Checkpoint = None
    loss: LossLike | None = None
    decoder: DecoderLike = "auto"
    stages: StagesLike = None
    edges: Sequence[Sequence[VariableLike]] | None = None

    def fit(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, *, counts: Any = None, outputs: Any = None
    ) -> Self:
        """Learn the parameters.

        Ctrl-C ends training cleanly: the best parameters so far are kept, with a warning.

        Parameters
        ----------
        X : array (samples, variables), data frame (pandas, Polars), or table of counts
            The states of each sample. A missing value is -1, NaN, None or masked. Strings are numbered in sorted order,
            see `categories_`. The columns of a data frame are matched with the names of the variables. An array whose
            shape is the number of states of each variable is taken as a table of counts (for two variables, only if its
            entries cannot be states); to avoid ambiguity use `counts`.
        y : None
            Ignored; for scikit-learn.
        sample_weight : array (samples,), optional
            The weight of each sample.
        counts : array with one axis for each variable, optional
            The count of each joint state, instead of `X`. A cell that is NaN or masked is impossible.
        outputs : bool array (samples, variables) or (variables,), optional
            Learn to predict these variables from the others (see `loss`). All other observed values are inputs, which
            are conditioned on; all other missing values are hidden variables.

        Returns
        -------
        self
        """
        self._predicts, self._existence = outputs is not None, None
        require_outputs(self, counts, outputs)
        self._structure = self._structure_for(X, sample_weight)
        return self._train(X, sample_weight, counts, outputs)

    def score_samples(self, X: Any) -> FloatArray:
        """Return the log-probability of each sample; missing values are summed out."""
        self._require_fitted()
        return self._score_states(self._encoded(X))

    def _score_states(self, states: IntArray) -> FloatArray:
        model = self.model_
        ones = Samples(states, np.ones(len(states)))
        copies, algorithm = Copies(model, ones), threaded(self._algorithm(), self.n_jobs)
        log_z = infer(self.potentials_, algorithm).log_z
        clamped = copies.potentials(self.potentials_)
        loss, n = Likelihood(), model.graph.n_components
        if loss.fully_observed(clamped, copies.labels) and all(np.isfinite(t).all() for t in clamped.groups):
            scores = loss.score(clamped, copies.labels)[0]
        elif loss.fully_observed(clamped, copies.labels):
            scores = self.potentials_.log_score(states)
        else:
            scores = self._clamped_scores(states, algorithm)
        return np.asarray(scores.reshape(-1, n).sum(axis=1) - log_z, np.float64)

    def _clamped_scores(self, states: IntArray, algorithm: Algorithm) -> FloatArray:
        """Return log Z of each component of each sample, given what it shows; minus infinity, if it is impossible."""
        copies = Copies(self.model_, Samples(states, np.ones(len(states))))
        clamped = Likelihood().clamp(copies.potentials(self.potentials_), copies.labels)
        try:
            return np.asarray(infer(clamped, algorithm).component_log_z, np.float64)
        except ImpossibleEvidenceError:
            if len(states) == 1:
                return np.full(self.model_.graph.n_components, -np.inf)
        halves = np.array_split(states, 2)
        return np.concatenate([self._clamped_scores(half, algorithm) for half in halves])

    def log_likelihood(self, X: Any, sample_weight: Any = None) -> float:
        """Return the log-likelihood, summed over samples; with approximate inference it is a surrogate."""
        each = self.score_samples(X)
        weights = np.ones(len(each)) if sample_weight is None else example_weights(sample_weight, len(each))
        return float((weights * each).sum())

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log-likelihood of a sample."""
        weights = np.ones(len(X)) if sample_weight is None else positive_weights(sample_weight, len(X))
        return self.log_likelihood(X, weights) / float(weights.sum())

    def sample(self, n: int, random_state: Any = None) -> IntArray:
        """Draw exact samples, an int array (n, variables)."""
        self._require_fitted()
        return draw(self.potentials_, n, Exact(), random_state=random_state)

    def decode(self, states: Any) -> Array:
        """Convert states to the labels of the training data; numbers, and labels, are returned as they are."""
        self._require_fitted()
        known = self.categories_ if np.asarray(states).dtype.kind in "OUST" else None
        with renamed("X", "states"):
            return decode(encode(states, self.graph_, known, fitted=True)[0], self.categories_)

    def _choices(self) -> Choices:
        penalties = self._penalties()
        if self.loss is not None or getattr(self, "_predicts", False):
            return conditional_choices(self, penalties, self._algorithm())
        method = make_method(self.method)
        refuse_unused(self, method)
        chosen = training_choices(self, method.loss, penalties.l1)
        optimizer = optimizer_for(self, method, chosen.optimizer, penalties)
        made = MarkovChoices(
            loss=chosen.loss,
            optimizer=optimizer,
            l2=penalties.l2,
            jobs=chosen.jobs,
            method=method,
            algorithm=self._algorithm(),
            rule=rule(self.gradient),
            virtual=penalties.virtual,
            groups=penalties.groups,
        )
        require_valid(made.loss, made.algorithm, made.rule)
        return made

    def _penalties(self) -> Penalties:
        """Return the penalties of the prior, or of l2."""
        l2 = l2_of(self)
        if self.prior is None:
            return Penalties(l2=l2)
        if l2:
            raise InputError("l2", "0 if a prior is given", f"{self.l2!r}", "leave out one of them")
        made = make_prior(self.prior).penalties()
        if made.l1 and isinstance(self.optimizer, OwlQn):
            remedy = "leave out the prior, or name the optimizer: 'lbfgs'"
            raise InputError("prior", "None with an optimizer that has an l1 of its own", f"{self.prior!r:.40}", remedy)
        return made

    def _problem(
        self, chosen: Choices, X: Any, sample_weight: Any, counts: Any, outputs: Any = None
    ) -> MarkovProblem | ConditionalProblem:
        model = self._model()
        if isinstance(chosen, GraphChoices):
            return conditional_problem(chosen, model, X, sample_weight, outputs)
        assert isinstance(chosen, MarkovChoices)
        return self._sampled_problem(chosen, model, X, sample_weight, counts)

    def _sampled_problem(
        self, chosen: MarkovChoices, model: Model, X: Any, sample_weight: Any, counts: Any
    ) -> MarkovProblem:
        """Return the training on whole samples."""
        if counts is None and is_table(X, model.graph):
            X, counts = None, X
        if counts is None:
            samples, self.categories_, self.impossible_ = *self._samples(model, X, sample_weight), None
        else:
            samples, self.categories_, self.impossible_ = self._counted(model, X, sample_weight, counts)
        if chosen.groups:
            chosen = replace(chosen, optimizer=for_groups(model, chosen.groups, self.tol, self.max_iter))
        chosen = replace(chosen, optimizer=for_weight(self, chosen.optimizer, float(samples.weights.sum())))
        problem = MarkovProblem(chosen, self._forbidding(model), samples)
        chosen.method.check(problem.task())
        problem = self._with_existence(problem, model)
        if chosen.method.facts.sampled and is_default(self):
            steps = chosen.method.default_optimizer(self.max_iter, problem.task())
            problem = problem.with_choices(replace(chosen, optimizer=steps))
        terms = chosen.method.terms(problem.objective())
        self.terms_ = None if terms is None else used_terms(terms)
        return problem

    def _with_existence(self, problem: MarkovProblem, model: Model) -> MarkovProblem:
        """Find out whether the exact likelihood has a maximum; if not, forbid what has no mass at its limit."""
        chosen, samples, free = problem.chosen, problem.samples, unpenalised(problem.chosen, problem.size)
        exact = chosen.method.facts.likelihood and is_exact(chosen.algorithm, problem.model.graph)
        if not (exact and samples.whole.all() and free.any()):
            return problem
        problem = replace(problem, chosen=replace(chosen, extended=bool(free.all())))
        self._existence = existence(problem.model, samples, free)
        lost = self._existence.cells
        if problem.chosen.extended:  # most of them are hard zeros of tables
            zeros = problem.objective().unseen()  # type: ignore[attr-defined]
            shown = with_zeros(problem.model.potentials(np.zeros(problem.size)), zeros)
            lost = lost[np.isfinite(shown.log_score(lost))]
        if len(lost) and chosen.method.facts.constants:
            self.impossible_ = lost if self.impossible_ is None else np.concatenate([self.impossible_, lost])
            problem = MarkovProblem(problem.chosen, self._forbidding(model), samples)
        problem.objective().has_minimum = self._existence.decided
        return problem

    def _judged(self, found: OptimResult) -> OptimResult:
        """Say what speaks against a result: errors of sampling, no maximum, or that its existence was not decided."""
        if doubt := self.report_.get("doubt"):
            text = str(doubt) if found.converged else f"{found.message}; {doubt}"
            found = replace(found, converged=False, message=text)
        known = self._existence
        if known is None or found.message.startswith(ENDS_ALL):
            return found
        seen = self._never_seen() if self.zeros_ is not None else ""
        if not seen and not len(known.cells):
            limits = f"more than {MOST_CELLS} joint states or {MOST_COLUMNS} parameters"
            text = f"{found.message}; not decided whether the likelihood has a maximum: {limits}"
            return found if known.decided else replace(found, message=text)
        labels = self._parameter_names() if known.direction and not isinstance(known.direction[0][0], tuple) else []
        ways = [
            f"{labels[c] if isinstance(c, int) else self._configuration(*c)} ({value:+.3g})"
            for c, value in known.direction[:3]
        ]
        text = "the likelihood has no maximum: " + (f"no sample shows {seen}, and " if seen else "")
        text += f"it grows without end along {', '.join(ways or [f'{seen} (-1)'])}"
        text += ", ..." if len(known.direction) > 3 else ""
        text += f", where {len(known.cells)} joint states lose all their probability" if len(known.cells) else ""
        text += "; potentials_ is its limit. Use l2 or a prior for finite parameters"
        return replace(found, converged=False, message=text if found.converged else f"{found.message}; {text}")

    def _start(self, problem: Any, before: Any, stage: int) -> FloatArray:
        start = super()._start(problem, before, stage)
        if isinstance(problem, ConditionalProblem):
            return random_start(start, problem.hidden, problem.model)
        return np.asarray(problem.chosen.method.start(problem.objective(), start), np.float64)

    def _keep(self, stage: Any, trained: Trained) -> None:
        problem = trained.problem
        if isinstance(problem, ConditionalProblem):
            self._samples_ = self.impossible_ = self.terms_ = None
            self.report_, self.categories_ = {}, problem.categories
            return self._set(problem.model, None)
        assert isinstance(problem, MarkovProblem)
        objective = problem.objective()
        self._samples_ = problem.samples
        self._set(problem.model, objective.zeros)
        self.report_ = objective.report(self.theta_)

    def _set(self, model: Model, zeros: tuple[Mask, ...] | None) -> None:
        self.model_, self.zeros_, self.graph_ = model, zeros, model.graph
        if self.graph_.names is not None:
            self.feature_names_in_ = np.array(self.graph_.names.variables, object)
        self.parameters_ = model.split(self.theta_)
        self.potentials_ = with_zeros(model.potentials(self.theta_), zeros)

    def _contents(self) -> tuple[dict[str, Any], Mapping[str, ArrayLike]]:
        arrays = graph_arrays(self._given())
        if self.zeros_ is not None:
            arrays["zeros"] = np.concatenate([mask.ravel() for mask in self.zeros_]).astype(np.int64)
        if self.impossible_ is not None:
            arrays["impossible"] = self.impossible_
        terms = None if self.terms_ is None else list(self.terms_)
        return {"terms": terms, "categories": self.categories_, "names": names_contents(self.graph_)}, arrays

    @classmethod
    def _from_arrays(cls, saved: Saved) -> dict[str, Any]:
        return {"graph": saved_graph(saved)}

    def _restore(self, saved: Saved) -> None:
        terms, graph = saved.optional("terms", list), self._model().graph
        if terms is not None and (len(terms) != len(TermCounts._fields) or any(type(n) is not int for n in terms)):
            raise saved.error("counts of terms", f"{terms!a:.60}")
        self.terms_ = None if terms is None else TermCounts(*terms)
        self.categories_ = saved_categories(saved, graph)
        self.impossible_ = None
        if "impossible" in saved.file.arrays:
            self.impossible_ = saved.array("impossible", "i", (-1, graph.n_variables))
            if (self.impossible_ < 0).any() or (self.impossible_ >= graph.cards).any():
                raise saved.error("impossible cells of the joint table", "others")
        model = self._forbidding(self._model())
        if len(self.theta_) != model.size:
            raise saved.error(f"{model.size} parameters in theta", f"{len(self.theta_)}")
        self._samples_, self.report_ = None, {}
        self._set(model, saved_zeros(saved, model))

    def _forbidding(self, model: Model) -> Model:
        """Return the model in which the structural zeros are impossible."""
        return model if self.impossible_ is None else forbidding(model, self.impossible_)

    def _model(self) -> Model:
        graph = self._given()
        if isinstance(graph, FactorGraph):
            return table_model(graph, flag(self.tied, "tied"))
        if isinstance(graph, ModelFamily):
            return graph.model(flag(self.tied, "tied"))
        if not isinstance(graph, Model):
            expected = "a FactorGraph, or a Model"
            raise InputError("graph", expected, type(graph).__name__, "such as ig.grid_graph(8, 8, 2)")
        if flag(self.tied, "tied"):
            raise InputError("tied", "False for a model, which says itself what is tied", "True", "give its table_ids")
        return graph

    def _given(self) -> Any:
        """Return the graph or model that was given, or that `fit` made of a data frame."""
        return self.graph if self.graph is not None else getattr(self, "_structure", None)

    def _structure_for(self, X: Any, sample_weight: Any) -> FactorGraph | None:
        """Return the graph of a data frame and `edges`; None where a graph was given."""
        if self.edges is None:
            if is_frame(X) and sample_weight is None and isinstance(self.graph, FactorGraph):
                refuse_unused_counts(X, self.graph.names)
            return None
        if self.graph is not None:
            raise InputError("edges", "None if a graph is given", "both", "leave out one of them")
        if not is_frame(X):
            raise InputError("X", "a data frame, whose columns `edges` names", type(X).__name__, "or give a graph")
        refuse_weights(X, sample_weight)
        return frame_graph(X, self.edges)

    def _algorithm(self) -> Algorithm:
        options = {} if self.iterations is None else {"iterations": whole_number(self.iterations, "iterations", 1)}
        with renamed("algorithm", "inference"):
            return make_algorithm(self.inference, options)

    def _encoded(self, X: Any) -> IntArray:
        """Return samples as states, by the labels that `fit` saw."""
        return encode(X, self.model_.graph, self.categories_, fitted=True)[0]

    def _samples(self, model: Model, X: Any, sample_weight: Any) -> tuple[Samples, Categories | None]:
        if X is None:
            raise InputError("X", "samples, or counts=", "nothing")
        require_same_rows(X, sample_weight)
        states, categories = encode(X, model.graph)
        if np.asarray(X).dtype.kind in "iu" and not isinstance(X, np.ma.MaskedArray):  # else -1 is our own mark
            refuse_spins(states, "X")
        weights = np.ones(len(states)) if sample_weight is None else positive_weights(sample_weight, len(states))
        samples = Samples.of(states, weights)
        if not (samples.states >= 0).any():
            raise InputError("X", "at least one observed value", "none", "-1 is a missing value")
        return samples, categories

    def _counted(
        self, model: Model, X: Any, sample_weight: Any, counts: Any
    ) -> tuple[Samples, Categories | None, IntArray | None]:
        """Return the cells of a table of counts as samples, and those that are impossible."""
        for name, given in (("X", X), ("sample_weight", sample_weight)):
            if given is not None:
                raise InputError(name, "None if a table of counts is given", type(given).__name__, "leave it out")
        table = read_table(counts, model.graph)
        samples = Samples(table.cells, table.counts)
        return samples, None, table.impossible if len(table.impossible) else None
