"""Recovery of a graph against the number of samples (Ravikumar, Wainwright and Lafferty 2010, section 6).

Ising models on a grid with couplings of either sign. The share of draws in which the whole graph is found, every edge
and no other, and the share of edges that are right. The theory asks for a penalty of order sqrt(log(variables) /
samples); its constant is fixed here for all sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass import FactorGraph, Potentials, grid_graph, learn_structure, sample
from isinglass.typing import FloatArray
from isinglass.validation import whole_number
from isinglass_experiments.common.experiment import Experiment, Plot, Progress, Report, parallel_map, register, tell

COUPLING = 0.3
CONSTANTS = {"neighbourhood": 3.0, "group-l1": 6.5}
COMPARED = ("neighbourhood", "group-l1", "chow-liu", "greedy")


@register
@dataclass(frozen=True)
class StructureRecovery(Experiment):
    """How many samples it takes to find a graph.

    Parameters
    ----------
    quick : bool
        Fewer draws and sizes.
    draws : int, optional
        20, or 6 if quick.
    n_jobs : int
        Processes; values do not depend on them.
    """

    quick: bool = False
    draws: int | None = None
    n_jobs: int = 2

    name: ClassVar[str] = "structure"
    summary: ClassVar[str] = "recovery of a graph against the number of samples (Ravikumar et al. 2010)"

    def run(self, progress: Progress | None = None) -> Report:
        """Learn graphs from samples of some sizes."""
        draws = (6 if self.quick else 20) if self.draws is None else whole_number(self.draws, "draws", 1)
        side, sizes = 4, (250, 1000, 4000) if self.quick else (250, 500, 1000, 2000, 4000, 8000)
        work = [(method, side, n, draw) for method in COMPARED for n in sizes for draw in range(draws)]
        found = []
        for i, one in enumerate(parallel_map(recovered, work, self.n_jobs)):
            found.append(one)
            tell(progress, f"{work[i][0]}, {work[i][2]} samples", (i + 1) / len(work))
        return _report(np.array(found).reshape(len(COMPARED), len(sizes), draws, 3), sizes, side)


def recovered(method: str, side: int, n: int, draw: int) -> tuple[float, float, float]:
    """Return whether a graph was found exactly, the share of its edges found, and of found edges that are right."""
    graph = grid_graph(side, side, 2)
    rng = np.random.default_rng(draw)
    signs = rng.choice([-1.0, 1.0], graph.n_factors - graph.n_variables)
    spins = np.outer([-1.0, 1.0], [-1.0, 1.0])
    model = Potentials.from_groups(graph, [np.zeros((side**2, 2)), COUPLING * signs[:, None, None] * spins])
    X = sample(model, n, random_state=np.random.default_rng([draw, n]))
    options = {}
    if method in CONSTANTS:
        options = {"strength": CONSTANTS[method] * float(np.sqrt(np.log(side**2) / n))}
    mine, true = _edges(learn_structure(X, method, cards=graph.cards, **options)), _edges(graph)
    right = len(mine & true)
    return float(mine == true), right / len(true), right / max(len(mine), 1)


def _edges(graph: FactorGraph) -> set[tuple[int, int]]:
    """Return the pairs of variables that share a factor."""
    return {(min(a, b), max(a, b)) for s in graph.scopes for a in s for b in s if a != b}


def _report(values: FloatArray, sizes: Sequence[int], side: int) -> Report:
    mean = values.mean(axis=2)
    rows = [
        [method, str(n), *(f"{mean[m, s, k]:.2f}" for k in range(3))]
        for m, method in enumerate(COMPARED)
        for s, n in enumerate(sizes)
    ]
    notes = [
        f"a grid of {side} x {side} spins, couplings ±{COUPLING}, {values.shape[2]} draws of signs and samples",
        "strength " + ", ".join(f"{c:g} sqrt(log p / n) for {m}" for m, c in CONSTANTS.items()),
        "chow-liu finds trees and greedy chordal graphs: neither can be this grid",
    ]
    curves = {method: (list(map(float, sizes)), mean[m, :, 0].tolist()) for m, method in enumerate(COMPARED)}
    plots = {"structure": Plot("samples", "share of graphs found exactly", curves)}
    data = {"experiment": "structure", "methods": list(COMPARED), "samples": list(sizes), "values": values.tolist()}
    columns = ["method", "samples", "exact", "edges found", "found edges right"]
    return Report("Recovery of a graph", columns, rows, notes, data, {}, plots)
