"""Speed-up with threads: seconds on the wall with one thread over those with several, which take turns.

The first rows are C loops with independent work (scaling.c): one stays in the caches, the other is bound by the memory
of the machine, whose bandwidth is printed. The last column is the speed-up with most threads over that of the C loop of
the same kind, which runs in the same turns: other programs on the machine slow both. The large grid needs 7 GB.
`python -m benchmarks scaling --small` has smaller problems, and takes about three minutes.
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
from benchmarks.timing import Row, Rows, seconds

THREADS = tuple(n for n in (1, 2, 4, 8, 16, 32, 64) if n <= (os.cpu_count() or 1))
TITLE = "Speed-up with threads, against one"
COLUMNS = ("what", "one thread", *(f"{n} threads" for n in THREADS[1:]), "of the C loop")
REPETITIONS = 5
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


def loop_time(kind: str, threads: int) -> tuple[float, float]:
    """Return the seconds of a C loop, and GB/s; nan without a compiler."""
    program = _program()
    if program is None:
        return np.nan, np.nan
    done = subprocess.run([program, kind, str(threads)], check=True, capture_output=True, text=True)
    taken, rate = map(float, done.stdout.split())
    return taken, rate


@cache
def _program() -> str | None:
    return compiled_program("scaling.c", "-pthread")


def speed_ups(times: Mapping[int, float]) -> list[str]:
    """Write how many times faster several threads are than one."""
    return [f"{times[1] / times[n]:.2f} x" if n in times else "-" for n in THREADS[1:]]


def _loop_row(kind: str) -> Row:
    if _program() is None:
        return [f"C loop, {kind}", "-", *("-" for _ in THREADS[1:]), "no C compiler"]
    turns = [[loop_time(kind, n) for n in THREADS] for _ in range(REPETITIONS)]
    times = np.median([[taken for taken, _ in turn] for turn in turns], axis=0)
    rate = max(rate for turn in turns for _, rate in turn)
    note = f"{rate:.3g} GB/s" if rate else "-"
    return [f"C loop, {kind}", seconds(times[0]), *speed_ups(dict(zip(THREADS, times, strict=True))), note]


def _row(name: str, kind: str, times: Mapping[int, float], loop: Mapping[int, float]) -> Row:
    most = THREADS[-1]
    share = times[1] / times[most] / (loop[1] / loop[most])
    text = "-" if np.isnan(share) else f"{share:.2f} ({kind})"
    return [name, seconds(times[1]), *speed_ups(times), text]


def _timed(name: str, kind: str, call: Callable[[int], float | None], repetitions: int = REPETITIONS) -> Row:
    """Time a function of the number of threads, unless it returns seconds, and a C loop, in turns; take medians."""
    found: dict[int, list[float]] = {n: [] for n in THREADS}
    loop: dict[int, list[float]] = {n: [] for n in (1, THREADS[-1])}
    for n in THREADS:
        call(n)
    for _ in range(repetitions):
        for n in THREADS:
            start = time.perf_counter()
            taken = call(n)
            found[n].append(time.perf_counter() - start if taken is None else taken)
        for n, times in loop.items():
            times.append(loop_time(kind, n)[0])
    return _row(name, kind, *({n: float(np.median(t)) for n, t in some.items()} for some in (found, loop)))


def _grids() -> Row:
    count = 500 if small else 2000
    p, labels = batch_of_grids(count, 28, general=False)
    bars = np.eye(2)[labels].ravel()

    def value_and_gradient(threads: int) -> None:
        result = ig.infer(p, "bp", iterations=5, schedule="flooding", tape=True, n_jobs=threads)
        result.backward(variables=bars)

    return _timed(f"{count} grids of 28 x 28, 5 floodings with gradient", "compute", value_and_gradient)


def _predict() -> Row:
    count, rng = 500 if small else 2000, np.random.default_rng(0)
    X, Y = rng.normal(size=(count, 28, 28, 3)), rng.integers(0, 2, (count, 28, 28))
    crf = ig.GridCRF("bp", iterations=5, schedule="grid", bias=False, max_iter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ig.ConvergenceWarning)
        crf.fit(X[:20], Y[:20])

    def predict(threads: int) -> None:
        crf.set_params(n_jobs=threads).predict(X)

    return _timed(f"GridCRF.predict, {count} images of 28 x 28", "compute", predict)


def _large_grid() -> Row:
    side, sweeps = (700, 6) if small else (2000, 20)
    p = grid_model(side, shared=True, general=False)

    def gradient(threads: int) -> None:
        result = ig.infer(p, "bp", iterations=sweeps, schedule="grid", tape=True, n_jobs=threads)
        result.backward(variables=np.ones_like(result.variables.flat))

    return _timed(f"one grid of {side} x {side}, {sweeps} sweeps with gradient", "memory", gradient, 3)


def _chain() -> Row:
    copies, sentences, iterations = (1, SENTENCES // 4, 5) if small else (3, SENTENCES, 8)
    X, Y = tagging_problem(sentences)
    X, Y = X * copies, Y * copies

    def iteration(threads: int) -> float:
        stamps: list[float] = []
        crf = ig.ChainCRF(l2=1.0, bias=False, boundary=False, max_iter=iterations, tol=0, n_jobs=threads)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ig.ConvergenceWarning)
            crf.set_params(callback=lambda _: stamps.append(time.perf_counter())).fit(X, Y)
        return float(np.median(np.diff(stamps)))

    return _timed(f"ChainCRF iteration, {sum(map(len, Y)):,} tokens", "compute", iteration)


def _exact() -> Row:
    p = problem("ising15" if small else "ising18")

    def exact(threads: int) -> None:
        ig.infer(p, "exact", n_jobs=threads)

    return _timed(f"exact, {'15 x 15' if small else '18 x 18'}", "compute", exact)
