"""What estimators for sequences share whose parameters are found by an optimiser."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from isinglass import losses
from isinglass.errors import warn_of_convergence
from isinglass.estimators.sequence.base import SequenceEstimator
from isinglass.estimators.sequence.training import (
    ChainChoices,
    ChainProblem,
    checked,
    go_on,
    problem_of,
    with_validation,
)
from isinglass.learning.optimizers.base import OptimResult
from isinglass.learning.training.loop import Epoch, train, warning_of
from isinglass.learning.training.stages import ENDS_ALL, opened, start_line, start_loss
from isinglass.typing import FloatArray


class LogLinearSequence(SequenceEstimator):
    """Base class of log-linear estimators for sequences; subclasses have a `loss`."""

    loss: Any
    order: Any = 1
    warm_start: Any
    started_from_: str | None = None

    def _checked(self) -> ChainChoices:
        return checked(self)

    def fit(self, X: Any, Y: Any, sample_weight: Any = None, validation: Any = None) -> Self:
        """Learn the parameters.

        Ctrl-C ends training in order: the best parameters so far are kept, with a warning.

        Parameters
        ----------
        X : list of sequences
            Arrays (length, features), dense or scipy.sparse, or lists of tokens: dicts or lists of strings.
        Y : list of label sequences
            Labels of one type, any that is hashable; None, -1 among numbers, and what is masked, is "not observed".
        sample_weight : array (sequences,), optional
            How often each sequence counts.
        validation : tuple (X, Y), optional
            Sequences that nothing is learned from. Their loss is looked at after each iteration (each epoch, with
            minibatches): the parameters where it was least are kept, and after `patience` looks without a lower one
            training ends.
        """
        chosen = self._checked()
        again = bool(self.warm_start) and hasattr(self, "theta_")
        problem = with_validation(problem_of(self, chosen, X, Y, sample_weight, known=again), validation)
        start = self.theta_.copy() if again else np.zeros(problem.model.size)
        problem.chosen.optimizer.check(len(start))
        self.history_: list[Epoch] = []
        self.started_from_ = None if again else start_loss(self)
        found = self._train(problem, start)
        self._keep(problem, found)
        self._warn(found)
        return self

    def _train(self, problem: ChainProblem, start: FloatArray) -> OptimResult:
        """Minimise the loss, after the one that it starts from if there is such a loss."""
        if self.started_from_ is None:
            return train(problem, start, self)
        first = replace(problem, chosen=replace(problem.chosen, loss=losses.make(self.started_from_)))
        before, after = opened(self)
        if before.verbose:
            print(start_line(problem.chosen.loss), flush=True)
        found = train(first, start, before)
        if found.message in ENDS_ALL:
            return found
        return train(problem, found.x, after, 1)

    def partial_fit(self, X: Any, Y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go once through some sequences with a minibatch optimiser ("sgd", "adagrad", "adam").

        A loss that `fit` starts from another one is minimised from the first call on: call it with that one first.
        Attributes that come later get weights, which begin at zero, as do pairs of attribute and label with
        `state_features="seen"`; `min_count` is of one call. Columns of arrays stay as many as in the first call, and
        labels are those of the first call: name all of them there.

        Parameters
        ----------
        X, Y, sample_weight
            As for `fit`. The penalty counts in full for these sequences.
        classes : list, optional
            All labels; without it those of the first call.
        """
        chosen = self._checked()
        known = hasattr(self, "theta_")
        problem = problem_of(self, chosen, X, Y, sample_weight, known=known, classes=classes, grow=True)
        if not known:
            self.history_ = []
        found = go_on(problem, self)
        self._keep(problem, found)
        self._optimizer_state = found.state
        if not found.converged and "finite" in found.message:
            warn_of_convergence(f"partial_fit stopped: {found.message}; fit anew with a smaller learning rate", 2)
        return self

    def _keep(self, problem: ChainProblem, found: OptimResult) -> None:
        """Set what is learned."""
        self.index_ = problem.index
        self.classes_ = problem.classes
        self.model_ = problem.model
        self.theta_ = found.x
        self.parameters_ = problem.model.split(found.x)
        self.n_features_in_ = problem.index.n_given
        self.n_iter_, self.converged_, self.objective_ = found.iterations, found.converged, found.value
        self.message_ = found.message

    def _warn(self, found: OptimResult) -> None:
        """Say where training did not end by itself."""
        if (text := warning_of(found)) is not None:
            warn_of_convergence(text, stacklevel=3)
