"""Compare the speed of two source trees of the library, in interleaved runs: ``python tools/compare_speed.py OLD NEW``.

Each tree has processes of its own. They take turns at every case, in both orders, more often where a case is quick; the
table shows the median of the ratios of the processor times, new to old, with a 95 % confidence interval by the
bootstrap. Further words name cases: those run whose name contains one of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

PROCESSES = 4  # of each tree, one after the other: where arrays happen to lie in memory makes a difference
ROUNDS = 6, 40  # at least and at most
SECONDS = 0.8  # for the turns of a process at a case, if that takes neither fewer nor more rounds
COUPLING = np.array([[1.0, -1.0], [-1.0, 1.0]])


def cases() -> dict[str, Callable[[], object]]:
    import isinglass as ig

    def grid(side: int, strength: float = 0.5, states: int = 2) -> ig.Potentials:
        rng, graph = np.random.default_rng(side), ig.grid_graph(side, side, states)
        unary, pairs = graph.groups
        tables = [rng.normal(0, 1, (len(unary), states)), rng.normal(0, strength, (len(pairs), states, states))]
        return ig.Potentials.from_groups(graph, tables)

    def shuffled(side: int) -> ig.Potentials:
        rng, n = np.random.default_rng(side), side * side
        scopes = rng.permutation(ig.grid_graph(side, side, 2).groups[1].scopes)
        graph = ig.FactorGraph.from_groups(np.full(n, 2), [np.arange(n)[:, None], scopes])
        return ig.Potentials.from_groups(graph, [rng.normal(size=(n, 2)), rng.normal(0, 0.5, (len(scopes), 2, 2))])

    def one_table(side: int) -> ig.Potentials:
        rng, graph = np.random.default_rng(side), ig.grid_graph(side, side, 2)
        return ig.Potentials.from_groups(graph, [rng.normal(size=(side**2, 2)), rng.normal(0, 0.5, (1, 2, 2))])

    o300, o30 = one_table(300), one_table(30)
    g300, g100, g60, s100 = grid(300), grid(100), grid(60), shuffled(100)
    batch, potts, strong = grid(28).repeat(90), grid(60, states=5), grid(60, 2.0)
    tree = ig.Potentials.from_groups(
        ig.FactorGraph.from_groups(np.full(10000, 2), [np.stack([np.arange(9999) // 2, np.arange(1, 10000)], 1)]),
        [np.random.default_rng(0).normal(size=(9999, 2, 2))],
    )
    bars = np.random.default_rng(1).normal(size=(90 * 28 * 28, 2))

    def gradient(p: ig.Potentials, algorithm: object, bars: np.ndarray) -> Callable[[], object]:
        return lambda: ig.infer(p, algorithm, tape=True).backward(variables=bars).groups

    bars60, bars100 = bars[: 60 * 60], np.random.default_rng(1).normal(size=(100 * 100, 2))
    return {
        "bp, grid 300x300, to 1e-6": lambda: ig.infer(g300, "bp", tol=1e-6),
        "bp, grid 300x300, 10 iterations": lambda: ig.infer(g300, "bp", iterations=10),
        "bp, one table 300x300, 2 iterations": lambda: ig.infer(o300, "bp", iterations=2),
        "bp, one table 300x300, 32 iterations": lambda: ig.infer(o300, "bp", iterations=32),
        "bp, general 100x100, to 1e-8": lambda: ig.infer(s100, "bp"),
        "bp damped, general 100x100, to 1e-8": lambda: ig.infer(s100, "bp", damping=0.3),
        "bp, grid schedule 100x100, to 1e-8": lambda: ig.infer(g100, "bp", schedule="grid"),
        "bp, sequential 60x60, to 1e-8": lambda: ig.infer(g60, "bp", schedule="sequential"),
        "bp, residual 100x100, to 1e-6": lambda: ig.infer(g100, "bp", schedule="residual", tol=1e-6),
        "bp, 90 grids 28x28, to 1e-8": lambda: ig.infer(batch, "bp"),
        "bp, 5 states 60x60, to 1e-8": lambda: ig.infer(potts, "bp"),
        "bp damped, strong 60x60, 300 iterations": lambda: ig.infer(strong, "bp", damping=0.5, iterations=300),
        "trw, 60x60, to 1e-8": lambda: ig.infer(g60, "trw"),
        "max-product, 60x60, 50 iterations": lambda: ig.infer(g60, "max-product", iterations=50),
        "bp, tree of 10,000": lambda: ig.infer(tree, "bp"),
        "mf, 100x100, to 1e-6": lambda: ig.infer(g100, "mf", tol=1e-6),
        "smf, 60x60, to 1e-6": lambda: ig.infer(g60, "smf", tol=1e-6),
        "convex, 60x60": lambda: ig.infer(g60, "convex"),
        "exact, tree of 10,000": lambda: ig.infer(tree, "exact"),
        "gradient, 90 grids, 4 grid sweeps": gradient(batch, ig.BeliefPropagation(iterations=4, schedule="grid"), bars),
        "gradient, 90 grids, 5 floodings": gradient(batch, ig.BeliefPropagation(iterations=5), bars),
        "gradient, one table 30x30, 10 floodings": gradient(o30, ig.BeliefPropagation(iterations=10), bars[:900]),
        "gradient, general 100x100, to 1e-8": gradient(s100, ig.BeliefPropagation(), bars100),
        "gradient, grid 100x100, to 1e-8": gradient(g100, ig.BeliefPropagation(), bars100),
        "gradient, grid schedule 100x100, to 1e-8": gradient(g100, ig.BeliefPropagation(schedule="grid"), bars100),
        "gradient, 90 grids, to 1e-8": gradient(batch, ig.BeliefPropagation(), bars),
        "gradient, damped 60x60, to 1e-8": gradient(g60, ig.BeliefPropagation(damping=0.3), bars60),
        "gradient, trw, 60x60, to 1e-8": gradient(g60, ig.TreeReweighted(), bars60),
        "gradient, mf, 60x60, to 1e-6": gradient(g60, ig.MeanField(tol=1e-6), bars60),
        "gradient, mf, strong 60x60, to 1e-6": gradient(strong, ig.MeanField(tol=1e-6), bars60),
        "gradient, smf, 60x60, to 1e-6": gradient(g60, ig.StructuredMeanField(tol=1e-6), bars60),
        "gradient, exact, tree of 10,000": gradient(tree, ig.Exact(), np.random.default_rng(1).normal(size=(10000, 2))),
    }


def work() -> None:
    """Time the cases whose numbers come in, one a line."""
    warnings.simplefilter("ignore")
    known = list(cases().values())
    for line in sys.stdin:
        start = time.process_time()
        known[int(line)]()
        print(time.process_time() - start, flush=True)


def main(old: str, new: str, *words: str) -> None:
    sys.path.insert(0, new)
    names = list(cases())
    wanted = [k for k, name in enumerate(names) if not words or any(word in name for word in words)]
    times: dict[int, list[list[float]]] = {k: [] for k in wanted}
    for _ in range(PROCESSES):
        workers = [_worker(tree) for tree in (old, new)]
        for k in wanted:
            times[k] += _turns(workers, k)
        for worker in workers:
            worker.communicate()
    print(f"{'case':45s} {'old ms':>9s} {'new ms':>9s} {'ratio':>7s}  95 %")
    for k in wanted:
        found = np.array(times[k])
        ratios = found[:, 1] / found[:, 0]
        draws = np.random.default_rng(0).choice(ratios, (2000, len(ratios)))
        low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
        before, after = 1e3 * np.median(found, axis=0)
        print(f"{names[k]:45s} {before:9.2f} {after:9.2f} {np.median(ratios):7.3f}  {low:.3f}-{high:.3f}", flush=True)


def _turns(workers: list[subprocess.Popen[str]], k: int) -> list[list[float]]:
    """Time a case, as often as it deserves; the first time, which may compile, does not count."""
    for worker in workers:
        _time(worker, k)
    rounds = int(np.clip(SECONDS / _time(workers[0], k), *ROUNDS))
    return [_pair(workers, k, turn) for turn in range(rounds)]


def _worker(tree: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": tree}
    command = [sys.executable, __file__, "--work"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def _time(worker: subprocess.Popen[str], k: int) -> float:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(f"{k}\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


def _pair(workers: list[subprocess.Popen[str]], k: int, turn: int) -> list[float]:
    """Time both, in turns who begins."""
    found = [0.0, 0.0]
    for j in (0, 1) if turn % 2 == 0 else (1, 0):
        found[j] = _time(workers[j], k)
    return found


if __name__ == "__main__":
    if sys.argv[1:] == ["--work"]:
        work()
    else:
        main(*sys.argv[1:])
