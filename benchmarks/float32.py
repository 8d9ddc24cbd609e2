"""Belief propagation on grids with messages in float64 and in float32, measured in turns.

A sweep is the difference between 12 and 2 iterations, divided by 10, so that what is done once is not counted. The
gradient is a run of 10 iterations with a tape and its backward pass, everything counted; of 90 grids, that of "ucl"; of
a fit, one step of L-BFGS, with features, model and optimizer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np

import isinglass as ig
from benchmarks.learning import value_and_gradient
from benchmarks.problems import batch_of_grids, grid_model
from benchmarks.timing import Row, Rows, paired, ratio, seconds
from isinglass.typing import FloatArray

TITLE = "Messages in float32, against float64"
COLUMNS = ("what", "float64", "float32", "float64 / float32", "gradient, float64", "float32", "float64 / float32")
DTYPES = ("float64", "float32")


def rows() -> Rows:
    """Name the rows."""
    named: Rows = {}
    for side, schedule, shared in product((300, 1000), ("flooding", "grid"), (True, False)):
        name = f"grid {side}, {schedule}, {'one table' if shared else 'own tables'}"
        named[name] = partial(_grid, name, side, schedule, shared)
    for schedule, iterations in (("flooding", 5), ("grid", 4)):

        def algorithm(dtype: str, schedule: str = schedule, iterations: int = iterations) -> ig.BeliefPropagation:
            return ig.BeliefPropagation(iterations=iterations, schedule=schedule, dtype=dtype)

        of = f"{iterations} iterations, {schedule}"
        named[f"90 grids of 28 x 28, {of}"] = partial(_digits, f"90 grids of 28 x 28, {of}", algorithm)
        named[f"90 digits, step of a fit, {of}"] = partial(_fit, f"90 digits, step of a fit, {of}", algorithm)
    return named


def _grid(name: str, side: int, schedule: str, shared: bool) -> Row:
    p, bars = grid_model(side, shared=shared, general=False), np.random.default_rng(0).normal(size=(side * side, 2))
    calls: dict[str, Callable[[], object]] = {}
    for dtype in DTYPES:
        for iterations in (2, 12):
            bp = ig.BeliefPropagation(iterations=iterations, schedule=schedule, dtype=dtype)
            calls[f"{iterations} {dtype}"] = partial(ig.infer, p, bp)
        ten = ig.BeliefPropagation(iterations=10, schedule=schedule, dtype=dtype)
        calls[f"gradient {dtype}"] = partial(_gradient, p, ten, bars)
    times = paired(calls, budget=20.0)
    sweeps = [(times[f"12 {dtype}"] - times[f"2 {dtype}"]) / 10 for dtype in DTYPES]
    return [name, *_compared(sweeps), *_compared([times[f"gradient {dtype}"] for dtype in DTYPES])]


def _gradient(p: ig.Potentials, algorithm: ig.BeliefPropagation, bars: FloatArray) -> None:
    ig.infer(p, algorithm, tape=True).backward(variables=bars)


def _digits(name: str, algorithm: Callable[[str], ig.BeliefPropagation]) -> Row:
    p, labels = batch_of_grids(90, 28, general=False)
    times = paired({d: partial(value_and_gradient, p, labels, True, algorithm(d)) for d in DTYPES}, repetitions=25)
    return [name, "-", "-", "-", *_compared([times[d] for d in DTYPES])]


def _fit(name: str, algorithm: Callable[[str], ig.BeliefPropagation]) -> Row:
    X, Y, _, _ = ig.datasets.noisy_digits(0.5)
    steps: dict[str, int] = {}

    def fit(dtype: str) -> None:
        crf = ig.GridCRF(algorithm(dtype), loss="ucl", l2=1.0, bias=False, max_iter=20)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ig.ConvergenceWarning)
            steps[dtype] = crf.fit(X, Y).n_iter_

    times = paired({d: partial(fit, d) for d in DTYPES})
    return [name, "-", "-", "-", *_compared([times[d] / steps[d] for d in DTYPES])]


def _compared(times: list[FloatArray]) -> list[str]:
    wide, narrow = times
    return [seconds(wide), seconds(narrow), ratio(wide, narrow)]
