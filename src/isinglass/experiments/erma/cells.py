"""Cells: one training setting on one model, with its test losses; finished cells are kept in files.

A cell depends on its own description alone, so that a run that was cut goes on to the same bits.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass

import numpy as np

from isinglass.errors import InputError
from isinglass.experiments.erma.data import make_task
from isinglass.experiments.erma.settings import TESTS, test_losses
from isinglass.experiments.erma.training import train
from isinglass.inference.message_passing.algorithms import BeliefPropagation
from isinglass.io.arrays import read_arrays, write_arrays
from isinglass.models.tables import table_model
from isinglass.typing import FloatArray

TRUTH = "truth"
SCHEMA, VERSION = "erma-cell", 1
OF_TRUTH = 100  # iterations of inference with the true parameters


@dataclass(frozen=True)
class Cell:
    """What is trained, on what, and how."""

    model: str
    training: str
    iterations: int  # of inference
    perturbation: float = 0.0
    examples: int = 1000
    steps: int = 60
    restarts: int = 5
    seed: int = 0

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.model}_{self.training}_t{self.iterations}_p{round(100 * self.perturbation)}_s{self.seed}.npz"


def losses_of(cell: Cell, folder: str | None) -> dict[str, FloatArray]:
    """Return the loss of each test example in all settings: from its file, or by training."""
    path = None if folder is None else os.path.join(folder, cell.file)
    if path is not None and os.path.exists(path):
        return _read(path, cell)
    found = _measured(cell)
    if path is not None:
        write_arrays(path, found, schema=SCHEMA, version=VERSION, metadata=asdict(cell))
    return {test: found[test] for test in TESTS}


def parameters_of(cell: Cell, folder: str | None) -> FloatArray:
    """Return the parameters that a cell found."""
    path = None if folder is None else os.path.join(folder, cell.file)
    if path is not None and os.path.exists(path):
        return read_arrays(path, schema=SCHEMA, version=VERSION).arrays["theta"]
    return _measured(cell)["theta"]


def _read(path: str, cell: Cell) -> dict[str, FloatArray]:
    file = read_arrays(path, schema=SCHEMA, version=VERSION)
    if file.metadata != asdict(cell):
        got = f"{os.path.basename(path)!r} of another run"
        raise InputError(
            "checkpoints", "a folder of this experiment, with the same options", got, "name another folder"
        )
    return {test: np.asarray(file.arrays[test], np.float64) for test in TESTS}


def _measured(cell: Cell) -> dict[str, FloatArray]:
    """Draw, train and test."""
    task = make_task(cell.model, cell.seed, cell.perturbation, cell.examples)
    if cell.training == TRUTH:
        plain, theta, iterations = table_model(task.truth.graph), task.truth.groups[0].ravel(), OF_TRUTH
    else:
        plain, iterations = table_model(task.graph), cell.iterations
        algorithm = BeliefPropagation(iterations=cell.iterations)
        theta = train(task, cell.training, algorithm, cell.steps, cell.restarts, cell.seed)
    inputs, labels = task.inputs(task.test), task.labels(task.test)
    found = test_losses(plain, theta, inputs, labels, BeliefPropagation(iterations=iterations))
    return {**found, "theta": np.asarray(theta, np.float64)}
