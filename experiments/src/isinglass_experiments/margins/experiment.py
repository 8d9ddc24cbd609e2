"""Max-margin learning beside likelihoods and losses of marginals, on four tasks (`tasks`).

Within a task every row has the same model, the same l2 on the sum over examples and the same decoder of most probable
labels. Only what is minimised, and how, differs. Likelihoods and losses of marginals are minimised by L-BFGS from zero.
Where a method has a choice (`Task.choices`: how many passes), the last quarter of the training examples is held out.
The method is trained on the others with each of the choices, with l2 less in proportion. The one with most right labels
in what was held out, the first of those that tie, is taken to train on all. Test examples have no part in it.

Standard errors are those of 500 bootstrap draws of the test examples. Seconds are those of the processor, in training,
without the choice.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from isinglass.typing import Array, JsonObject
from isinglass_experiments.common.experiment import (
    DataExperiment,
    Progress,
    Report,
    chosen_rows,
    fit_quietly,
    register,
    tell,
)
from isinglass_experiments.margins.tasks import TASKS, Data, Options, Task

DRAWS = 500
QUICK = 15  # iterations
HELD = 4  # one example of so many is held out, where there is a choice
ROWS = tuple(f"{task.name}/{method}" for task in TASKS.values() for method in task.methods)
QUICK_ROWS = tuple(row for row in ROWS if row.partition("/")[2] in ("cl", "margin", "margin-1e-1"))


@register
@dataclass(frozen=True)
class MaxMargin(DataExperiment):
    """Compare max-margin learning with likelihoods and losses of marginals.

    Parameters
    ----------
    quick : bool
        A part of the training examples, fewer iterations, and by default likelihoods and margins alone.
    data : str, optional
        The folder of letters_folds0-7.npz, snakes.npz, scene.npz and camvid_60x80.npz; else the one that ISINGLASS_DATA
        names.
    n_jobs : int
        Threads.
    rows : sequence of str, optional
        Tasks and methods, such as "letters/cl"; by default all.
    """

    rows: Sequence[str] | None = None

    name: ClassVar[str] = "maxmargin"
    summary: ClassVar[str] = "words, snakes, labels and scenes: max-margin learning beside likelihoods and marginals"

    def run(self, progress: Progress | None = None) -> Report:
        """Train and test every method."""
        rows = chosen_rows(self.rows, ROWS, QUICK_ROWS if self.quick else ROWS)
        loaded: dict[str, tuple[Data, Data]] = {}
        found: list[JsonObject] = []
        for i, row in enumerate(rows):
            tell(progress, row, i / len(rows))
            task = TASKS[row.partition("/")[0]]
            if task.name not in loaded:
                loaded = {task.name: task.load(self.data, self.quick)}
            found.append(self._trained(row, task, *loaded[task.name]))
        return _report(found)

    def _trained(self, row: str, task: Task, train: Data, test: Data) -> JsonObject:
        """Train and test one method."""
        method = row.partition("/")[2]
        options = {"l2": task.l2, "max_iter": QUICK if self.quick else task.most, **task.methods[method]}
        choices = task.choices.get(method, ({},))[: 1 if self.quick else None]
        held_out = [self._held_out(task, options | choice, train) for choice in choices] if len(choices) > 1 else [0.0]
        chosen = choices[int(np.argmax(held_out))]
        crf = task.estimator(n_jobs=self.n_jobs, **options, **chosen)
        began = time.process_time()
        fit_quietly(crf, *train)
        seconds = time.process_time() - began
        share, error = tested(task, crf, test)
        how = {"seconds": seconds, "iterations": crf.n_iter_, "converged": crf.converged_, "message": crf.message_}
        counts = {"train": len(train[1]), "test": len(test[1]), "l2": options["l2"], "held_out": held_out}
        return {"row": row, "accuracy": share, "error": error, **how, **counts}

    def _held_out(self, task: Task, options: Options, train: Data) -> float:
        """Return the share of right labels in the last quarter of the examples, after training on the others."""
        X, Y = train
        n = len(Y) - max(1, len(Y) // HELD)
        crf = task.estimator(n_jobs=self.n_jobs, **options | {"l2": options["l2"] * n / len(Y)})
        fit_quietly(crf, X[:n], Y[:n])
        return tested(task, crf, (X[n:], Y[n:]))[0]


def tested(task: Task, crf: Any, test: Data) -> tuple[float, float]:
    """Return the share of right labels, of those that count, and its standard error."""
    truth = [np.asarray(y).ravel() for y in test[1]]
    return accuracy(task.predict(crf, test[0]), truth, [task.counted(y) for y in truth])


def accuracy(
    predicted: Sequence[Any], truth: Sequence[Array], counted: Sequence[Array] | None = None
) -> tuple[float, float]:
    """Return the share of right labels, of those that count, and its standard error over draws of examples.

    Examples
    --------
    >>> accuracy([[0, 1], [2]], [np.array([0, 1]), np.array([1])])[0].__round__(4)
    0.6667
    """
    masks = [np.ones(len(y), bool) for y in truth] if counted is None else counted
    triples = list(zip(predicted, truth, masks, strict=True))
    right = np.array([float(((np.asarray(a) == b) & mask).sum()) for a, b, mask in triples])
    sizes = np.array([float(mask.sum()) for mask in masks])
    rng = np.random.default_rng(0)
    draws = [rng.integers(0, len(sizes), len(sizes)) for _ in range(DRAWS)]
    spread = np.std([right[rows].sum() / max(sizes[rows].sum(), 1.0) for rows in draws])
    return float(right.sum() / sizes.sum()), float(spread)


def _report(found: list[JsonObject]) -> Report:
    rows = [
        [
            one["row"], f"{one['accuracy']:.4f}", f"{one['error']:.4f}", f"{one['seconds']:.0f}",
            str(one["iterations"]), "yes" if one["converged"] else "no",
        ]
        for one in found
    ]  # fmt: skip
    notes = [f"{one['row']}: l2 = {one['l2']:g}, {one['train']} to train on; {one['message']}" for one in found]
    title = "Max-margin or marginals: test labels right (snakes: of snake cells)"
    columns = ["task and loss", "right", "standard error", "seconds", "iterations", "ended by itself"]
    return Report(title, columns, rows, notes, {"experiment": "maxmargin", "rows": found})
