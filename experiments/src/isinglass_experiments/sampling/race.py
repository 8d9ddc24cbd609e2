"""Seconds to marginals that are right to one per cent: samplers and approximate inference on the same 20 models.

The models have at most 144 variables, so that exact inference tells the error: the largest difference of a variable's
belief. Ten are Ising models on grids of 12 x 12 (attractive and mixed couplings, weak to strong, with and without
fields), four are Ising models on random graphs, three have three states, and three have triples. A sampler runs for 50
sweeps, then 100, 200 ... until three seeds in a row have an error of at most .01. Where that takes more than `LIMIT`
seconds, the cell says so, with the error after as many. Times are of the processor, means over the seeds; a run counts
from the start, its burn-in and its diagnostics included. These have `DRAWS` draws of each chain (the default of
`infer` is ten times as many, which would take longer than most of these runs). An approximation runs once, to its own
tolerance; its error does not fall with time, so that it either is below .01 or is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from isinglass import FactorGraph, InputError, Potentials, grid_graph, infer, random_graph
from isinglass.errors import no_convergence_warnings
from isinglass.models import Ising
from isinglass.typing import FloatArray, JsonObject
from isinglass_experiments.common.experiment import Experiment, Progress, Report, register, tell

ERROR, SEEDS, FIRST = 0.01, 3, 50
LIMIT, QUICK_LIMIT = 2.0, 0.5  # seconds of a run
CLOSE = 1.1  # a run this close to the limit, in times of its seconds, is the last one
DRAWS = 40  # of each chain, for the diagnostics
SAMPLERS = ("gibbs", "tree-gibbs", "swendsen-wang", "wolff", "tempering")
APPROXIMATIONS = ("bp", "trw", "mf", "smf", "convex")


def ising(kind: str, coupling: float, field: float) -> Potentials:
    """Return an Ising model on a grid of 12 x 12 or on a random graph of 60 variables and 120 pairs."""
    rng = np.random.default_rng(round(1000 * coupling + 10 * field))
    graph = random_graph(60, 120, 2, random_state=1) if kind == "random" else grid_graph(12, 12, 2)
    pairs = len(graph.groups[1])
    strengths = rng.normal(0, coupling, pairs) if kind != "attractive" else rng.uniform(0, 2 * coupling, pairs)
    return Ising(graph).potentials(coupling=strengths, field=rng.normal(0, field, graph.n_variables))


def tables(graph: FactorGraph, size: float) -> Potentials:
    """Return a model with random tables."""
    rng = np.random.default_rng(0)
    return Potentials.from_groups(graph, [rng.normal(0, size, (len(g), *g.shape)) for g in graph.groups])


def triples(n: int, count: int, size: float) -> Potentials:
    """Return a model with triples of variables that are close to each other."""
    rng = np.random.default_rng(n)
    scopes = [sorted(i + rng.choice(6, 3, replace=False)) for i in rng.integers(0, n - 6, count)]
    return tables(FactorGraph.from_groups([2] * n, [np.arange(n)[:, None], np.array(scopes)]), size)


def models() -> dict[str, Callable[[], Potentials]]:
    """Name the 20 models.

    Examples
    --------
    >>> len(models())
    20
    """
    named: dict[str, Callable[[], Potentials]] = {}
    for kind, strengths in (("attractive", (0.2, 0.4, 0.6)), ("mixed", (0.3, 0.6, 1.0))):
        for coupling in strengths:
            named[f"grid, {kind} {coupling}, field 0.2"] = partial(ising, kind, coupling, 0.2)
    for kind in ("attractive", "mixed"):
        for coupling in (0.3, 0.5):
            named[f"grid, {kind} {coupling}, field 1"] = partial(ising, kind, coupling, 1.0)
    for coupling in (0.2, 0.4, 0.6, 0.8):
        named[f"random graph, {coupling}"] = partial(ising, "random", coupling, 0.3)
    for size in (0.3, 0.6, 1.0):
        named[f"three states, {size}"] = partial(tables, grid_graph(8, 8, 3), size)
        named[f"triples, {size}"] = partial(triples, 60, 60, size)
    return named


def error_of(found: FloatArray, truth: FloatArray) -> float:
    """Return the largest difference of a belief."""
    return float(np.abs(found - truth).max())


def race(potentials: Potentials, truth: FloatArray, name: str, limit: float) -> JsonObject:
    """Return the seconds of a sampler (None: more than the limit), with the error and the sweeps at the end."""
    try:
        _mean_run(potentials, truth, name, FIRST)  # loops are compiled, and what depends on the graph alone is cached
    except InputError:
        return {"seconds": None, "error": None, "sweeps": 0}
    sweeps = FIRST
    while True:
        seconds, error = _mean_run(potentials, truth, name, sweeps)
        if error <= ERROR:
            return {"seconds": seconds, "error": error, "sweeps": sweeps}
        times = min(2.0, limit / seconds)
        if times < CLOSE:
            return {"seconds": None, "error": error, "sweeps": sweeps}
        sweeps = int(times * sweeps)


def _mean_run(potentials: Potentials, truth: FloatArray, name: str, sweeps: int) -> tuple[float, float]:
    """Return the mean seconds of all seeds, and the largest error."""
    start, errors = time.process_time(), []
    for seed in range(SEEDS):
        found = infer(potentials, name, sweeps=sweeps, thin=max(1, sweeps // DRAWS), random_state=seed)
        errors.append(error_of(found.variables.flat, truth))
    return (time.process_time() - start) / SEEDS, max(errors)


def approximate(potentials: Potentials, truth: FloatArray, name: str) -> JsonObject:
    """Return the seconds of an approximation (None if its error is above one per cent) and its error."""
    infer(potentials, name)  # loops are compiled, and what depends on the graph alone is cached
    start = time.process_time()
    found = infer(potentials, name)
    seconds, error = time.process_time() - start, error_of(found.variables.flat, truth)
    return {"seconds": seconds if error <= ERROR else None, "error": error}


@register
@dataclass(frozen=True)
class SamplingRace(Experiment):
    """Measure the seconds to marginals that are right to one per cent.

    Parameters
    ----------
    quick : bool
        Every fourth model, and half a second at most instead of 2.
    n_jobs : int
        Not used: what is timed runs alone, on one thread.
    """

    quick: bool = False
    n_jobs: int = 1

    name: ClassVar[str] = "sampling"
    summary: ClassVar[str] = "seconds to marginals right to 1 %: samplers and approximations on 20 models"

    def run(self, progress: Progress | None = None) -> Report:
        """Run everything on every model."""
        limit, found = QUICK_LIMIT if self.quick else LIMIT, {}
        with no_convergence_warnings():
            chosen = list(models())[:: 4 if self.quick else 1]
            for i, name in enumerate(chosen):
                tell(progress, name, i / len(chosen))
                p = models()[name]()
                truth = infer(p, "exact").variables.flat
                results = {method: race(p, truth, method, limit) for method in SAMPLERS}
                found[name] = results | {method: approximate(p, truth, method) for method in APPROXIMATIONS}
        return _report(found, limit)


def _report(found: dict[str, dict[str, JsonObject]], limit: float) -> Report:
    methods = (*SAMPLERS, *APPROXIMATIONS)
    rows = [[name, *(_cell(results[method], limit) for method in methods)] for name, results in found.items()]
    reached = [sum(results[m]["seconds"] is not None for results in found.values()) for m in methods]
    rows.append(["models with 1 %", *map(str, reached)])
    notes = [
        f"seconds of the processor to an error of {ERROR:g} of every belief; >: not in {limit:g} s; in brackets: the "
        "error then, or that of an approximation; -: the sampler does not serve the model",
    ]
    data: JsonObject = {"experiment": "sampling", "limit": limit, "models": found}
    return Report("Seconds to marginals right to 1 %", ["model", *methods], rows, notes, data)


def _cell(result: JsonObject, limit: float) -> str:
    if result["seconds"] is not None:
        return f"{result['seconds']:.2g}"
    if result["error"] is None:
        return "-"
    return f"{f'> {limit:g} ' if 'sweeps' in result else ''}({result['error']:.3f})"
