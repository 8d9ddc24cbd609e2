"""The base class of estimators for sequences whose parameters are found by an optimizer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

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
from isinglass.estimators.sequence.base import SequenceEstimator
from isinglass.estimators.sequence.training import ChainProblem, chain_choices, one_epoch, problem_of, with_validation
from isinglass.learning.training.choices import Choices
from isinglass.learning.training.stages import Trained


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

    def _problem(self, chosen: Choices, X: Any, Y: Any, sample_weight: Any, validation: Any) -> ChainProblem:
        again = bool(self.warm_start) and hasattr(self, "theta_")
        return with_validation(
            problem_of(self, chosen, X, Y, sample_weight, known=again), validation, self.ignore_label
        )

    def partial_fit(self, X: Any, Y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Make one pass through some sequences with a minibatch optimizer ("sgd", "adagrad", "adam").

        New attributes of later calls get weights that start at zero; with ``state_features="seen"`` so do new pairs of
        attribute and label. `min_count` counts within one call. The number of columns of arrays, and the labels, are
        those of the first call: list all labels there. A loss that `fit` would start from another one is minimised from
        the first call on; to start from the other loss, call `partial_fit` with that loss first.

        Parameters
        ----------
        X, Y, sample_weight
            As for `fit`. The penalty is applied in full for these sequences.
        classes : list, optional
            All labels; by default those of the first call.
        """
        known = hasattr(self, "theta_")
        chosen = self._choices()
        problem = problem_of(self, chosen, X, Y, sample_weight, known=known, classes=classes, grow=True)
        if not known:
            self.history_ = []
        found = one_epoch(problem, self)
        self._set_result(found)
        self._set(problem)
        self._optimizer_state = found.state
        if not found.converged and "finite" in found.message:
            warn_of_convergence(f"partial_fit stopped: {found.message}; fit anew with a smaller learning rate", 2)
        return self

    def _keep(self, stage: Any, trained: Trained) -> None:
        assert isinstance(trained.problem, ChainProblem)
        self._set(trained.problem)

    def _set(self, problem: ChainProblem) -> None:
        """Set what the parameters belong to."""
        self.index_, self.classes_, self.model_ = problem.index, problem.classes, problem.model
        self.parameters_ = problem.model.split(self.theta_)
        self.n_features_in_ = problem.index.n_given
