"""Exact inference; each repetition builds the structure anew, so that the elimination order is counted too.

"Again" is a second inference on the same structure. Times of the peers are recorded ones, taken on one core of a Zen 4
machine with the same instances: libDAI (-O3), pyAgrum 3.3.1.
"""

from __future__ import annotations

from functools import partial

import isinglass as ig
from benchmarks.problems import problem
from benchmarks.timing import Row, Rows, ratio, seconds, timed

TITLE = "Exact inference"
COLUMNS = ("what", "ours", "again", "at most", "again / first", "peers, recorded (s)", "")
REFERENCE = {
    "ising15": 276.7220690028,
    "ising18": 402.8726446561,
    "tree10000": 11582.3586196245,
    "chain10000_k5": 20843.2793985460,
}
TARGET = {"ising15": 0.2, "ising18": 0.6, "tree10000": 0.05, "chain10000_k5": 0.05}
PEERS = {
    "ising15": "libDAI 0.18, pyAgrum 8.3",
    "ising18": "libDAI 15.6, pyAgrum 17.8",
    "tree10000": "libDAI 7.8, pyAgrum NaN",
    "chain10000_k5": "libDAI 3.8, pyAgrum NaN",
}


def rows() -> Rows:
    """Name the rows."""
    return {name: partial(_row, name) for name in REFERENCE}


def _row(name: str, repetitions: int = 5, budget: float = 10.0) -> Row:
    ig.infer(problem("ising15"), "exact")  # compiles
    fresh, again, results = [], [], []
    while len(fresh) < repetitions and (len(fresh) < 3 or sum(fresh) + sum(again) < budget):
        p = problem(name)
        fresh.append(timed(lambda p=p: ig.infer(p, "exact")))
        again.append(timed(lambda p=p: results.append(ig.infer(p, "exact").log_z)))
    error = abs(results[-1] - REFERENCE[name])
    width, megabytes = ig.elimination_order(p.graph).width, ig.Exact().cost(p).bytes / 1e6
    note = f"width {width}, {megabytes:.0f} MB, log Z off by {error:.0e}"
    return [name, seconds(fresh), seconds(again), f"{TARGET[name]:g} s", ratio(again, fresh), PEERS[name], note]
