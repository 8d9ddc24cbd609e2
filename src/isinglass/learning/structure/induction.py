"""Feature induction: log-linear models grown by features (Della Pietra et al. 1997; Murphy 2012, section 19.5.6).

Candidates are single states, pairs of them, and features of the model with one more state. With the share p of samples
that show a candidate g, and its probabilities q under the model, adding it with weight a, all other weights fixed,
changes the mean log-likelihood by

    G(a) = a p - sum_m w_m log( 1 + q_m (e^a - 1) ) - (l2 / N) a²,

concave in a. Its maximum is the *approximate gain*: a lower bound of the true one, as then all weights are fitted
again. Without a penalty, and with one q, it is the divergence of two coins, p log(p/q) + (1-p) log((1-p)/(1-q)).

m runs over the different values of variables that are *given*; without such there is one q. With given variables the
model is a conditional random field, and its likelihood that of the others (McCallum 2003).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.gradients import rule
from isinglass.inference import Algorithm, Exact, infer
from isinglass.learning.markov.likelihood.maximum import LikelihoodObjective, counted
from isinglass.learning.markov.objective import Task
from isinglass.learning.markov.samples import Copies, Samples
from isinglass.learning.optimizers import Lbfgs
from isinglass.learning.structure.learner import Observations, observations
from isinglass.losses import Evaluation, Likelihood
from isinglass.models.conjunctions import Conjunction, conjunction, conjunction_model
from isinglass.models.model import Model
from isinglass.potentials import Potentials
from isinglass.runtime.cached_property import cached_property
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import number, variables_of, whole_number

CRITERIA = {"bic": "half the logarithm of the number of samples", "aic": "one"}
HALVINGS = 60  # of an interval that holds the best weight
LARGEST = 40.0  # weight of a feature that is tried


class InductionStep(NamedTuple):
    """What one feature brought.

    Attributes
    ----------
    feature : dict of int to int
        States of some variables.
    gain : float
        Approximate, in nats per sample.
    log_likelihood : float
        Per sample, after all weights were fitted again; without the penalty.
    """

    feature: dict[int, int]
    gain: float
    log_likelihood: float


class Induction(NamedTuple):
    """A model that was grown from samples.

    Attributes
    ----------
    model : Model
        For ``MRF(model)``, and with `theta` for potentials.
    theta : array (features,)
    features : list of dict of int to int
    steps : list of InductionStep
        One for each feature that was added, in their order.
    """

    model: Model
    theta: FloatArray
    features: list[dict[int, int]]
    steps: list[InductionStep]

    @property
    def potentials(self) -> Potentials:
        """The log-potentials."""
        return self.model.potentials(self.theta)


def induce_features(
    X: Any,
    cards: ArrayLike | None = None,
    sample_weight: Any = None,
    *,
    start: Iterable[Mapping[int, int]] = (),
    given: Sequence[int] = (),
    most: int = 20,
    order: int = 3,
    criterion: Literal["bic", "aic"] = "bic",
    l2: float = 0.1,
    inference: Algorithm | None = None,
) -> Induction:
    """Build a log-linear model from samples, one feature at a time.

    Parameters
    ----------
    X : int array (samples, variables)
        Complete samples: states, counted from 0.
    cards : int array (variables,), optional
        The numbers of states; by default the largest state in `X` plus one.
    sample_weight : array (samples,), optional
    start : iterable of mappings of int to int
        Initial features: states of some variables. By default the model starts as the uniform distribution.
    given : sequence of int
        Input variables: the model is the conditional distribution of the others given these.
    most : int, default=20
        The maximal number of features to add.
    order : int, default=3
        The maximal number of variables of a feature.
    criterion : "bic" or "aic", default="bic"
        The minimal gain of a feature, summed over samples: half the logarithm of their number, or one.
    l2 : float, default=0.1
        The squared penalty, added to the sum over samples. It must be positive, because without it a feature that
        occurs in no sample would have an infinite weight.
    inference : Algorithm, optional
        An algorithm with joint beliefs; by default exact inference.

    Returns
    -------
    Induction

    Examples
    --------
    >>> import isinglass as ig
    >>> X = np.random.default_rng(0).integers(0, 2, (500, 3))
    >>> X[:, 2] = X[:, 0] & X[:, 1]
    >>> [sorted(step.feature) for step in ig.induce_features(X, most=3).steps]
    [[0, 2], [1, 2], [1, 2]]
    """
    data = observations(X, cards, sample_weight)
    inputs = variables_of(list(given), len(data.cards), "given")
    if criterion not in CRITERIA:
        raise InputError("criterion", " or ".join(map(repr, CRITERIA)), repr(criterion))
    if len(inputs) == len(data.cards):
        raise InputError("given", "at least one variable that is not given", "all of them")
    if not number(l2, "l2", 0, math.inf) > 0:
        raise InputError("l2", "a positive number", f"{l2!r}", "a feature that no sample shows needs a penalty")
    listed, least = whole_number(most, "most", 0), math.log(data.total) / 2 if criterion == "bic" else 1.0
    grown = _Growth(data, inputs, whole_number(order, "order", 1), l2, Exact() if inference is None else inference)
    features = [conjunction(one, data.cards, f"start[{k}]") for k, one in enumerate(start)]
    theta = grown.fitted(features, np.zeros(len(features)))
    steps: list[InductionStep] = []
    while len(steps) < listed:
        best = grown.best(features, theta)
        if best is None or best[1] * data.total <= least:
            break
        features.append(best[0])
        theta = grown.fitted(features, np.append(theta, best[2]))
        steps.append(InductionStep(dict(best[0]), best[1], grown.log_likelihood(features, theta)))
    return Induction(conjunction_model(data.cards, features), theta, [dict(f) for f in features], steps)


class _Growth:
    """The samples, and what is asked of models of them."""

    def __init__(self, data: Observations, inputs: IntArray, order: int, l2: float, algorithm: Algorithm) -> None:
        self.data, self.inputs, self.order, self.l2, self.algorithm = data, inputs, order, l2, algorithm
        self.samples = Samples.of(data.states, data.weights)
        hidden = self.samples.states.copy()
        hidden[:, np.setdiff1d(np.arange(hidden.shape[1]), inputs)] = -1
        self.rows = Samples.of(hidden, self.samples.weights)
        self.share = self.rows.weights / self.rows.weights.sum()

    def fitted(self, features: list[Conjunction], theta: FloatArray) -> FloatArray:
        """Fit all weights, from given ones."""
        if not features:
            return theta
        return Lbfgs(tol=1e-8 * self.data.total, max_iter=500).minimise(self._objective(features), theta).x

    def log_likelihood(self, features: list[Conjunction], theta: FloatArray) -> float:
        """Return the mean log-likelihood."""
        return -self._objective(features).unpenalised(theta) / self.data.total

    def _objective(self, features: list[Conjunction]) -> ConditionalObjective:
        model = conjunction_model(self.data.cards, features)
        return ConditionalObjective(Task(model, self.samples, self.algorithm, rule("envelope"), self.l2), self.rows)

    def best(self, features: list[Conjunction], theta: FloatArray) -> tuple[Conjunction, float, float] | None:
        """Return the candidate with the largest approximate gain, its gain and its weight."""
        listed = self._candidates(features)
        if not listed:
            return None
        potentials = conjunction_model(self.data.cards, features).potentials(theta)
        seen, q = self._seen(listed), self._expected(listed, potentials)
        gains, weights = approximate_gains(seen, q, self.share, self.l2 / self.data.total)
        k = int(np.argmax(gains))
        return listed[k], float(gains[k]), float(weights[k])

    def _candidates(self, features: list[Conjunction]) -> list[Conjunction]:
        """Return single states, pairs, and features with one more state; those of inputs alone say nothing."""
        single = [(i, s) for i, k in enumerate(self.data.cards.tolist()) for s in range(k) if k > 1]
        found: dict[Conjunction, None] = {(pair,): None for pair in single}
        for feature in features:
            taken = {i for i, _ in feature}
            if len(feature) < self.order:
                found |= {tuple(sorted((*feature, pair))): None for pair in single if pair[0] not in taken}
        if self.order > 1:  # pairs from the start: where margins are even, no single state gains anything
            found |= {pair: None for pair in combinations(single, 2) if pair[0][0] != pair[1][0]}
        inputs = set(self.inputs.tolist())
        known = set(features)
        return [f for f in found if f not in known and any(i not in inputs for i, _ in f)]

    def _seen(self, listed: list[Conjunction]) -> FloatArray:
        """Return the share of samples that show each feature."""
        states, share = self.samples.states, self.samples.weights / self.samples.weights.sum()
        each = [share[(states[:, [i for i, _ in f]] == [s for _, s in f]).all(axis=1)].sum() for f in listed]
        return np.array(each)

    def _expected(self, listed: list[Conjunction], potentials: Potentials) -> FloatArray:
        """Return the probability (features, rows) of each feature, given the inputs of each row."""
        found = np.zeros((len(listed), len(self.share)))
        inputs = set(self.inputs.tolist())
        for m, row in enumerate(self.rows.states):
            evidence = {i: int(row[i]) for i in self.inputs.tolist()}
            result, tables = infer(potentials.with_evidence(evidence), self.algorithm), {}
            for k, feature in enumerate(listed):
                if any(evidence.get(i, s) != s for i, s in feature):
                    continue
                free = [(i, s) for i, s in feature if i not in inputs]
                scope = tuple(i for i, _ in free)
                if scope not in tables:
                    tables[scope] = result.joint(scope)
                found[k, m] = tables[scope][tuple(s for _, s in free)]
        return found


class ConditionalObjective(LikelihoodObjective):
    """Minus the log-likelihood of some variables, given the others; of all, where none is given."""

    def __init__(self, task: Task, rows: Samples) -> None:
        super().__init__(task)
        self.rows = rows

    def evaluate(self, potentials: Potentials) -> Evaluation:
        """Return log Z of the rows of inputs, less the scores of the samples."""
        clamped = Likelihood().clamp(self._copies.potentials(potentials), self._copies.labels)
        pairs = zip(potentials.groups, self._counts, strict=True)
        score = sum((tables * seen).sum() for tables, seen in pairs)
        return self.log_z(clamped, self._copies.component_weights) - Evaluation(np.asarray(score), self._counts)

    @cached_property
    def _copies(self) -> Copies:
        return Copies(self.model, self.rows)

    @cached_property
    def _counts(self) -> tuple[FloatArray, ...]:
        return counted(self.model.potentials(np.zeros(self.model.size)), self.samples)


def approximate_gains(
    seen: FloatArray, q: FloatArray, share: FloatArray, penalty: float
) -> tuple[FloatArray, FloatArray]:
    """Return the approximate gains of features, and their best weights.

    Parameters
    ----------
    seen : array (features,)
        The share of samples that show each feature.
    q : array (features, rows)
        Its probability under the model, for each row of inputs.
    share : array (rows,)
        Of samples with these inputs; the sum is one.
    penalty : float
        Of the squared weight.

    Examples
    --------
    >>> gains, weights = approximate_gains(np.array([0.5]), np.array([[0.2]]), np.ones(1), 0.0)
    >>> gains.round(4), weights.round(4)  # 0.5 log(0.5 / 0.2) + 0.5 log(0.5 / 0.8), log 4
    (array([0.2231]), array([1.3863]))
    """
    low, high = np.full(len(seen), -LARGEST), np.full(len(seen), LARGEST)
    for _ in range(HALVINGS):
        a = (low + high) / 2
        grown = q * np.exp(a)[:, None]
        slope = seen - (grown / (1 - q + grown)) @ share - 2 * penalty * a
        low, high = np.where(slope > 0, a, low), np.where(slope > 0, high, a)
    a = (low + high) / 2
    value = a * seen - np.log(1 - q + q * np.exp(a)[:, None]) @ share - penalty * a**2
    return np.asarray(value, np.float64), np.asarray(a, np.float64)
