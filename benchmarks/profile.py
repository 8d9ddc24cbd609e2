"""Where the time of a fit goes, by the part of the library in which it is spent.

A fit runs twice, the first time to compile; the second is profiled. The time of a function is its own, without what it
calls; that of a function which is not ours (NumPy, SciPy) counts for the one that called it. Profiling slows calls of
Python functions, not loops, so that the shares of compiled loops are a little too small.
"""

from __future__ import annotations

import cProfile
import pstats
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

import isinglass as ig
from benchmarks.tagging_problem import tagging_problem
from benchmarks.timing import Row, Rows, seconds

PACKAGE = Path(ig.__file__).parent
PARTS: dict[str, tuple[str, ...]] = {  # the first that fits a function's file or name
    "read-out": ("read_out", "read_out_back", "inference/result", "inference/message_passing/outcome"),
    "loops": ("kernels/",),
    "set-up": ("inference/", "graph/", "potentials", "segments", "runtime/"),
    "model": ("models/", "features/"),
    "loss": ("losses/", "gradients/", "learning/objective", "learning/total", "learning/chain"),
    "optimizer": ("learning/", "scipy/optimize"),
    "estimator": ("estimators/", "validation"),
}
TITLE = "Where the time of a fit goes"
COLUMNS = ("fit", "an iteration", *PARTS, "other")
Function = tuple[str, int, str]


def rows() -> Rows:
    """Name the rows."""
    return {
        "digits, 4 grid sweeps": lambda: _row("digits, 4 grid sweeps", _digits(iterations=4, schedule="grid")),
        "digits, 5 floodings": lambda: _row("digits, 5 floodings", _digits(iterations=5, schedule="flooding")),
        "tagging, 2000 sentences": lambda: _row("tagging, 2000 sentences", _tagging()),
        "graphs, pseudolikelihood": lambda: _row("graphs, pseudolikelihood", _graphs()),
    }


def _digits(**options: object) -> Callable[[], int]:
    X, Y, _, _ = ig.datasets.noisy_digits(0.5)
    bp = ig.BeliefPropagation(**options)  # type: ignore[arg-type]
    return lambda: ig.GridCRF(bp, loss="ucl", l2=1.0, bias=False, max_iter=20).fit(X, Y).n_iter_


def _tagging() -> Callable[[], int]:
    X, Y = tagging_problem(2000)
    return lambda: ig.ChainCRF(bias=False, boundary=False, max_iter=20).fit(X, Y).n_iter_


def _graphs() -> Callable[[], int]:
    rng = np.random.default_rng(0)
    edges = np.array([(i, j) for i in range(60) for j in range(i + 1, 60) if rng.random() < 0.1])
    X = [(rng.normal(size=(60, 8)), edges) for _ in range(60)]
    Y = [(x[:, 0] > 0).astype(int) for x, _ in X]
    return lambda: ig.GraphCRF(loss="pseudo", l2=1.0, bias=False, max_iter=20).fit(X, Y).n_iter_


def _row(name: str, fit: Callable[[], int]) -> Row:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit()
        start = time.process_time()
        iterations = fit()
        took = time.process_time() - start
        profile = cProfile.Profile(time.process_time)
        profile.runcall(fit)
    shares = shares_of(pstats.Stats(profile))
    whole = sum(shares.values())
    parts = [f"{shares[part] / whole:.0%}" for part in (*PARTS, "other")]
    return [name, seconds(took / max(1, iterations)), *parts]


def shares_of(stats: pstats.Stats) -> Counter[str]:
    """Return the seconds that each part took."""
    known: dict[Function, tuple[int, int, float, float, dict[Function, tuple[int, int, float, float]]]]
    known = stats.stats  # type: ignore[attr-defined]
    shares: Counter[str] = Counter()
    for function, (_, _, own, _, callers) in known.items():
        part = part_of(function)
        if part is not None:
            shares[part] += own
            continue
        given = sum(numbers[2] for numbers in callers.values())
        for caller, numbers in callers.items():
            shares[_nearest(caller, known)] += numbers[2]
        shares["other"] += max(0.0, own - given)
    return shares


def part_of(function: Function) -> str | None:
    """Return the part that a function belongs to; None if it is not ours."""
    file, _, name = function
    inside = file.removeprefix(f"{PACKAGE}/")
    for part, words in PARTS.items():
        if any(inside.startswith(word) or word == name for word in words) or any(
            "/" in word and f"site-packages/{word}" in file for word in words
        ):
            return part
    return "other" if inside != file else None


def _nearest(function: Function, known: dict[Function, tuple[object, ...]], depth: int = 6) -> str:
    """Return the part of the nearest of our functions among those that mostly called it."""
    for _ in range(depth):
        part = part_of(function)
        if part is not None:
            return part
        callers: dict[Function, tuple[float, ...]] = known[function][4]  # type: ignore[assignment]
        if not callers:
            break
        function = max(callers, key=lambda one: callers[one][3])
    return "other"
