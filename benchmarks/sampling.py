"""Sweeps of samplers. "x C loop" is the time of a sweep of a chain over that of gibbs.c, measured in turns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

import isinglass as ig
from benchmarks.limit import limit
from benchmarks.problems import grid_model, sparse
from benchmarks.timing import Row, Rows, paired
from isinglass.inference.sampling.algorithm import MonteCarlo
from isinglass.inference.sampling.chains import Chains

TITLE = "Samplers: sweeps"
COLUMNS = ("what", "sweeps/s of a chain", "x C loop", "goal, sweeps/s", "peers, recorded")
SIDE = 300


def rows() -> Rows:
    """Name the rows."""
    own, shared = (partial(grid_model, SIDE, shared=s, general=False) for s in (False, True))
    potts = partial(potts_model, 100, 10)
    return {
        "gibbs, own tables": partial(
            _row, "gibbs, grid 300, own tables", ig.Gibbs(chains=1), own, "1,500", "libDAI 49"
        ),
        "gibbs, one table": partial(_row, "gibbs, grid 300, one table", ig.Gibbs(chains=1), shared, "3,000"),
        "gibbs, 8 chains": partial(_row, "gibbs, grid 300, own tables, 8 chains", ig.Gibbs(chains=8), own, "1,500"),
        "gibbs, 64 chains": partial(_row, "gibbs, grid 300, own tables, 64 chains", ig.Gibbs(chains=64), own, "1,500"),
        "gibbs, sparse": partial(
            _row, "gibbs, 20,000 variables, 20,000 pairs, 5,000 triples", ig.Gibbs(chains=1), sparse, "200"
        ),
        "swendsen-wang": partial(_row, "swendsen-wang, grid 300", ig.SwendsenWang(chains=1), critical, "100"),
        "tree-gibbs": partial(_row, "tree-gibbs, grid 300, own tables", ig.TreeGibbs(chains=1), own, ""),
        "gibbs, potts": partial(_row, "gibbs, grid 100, 10 states", ig.Gibbs(chains=1), potts, ""),
    }


def critical() -> ig.Potentials:
    """Return the Ising model at its critical coupling."""
    return ig.models.Ising(ig.grid_graph(SIDE, SIDE, 2)).potentials(coupling=np.log(1 + np.sqrt(2)) / 2)


def potts_model(side: int, states: int) -> ig.Potentials:
    """Return a Potts model at its critical coupling."""
    graph = ig.grid_graph(side, side, states)
    coupling = np.log(1 + np.sqrt(states)) * np.eye(states)
    return ig.Potentials.from_groups(graph, [np.zeros((1, states)), coupling[None]])


def _row(name: str, algorithm: MonteCarlo, make: Callable[[], ig.Potentials], goal: str, peers: str = "") -> Row:
    potentials = make()
    sampler = algorithm.sampler(potentials)
    chains = Chains.start(potentials, algorithm.chains, random_state=0)
    sampler.advance(chains, 1)
    sweeps = max(1, int(5e6 / (sampler.work * chains.n)))
    found, loops = [], []
    for _ in range(5):  # in turns
        times = paired({"sweeps": partial(sampler.advance, chains, sweeps)}, repetitions=3)["sweeps"]
        found.append(float(np.median(times)) / (sweeps * chains.n))
        loops.append(limit(SIDE, "gibbs") if potentials.graph.n_variables == SIDE**2 else None)
    ratios = [mine / loop for mine, loop in zip(found, loops, strict=True) if loop is not None]
    share = f"{np.median(ratios):.2f}" if ratios else ""
    return [name, f"{1 / np.median(found):,.0f}", share, goal, peers]
