"""Speed-up with threads: seconds on the wall with one thread over those with several, which take turns.

The first rows are C loops with independent work (scaling.c): one stays in the caches, the other is bound by the memory
of the machine, whose bandwidth is printed. The last column is the speed-up with most threads over that of the C loop of
the same kind. The large grid needs 7 GB. `python -m benchmarks scaling --small` has smaller problems, and takes about
two minutes.
"""

from __future__ import annotations

import os
import subprocess
import time
import warnings
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

import isinglass as ig
from benchmarks.limit import compiled_program
from benchmarks.problems import batch_of_grids, grid_model, problem
from benchmarks.tagging_problem import SENTENCES, tagging_problem
from benchmarks.timing import Row, Rows, paired, seconds

THREADS = tuple(n for n in (1, 2, 4, 8, 16, 32, 64) if n <= (os.cpu_count() or 1))
TITLE = "Speed-up with threads, against one"
COLUMNS = ("what", "one thread", *(f"{n} threads" for n in THREADS[1:]), "of the C loop")
small = False
"""Whether problems are smaller; `--small` sets it."""


def rows() -> Rows:
    """Name the rows."""
    return {
        "C loop, compute": lambda: _loop_row("compute"),
        "C loop, memory": lambda: _loop_row("memory"),
        "2,000 grids of 28 x 28, 5 floodings with gradient": _grids,
        "GridCRF.predict, 2,000 images of 28 x 28": _predict,
        "one grid of 2000 x 2000, 20 sweeps with gradient": _large_grid,
        "ChainCRF iteration, 600,000 tokens": _chain,
        "exact, 18 x 18": _exact,
    }


@cache
def loop_times(kind: str) -> tuple[Mapping[int, float], str]:
    """Return the seconds of a C loop for each number of threads, and the bandwidth; nothing without a compiler."""
    program = compiled_program("scaling.c", "-pthread")
    if program is None:
        return {}, "no C compiler"
    found: dict[int, tuple[float, float]] = {}
    for _ in range(3):
        for n in THREADS:
            done = subprocess.run([program, kind, str(n)], check=True, capture_output=True, text=True)
            taken, rate = map(float, done.stdout.split())
            found[n] = min(found.get(n, (np.inf, 0.0)), (taken, rate))
    best = max(rate for _, rate in found.values())
    return {n: taken for n, (taken, _) in found.items()}, f"{best:.3g} GB/s" if best else "-"


def speed_ups(times: Mapping[int, float]) -> list[str]:
    """Write how many times faster several threads are than one."""
    return [f"{times[1] / times[n]:.2f} x" if n in times else "-" for n in THREADS[1:]]


def _loop_row(kind: str) -> Row:
    times, note = loop_times(kind)
    if not times:
        return [f"C loop, {kind}", "-", *("-" for _ in THREADS[1:]), note]
    return [f"C loop, {kind}", seconds(times[1]), *speed_ups(times), note]


def _row(name: str, kind: str, times: Mapping[int, float]) -> Row:
    most, (limit, _) = THREADS[-1], loop_times(kind)
    share = "-" if most not in limit else f"{times[1] / times[most] / (limit[1] / limit[most]):.2f} ({kind})"
    return [name, seconds(times[1]), *speed_ups(times), share]


def _timed(call: Callable[[int], object]) -> dict[int, float]:
    """Time a function of the number of threads, in turns; return the medians."""
    calls = {str(n): lambda n=n: call(n) for n in THREADS}
    times = paired(calls, repetitions=3 if small else 5, budget=20.0, clock=time.perf_counter)
    return {n: float(np.median(times[str(n)])) for n in THREADS}


def _grids() -> Row:
    count = 500 if small else 2000
    p, labels = batch_of_grids(count, 28, general=False)
    bars = np.eye(2)[labels].ravel()

    def value_and_gradient(threads: int) -> None:
        result = ig.infer(p, "bp", iterations=5, schedule="flooding", tape=True, n_jobs=threads)
        result.backward(variables=bars)

    return _row(f"{count} grids of 28 x 28, 5 floodings with gradient", "compute", _timed(value_and_gradient))


def _predict() -> Row:
    count, rng = 500 if small else 2000, np.random.default_rng(0)
    X, Y = rng.normal(size=(count, 28, 28, 3)), rng.integers(0, 2, (count, 28, 28))
    crf = ig.GridCRF("bp", iterations=5, schedule="grid", bias=False, max_iter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ig.ConvergenceWarning)
        crf.fit(X[:20], Y[:20])
    return _row(
        f"GridCRF.predict, {count} images of 28 x 28",
        "compute",
        _timed(lambda threads: crf.set_params(n_jobs=threads).predict(X)),
    )


def _large_grid() -> Row:
    side, sweeps = (700, 6) if small else (2000, 20)
    p = grid_model(side, shared=True, general=False)

    def gradient(threads: int) -> None:
        result = ig.infer(p, "bp", iterations=sweeps, schedule="grid", tape=True, n_jobs=threads)
        result.backward(variables=np.ones_like(result.variables.flat))

    return _row(f"one grid of {side} x {side}, {sweeps} sweeps with gradient", "memory", _timed(gradient))


def _chain() -> Row:
    copies, sentences, iterations = (1, SENTENCES // 4, 5) if small else (3, SENTENCES, 8)
    X, Y = tagging_problem(sentences)
    X, Y = X * copies, Y * copies
    times = {}
    for n in THREADS:
        stamps: list[float] = []
        crf = ig.ChainCRF(l2=1.0, bias=False, boundary=False, max_iter=iterations, tol=0, n_jobs=n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ig.ConvergenceWarning)
            crf.set_params(callback=lambda _, to=stamps: to.append(time.perf_counter())).fit(X, Y)
        times[n] = float(np.median(np.diff(stamps)))
    return _row(f"ChainCRF iteration, {sum(map(len, Y)):,} tokens", "compute", times)


def _exact() -> Row:
    p = problem("ising15" if small else "ising18")
    side = "15 x 15" if small else "18 x 18"
    return _row(f"exact, {side}", "compute", _timed(lambda threads: ig.infer(p, "exact", n_jobs=threads)))
