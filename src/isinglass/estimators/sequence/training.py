"""Training a chain: its choices, checked, and its data, as an objective, whole or in minibatches."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from isinglass import losses
from isinglass.errors import InputError, require
from isinglass.estimators.classes import with_states
from isinglass.estimators.sequence.base import decoder_of
from isinglass.estimators.sequence.constraints import forbidden_table
from isinglass.estimators.sequence.features import Encoded, FeatureIndex
from isinglass.estimators.sequence.growth import Growth, grown
from isinglass.estimators.sequence.labels import classes_of, codes_of, observed, observed_labels
from isinglass.learning.chain import SequenceObjective, has_sweep
from isinglass.learning.chain_losses import piece_loss
from isinglass.learning.optimizers import AdaGrad, make_optimizer
from isinglass.learning.optimizers.base import OptimResult
from isinglass.learning.training.checks import (
    class_weights,
    example_weights,
    require_room,
    validation_pair,
    variable_weights,
)
from isinglass.learning.training.choices import RATE, Choices, training_choices, with_penalty
from isinglass.learning.training.loop import Parts, TrainingMonitor
from isinglass.learning.training.problem import TrainingProblem, fingerprint
from isinglass.models.chain.attributes import StateFeatures, Tokens
from isinglass.models.chain.layout import by_token
from isinglass.models.chain.model import SequenceModel, Sequences
from isinglass.segments import ranges, starts
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import flag, items, number, whole_number


@dataclass(frozen=True, eq=False)
class ChainProblem(TrainingProblem):
    """The training of a chain.

    Attributes
    ----------
    chosen : Choices
    index : FeatureIndex
    classes : list
    model : SequenceModel
    data : Encoded
    labels : int array (tokens,)
    weights : array (tokens,) or None
    validation : tuple of Encoded and int array (tokens,), or None
    growth : Growth or None
        Where the model has weights that the estimator did not have before.
    weight : float
        The sum of the weights of the sequences.
    """

    index: FeatureIndex
    classes: list[Any]
    model: SequenceModel
    data: Encoded
    labels: IntArray
    weights: FloatArray | None
    validation: tuple[Encoded, IntArray] | None = None
    growth: Growth | None = None
    weight: float = 0.0

    @property
    def size(self) -> int:
        """The number of parameters."""
        return self.model.size

    @property
    def n_examples(self) -> int:
        """How many sequences there are."""
        return len(self.data.offsets) - 1

    def objective(self) -> SequenceObjective:
        """Return what is minimised."""
        return self._of(self.data, self.labels, self.weights, self.chosen.l2)

    def part_objective(self, rows: IntArray) -> SequenceObjective:
        """Return the objective of some sequences, with their share of the penalty."""
        offsets = self.data.offsets
        sizes = np.diff(offsets)[rows]
        tokens = ranges(offsets[rows], sizes)
        data = replace(self.data, tokens=by_token(csr_array(self.data.X[tokens])), offsets=starts(sizes))
        weights = None if self.weights is None else self.weights[tokens]
        return self._of(data, self.labels[tokens], weights, self.chosen.l2 * len(rows) / self.n_examples)

    def validation_objective(self) -> SequenceObjective | None:
        """Return the loss of the validation data, without penalties."""
        return None if self.validation is None else self._of(*self.validation, None, 0.0)

    def fingerprint(self, start: FloatArray) -> str:
        """Return a text that another problem, by data or choices, does not have; limits of the run may differ."""
        chosen, model = self.chosen, self.model
        made = chosen.loss, chosen.optimizer, chosen.l2, self.classes, list(self.index.names or ())
        features = model.forbidden, model.features.first, model.features.labels
        held = None if self.validation is None else (*self.validation[0].contents(), self.validation[1])
        data = start, self.labels, self.weights, *self.data.contents()
        return fingerprint(made, model.parameters, features, data, held)

    def _of(self, data: Encoded, labels: IntArray, weights: FloatArray | None, l2: float) -> SequenceObjective:
        sequences = Sequences(Tokens(self.model.features, data.tokens), data.offsets)
        chosen = self.chosen
        return SequenceObjective(self.model, sequences, labels, chosen.loss, l2, weights, chosen.jobs, data.X)


def chain_choices(crf: Any) -> Choices:
    """Check every parameter of the estimator."""
    loss = losses.make(crf.loss)
    piece_loss(loss)
    decoder_of(crf)
    for name in ("boundary", "bias"):
        flag(getattr(crf, name), name)
    whole_number(crf.min_count, "min_count", 1)
    if crf.n_states is not None:
        whole_number(crf.n_states, "n_states", 2)
    require(crf.state_features in ("seen", "all"), "state_features", "'seen' or 'all'", repr(crf.state_features))
    l1 = number(crf.l1, "l1", 0, math.inf)
    chosen = training_choices(crf, loss, l1, compiled_passes=has_sweep(loss))
    chosen = replace(chosen, optimizer=with_penalty(chosen.optimizer, chosen.l2))
    return replace(chosen, optimizer=make_optimizer(chosen.optimizer, l1=l1)) if l1 else chosen


def problem_of(
    crf: Any,
    chosen: Choices,
    X: Any,
    Y: Any,
    sample_weight: Any,
    known: bool,
    classes: Any = None,
    grow: bool = False,
) -> ChainProblem:
    """Check the data; number attributes and labels, or, where they are `known`, use the numbers of the estimator.

    With `grow` attributes that the estimator does not know are added to it.
    """
    growth = None
    if known:
        labels_known = crf.classes_
        index, data = crf.index_.grown(X) if grow else (crf.index_, crf.index_.encode(X))
        if classes is not None and list(classes) != labels_known:
            raise InputError("classes", "those of the first call", f"{classes!r:.60}", "leave them out")
        if with_states(labels_known, crf.n_states) != labels_known:
            got, remedy = f"{crf.n_states}", "use warm_start=False"
            raise InputError("n_states", f"{len(labels_known)}, as in the last fit", got, remedy)
    else:
        index, data = FeatureIndex.learn(X, crf.bias)
        labels_known = None if classes is None else _named(classes, crf.n_states)
    flat = observed_labels(Y, data.offsets, "Y", labels_known is None, crf.ignore_label)
    if labels_known is None and crf.n_states is not None:
        require_room(crf.n_states, crf.n_states**2, 0, chosen.optimizer)
    names = classes_of(flat, crf.n_states) if labels_known is None else labels_known
    labels = codes_of(flat, names, remedy="name all classes in the first call of partial_fit, or fit anew")
    require_room(len(names), len(names) ** 2, 0, chosen.optimizer)
    chosen = chosen.for_labels(labels)
    weights = _weights(crf, sample_weight, labels, names, np.diff(data.offsets))
    if known:
        more = _features(crf, data.X, labels, len(names)) if grow else None
        growth = None if more is None else grown(crf.model_, crf.index_, index, more)
        model = crf.model_ if growth is None else growth.model
    else:
        features = _features(crf, data.X, labels, len(names))
        model = SequenceModel(features, bool(crf.boundary), forbidden_table(crf.forbidden, names))
    n = len(data.offsets) - 1
    weight = float(n if sample_weight is None else example_weights(sample_weight, n).sum())
    return ChainProblem(chosen, index, names, model, data, labels, weights, growth=growth, weight=weight)


def _named(classes: Any, n_states: int | None) -> list[Any]:
    """Check the classes that a caller names."""
    found = observed(items(classes, "classes", "a list of labels"), "classes")
    require(None not in found, "classes", "labels", "None or -1, which is not observed", "leave it out")
    return classes_of(found, n_states)


def with_validation(problem: ChainProblem, validation: Any, ignore_label: Any) -> ChainProblem:
    """Return the problem with data that nothing is learned from, checked."""
    if validation is None:
        return problem
    with validation_pair(validation) as (X, Y):
        data = problem.index.encode(X)
        labels = codes_of(observed_labels(Y, data.offsets, ignore_label=ignore_label), problem.classes)
    return replace(problem, validation=(data, labels))


def _features(crf: Any, X: csr_array, labels: IntArray, card: int) -> StateFeatures:
    least = int(crf.min_count)
    if crf.state_features == "seen":
        return StateFeatures.seen(X, labels, card, least)
    counts = np.bincount(X.indices, minlength=X.shape[1])
    return StateFeatures.all_pairs(X.shape[1], card, counts >= least if least > 1 else None)


def _weights(crf: Any, sample_weight: Any, labels: IntArray, classes: list[Any], sizes: IntArray) -> FloatArray | None:
    """Return a weight for each token, or None."""
    sample = None if sample_weight is None else example_weights(sample_weight, len(sizes))
    given = crf.class_weight
    if isinstance(given, dict):
        places = {label: i for i, label in enumerate(classes)}
        unknown = [label for label in given if label not in places]
        if unknown:
            expected, got = f"labels among the {len(classes)} classes as keys", f"{unknown[0]!r:.60}"
            raise InputError("class_weight", expected, got, "drop it; a label that Y does not have has no weight")
        given = {places[label]: weight for label, weight in given.items()}
    of_class = None if given is None else class_weights(given, labels, len(classes))
    return variable_weights(labels, sizes, sample, of_class)


def minibatch_choices(crf: Any) -> Choices:
    """Check every parameter; where no optimizer is chosen, and no other suits the loss, it is AdaGrad."""
    chosen = chain_choices(crf)
    if chosen.suited and not chosen.optimizer.minibatch:
        require(
            crf.l1 == 0, "l1", "0 for partial_fit, whose steps have no such penalty", f"{crf.l1!r}", "use l2 or fit"
        )
        return replace(chosen, optimizer=AdaGrad(RATE, random_state=0))
    return chosen


def with_share(problem: ChainProblem, n_total: Any, before: float) -> ChainProblem:
    """Return the problem with the share that its sequences have in the penalty of all, or of those seen so far."""
    total = before + problem.weight
    if n_total is not None:
        total = number(n_total, "n_total", problem.weight, math.inf)
    l2 = problem.chosen.l2 * problem.weight / total if total else 0.0
    return problem.with_choices(replace(problem.chosen, l2=l2, optimizer=with_penalty(problem.optimizer, l2)))


def one_epoch(problem: ChainProblem, crf: Any) -> OptimResult:
    """Go once through the sequences with a minibatch optimizer, from where the last call ended."""
    optimizer = problem.optimizer
    monitor, n = TrainingMonitor(crf, None), problem.n_examples
    start = crf.theta_ if hasattr(crf, "theta_") else np.zeros(problem.size)
    state = getattr(crf, "_optimizer_state", None)
    if problem.growth is not None:
        start = problem.growth.vector(start)
        state = None if state is None else problem.growth.state(state)
    done = 0
    if state is not None and state.optimizer != optimizer.name:
        state = None
    if state is not None and np.array_equal(optimizer.outcome(state)[0], start):  # else theta_ was set from outside
        done, state = state.epoch, replace(state, n_examples=n, seen=0)
    else:
        state = None
    once = make_optimizer(optimizer, epochs=done + 1, tol=0.0) if optimizer.minibatch else optimizer
    parts = Parts(problem, monitor)
    parts.estimates = True  # one pass, not two
    return once.minimise_batches(parts, n, start, callback=monitor, state=state)
