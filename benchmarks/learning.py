"""The value and gradient of a loss, as learning needs them."""

from __future__ import annotations

import time

import numpy as np

import isinglass as ig
from benchmarks.problems import batch_of_grids
from benchmarks.timing import Row, Rows, paired, ratio, seconds

TITLE = "Univariate conditional likelihood of 90 binary 28 x 28 grids, 5 flooding iterations"
COLUMNS = ("what", "value", "value + gradient", "at most", "value + gradient / value", "")


def rows() -> Rows:
    """Name the rows."""
    return {
        "90 grids, general engine": lambda: _row(True),
        "90 grids, grid kernel": lambda: _row(False),
        "90 grids, two threads": _threads,
    }


def _threads(iterations: int = 50) -> Row:
    p, _ = batch_of_grids(90, 28, general=True)
    calls = {
        str(n): lambda n=n: ig.infer(p, ig.BeliefPropagation(iterations=iterations, n_jobs=n), tape=True)
        for n in (1, 2)
    }
    times = paired(calls, clock=time.perf_counter)
    note = f"{iterations} iterations, one thread over two: {ratio(times['1'], times['2'])}"
    return ["90 grids, two threads", seconds(times["2"]), "-", "1 / 1.5", "-", note]


FLOODING = ig.BeliefPropagation(iterations=5, schedule="flooding")


def value_and_gradient(
    p: ig.Potentials, labels: np.ndarray, tape: bool = True, algorithm: ig.BeliefPropagation = FLOODING
) -> tuple[float, object]:
    """Return -sum_i log b_i(y_i) and, on tape, its derivatives by the log tables."""
    result = ig.infer(p, algorithm, tape=tape)
    beliefs, every = np.asarray(result.variables), np.arange(len(labels))
    chosen = beliefs[every, labels]
    if not tape:
        return -float(np.log(chosen).sum()), None
    bars = np.zeros_like(beliefs)
    bars[every, labels] = -1 / chosen
    return -float(np.log(chosen).sum()), result.backward(variables=bars).groups


def _row(general: bool) -> Row:
    p, labels = batch_of_grids(90, 28, general=general)
    times = paired(
        {
            "value": lambda: value_and_gradient(p, labels, tape=False),
            "both": lambda: value_and_gradient(p, labels),
        }
    )
    name = "90 grids, general engine" if general else "90 grids, grid kernel"
    value, both = times["value"], times["both"]
    note = f"loss {value_and_gradient(p, labels)[0]:.6f}"
    return [name, seconds(value), seconds(both), "25 ms", ratio(both, value), note]
