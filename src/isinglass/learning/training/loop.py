"""Training: one problem, whole or in minibatches, with its history, and with a file to go on from.

With validation data the loss on them, without penalties, is looked at after each iteration (each epoch, where the
optimizer goes through minibatches). The parameters where it was least are those that are kept, and training ends when
`patience` further looks found none less (Prechelt 1998).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from isinglass.errors import FileFormatError, InputError, require
from isinglass.io.files import shown_path
from isinglass.learning.checkpoint import Journal, read_extra, resume
from isinglass.learning.optimizers.base import OptimResult, Progress, along
from isinglass.learning.optimizers.descent import NO_STEP
from isinglass.learning.optimizers.state import State
from isinglass.learning.training.history import Epoch, history_of, history_rows
from isinglass.learning.training.problem import TrainingObjective, TrainingProblem
from isinglass.losses import Loss
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import whole_number

ROUNDING = 1e-6  # of an objective
JUMPS = (
    "the line search found no better point: inference {name!r} jumps between fixed points, or finds none, while "
    "parameters change, and so the objective jumps; use damping (an option of the inference), 'trw' or 'convex', exact "
    "inference, or a fixed number of iterations (iterations=)"
)
DECISIONS_JUMP = (
    "the line search found no better point: the loss jumps where its decoder decides otherwise ('f1': where the number "
    "of positives changes); optimizer='adam' goes on across jumps, for all stages or for one, {'loss': ..., "
    "'optimizer': 'adam'}; compare objective_, which may be higher"
)
_KEPT = 256  # compiled minibatches
_MEMORY = "memory."
_PAUSE = 1.0  # seconds between two checkpoints of minibatches, of which a run may have many thousands


def train(problem: TrainingProblem, start: FloatArray, estimator: Any, stage: int = 0) -> OptimResult:
    """Minimise the objective; the history, to which a stage adds its own, and the callback are the estimator's."""
    optimizer, state = problem.optimizer, None
    monitor = TrainingMonitor(estimator, problem.validation_objective(), stage)
    if estimator.checkpoint is not None:
        mark = problem.fingerprint(start)
        state = _resumed(estimator.checkpoint, mark, monitor, len(start))
        pause = _PAUSE if optimizer.minibatch else 0.0
        monitor.journal = Journal(estimator.checkpoint, optimizer, extra=lambda: monitor.entries(mark), seconds=pause)
        monitor.memory = problem.memory
        if state is not None:
            problem.restore(state.evaluations, _memory_in(read_extra(estimator.checkpoint)))
    if monitor.impatient():  # ended before by the validation loss: nothing is left to do
        assert state is not None
        optimizer = optimizer.at_its_end(state)
    try:
        if optimizer.minibatch:
            parts = Parts(problem, monitor)
            found = optimizer.minimise_batches(parts, problem.n_examples, start, callback=monitor, state=state)
        else:
            monitor.objective = problem.objective()
            found = optimizer.minimise(monitor.objective, start, callback=monitor, state=state)
    finally:
        if monitor.journal is not None:
            monitor.journal.finish()
    if found.message == NO_STEP and problem.chosen.loss.jumps:
        found = replace(found, message=DECISIONS_JUMP)
    elif found.message == NO_STEP and (name := approximate_inference(problem)) is not None:
        found = replace(found, message=JUMPS.format(name=name))
    return monitor.best_of(found)


def approximate_inference(problem: TrainingProblem) -> str | None:
    """Return the name of an inference that runs to a fixed point, of which there may be several; else None."""
    chosen: Any = problem.chosen
    if not hasattr(chosen, "algorithm"):
        return None
    infers = chosen.method.facts.log_z if hasattr(chosen, "method") else chosen.loss.facts.uses != "potentials"
    data: Any = getattr(problem, "data", problem)
    exact = {"always": True, "never": False, "forests": data.model.graph.is_forest}[chosen.algorithm.facts.exact]
    open_end = chosen.algorithm.facts.iterative and chosen.algorithm.iterations is None
    return chosen.algorithm.name if infers and open_end and not exact else None


def warning_of(found: OptimResult, where: str = "training", remedy: str = "raise max_iter or tol") -> str | None:
    """Return what to say of training that did not end by itself; None where there is nothing to say."""
    if found.message == "interrupted":
        return f"{where} was interrupted after {found.iterations} iterations; the best parameters so far are kept"
    if found.converged or found.message.startswith(("stopped by the callback", "the validation loss")):
        return None
    text = f"{where} stopped after {found.iterations} iterations: {found.message}"
    at_limit = found.message.startswith(("reached", "ran"))  # an optimizer that is stuck says itself what helps
    return f"{text}; {remedy}" if at_limit else text


def doubt_of(found: OptimResult, loss: Loss) -> str | None:
    """Return what to say of a model that learned nothing, or of a likelihood above one; None otherwise.

    Log Z of exact inference gives no likelihood above one. An approximate log Z may be less than the score of one
    assignment; training can then make it so without end.
    """
    if loss.facts.nonnegative and found.value == 0 and not found.x.any():
        return (
            f"all parameters are zero, where the loss {loss.name!r} with its penalty is least: nothing was learned. "
            "Use optimizer='averaged-perceptron' with l2=0, or loss='margin'"
        )
    if loss.facts.uses != "log_z" or found.value >= -ROUNDING:
        return None
    return (
        f"the objective is {found.value:.4g}, a likelihood above one: log Z of this inference is too small, and the "
        "objective may have no minimum. Use inference='trw' with gradient='envelope', whose log Z is an upper bound, "
        "exact inference, or a loss of beliefs, such as 'ucl'"
    )


class Parts:
    """The objective of minibatches, which are in the order of the data; those that come back are compiled once.

    Its values are `estimates` where they are sampled, or where nobody asks for more.
    """

    def __init__(self, problem: TrainingProblem, monitor: TrainingMonitor) -> None:
        self.problem, self.monitor, self.estimates = problem, monitor, problem.sampled
        self.least = 0.0 if problem.chosen.loss.facts.nonnegative else -math.inf
        self.proved = True  # so far; see `Proving`
        self.known: dict[tuple[int, ...], TrainingObjective] = {}
        self.last: tuple[tuple[int, ...], TrainingObjective] | None = None  # of a batch, for its Hessian

    def __call__(self, rows: IntArray, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and gradient of some examples."""
        self.monitor.objective = self._objective(np.sort(rows))
        found = self.monitor.objective(theta)
        self.proved = self.proved and bool(getattr(self.monitor.objective, "proved", True))
        return found

    def hessian_product(self, rows: IntArray, theta: FloatArray, v: FloatArray) -> FloatArray:
        """Return the Hessian of the objective of some examples, times a vector."""
        objective = self._objective(np.sort(rows))
        own = getattr(objective, "hessian_product", None)
        return along(lambda point: objective(point)[1], theta, v) if own is None else own(theta, v)

    def _objective(self, rows: IntArray) -> TrainingObjective:
        key = tuple(rows.tolist())
        if key in self.known:
            return self.known[key]
        if self.last is not None and self.last[0] == key:
            return self.last[1]
        objective = self.problem.part_objective(rows)
        self.last = key, objective
        if len(key) in (1, self.problem.n_examples):  # others are shuffled, and hardly ever come back
            if len(self.known) >= _KEPT:
                self.known.pop(next(iter(self.known)))
            self.known[key] = objective
        return objective


class TrainingMonitor:
    """The callback that keeps the history and the best parameters, writes the checkpoint, and asks the user's."""

    def __init__(self, estimator: Any, validation: TrainingObjective | None, stage: int = 0) -> None:
        self.estimator, self.stage = estimator, stage
        self.history: list[Epoch] = []  # of this stage
        self.looks: list[Epoch] = []  # those of them with a loss on the validation data
        self.validation = validation
        self.best: FloatArray | None = None
        self.objective: TrainingObjective | None = None
        self.journal: Journal | None = None
        self.memory: Callable[[int], Mapping[str, Array]] = lambda evaluations: {}

    def __call__(self, progress: Progress) -> bool:
        """Keep an iteration, and ask whether to stop."""
        assert self.objective is not None
        how = self.objective.iterations, self.objective.converged_share
        looked = self._looked(progress)
        epoch = Epoch(progress.iteration, progress.value, progress.gradient_norm, *how, looked, self.stage)
        self.add([epoch])
        if epoch.validation is not None and self._since_best() == 0:
            self.best = np.array(progress.x)
        if self.journal is not None:
            self.journal(progress)
        if self.estimator.verbose:
            print(epoch, flush=True)
        stop = self.estimator.callback is not None and bool(self.estimator.callback(progress))
        return self.impatient() or stop

    def add(self, epochs: list[Epoch]) -> None:
        """Add to the history, and to that of the estimator."""
        self.history.extend(epochs)
        self.looks.extend(epoch for epoch in epochs if epoch.validation is not None)
        self.estimator.history_.extend(epochs)

    def impatient(self) -> bool:
        """Tell whether the validation loss has not fallen for long enough."""
        return self._since_best() >= whole_number(self.estimator.patience, "patience", 1)

    def best_of(self, found: OptimResult) -> OptimResult:
        """Return the best parameters by validation, where there are such data."""
        if self.best is None or np.array_equal(found.x, self.best):
            return found
        chosen, message = self.looks[-1 - self._since_best()], found.message
        if self.impatient():
            message = f"the validation loss has not fallen for {self._since_best()} iterations"
        elif found.converged or found.growing:
            message = f"the validation loss was least after iteration {chosen.iteration}"
        return replace(found, x=self.best, value=chosen.value, converged=False, message=message, growing=())

    def entries(self, mark: str) -> dict[str, Array]:
        """Return what goes into a checkpoint beside the state."""
        assert self.journal is not None
        assert self.journal.latest is not None
        best = {} if self.best is None else {"best": self.best}
        done = [epoch for epoch in self.history if epoch.iteration <= self.journal.latest.iteration]
        kept = self.memory(self.journal.latest.state.evaluations)
        memory = {f"{_MEMORY}{name}": array for name, array in kept.items()}
        return {"problem": np.asarray(mark), "history": history_rows(done), **best, **memory}

    def _looked(self, progress: Progress) -> float | None:
        """Return the loss on the validation data, at the end of an iteration or epoch."""
        if self.validation is None or progress.state.within_epoch:
            return None
        loss = self.validation.unpenalised(progress.x)
        remedy = "leave out examples with labels that the model makes impossible"
        require(math.isfinite(loss), "validation", "examples with a finite loss", f"{loss}", remedy)
        return loss

    def _since_best(self) -> int:
        """Return how many looks at the validation data came after the best one."""
        losses = [epoch.validation for epoch in self.looks]
        return len(losses) - 1 - int(np.argmin(np.array(losses, np.float64))) if losses else 0


def _memory_in(extra: Mapping[str, Array]) -> dict[str, Array]:
    """Return what a problem keeps, of the further arrays of a checkpoint."""
    return {name.removeprefix(_MEMORY): array for name, array in extra.items() if name.startswith(_MEMORY)}


def _resumed(path: Any, mark: str, monitor: TrainingMonitor, size: int) -> State | None:
    """Return the state in a checkpoint of this very problem, or None where there is no file yet."""
    if not os.path.exists(path):
        return None
    extra = read_extra(path)
    if str(extra.get("problem")) != mark:
        expected, got = "a checkpoint of this problem", f"{os.fspath(path)!r}, of other data, choices or start"
        raise InputError("checkpoint", expected, got, "name another file, or remove this one to begin anew")
    monitor.add(history_of(extra.get("history"), shown_path(path)))
    monitor.best = extra.get("best")
    if monitor.best is not None and (monitor.best.dtype != np.float64 or monitor.best.shape != (size,)):
        raise FileFormatError(shown_path(path), None, f"{size} best parameters", f"shape {monitor.best.shape}")
    return resume(path).state
