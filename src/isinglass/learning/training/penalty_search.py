"""The penalty l2, chosen by the loss of examples that were held out: what ``l2="auto"`` stands for.

The examples are cut into folds at random. For an l2 and a fold f let theta_f(l2) minimise the loss of all other folds,
plus l2 times the squares of the parameters. The l2 that is chosen has the least

    L(l2)  =  sum_f  loss(theta_f(l2); examples of fold f),        without penalties,

among l2 = 10^(k/2). The search begins at k = 0, and goes on until the values next to the best one, below and above, are
both known not to be better (Stone 1974, cross-validation). Training begins with the parameters of the value before, in
the same fold (Friedman, Hastie and Tibshirani 2010, warm starts along a path); not where it has several stages, or ends
early by validation data. With the chosen l2 the estimator is then trained on all examples, as if it had been given.

Validation data, where there are some, are what is held out, in place of the folds.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from isinglass.errors import FileFormatError, InputError, require
from isinglass.io.arrays import read_arrays, write_arrays
from isinglass.io.files import shown_path
from isinglass.learning.optimizers.base import OptimResult
from isinglass.learning.training.choices import START
from isinglass.learning.training.fingerprints import fingerprint
from isinglass.learning.training.history import Epoch
from isinglass.learning.training.problem import TrainingObjective, TrainingProblem
from isinglass.learning.training.stages import ENDS_ALL, Trained, stage_file, train_stages
from isinglass.typing import Array, FloatArray

FOLDS = 3
SEED = 0  # of the folds
DECADE = 2  # values of l2 in a factor of ten
MOST = 6 * DECADE  # steps from one, down or up
_SCHEMA = "l2-search"


class L2Trial(NamedTuple):
    """A value of l2 that was tried.

    Attributes
    ----------
    l2 : float
    losses : tuple of float
        For each fold the loss of its examples, which were held out, without penalties.
    iterations : tuple of int
        How many iterations the training on the other folds took.
    """

    l2: float
    losses: tuple[float, ...]
    iterations: tuple[int, ...]

    @property
    def loss(self) -> float:
        """The loss of all examples, each while it was held out."""
        return sum(self.losses)


class Fold(NamedTuple):
    """The problems of the examples that are trained on, one for each stage, and the loss of those held out."""

    problems: list[TrainingProblem]
    held_out: TrainingObjective


class Searched(NamedTuple):
    """Where training ended, what was tried before it, and whether it ended while l2 was looked for."""

    trained: Trained
    path: list[L2Trial]
    unfinished: bool


def train_with_search(
    stages: Sequence[Any], problems: Sequence[TrainingProblem], before: Any, checkpoint: Any
) -> Searched:
    """Train in stages; if one of them leaves l2 open, choose it first."""
    if not any(problem.chosen.automatic for problem in problems):
        return Searched(train_stages(stages, problems, before), [], False)
    search = L2Search(stages, problems, before, checkpoint)
    ended = search.run()
    if ended is not None:
        return Searched(ended, search.path(), True)
    return Searched(train_stages(stages, _with_l2(problems, search.best()), before), search.path(), False)


def next_step(losses: Mapping[int, float]) -> int | None:
    """Return which k to try after those whose losses are known; None: both neighbours of the best are known.

    Examples
    --------
    >>> next_step({}), next_step({0: 5.0}), next_step({0: 5.0, -1: 4.0}), next_step({0: 5.0, -1: 6.0})
    (0, -1, -2, 1)
    >>> next_step({0: 5.0, -1: 6.0, 1: 5.5}) is None
    True
    """
    if not losses:
        return 0
    best = best_step(losses)
    wanted = (k for k in (best - 1, best + 1) if k not in losses and abs(k) <= MOST)
    return next(wanted, None)


def best_step(losses: Mapping[int, float]) -> int:
    """Return the k of the least loss, the largest of those that are equal."""
    return min(losses, key=lambda k: (losses[k], -k))


def folds_of(problems: Sequence[TrainingProblem]) -> list[Fold]:
    """Cut the examples into folds; validation data, where there are some, are the one that is held out."""
    last = problems[-1]
    given = last.validation_objective()
    if given is not None:
        return [Fold(list(problems), given)]
    owners = np.repeat(np.arange(last.n_examples), last.units)
    got, remedy = f"{len(owners)}", "give l2 a number, or validation data"
    require(len(owners) > 1, "X", "at least two examples for l2='auto', which holds some out", got, remedy)
    shuffled = np.random.default_rng(SEED).permutation(owners)
    parts = np.array_split(shuffled, min(FOLDS, len(owners)))
    found = []
    for f, part in enumerate(parts):
        others = np.sort(np.concatenate([one for g, one in enumerate(parts) if g != f]))
        held_out = last.subset(np.sort(part)).objective()
        found.append(Fold([problem.subset(others) for problem in problems], held_out))
    return found


class _Fit(NamedTuple):
    """A training without one fold, and its history."""

    trained: Trained
    history: list[Epoch]


@dataclass(eq=False)
class L2Search:
    """A search for l2; with a checkpoint it keeps what it has found in a file, and goes on from it.

    Parameters
    ----------
    stages, problems, before
        As for `train_stages`.
    checkpoint : path or None
        Of the whole training. ``run.npz`` has ``run.l2.npz`` beside it, with what was found so far; the training that
        is under way has a file of its own, which is removed at its end.
    """

    stages: Sequence[Any]
    problems: Sequence[TrainingProblem]
    before: Any
    checkpoint: Any
    tried: dict[int, list[tuple[float, int]]] = field(default_factory=dict, init=False)  # of each k, by fold
    last: list[FloatArray] = field(default_factory=list, init=False)  # the latest parameters of each fold
    kept: _Fit | None = field(default=None, init=False)  # for the best value so far
    mark: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self.folds = folds_of(self.problems)
        if self.checkpoint is None:
            return
        start = self.stages[0]._start(self.problems[0], self.before, 0)
        starts = [start, *(np.zeros(problem.size) for problem in self.problems[1:])]
        marks = [p.fingerprint(x) for p, x in zip(_with_l2(self.problems, START), starts, strict=True)]
        self.mark = fingerprint(marks, FOLDS, SEED, DECADE)
        if os.path.exists(self._file):
            self.tried, self.last = _read(self._file, self.mark, len(self.folds), self.problems[-1].size)

    def run(self) -> Trained | None:
        """Try one value after the other; return the training that an interrupt or the callback ended, if any."""
        while (step := self._next()) is not None:
            done, first = self.tried.setdefault(step, []), None
            for f in range(len(done), len(self.folds)):
                self._say(f"l2 = {value_of(step):.3g}, fold {f + 1} of {len(self.folds)}")
                fit = self._fit(step, f)
                if fit.trained.found.message in ENDS_ALL:
                    return self._best_so_far(fit)
                first = first or fit
                self._add(step, f, fit.trained.found)
            losses = self._losses()
            self.kept = first if best_step(losses) == step else self.kept
            self._say(f"l2 = {value_of(step):.3g}: loss {losses[step]:.8g} of the examples held out")
        return None

    def path(self) -> list[L2Trial]:
        """Return what was tried, in its order."""
        return [L2Trial(value_of(k), *map(tuple, zip(*found, strict=True))) for k, found in self._whole().items()]

    def best(self) -> float:
        """Return the l2 of the least loss."""
        losses = self._losses()
        step = best_step(losses)
        expected, remedy = "examples that have a finite loss when they are held out", "give l2 a number"
        require(math.isfinite(losses[step]), "Y", expected, f"{losses[step]} for every l2", remedy)
        return value_of(step)

    def _next(self) -> int | None:
        """Return the step that was not finished, or the next one."""
        unfinished = [k for k in self.tried if k not in self._whole()]
        return unfinished[0] if unfinished else next_step(self._losses())

    def _whole(self) -> dict[int, list[tuple[float, int]]]:
        """Return the steps that were tried on every fold."""
        return {k: found for k, found in self.tried.items() if len(found) == len(self.folds)}

    def _losses(self) -> dict[int, float]:
        sums = {k: sum(loss for loss, _ in found) for k, found in self._whole().items()}
        return {k: math.inf if math.isnan(value) else value for k, value in sums.items()}

    def _fit(self, step: int, f: int) -> _Fit:
        """Train on all folds but one."""
        stages, history = self._stages(step, f), list[Epoch]()
        for stage in stages:
            stage.history_ = history
        problems = _with_l2(self.folds[f].problems, value_of(step))
        warm = len(stages) == 1 and len(self.folds) > 1 and f < len(self.last)  # one fold: validation data
        before = stages[0]._learned(problems[0], self.last[f]) if warm else self.before
        return _Fit(train_stages(stages, problems, before), history)

    def _stages(self, step: int, f: int) -> list[Any]:
        """Return copies of the stages, with files of their own."""
        found, place = [copy.copy(stage) for stage in self.stages], list(self.tried).index(step)
        file = beside(self.checkpoint, f"l2-{place}-{f}")
        for i, stage in enumerate(found):
            stage.checkpoint = stage_file(file, i)
        return found

    def _add(self, step: int, f: int, found: OptimResult) -> None:
        """Look at the examples held out, and keep what was found."""
        loss = float(self.folds[f].held_out.unpenalised(found.x))
        self.tried[step].append((loss, found.iterations))
        self.last[f : f + 1] = [found.x]
        if self.checkpoint is None:
            return
        _write(self._file, self.mark, self.tried, self.last, len(self.folds))
        for stage in self._stages(step, f):
            if os.path.exists(stage.checkpoint):
                os.remove(stage.checkpoint)

    def _best_so_far(self, ended: _Fit) -> Trained:
        """Return the parameters of the best value that was tried, or, where none was, those of the first."""
        (stage, problem, found), history = ended if self.kept is None else self.kept
        self.stages[stage].history_.extend(history)
        return Trained(stage, problem, replace(found, converged=False, message=ended.trained.found.message))

    @property
    def _file(self) -> Any:
        return beside(self.checkpoint, "l2")

    def _say(self, line: str) -> None:
        if self.stages[-1].verbose:
            print(line, flush=True)


def value_of(step: int) -> float:
    """Return the l2 of a step.

    Examples
    --------
    >>> [round(value_of(k), 3) for k in (-2, -1, 0, 1, 2)]
    [0.1, 0.316, 1.0, 3.162, 10.0]
    """
    return float(START * 10.0 ** (step / DECADE))


def beside(checkpoint: Any, what: str) -> Any:
    """Return the name of a file beside a checkpoint.

    Examples
    --------
    >>> beside("runs/a.npz", "l2")
    'runs/a.l2.npz'
    """
    if not isinstance(checkpoint, str | bytes | os.PathLike):
        return checkpoint
    root, end = os.path.splitext(os.fsdecode(checkpoint))
    return f"{root}.{what}{end}"


def _with_l2(problems: Sequence[TrainingProblem], l2: float) -> list[TrainingProblem]:
    """Return problems with this l2, where it was left open."""
    return [problem.with_l2(l2) if problem.chosen.automatic else problem for problem in problems]


def path_rows(path: Sequence[L2Trial]) -> FloatArray:
    """Return a path as an array (values, 1 + 2 folds): l2, losses, iterations."""
    rows = [[trial.l2, *trial.losses, *trial.iterations] for trial in path]
    return np.asarray(rows, np.float64).reshape(len(path), -1)


def path_of(rows: Array, file: str) -> list[L2Trial]:
    """Return the path that `path_rows` made an array of, once it is checked."""
    if (
        rows.dtype != np.float64
        or rows.ndim != 2
        or rows.shape[1] % 2 != 1
        or not (np.isfinite(rows) | (rows > 0)).all()
    ):
        raise FileFormatError(file, None, "a path of l2 (values, 1 + 2 folds)", "something else")
    n = rows.shape[1] // 2
    return [L2Trial(row[0], tuple(row[1 : 1 + n]), tuple(map(int, row[1 + n :]))) for row in rows.tolist()]


def _write(
    path: Any, mark: str, tried: Mapping[int, list[tuple[float, int]]], last: Sequence[FloatArray], folds: int
) -> None:
    """Write what a search has found; the last step may not have all folds."""
    table = np.full((len(tried), folds, 2), np.nan)
    for row, found in zip(table, tried.values(), strict=True):
        row[: len(found)] = found
    counts = np.array([len(found) for found in tried.values()])
    arrays = {"steps": np.array(list(tried)), "counts": counts, "tried": table, "last": np.array(last)}
    write_arrays(path, arrays, schema=_SCHEMA, metadata={"problem": mark}, compress=False)


def _read(path: Any, mark: str, folds: int, size: int) -> tuple[dict[int, list[tuple[float, int]]], list[FloatArray]]:
    """Read what `_write` wrote, of this very problem."""
    file = read_arrays(path, schema=_SCHEMA, version=1)
    if file.metadata.get("problem") != mark:
        expected, got = "a checkpoint of this problem", f"{os.fspath(path)!r}, of other data, choices or start"
        raise InputError("checkpoint", expected, got, "name another file, or remove this one to begin anew")
    steps, counts, table, last = (file.arrays.get(name, np.zeros(0)) for name in ("steps", "counts", "tried", "last"))
    n = len(steps)
    fits = steps.shape == counts.shape == (n,) and steps.dtype.kind == counts.dtype.kind == "i"
    fits = fits and table.shape == (n, folds, 2) and last.shape[1:] == (size,) and len(last) <= folds
    if not fits or not ((counts >= 0) & (counts <= folds)).all() or len(set(steps.tolist())) < n:
        raise FileFormatError(shown_path(path), None, "what a search for l2 has found", "something else")
    found = {
        k: [(loss, int(i)) for loss, i in row[:c]]
        for k, c, row in zip(steps.tolist(), counts.tolist(), table.tolist(), strict=True)
    }
    return found, list(last)
