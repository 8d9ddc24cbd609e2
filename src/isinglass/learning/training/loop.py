"""Training: one problem, whole or in minibatches, with its history, and with a file to go on from.

With validation data the loss on them, without penalties, is looked at after each iteration (each epoch, where the
optimiser goes through minibatches). The parameters where it was least are those that are kept, and training ends when
`patience` further looks found none less (Prechelt 1998).
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np

from isinglass.errors import FileFormatError, InputError
from isinglass.io.files import shown_path
from isinglass.learning.checkpoint import Journal, read_extra, resume
from isinglass.learning.optimizers import Optimizer
from isinglass.learning.optimizers.base import OptimResult, Progress
from isinglass.learning.optimizers.minibatch import MiniBatch, MiniBatchState
from isinglass.learning.optimizers.state import State
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import whole_number

_KEPT = 256  # compiled minibatches
_PAUSE = 1.0  # seconds between two checkpoints of minibatches, of which a run may have many thousands


@dataclass(frozen=True)
class Epoch:
    """One iteration of training, as `history_` keeps it.

    Attributes
    ----------
    iteration : int
    value, gradient_norm : float
        The objective and the length of its gradient.
    inference_iterations : int
        The most that an example took.
    converged_share : float
        The share of examples of which it is known that inference converged.
    validation : float or None
        The loss on validation data, where there are some; None within an epoch of minibatches.
    stage : int
        Which of the `stages` of training it belongs to.
    """

    iteration: int
    value: float
    gradient_norm: float
    inference_iterations: int
    converged_share: float
    validation: float | None = None
    stage: int = 0

    @property
    def converged(self) -> bool:
        """Whether inference converged on all examples."""
        return self.converged_share == 1

    def __str__(self) -> str:
        seen = "" if self.validation is None else f"  validation {self.validation:.6g}"
        return (
            f"{self.iteration:5d}  {self.value:.8g}  |g| {self.gradient_norm:.2e}  "
            f"inference: {self.inference_iterations} iterations, {self.converged_share:.0%} converged{seen}"
        )


class Trained(Protocol):
    """An objective, and how its last evaluation went."""

    @property
    def iterations(self) -> int:
        """The most iterations that an inference took."""

    @property
    def converged_share(self) -> float:
        """The share of examples of which it is known that inference converged."""

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient."""

    def unpenalised(self, theta: FloatArray) -> float:
        """Return the value without penalties."""


class Trainable(Protocol):
    """What training asks of a problem."""

    @property
    def optimizer(self) -> Optimizer[Any, Any]:
        """What minimises."""

    @property
    def n_examples(self) -> int:
        """How many examples minibatches are made of."""

    def objective(self) -> Trained:
        """Return what is minimised."""

    def part_objective(self, rows: IntArray) -> Trained:
        """Return the objective of some examples, with their share of the penalty."""

    def validation_objective(self) -> Trained | None:
        """Return the loss of the validation data, without penalties."""

    def fingerprint(self, start: FloatArray) -> str:
        """Return a text that another problem does not have."""


def train(problem: Trainable, start: FloatArray, crf: Any, stage: int = 0) -> OptimResult:
    """Minimise the objective; the history, to which a stage adds its own, and the callback are the estimator's."""
    optimizer, state = problem.optimizer, None
    told = Told(crf, problem.validation_objective(), stage)
    if crf.checkpoint is not None:
        mark = problem.fingerprint(start)
        state = _resumed(crf.checkpoint, mark, told, len(start))
        pause = _PAUSE if isinstance(optimizer, MiniBatch) else 0.0
        told.journal = Journal(crf.checkpoint, optimizer, extra=lambda: told.entries(mark), seconds=pause)
    if told.impatient():  # ended before by the validation loss: nothing is left to do
        assert state is not None
        optimizer = _at_its_end(optimizer, state)
    try:
        found = _minimised(problem, optimizer, start, told, state)
    finally:
        if told.journal is not None:
            told.journal.finish()
    return told.best_of(found)


def _minimised(
    problem: Trainable, optimizer: Optimizer[Any, Any], start: FloatArray, told: Told, state: State | None
) -> OptimResult:
    if isinstance(optimizer, MiniBatch):
        parts = Parts(problem, told)
        return optimizer.minimise_batches(parts, problem.n_examples, start, callback=told, state=state)
    told.objective = problem.objective()
    return optimizer.minimise(told.objective, start, callback=told, state=state)


def warning_of(found: OptimResult, where: str = "training", remedy: str = "raise max_iter or tol") -> str | None:
    """Return what to say of training that did not end by itself; None where there is nothing to say."""
    if found.message == "interrupted":
        return f"{where} was interrupted after {found.iterations} iterations; the best parameters so far are kept"
    if found.converged or found.message.startswith(("stopped by the callback", "the validation loss")):
        return None
    return f"{where} stopped after {found.iterations} iterations: {found.message}; {remedy}"


class Parts:
    """The objective of minibatches, which are in the order of the data; those that come back are compiled once."""

    def __init__(self, problem: Trainable, told: Told) -> None:
        self.problem, self.told = problem, told
        self.known: dict[tuple[int, ...], Trained] = {}

    def __call__(self, rows: IntArray, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and gradient of some examples."""
        self.told.objective = self._objective(np.sort(rows))
        return self.told.objective(theta)

    def _objective(self, rows: IntArray) -> Trained:
        key = tuple(rows.tolist())
        if key in self.known:
            return self.known[key]
        objective = self.problem.part_objective(rows)
        if len(key) in (1, self.problem.n_examples):  # others are shuffled, and hardly ever come back
            if len(self.known) >= _KEPT:
                self.known.pop(next(iter(self.known)))
            self.known[key] = objective
        return objective


class Told:
    """The callback that keeps the history and the best parameters, writes the checkpoint, and asks the user's."""

    def __init__(self, crf: Any, validation: Trained | None, stage: int = 0) -> None:
        self.crf, self.stage = crf, stage
        self.history: list[Epoch] = []  # of this stage
        self.validation = validation
        self.best: FloatArray | None = None
        self.objective: Trained | None = None
        self.journal: Journal | None = None

    def __call__(self, progress: Progress) -> bool:
        """Keep an iteration, and ask whether to stop."""
        assert self.objective is not None
        how = self.objective.iterations, self.objective.converged_share
        looked = self._looked(progress)
        epoch = Epoch(progress.iteration, progress.value, progress.gradient_norm, *how, looked, self.stage)
        self.add([epoch])
        if self._looks() and self._since_best() == 0 and epoch.validation is not None:
            self.best = np.array(progress.x)
        if self.journal is not None:
            self.journal(progress)
        if self.crf.verbose:
            print(epoch, flush=True)
        stop = self.crf.callback is not None and bool(self.crf.callback(progress))
        return self.impatient() or stop

    def add(self, epochs: list[Epoch]) -> None:
        """Add to the history, and to that of the estimator."""
        self.history.extend(epochs)
        self.crf.history_.extend(epochs)

    def impatient(self) -> bool:
        """Tell whether the validation loss has not fallen for long enough."""
        return self._since_best() >= whole_number(self.crf.patience, "patience", 1)

    def best_of(self, found: OptimResult) -> OptimResult:
        """Return the best parameters by validation, where there are such data."""
        if self.best is None:
            return found
        chosen = self._looks()[-1 - self._since_best()]
        result = replace(found, x=self.best, value=chosen.value)
        if not self.impatient():
            return result
        text = f"the validation loss has not fallen for {self._since_best()} iterations"
        return replace(result, converged=False, message=text)

    def entries(self, mark: str) -> dict[str, Array]:
        """Return what goes into a checkpoint beside the state."""
        assert self.journal is not None
        assert self.journal.latest is not None
        best = {} if self.best is None else {"best": self.best}
        done = [epoch for epoch in self.history if epoch.iteration <= self.journal.latest.iteration]
        return {"problem": np.asarray(mark), "history": history_rows(done), **best}

    def _looked(self, progress: Progress) -> float | None:
        """Return the loss on the validation data, at the end of an iteration or epoch."""
        state = progress.state
        if self.validation is None or (isinstance(state, MiniBatchState) and state.seen):
            return None
        loss = self.validation.unpenalised(progress.x)
        if not math.isfinite(loss):
            remedy = "leave out examples with labels that the model makes impossible"
            raise InputError("validation", "examples with a finite loss", f"{loss}", remedy)
        return loss

    def _looks(self) -> list[Epoch]:
        return [epoch for epoch in self.history if epoch.validation is not None]

    def _since_best(self) -> int:
        """Return how many looks at the validation data came after the best one."""
        losses = [epoch.validation for epoch in self._looks()]
        return len(losses) - 1 - int(np.argmin(np.array(losses, np.float64))) if losses else 0


def _at_its_end(optimizer: Optimizer[Any, Any], state: State) -> Optimizer[Any, Any]:
    """Return the optimiser with a limit that the state has reached."""
    if isinstance(state, MiniBatchState):
        return replace(optimizer, epochs=state.epoch)  # type: ignore[type-var]
    return replace(optimizer, max_iter=state.iteration)  # type: ignore[type-var]


def history_rows(history: list[Epoch]) -> FloatArray:
    """Return a history as an array (iterations, 6), or (iterations, 7) with stages; NaN where nothing was validated."""
    names = [field.name for field in fields(Epoch)]
    if not any(epoch.stage for epoch in history):
        names.remove("stage")
    rows = [[getattr(epoch, name) for name in names] for epoch in history]
    return np.asarray(rows, np.float64).reshape(-1, len(names))


def history_of(rows: Array | None, file: str) -> list[Epoch]:
    """Return the history that `history_rows` made an array of, once it is checked."""
    width = len(fields(Epoch))
    if rows is None or rows.dtype != np.float64 or rows.ndim != 2 or rows.shape[1] not in (width - 1, width):
        raise FileFormatError(file, None, f"a history (iterations, {width - 1} or {width})", "something else")
    looks, others = rows[:, 5], np.delete(rows, 5, axis=1)
    if not np.isfinite(others).all() or np.isinf(looks).any():
        raise FileFormatError(file, None, "a history of finite numbers", "others")
    return [_epoch(*row) for row in rows.tolist()]


def _epoch(i: float, v: float, g: float, n: float, share: float, seen: float, stage: float = 0.0) -> Epoch:
    return Epoch(int(i), v, g, int(n), share, None if math.isnan(seen) else seen, int(stage))


def _resumed(path: Any, mark: str, told: Told, size: int) -> State | None:
    """Return the state in a checkpoint of this very problem, or None where there is no file yet."""
    if not os.path.exists(path):
        return None
    extra = read_extra(path)
    if str(extra.get("problem")) != mark:
        expected, got = "a checkpoint of this problem", f"{os.fspath(path)!r}, of other data, choices or start"
        raise InputError("checkpoint", expected, got, "name another file, or remove this one to begin anew")
    told.add(history_of(extra.get("history"), shown_path(path)))
    told.best = extra.get("best")
    if told.best is not None and (told.best.dtype != np.float64 or told.best.shape != (size,)):
        raise FileFormatError(shown_path(path), None, f"{size} best parameters", f"shape {told.best.shape}")
    return resume(path).state
