"""Cells: one training setting on one model, with its test losses; finished ones are lines of a file.

A cell depends on its own description alone, so that a run that was cut goes on to the same bits. Mixtures begin with
what frac-MSE or frac-MSE-in found from each start, which saves time where that is there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from isinglass import BeliefPropagation
from isinglass.models import table_model
from isinglass.typing import FloatArray
from isinglass_experiments.erma.data import make_task
from isinglass_experiments.erma.settings import losses_by_setting
from isinglass_experiments.erma.training import train

TRUTH = "truth"
FILE = "erma.jsonl"
OF_TRUTH = 100  # iterations of inference with the true parameters
FEW, TOLERANCE = 20, 1e-6  # up to so many iterations all are run; of more, those until messages change by less
_task = lru_cache(2)(make_task)  # cells of one model follow each other, and many test examples take long to draw


@dataclass(frozen=True)
class Cell:
    """What is trained, on what, and how."""

    model: str
    training: str
    iterations: int  # of inference
    perturbation: float = 0.0
    examples: int = 1000
    further: int = 0  # for tests alone
    steps: int = 60
    restarts: int = 5
    seed: int = 0


class Found(NamedTuple):
    """Parameters, those from each start, and the loss of each test example in all settings."""

    theta: FloatArray
    starts: FloatArray
    losses: dict[str, FloatArray]


def finished(folder: str | None) -> Iterator[tuple[Cell, Found]]:
    """Yield the cells that a folder has; a line that was cut is left out."""
    path = None if folder is None else os.path.join(folder, FILE)
    if path is None or not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            try:
                one = json.loads(line)
            except ValueError:
                continue
            losses = {test: np.array(values, np.float64) for test, values in one["losses"].items()}
            yield Cell(**one["cell"]), Found(np.array(one["theta"]), np.array(one["starts"]), losses)


def keep(folder: str | None, cell: Cell, found: Found) -> None:
    """Append a cell to the file of a folder."""
    if folder is None:
        return
    losses = {test: values.tolist() for test, values in found.losses.items()}
    one = {"cell": asdict(cell), "theta": found.theta.tolist(), "starts": found.starts.tolist(), "losses": losses}
    with open(os.path.join(folder, FILE), "a", encoding="utf-8") as lines:
        lines.write(f"\n{json.dumps(one)}\n")  # the line before may have been cut


def inference(iterations: int) -> BeliefPropagation:
    """Return belief propagation of so many iterations, or, of many, until it converges.

    Examples
    --------
    >>> inference(10).iterations, inference(100).max_iter
    (10, 100)
    """
    if iterations <= FEW:
        return BeliefPropagation(iterations=iterations)
    return BeliefPropagation(tol=TOLERANCE, max_iter=iterations)


def measured(cell: Cell, begun: FloatArray | None = None) -> Found:
    """Draw, train and test; `begun` has what the first part of a mixture found from each start."""
    task = _task(cell.model, cell.seed, cell.perturbation, cell.examples, cell.further)
    way = inference(cell.iterations)
    if cell.training == TRUTH:
        theta: FloatArray = np.asarray(task.truth.groups[0], np.float64).ravel()
        graph, starts = task.truth.graph, theta[None]
    else:
        graph = task.graph
        theta, starts = train(task, cell.training, way, cell.steps, cell.restarts, cell.seed, begun)
    inputs, labels = task.inputs(task.test), task.labels(task.test)
    return Found(theta, starts, losses_by_setting(table_model(graph), theta, inputs, labels, way, cell.examples))
