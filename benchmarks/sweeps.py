"""Flooding sweeps of belief propagation and their gradients.

A sweep is the difference between 12 and 2 iterations, divided by 10, so that what is done once is not counted. The
gradient columns are for runs of 10 iterations, everything counted: a run with a tape over one without, and a run with a
tape and the backward pass over one with a tape. "x C loop" is over limit.c on a binary grid of the same side, measured
in turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np

import isinglass as ig
from benchmarks.limit import limit
from benchmarks.problems import grid_model, mixed_grid, problem, sparse
from benchmarks.timing import Row, Rows, paired, ratio, seconds

TITLE = "Belief propagation: a flooding sweep, and gradients through 10 of them"
COLUMNS = ("what", "sweep", "x C loop", "gradient", "taped / plain", "forward + backward / forward", "peers, recorded")
PEERS = {
    300: "PGMax 8.4 ms (float32), libDAI 183 ms",
    100: "PGMax 0.84 ms (float32), libDAI 15.6 ms",
    30: "PGMax 0.078 ms (float32), libDAI 1.1 ms",
}


def rows() -> Rows:
    """Name the rows."""
    named: Rows = {}
    for side, general, shared in product((30, 100, 300), (True, False), (True, False)):
        engine, tables = "general engine" if general else "grid kernel", "one table" if shared else "own tables"
        name = f"grid {side}, {engine}, {tables}"
        named[name] = partial(_row, name, partial(grid_model, side, shared=shared, general=general), side, PEERS[side])
    potts = partial(problem, "potts100_k5")
    named["potts100_k5"] = partial(_row, "potts100_k5", potts, None, "PGMax 4.6 ms, libDAI 34.3 ms")
    named["mixed"] = partial(
        _row, "grid 100, general engine, own tables, 2 to 4 states", partial(mixed_grid, 100, 2, 4)
    )
    three = partial(grid_model, 100, 3, shared=False, general=True)
    named["uniform"] = partial(_row, "grid 100, general engine, own tables, 3 states", three)
    named["sparse"] = partial(_row, "sparse: 20,000 variables, 20,000 pairs, 5,000 triples", sparse)
    return named


def _row(name: str, make: Callable[[], ig.Potentials], side: int | None = None, peers: str = "") -> Row:
    p = make()
    few, some, many = (ig.BeliefPropagation(iterations=n) for n in (2, 10, 12))
    on_tape = ig.infer(p, some, tape=True)
    floors: list[float | None] = []
    times = paired(
        {
            "few": lambda: ig.infer(p, few),
            "many": lambda: ig.infer(p, many),
            "plain": lambda: ig.infer(p, some),
            "taped": lambda: ig.infer(p, some, tape=True),
            "backward": lambda: on_tape.backward(log_z=1.0),
            "floor": lambda: floors.append(limit(side) if side else None),
        }
    )
    sweep = (times["many"] - times["few"]) / 10
    against = "no C compiler" if side else "-"
    if floors[-1] is not None:
        against = f"{ratio(sweep, floors[1:])} of {seconds(floors)}"
    gradient = times["taped"] + times["backward"]
    over = ratio(times["taped"], times["plain"]), ratio(gradient, times["taped"])
    return [name, seconds(sweep), against, seconds(gradient), *over, peers]


def sweep_seconds(p: ig.Potentials) -> float:
    """Return the median seconds of a sweep by the clock on the wall, as a peer with threads is timed."""
    few, many = ig.BeliefPropagation(iterations=2), ig.BeliefPropagation(iterations=12)
    calls = {"few": lambda: ig.infer(p, few), "many": lambda: ig.infer(p, many)}
    times = paired(calls, clock=time.perf_counter)
    return float(np.median(times["many"] - times["few"])) / 10
