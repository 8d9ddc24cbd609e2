"""Cells: one training setting on one model, with its test losses; finished cells are kept in files.

A cell depends on its own description alone, so that a run that was cut goes on to the same bits. Mixtures begin with
what frac-MSE or frac-MSE-in does from each start; its file, where it is there, saves that time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np

from isinglass.errors import InputError
from isinglass.experiments.erma.data import Task, make_task
from isinglass.experiments.erma.settings import TESTS, first_of, losses_by_setting
from isinglass.experiments.erma.training import train
from isinglass.inference.message_passing.algorithms.belief_propagation import BeliefPropagation
from isinglass.io.arrays import read_arrays, write_arrays
from isinglass.models.tables import table_model
from isinglass.runtime.caching import Cache
from isinglass.typing import FloatArray

TRUTH = "truth"
SCHEMA, VERSION = "erma-cell", 3
OF_TRUTH = 100  # iterations of inference with the true parameters
_TASKS = Cache(2)  # cells of one model follow each other, and many test examples take long to draw
FEW, TOLERANCE = 20, 1e-6  # up to so many iterations all are run; of more, those until messages change by less


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

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.model}_{self.training}_t{self.iterations}_p{round(100 * self.perturbation)}_s{self.seed}.npz"


def is_kept(cell: Cell, folder: str | None) -> bool:
    """Say whether a folder has the file of a cell."""
    return folder is not None and os.path.exists(os.path.join(folder, cell.file))


def losses_of(cell: Cell, folder: str | None) -> dict[str, FloatArray]:
    """Return the loss of each test example in all settings: from its file, or by training.

    What a file has of fewer or other further test examples is tested again, not trained again.
    """
    path = None if folder is None else os.path.join(folder, cell.file)
    if path is not None and os.path.exists(path):
        return _read(path, cell)
    return _keep(path, cell, _measured(cell, folder))


def _keep(path: str | None, cell: Cell, found: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    if path is not None:
        write_arrays(path, found, schema=SCHEMA, version=VERSION, metadata=asdict(cell))
    return {test: np.asarray(found[test], np.float64) for test in TESTS}


def parameters_of(cell: Cell, folder: str | None) -> FloatArray:
    """Return the parameters that a cell found."""
    return _trained(cell, folder)["theta"]


def _trained(cell: Cell, folder: str | None) -> Mapping[str, FloatArray]:
    path = None if folder is None else os.path.join(folder, cell.file)
    if path is not None and os.path.exists(path):
        return read_arrays(path, schema=SCHEMA, version=VERSION).arrays
    return _measured(cell, folder)


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


def _read(path: str, cell: Cell) -> dict[str, FloatArray]:
    file = read_arrays(path, schema=SCHEMA, version=VERSION)
    if {**file.metadata, "further": cell.further} != asdict(cell):
        got = f"{os.path.basename(path)!r} of another run"
        raise InputError(
            "checkpoints", "a folder of this experiment, with the same options", got, "name another folder"
        )
    if file.metadata["further"] != cell.further and cell.further:
        task = _task_of(cell)
        return _keep(path, cell, {**file.arrays, **_tested(cell, task, file.arrays["theta"])})
    return {test: np.asarray(file.arrays[test][: cell.examples + cell.further], np.float64) for test in TESTS}


def _task_of(cell: Cell) -> Task:
    options = cell.model, cell.seed, cell.perturbation, cell.examples, cell.further
    return _TASKS.get(options, lambda: make_task(*options))


def _measured(cell: Cell, folder: str | None) -> dict[str, FloatArray]:
    """Draw, train and test."""
    task = _task_of(cell)
    kept: dict[str, FloatArray] = {}
    if cell.training == TRUTH:
        theta: FloatArray = np.asarray(task.truth.groups[0], np.float64).ravel()
    else:
        first = first_of(cell.training)
        begun = None if first is None else _starts_of(replace(cell, training=first), folder)
        way = inference(cell.iterations)
        theta, starts = train(task, cell.training, way, cell.steps, cell.restarts, cell.seed, begun)
        kept = {"starts": starts} if len(starts) > 1 else kept
    return {**_tested(cell, task, theta), "theta": theta, **kept}


def _tested(cell: Cell, task: Task, theta: FloatArray) -> dict[str, FloatArray]:
    """Return the loss of each test example in all settings."""
    graph, iterations = (task.truth.graph, OF_TRUTH) if cell.training == TRUTH else (task.graph, cell.iterations)
    inputs, labels = task.inputs(task.test), task.labels(task.test)
    return losses_by_setting(table_model(graph), theta, inputs, labels, inference(iterations), cell.examples)


def _starts_of(cell: Cell, folder: str | None) -> FloatArray:
    """Return the parameters that a cell found from each start."""
    found = _trained(cell, folder)
    return found["starts"] if "starts" in found else found["theta"][None]
