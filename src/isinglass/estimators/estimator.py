"""The base class of all estimators: parameters, training, and safe files.

Estimators follow the conventions of scikit-learn: ``__init__`` checks nothing, `fit` checks everything before any work,
and learned attributes end in an underscore. A subclass is a dataclass whose fields are its parameters; it defines the
objective:

    choices  ->  problem (data, as a function of the parameters)  ->  training in stages  ->  what is learned
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError, no_convergence_warnings, warn_of_convergence
from isinglass.estimators import persistence
from isinglass.estimators.parameters import Callback, Checkpoint, ClassWeight, OptimizerLike, StagesLike
from isinglass.io.files import PathLike
from isinglass.learning.optimizers.base import OptimResult
from isinglass.learning.optimizers.descent import growth_message
from isinglass.learning.training.choices import Choices
from isinglass.learning.training.history import Epoch
from isinglass.learning.training.loop import doubt_of, warning_of
from isinglass.learning.training.problem import TrainingProblem
from isinglass.learning.training.stages import (
    Trained,
    check_starts,
    checked_stages,
    problems_of,
    stages_of,
    start_line,
    start_loss,
    train_stages,
)
from isinglass.removed import RemovedOptions, refuse_removed_options
from isinglass.runtime.sklearn_base import BaseEstimator, NotFittedError
from isinglass.typing import FloatArray

SAMPLED = "gradients by sampling have no test of convergence: compare runs with other seeds, or raise max_iter"


class Estimator(RemovedOptions, BaseEstimator):  # type: ignore[misc]
    """Base class of estimators.

    Parameters
    ----------
    loss : str or Loss
        The loss that is minimised. Some losses start from another one, see `started_from_`.
    optimizer : str or Optimizer, default="auto"
        "auto": "lbfgs", unless another one suits the loss (``facts.optimizer``). For "margin" and "slack", if every
        parameter has a squared penalty: "bcfw" on chains, else "cutting-plane", until the relative
        duality gap is 100 times `tol`; "cccp", if labels are not observed. For "perceptron": "averaged-perceptron".
        For losses that sample: "adagrad".
    class_weight : "balanced", dict or array, optional
        Weights of the labels in the loss.
    tol, max_iter
        The tolerance and the maximal number of iterations (with minibatches: epochs) of an optimizer given by name.
        "lbfgs" stops when the norm of the gradient is at most `tol` times max(1, min(norm of the parameters, root of
        the objective)), or when the relative decrease of the objective is at most `ftol`: 1e-10, or less if `tol` is
        below 1e-4. Where parameters without a penalty grow without end it has not converged.
    warm_start : bool
        Whether `fit` starts from the parameters of the last `fit`.
    patience : int, default=5
        With validation data: training ends after this number of iterations (with minibatches: epochs) without a lower
        validation loss.
    n_jobs : int, optional
        The number of threads of `fit` and of predictions; -1: one for each processor. The default is the environment
        variable ISINGLASS_THREADS, or one. The result has the same bits for any number of threads.
    checkpoint : str or os.PathLike, optional
        A file to which the state of training is written after each iteration. If the file exists, training resumes from
        it, and gives the same bits as an uninterrupted run. A file of other data or settings is refused. Further stages
        have their own files, ``run.stage1.npz`` and so on for ``run.npz``.
    callback : callable, optional
        Called with the progress of each iteration; training ends if it returns True.
    verbose : bool
        Print each iteration: objective, gradient norm, iterations of inference, and the share of examples that
        converged.

    Attributes
    ----------
    theta_ : array
        All parameters in one vector.
    history_ : list of Epoch
        One entry for each iteration.
    n_iter_, converged_, objective_, message_
        For the last stage of training: the number of iterations, whether the tolerance was reached, the
        objective at `theta_` (where it is sampled, and in `partial_fit`, while the parameters moved), and why training
        ended. Optimizers that go through examples in batches prove no minimum: `converged_` is False after them, unless
        the objective is at a known lower bound.
    """

    schema: ClassVar[str]  # the name in files
    version: ClassVar[int] = 1  # of the files
    _as_arrays: ClassVar[tuple[str, ...]] = ()  # parameters that `_contents` writes
    _remedy: ClassVar[str] = "raise max_iter or tol"

    # parameters that a subclass need not have
    callback: Callback = None
    checkpoint: Checkpoint = None
    class_weight: ClassWeight = None
    l2: float = 0.0
    max_iter: int = 200
    n_jobs: int | None = None
    optimizer: OptimizerLike = "auto"
    patience: int = 5
    stages: StagesLike = None
    tol: float = 1e-4
    verbose: bool = False
    warm_start: bool = False

    def set_params(self, **parameters: object) -> Any:
        """Set parameters, as in scikit-learn."""
        refuse_removed_options(type(self).__name__, parameters)
        return super().set_params(**parameters)

    theta_: FloatArray
    history_: list[Epoch]
    started_from_: str | None = None

    def _choices(self) -> Choices:
        """Check every parameter, and return what they stand for; `training_choices` does most of it."""
        raise NotImplementedError

    def _problem(self, chosen: Any, *data: Any) -> TrainingProblem:
        """Check the arguments of `fit`, and make them a function of the parameters."""
        raise NotImplementedError

    def _keep(self, stage: Any, trained: Trained) -> None:
        """Set what was learned, beside `theta_`; `stage` is the estimator of the stage that training ended in."""

    def _judged(self, found: OptimResult) -> OptimResult:
        """Return the result of training, with what an estimator knows of the existence of a minimum."""
        return found

    def _contents(self) -> tuple[dict[str, Any], Mapping[str, ArrayLike]]:
        """Return what a file holds beside parameters, `theta_` and the history: metadata (JSON) and arrays."""
        return {}, {}

    def _restore(self, saved: persistence.Saved) -> None:
        """Set what was learned from a file; `theta_` and the history are there already."""

    @classmethod
    def _from_arrays(cls, saved: persistence.Saved) -> dict[str, Any]:
        """Return the parameters `_as_arrays` from a file."""
        return {}

    def _check(self) -> None:
        """Check every parameter."""
        checked_stages(self)

    def _has_data_of(self, other: Self) -> bool:
        """Tell whether a stage has the same problem, but for its choices, as the one before it."""
        return True

    def _warm_start(self, problem: Any) -> Any:
        """Return what a warm start begins with, in the form of `_learned`."""
        return self.theta_

    def _start(self, problem: Any, before: Any, stage: int) -> FloatArray:
        """Return where training begins: with what was learned before, or, where that is None, at zero."""
        if before is None:
            return np.zeros(problem.size)
        if len(before) != problem.size:
            got = f"{problem.size} parameters after {len(before)}"
            raise InputError("warm_start", "the same parameters as in the last fit", got, "use warm_start=False")
        return np.array(before)

    def _learned(self, problem: Any, theta: FloatArray) -> Any:
        """Return what the next stage begins with."""
        return theta

    def _train(self, *data: Any) -> Self:
        """Learn the parameters from the arguments of `fit`, which calls this, in one stage or in several."""
        warm = bool(self.warm_start) and hasattr(self, "theta_")
        stages = stages_of(self, from_zero=not warm)
        problems = problems_of(self, stages, *data)
        before = self._warm_start(problems[0]) if warm else None
        check_starts(stages, problems, before)
        self.history_ = []
        self.started_from_ = None if warm else start_loss(self)
        for stage in stages:
            stage.history_ = self.history_
        for line in self._announcements(problems):
            if self.verbose:
                print(line, flush=True)
        with no_convergence_warnings():  # whether inference converged is in history_
            trained = train_stages(stages, problems, before)
        self._set_result(trained.found)
        self._keep(stages[trained.stage], trained)
        found = self._judged(self._named_growth(trained.found))
        self.converged_, self.message_ = found.converged, found.message
        remedy = SAMPLED if problems[trained.stage].sampled else self._remedy
        stopped = warning_of(found, self._where(trained.stage), remedy)
        if trained.problem.chosen.remark is not None:
            warnings.warn(trained.problem.chosen.remark, UserWarning, stacklevel=3)
        for text in (stopped, doubt_of(found, trained.problem.chosen.loss)):
            if text is not None:
                warn_of_convergence(text, stacklevel=3)  # where `fit` is called
        return self

    def _set_result(self, found: OptimResult) -> None:
        """Set what every training finds."""
        self.theta_ = found.x
        self.n_iter_, self.converged_, self.objective_ = found.iterations, found.converged, found.value
        self.message_ = found.message

    def _named_growth(self, found: OptimResult) -> OptimResult:
        """Return a result that names the largest of the parameters that grow without end, if some do."""
        if not found.growing:
            return found
        i = found.growing[0]
        remedy = f"use a penalty ({'l2, prior' if hasattr(self, 'prior') else 'l2'})"
        return replace(found, message=growth_message(self._parameter_name(i), float(found.x[i]), remedy))

    def _parameter_name(self, i: int) -> str:
        """Return what an entry of `theta_` is called."""
        place = i
        for name, array in getattr(self, "parameters_", {}).items():
            if place < array.size and not getattr(self, "own_parameters", False):
                return f"{name}[{', '.join(map(str, np.unravel_index(place, array.shape)))}]"
            place -= array.size
        return f"theta_[{i}]"

    def _announcements(self, problems: list[Any]) -> list[str]:
        """Return what `verbose` says before training: what was chosen in the user's place."""
        last = problems[-1].chosen
        lines = [
            (self.started_from_ is not None, start_line(last.loss)),
            (last.suited and last.loss.facts.optimizer is not None, f"optimizer: {last.optimizer.name!r}, by the loss"),
        ]
        return [line for said, line in lines if said]

    def _where(self, stage: int) -> str:
        """Say in which stage training ended."""
        if self.started_from_ is not None and stage == 0:
            return f"the start of training, with loss {self.started_from_!r},"
        return "training" if self.stages is None else f"stage {stage} of training"

    def save(self, path: PathLike, notes: Mapping[str, Any] | None = None) -> None:
        """Write the fitted estimator to a file, atomically.

        The file holds arrays and JSON, and no code. `checkpoint` is not stored. A `callback`, or an object of a class
        that is not registered, is refused, and so are labels other than strings, numbers, Booleans and tuples of these.

        Parameters
        ----------
        path : str or os.PathLike
        notes : mapping, optional
            Additional JSON values to store in the file; `isinglass.estimators.notes_of` reads them.
        """
        self._require_fitted()
        persistence.save(self, path, notes)

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Read an estimator that `save` wrote. Files from untrusted sources are safe to read.

        Parameters
        ----------
        path : str or os.PathLike

        Returns
        -------
        estimator
            The fitted estimator, with the same predictions.

        Raises
        ------
        FileFormatError
            If the file is damaged or is not a file of this estimator.
        """
        return persistence.load_as(cls, path)  # type: ignore[no-any-return]

    def _require_fitted(self) -> None:
        if not hasattr(self, "theta_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")
