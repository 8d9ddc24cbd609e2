"""Training: one problem, whole or in minibatches, with its history, and with a file to go on from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isinglass.errors import InputError
from isinglass.estimators.choices import Choices
from isinglass.learning.checkpoint import Journal, read_extra, resume
from isinglass.learning.objective import Objective
from isinglass.learning.optimisers import Optimizer
from isinglass.learning.optimisers.base import OptimResult, Progress
from isinglass.learning.optimisers.minibatch import MiniBatch
from isinglass.learning.optimisers.state import State
from isinglass.models import Model
from isinglass.validation import IntArray

FloatArray = NDArray[np.float64]
_KEPT = 256  # compiled minibatches
_LIMITS = ("max_iter", "epochs", "tol", "ftol")  # options of an optimiser that may change between two runs


@dataclass(frozen=True)
class Epoch:
    """One iteration of training, as `history_` keeps it."""

    iteration: int
    value: float
    gradient_norm: float
    inference_iterations: int
    converged: bool


@dataclass(frozen=True, eq=False)
class Batch:
    """Examples as learning sees them: a model and flat labels (-1: not observed)."""

    model: Model
    labels: IntArray | None

    @cached_property
    def sizes(self) -> IntArray:
        """Return how many variables each example has."""
        graph = self.model.graph
        return np.bincount(graph.variable_component, minlength=graph.n_components)


@dataclass(frozen=True, eq=False)
class Problem:
    """All that training needs to know.

    Attributes
    ----------
    chosen : Choices
    batch : Batch
    weights : array (variables,) or None
    part : callable
        From the indices of some examples to their model.
    arrays : callable
        Returns what the examples are made of, for the fingerprint.
    """

    chosen: Choices
    batch: Batch
    weights: FloatArray | None
    part: Callable[[IntArray], Model]
    arrays: Callable[[], Iterable[NDArray[Any]]]

    def objective(self) -> Objective:
        """Return what is minimised."""
        return self._of(self.batch.model, self._labels, self.weights, 1.0)

    def part_objective(self, rows: IntArray) -> Objective:
        """Return the objective of some examples, with their share of the penalty."""
        sizes = self.batch.sizes
        ends = np.cumsum(sizes)
        where = np.concatenate([np.arange(ends[i] - sizes[i], ends[i]) for i in rows.tolist()])
        weights = None if self.weights is None else self.weights[where]
        return self._of(self.part(rows), self._labels[where], weights, len(rows) / len(sizes))

    def fingerprint(self, start: FloatArray) -> str:
        """Return a text that another problem, by data or choices, does not have; limits of the run may differ."""
        chosen = self.chosen
        digest = hashlib.sha256()
        made = [_described(one) for one in (chosen.algorithm, chosen.loss, chosen.rule, chosen.optimizer)]
        digest.update(repr((made, chosen.l2, chosen.stages, self.batch.model.parameters)).encode())
        weights = np.zeros(0) if self.weights is None else self.weights
        for array in (start, self._labels, weights, *self.arrays()):
            plain = np.ascontiguousarray(array)
            digest.update(f"{plain.dtype.str}{plain.shape}".encode())
            digest.update(plain.tobytes())
        return digest.hexdigest()

    @property
    def _labels(self) -> IntArray:
        assert self.batch.labels is not None
        return self.batch.labels

    def _of(self, model: Model, labels: IntArray, weights: FloatArray | None, share: float) -> Objective:
        chosen = self.chosen
        penalty = share * chosen.l2.of(model)
        return Objective(model, labels, chosen.loss, chosen.algorithm, chosen.rule, penalty, weights, chosen.stages)


def train(problem: Problem, start: FloatArray, crf: Any) -> OptimResult:
    """Minimise the objective; the history and the user's callback are those of the estimator."""
    optimizer, state = problem.chosen.optimizer, None
    told = _Told(crf)
    if crf.checkpoint is not None:
        mark = problem.fingerprint(start)
        state = _resumed(crf.checkpoint, optimizer, mark, told)
        told.journal = Journal(crf.checkpoint, optimizer, extra=lambda: told.entries(mark))
    if isinstance(optimizer, MiniBatch):
        parts = _Parts(problem, told)
        return optimizer.minimise_batches(parts, len(problem.batch.sizes), start, callback=told, state=state)
    told.objective = problem.objective()
    return optimizer.minimise(told.objective, start, callback=told, state=state)


class _Parts:
    """The objective of minibatches, which are in the order of the data; those that come back are compiled once."""

    def __init__(self, problem: Problem, told: _Told) -> None:
        self.problem, self.told = problem, told
        self.known: dict[tuple[int, ...], Objective] = {}

    def __call__(self, rows: IntArray, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and gradient of some examples."""
        self.told.objective = self._objective(np.sort(rows))
        return self.told.objective(theta)

    def _objective(self, rows: IntArray) -> Objective:
        key = tuple(rows.tolist())
        if key in self.known:
            return self.known[key]
        objective = self.problem.part_objective(rows)
        if len(key) in (1, len(self.problem.batch.sizes)):  # others are shuffled, and hardly ever come back
            if len(self.known) >= _KEPT:
                self.known.pop(next(iter(self.known)))
            self.known[key] = objective
        return objective


class _Told:
    """The callback that keeps the history, writes the checkpoint, and asks the user's."""

    def __init__(self, crf: Any) -> None:
        self.crf = crf
        self.history: list[Epoch] = crf.history_
        self.objective: Objective | None = None
        self.journal: Journal | None = None

    def __call__(self, progress: Progress) -> bool:
        """Keep an iteration, and ask whether to stop."""
        infos = self.objective.infos if self.objective is not None else []
        most, converged = max((i.iterations for i in infos), default=0), all(i.converged for i in infos)
        epoch = Epoch(progress.iteration, progress.value, progress.gradient_norm, most, converged)
        self.history.append(epoch)
        if self.journal is not None:
            self.journal(progress)
        if self.crf.verbose:
            print(f"{epoch.iteration:5d}  {epoch.value:.8g}  |g| {epoch.gradient_norm:.2e}", flush=True)
        return self.crf.callback is not None and bool(self.crf.callback(progress))

    def entries(self, mark: str) -> dict[str, NDArray[Any]]:
        """Return what goes into a checkpoint beside the state."""
        return {"problem": np.asarray(mark), "history": history_rows(self.history)}


def history_rows(history: list[Epoch]) -> FloatArray:
    """Return a history as an array (iterations, 5)."""
    rows = [[getattr(epoch, field.name) for field in fields(Epoch)] for epoch in history]
    return np.asarray(rows, np.float64).reshape(-1, len(fields(Epoch)))


def history_of(rows: NDArray[Any]) -> list[Epoch]:
    """Return the history that `history_rows` made an array of."""
    return [Epoch(int(i), v, g, int(n), bool(c)) for i, v, g, n, c in rows.tolist()]


def _resumed(path: Any, optimizer: Optimizer[Any, Any], mark: str, told: _Told) -> State | None:
    """Return the state in a checkpoint of this very problem, or None where there is no file yet."""
    if not os.path.exists(path):
        return None
    extra = read_extra(path)
    if str(extra.get("problem")) != mark:
        expected, got = "a checkpoint of this problem", f"{os.fspath(path)!r}, of other data, choices or start"
        raise InputError("checkpoint", expected, got, "name another file, or remove this one to begin anew")
    rows = extra.get("history")
    if rows is not None and rows.dtype.kind == "f" and rows.ndim == 2 and rows.shape[1] == len(fields(Epoch)):
        told.history.extend(history_of(rows))
    return resume(path).state


def _described(value: Any) -> Any:
    """Return an option, or an object with its options, as text that tells it from others, whatever the process.

    Options that a run may change on its way are left out.
    """
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, np.random.Generator):
        return "a generator"
    if not hasattr(value, "__dict__"):
        return repr(value)
    limits = _LIMITS if isinstance(value, Optimizer) else ()
    options = {name: _described(option) for name, option in vars(value).items() if name not in limits}
    return (type(value).__qualname__, options)
