"""Seconds against size: square grids of binary variables, and chains of five states.

Tasks are whole calls, as a user makes them: inference by one sweep of a grid, the loss ucl and its gradient through it,
and `GridCRF.fit` of one image by two iterations of L-BFGS; on chains exact inference by one pass up and down, the same
with the gradient of log Z, and `ChainCRF.fit` of one sequence. What depends on a graph only is laid out before, but for
the fits, which count everything.

    log seconds  =  a + e log size,      by least squares over the sizes whose messages do not fit in a cache,

so that e = 1 is linear. Times are of the processor, the least of five runs or more: others on the machine take caches
and the way to the memory from a run, and nothing makes it faster. Each row is a process of its own, whose C
library keeps memory that was freed (MALLOC_MMAP_MAX_=0, MALLOC_TRIM_THRESHOLD_): fresh pages, which the system maps and
clears, are what the system makes of them, and not linear. The largest grid needs 9 GB.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np

import isinglass as ig
from benchmarks.problems import full, grid_model
from benchmarks.timing import Row, Rows, python, seconds, timed

SIDES = (64, 128, 256, 512, 768, 896, 1024, 1216, 1448, 1728, 2048)
LENGTHS = (1_000, 3_000, 10_000, 30_000, 100_000, 200_000, 280_000, 380_000, 520_000, 720_000, 1_000_000)
BEYOND = 6  # sizes that do not fit in a cache, the largest ones
RUNS = 5  # of each size, at least
TITLE = "Growth: seconds against size"
COLUMNS = ("what", *(f"size {i + 1}" for i in range(len(SIDES))), "exponent beyond the cache")
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40)}
Task = Callable[[], object]


def rows() -> Rows:
    """Name the rows."""
    named: Rows = {}
    for name, make in {"one sweep": _sweep, "gradient": _gradient, "GridCRF.fit": _fit_grid}.items():
        named[f"grids, {name}"] = partial(_row, f"grids, {name}", SIDES, make, lambda side: f"{side}²")
    for name, make in {"inference": _chain, "gradient": _chain_gradient, "ChainCRF.fit": _fit_chain}.items():
        named[f"chains, {name}"] = partial(_row, f"chains, {name}", LENGTHS, make, lambda length: f"{length:,}")
    return named


def _sweep(side: int) -> Task:
    p = grid_model(side, shared=True, general=False)
    return lambda: ig.infer(p, "bp", iterations=1, schedule="grid").variables


def _gradient(side: int) -> Task:
    p, rule = grid_model(side, shared=True, general=False), ig.gradients.rule("unrolled")
    labels = np.random.default_rng(side).integers(0, 2, side**2)
    bp, loss = ig.BeliefPropagation(iterations=1, schedule="grid"), ig.losses.UnivariateLikelihood()
    return lambda: rule.evaluate(p, bp, lambda result: loss(result, labels))


def _fit_grid(side: int) -> Task:
    rng = np.random.default_rng(side)
    X = rng.normal(size=(1, side, side, 2))
    Y = (X[..., 0] + rng.normal(size=X.shape[:3]) > 0).astype(int)
    return lambda: ig.GridCRF("bp", iterations=1, schedule="grid", max_iter=2).fit(X, Y)


def _chain(length: int) -> Task:
    p = full(ig.chain_graph(length, 5), np.random.default_rng(0), 5)
    return lambda: ig.infer(p, "bp").log_z


def _chain_gradient(length: int) -> Task:
    p = full(ig.chain_graph(length, 5), np.random.default_rng(0), 5)
    return lambda: ig.infer(p, "bp", tape=True).backward(log_z=1.0).groups


def _fit_chain(length: int) -> Task:
    rng = np.random.default_rng(0)
    X, Y = [rng.normal(size=(length, 4))], [rng.integers(0, 5, length)]
    return lambda: ig.ChainCRF(max_iter=2).fit(X, Y)


def _row(name: str, sizes: tuple[int, ...], make: Callable[[int], Task], text: Callable[[int], str]) -> Row:
    code = f"from benchmarks import growth; print(*growth.least_times({make.__name__!r}, {sizes}))"
    taken = [float(word) for word in python(code, environment=KEEP_MEMORY).split()]
    measure = [size**2 if sizes is SIDES else size for size in sizes]
    cells = [f"{text(size)}: {seconds(least)}" for size, least in zip(sizes, taken, strict=True)]
    return [name, *cells, f"{exponent(measure[-BEYOND:], taken[-BEYOND:]):.2f}"]


def least_times(make: str, sizes: tuple[int, ...], budget: float = 2.0) -> list[float]:
    """Return the least time of some runs for each size."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        globals()[make](sizes[0])()  # compiles the loops
        for size in sizes:
            task, times = globals()[make](size), list[float]()
            if "fit" not in make:
                task()  # lays out the graph
            while len(times) < RUNS or (len(times) < 3 * RUNS and sum(times) < budget):
                times.append(timed(task))
            found.append(min(times))
    return found


def exponent(sizes: list[int], taken: list[float]) -> float:
    """Return e of seconds ~ size^e."""
    return float(np.polyfit(np.log(sizes), np.log(taken), 1)[0])
