"""Every method to learn a Markov random field, on models whose likelihood can be computed (Murphy 2012, table 19.1).

A grid of binary variables with random tables; samples are exact. Parameters are compared as canonical potentials, which
do not depend on how tables are parametrised: their root mean square error. The test log-likelihood, per sample of fresh
ones, is given as the loss against that of the true model. All methods have the same small penalty where they take one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass import MRF, Potentials, grid_graph, infer, sample
from isinglass.errors import no_convergence_warnings
from isinglass.learning.markov import METHODS, IterativeScaling, Method, make_method
from isinglass.models.canonical import canonical_tables
from isinglass.typing import FloatArray
from isinglass.validation import whole_number
from isinglass_experiments.common.experiment import (
    Experiment,
    Plot,
    Progress,
    Report,
    chosen_rows,
    parallel_map,
    register,
    tell,
)

COMPARED: dict[str, Method] = {
    name: make_method(name) for name in METHODS if name not in ("closed-form", "scaling")
} | {kind: IterativeScaling(kind) for kind in ("gis", "iis")}  # a grid has no closed form
STEPS = 2000  # of scaling, and of methods that sample
PENALTY = 0.01
SCALE = 0.5  # standard deviation of the true log tables
TEST = 5000


@register
@dataclass(frozen=True)
class Estimators(Experiment):
    """All methods on grids whose likelihood can be computed.

    Parameters
    ----------
    quick : bool
        A grid of 3 x 3, and two sample sizes.
    draws : int, optional
        Models and samples: 5, or 2 if quick.
    rows : sequence of str, optional
        The methods; all by default.
    n_jobs : int
        Processes; values do not depend on them, times do.
    """

    quick: bool = False
    draws: int | None = None
    rows: Sequence[str] | None = None
    n_jobs: int = 2

    name: ClassVar[str] = "estimators"
    summary: ClassVar[str] = "every method to learn a Markov random field: error, test likelihood and time"

    def run(self, progress: Progress | None = None) -> Report:
        """Fit all methods to samples of some sizes."""
        methods = chosen_rows(self.rows, list(COMPARED), list(COMPARED))
        draws = (2 if self.quick else 5) if self.draws is None else whole_number(self.draws, "draws", 1)
        side, sizes = (3, (200, 2000)) if self.quick else (4, (200, 1000, 5000, 25000))
        work = [(method, side, n, draw) for method in methods for n in sizes for draw in range(draws)]
        found = []
        for i, one in enumerate(parallel_map(measured, work, self.n_jobs)):
            found.append(one)
            tell(progress, f"{work[i][0]}, {work[i][2]} samples", (i + 1) / len(work))
        values = np.array(found).reshape(len(methods), len(sizes), draws, 3)
        return _report(values, methods, sizes, side)


def measured(method: str, side: int, n: int, draw: int) -> tuple[float, float, float]:
    """Return the error of parameters, the loss in test log-likelihood per sample, and the seconds of one fit."""
    rng = np.random.default_rng([draw, 0])
    graph = grid_graph(side, side, 2)
    truth = Potentials(graph, [rng.normal(0.0, SCALE, table) for table in (graph.cards[list(s)] for s in graph.scopes)])
    X = sample(truth, n, random_state=np.random.default_rng([draw, n]))
    test = sample(truth, TEST, random_state=np.random.default_rng([draw, 1]))
    chosen = COMPARED[method]
    mrf = MRF(graph, method=chosen, l2=PENALTY) if chosen.facts.penalised else MRF(graph, chosen, prior=_prior(chosen))
    if method in ("gis", "iis") or chosen.facts.sampled:
        mrf.set_params(max_iter=STEPS)
    began = time.perf_counter()
    with no_convergence_warnings():
        mrf.fit(X)
    seconds = time.perf_counter() - began
    best = (truth.log_score(test) - infer(truth).log_z).mean()
    return _distance(mrf.potentials_, truth), float(best - mrf.score_samples(test).mean()), seconds


def _prior(method: Method) -> str | None:
    """Return the prior of methods without penalties, where they take one."""
    return "dirichlet" if method.facts.virtual else None


def _distance(one: Potentials, two: Potentials) -> float:
    """Return the root mean square difference of canonical potentials."""
    reference = np.zeros(one.graph.n_variables, np.int64)
    tables = [canonical_tables(p, reference) for p in (one, two)]
    parts = [(tables[0][s] - tables[1][s])[(slice(1, None),) * len(s)].ravel() for s in tables[0] if s]
    return float(np.sqrt(np.mean(np.concatenate(parts) ** 2)))


def _report(values: FloatArray, methods: Sequence[str], sizes: Sequence[int], side: int) -> Report:
    mean = values.mean(axis=2)
    rows = []
    for m, method in enumerate(methods):
        for s, n in enumerate(sizes):
            error, loss, seconds = mean[m, s]
            rows.append([method, str(n), f"{error:.4f}", f"{loss:.5f}", f"{seconds:.3f}"])
    notes = [
        f"a grid of {side} x {side} binary variables, {values.shape[2]} draws of model and samples",
        "error: root mean square of canonical potentials; loss: nats per test sample against the true model",
        f"l2 = {PENALTY} against the sum over samples; methods without penalties have one virtual sample",
        "not consistent: " + ", ".join(m for m in methods if not COMPARED[m].facts.consistent),
    ]
    data = {"experiment": "estimators", "methods": list(methods), "samples": list(sizes), "values": values.tolist(),
            "measured": ["error", "loss", "seconds"]}  # fmt: skip
    curves = {method: (list(map(float, sizes)), mean[m, :, 0].tolist()) for m, method in enumerate(methods)}
    times = {method: (mean[m, :, 2].tolist(), mean[m, :, 1].tolist()) for m, method in enumerate(methods)}
    plots = {
        "estimators": Plot("samples", "error of parameters", curves, log=True),
        "estimators_time": Plot("seconds", "loss in nats per test sample", times, log=True),
    }
    columns = ["method", "samples", "error", "test loss", "seconds"]
    return Report("Estimators of Markov random fields", columns, rows, notes, data, {}, plots)
