"""The base class of estimators for sequences whose parameters are found by an optimizer."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from isinglass.errors import warn_of_convergence
from isinglass.estimators.parameters import (
    Callback,
    Checkpoint,
    ClassWeight,
    DecoderLike,
    Forbidden,
    IgnoredLabel,
    LossLike,
    OptimizerLike,
)
from isinglass.estimators.predicting import warn_of_one_label
from isinglass.estimators.sequence.base import SequenceEstimator
from isinglass.estimators.sequence.constraints import constraints
from isinglass.estimators.sequence.training import (
    ChainProblem,
    chain_choices,
    minibatch_choices,
    one_epoch,
    problem_of,
    with_share,
    with_validation,
)
from isinglass.learning.training.checks import require_terms
from isinglass.learning.training.choices import Choices
from isinglass.learning.training.stages import ENDS_ALL, Trained
from isinglass.models.chain.model import ends_of

SHOWN = 500  # sequences of the training data that are looked at after a fit


@dataclass(eq=False, repr=False)
class LogLinearSequence(SequenceEstimator):
    """Base class of log-linear estimators for sequences; subclasses have a `loss`.

    Parameters
    ----------
    l2 : float, default=1
        The squared penalty of the parameters.
    l1 : float
        The absolute-value penalty. With it the optimizer is OWL-QN, and many parameters are zero.
    state_features : "seen" or "all", default="seen"
        Which pairs of attribute and label have a weight: those that occur in the training data, or all.
    min_count : int, default=1
        Pairs ("seen") or attributes ("all") that occur less often have no weight.
    boundary : bool, default=True
        Whether there are parameters for the first and for the last label of a sequence.
    bias : bool, default=True
        Append a constant attribute to each token.
    warm_start : bool
        Whether `fit` starts from the parameters, attributes and classes of the last `fit`.
    """

    _optimizer_state: Any = field(default=None, init=False)  # of `partial_fit`
    _seen: float = field(default=0.0, init=False)  # the weight of the sequences that were learned from
    _told: bool = field(default=False, init=False)  # that `n_total` is missing
    loss: LossLike = field(init=False)  # the places of parameters that some subclasses have
    optimizer: OptimizerLike = "auto"
    l2: float = 1.0
    l1: float = 0.0
    state_features: str = "seen"
    min_count: int = 1
    boundary: bool = True
    bias: bool = True
    forbidden: Forbidden = None
    decoder: DecoderLike = "auto"
    n_states: int | None = None
    ignore_label: IgnoredLabel = None
    class_weight: ClassWeight = None
    tol: float = 1e-4
    max_iter: int = 200
    patience: int = 5
    n_jobs: int | None = None
    warm_start: bool = False
    checkpoint: Checkpoint = None
    callback: Callback = None
    verbose: bool = False

    def fit(self, X: Any, Y: Any, sample_weight: Any = None, validation: Any = None) -> Self:
        """Learn the parameters.

        Ctrl-C ends training cleanly: the best parameters so far are kept, with a warning.

        Parameters
        ----------
        X : list of sequences
            Arrays (length, features), dense or scipy.sparse, or lists of tokens: dicts or lists of strings.
        Y : list of label sequences
            Labels of one hashable type. "Not observed" is None; for numbers also -1, or a masked entry.
        sample_weight : array (sequences,), optional
            The weight of each sequence.
        validation : tuple (X, Y), optional
            Validation data, for early stopping. Their loss is computed after each iteration (with minibatches: after
            each epoch). The parameters with the lowest validation loss are kept. Training ends after `patience`
            evaluations without a lower loss.
        """
        return self._train(X, Y, sample_weight, validation)

    def _choices(self) -> Choices:
        return chain_choices(self)

    def _announcements(self, problems: list[Any]) -> list[str]:
        for one in problems:
            before = np.delete(np.arange(one.data.offsets[-1]), ends_of(one.data.offsets)[1])
            require_terms(one.chosen.loss, one.labels, [np.stack([before, before + 1], axis=1)], 4)
        return super()._announcements(problems)

    def _problem(self, chosen: Choices, X: Any, Y: Any, sample_weight: Any, validation: Any) -> ChainProblem:
        again = bool(self.warm_start) and hasattr(self, "theta_")
        return with_validation(
            problem_of(self, chosen, X, Y, sample_weight, known=again), validation, self.ignore_label
        )

    def partial_fit(
        self, X: Any, Y: Any, classes: Any = None, sample_weight: Any = None, n_total: float | None = None
    ) -> Self:
        """Make one pass through some sequences with a minibatch optimizer ("sgd", "adagrad", "adam"; "auto": AdaGrad).

        New attributes of later calls get weights that start at zero; with ``state_features="seen"`` so do new pairs of
        attribute and label. `min_count` counts within one call. The number of columns of arrays, and the labels, are
        those of the first call: list all labels there. A loss that `fit` would start from another one is minimised from
        the first call on; to start from the other loss, call `partial_fit` with that loss first.

        Parameters
        ----------
        X, Y, sample_weight
            As for `fit`.
        classes : list, optional
            All labels; by default those of the first call.
        n_total : float, optional
            The number of sequences of the whole data (or the sum of their weights), of all calls that make one pass
            through them. The share of a call in the penalty is its number of sequences / n_total. By default those
            that were seen so far count as all.
        """
        known = hasattr(self, "theta_")
        before = self._seen if known else 0.0
        problem = problem_of(
            self, minibatch_choices(self), X, Y, sample_weight, known=known, classes=classes, grow=True
        )
        problem = with_share(problem, n_total, before)
        if not known:
            self.history_ = []
        found = one_epoch(problem, self)
        self._set_result(found)
        self._set(problem)
        self._optimizer_state, self._seen = found.state, before + problem.weight
        if n_total is None and before and problem.chosen.l2 and not self._told:
            self._told = True
            text = "partial_fit without n_total: the penalty is that of the sequences seen so far, and weaker with each"
            warnings.warn(f"{text} call; give n_total=, the number of sequences of the whole data", stacklevel=2)
        self._look_for_one_label(problem, 2)
        if not found.converged and "finite" in found.message:
            warn_of_convergence(f"partial_fit stopped: {found.message}; fit anew with a smaller learning rate", 2)
        return self

    def _keep(self, stage: Any, trained: Trained) -> None:
        assert isinstance(trained.problem, ChainProblem)
        self._set(trained.problem)
        self._optimizer_state, self._seen = None, trained.problem.weight
        if self.message_ not in ENDS_ALL:
            self._look_for_one_label(trained.problem, 4)

    def _look_for_one_label(self, problem: ChainProblem, stacklevel: int) -> None:
        """Warn if the first sequences are all given the same label."""
        some = problem.data.first(SHOWN)
        rules = constraints(None, None, None, self.classes_, some.offsets)
        labels = problem.labels[: int(some.offsets[-1])]
        warn_of_one_label(labels, lambda: self._codes(some, rules), self.classes_, stacklevel + 1)

    def _set(self, problem: ChainProblem) -> None:
        """Set what the parameters belong to."""
        self.index_, self.classes_, self.model_ = problem.index, problem.classes, problem.model
        self.parameters_ = problem.model.split(self.theta_)
        self.n_features_in_ = problem.index.n_given
