"""Huge problems: J. Domke (2009), section 7.2.

Procedural fitting, through a fixed number of iterations of message passing, takes time linear in the number of
variables; implicit fitting solves sparse linear systems whose factors grow faster than that. Here the time of one loss
and its gradient by all log tables, on square grids of growing side, is fitted by

    log seconds  =  a + e log N,      N = side², by least squares over the larger half of the sizes,

so that e = 1 is linear. A banded factorisation takes N side² = N² operations and N side = N^1.5 numbers, nested
dissection N^1.5 and N log N; one iteration of message passing N. The potentials are those of a binary image: log tables
of pixels are normal, of variance one, pairs of equal labels have .5, the labels are random, the loss is ucl. The thesis
has no figures for it.

Times are of the processor, the least of several runs, after one that is not counted: it compiles the loops and lays out
what depends on the graph only. A method goes on until a run of it takes more than `LIMIT`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from isinglass import BeliefPropagation, ConvexFreeEnergy, Potentials, TreeReweighted, grid_graph, losses
from isinglass.errors import no_convergence_warnings
from isinglass.gradients import rule
from isinglass.inference import Algorithm
from isinglass.losses import BeliefLoss
from isinglass.typing import JsonObject
from isinglass_experiments.common.experiment import Experiment, Plot, Progress, Report, chosen_rows, register, tell

SIDES = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
QUICK_SIDES = (16, 32, 64, 128)
LIMIT = 2.0  # seconds of a run, after which larger sizes are left out
RUNS, LEAST_RUNS, ENOUGH = 20, 3, 0.5  # at most, at least, and seconds that are enough together


class Method(NamedTuple):
    """How beliefs and the derivatives of their loss are found."""

    algorithm: Algorithm
    gradient: str


METHODS = {
    "bp-4, unrolled": Method(BeliefPropagation(schedule="grid", iterations=4), "unrolled"),
    "bp, implicit": Method(BeliefPropagation(tol=1e-9, max_iter=1000), "implicit"),
    "trw, implicit": Method(TreeReweighted(tol=1e-9, max_iter=1000), "implicit"),
    "convex, implicit": Method(ConvexFreeEnergy("A"), "implicit"),
}


@register
@dataclass(frozen=True)
class Scaling(Experiment):
    """Measure how the time of one loss and gradient grows with the number of variables.

    Parameters
    ----------
    quick : bool
        Sides of 16 to 128.
    rows : sequence of str, optional
        Methods by their first words, such as bp-4 or convex; by default all of `METHODS`.
    n_jobs : int
        Not used: what is timed runs alone, on one thread.
    """

    rows: Sequence[str] | None = None
    n_jobs: int = 1

    name: ClassVar[str] = "scaling"
    summary: ClassVar[str] = "time against the number of variables, procedural and implicit (Domke 2009, section 7.2)"

    def run(self, progress: Progress | None = None) -> Report:
        """Time every method at every size."""
        names, sides = self._names(), QUICK_SIDES if self.quick else SIDES
        found: dict[str, list[JsonObject]] = {}
        for i, name in enumerate(names):
            found[name] = []
            for j, side in enumerate(sides):
                tell(progress, f"{name}: side {side}", (i + j / len(sides)) / len(names))
                found[name].append(measured(METHODS[name], side))
                if found[name][-1]["seconds"] > LIMIT:
                    break
        return _report(found, sides)

    def _names(self) -> tuple[str, ...]:
        short = {name.split(",")[0]: name for name in METHODS}
        return tuple(short[row] for row in chosen_rows(self.rows, tuple(short), tuple(short)))


def image_model(side: int) -> Potentials:
    """Return the potentials of a random binary image.

    Examples
    --------
    >>> image_model(3).graph.n_variables
    9
    """
    fields = np.random.default_rng(side).normal(size=(side * side, 2))
    return Potentials.from_groups(grid_graph(side, side, 2), [fields, 0.5 * np.eye(2)[None]])


def measured(method: Method, side: int) -> JsonObject:
    """Return the least time of a loss and its gradient, and how the inference went."""
    potentials, loss = image_model(side), losses.make("ucl")
    assert isinstance(loss, BeliefLoss)
    labels = np.random.default_rng(side).integers(0, 2, side * side)
    chosen = rule(method.gradient)
    with no_convergence_warnings():
        last = chosen.evaluate(potentials, method.algorithm, lambda result: loss(result, labels))
        times = timed(lambda: chosen.evaluate(potentials, method.algorithm, lambda result: loss(result, labels)))
    return {
        "side": side,
        "variables": side * side,
        "seconds": min(times),
        "runs": len(times),
        "iterations": last.infos[0].iterations,
        "converged": bool(last.infos[0].converged),
    }


def timed(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> list[float]:
    """Return the seconds of several runs: more of short ones."""
    times: list[float] = []
    while len(times) < LEAST_RUNS or (len(times) < RUNS and sum(times) < ENOUGH):
        began = clock()
        work()
        times.append(clock() - began)
    return times


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return e of seconds ~ size^e, by least squares in logarithms over the larger half of the sizes.

    Examples
    --------
    >>> round(exponent([1, 10, 100, 1000], [9.0, 5.0, 50.0, 500.0]), 6)
    1.0
    """
    half = max(2, (len(sizes) + 1) // 2)
    if len(sizes) < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes[-half:]), np.log(seconds[-half:]), 1)[0])


def _report(found: dict[str, list[JsonObject]], sides: Sequence[int]) -> Report:
    exponents = {
        name: exponent([run["variables"] for run in runs], [run["seconds"] for run in runs])
        for name, runs in found.items()
    }
    rows = [[f"{side} x {side}", *(_milliseconds(runs, side) for runs in found.values())] for side in sides]
    rows.append(["exponent", *(f"{grown:.2f}" for grown in exponents.values())])
    notes = [
        "milliseconds on one thread, for any n_jobs, the least of several runs after one that is not counted",
        f"exponent: of the number of variables, over the larger half of sizes; a method ends after {LIMIT:g} s a run",
        "bp-4: four sweeps of the grid; bp, trw: to 1e-9, GMRES; convex: w = (1, .01), Newton's method, direct systems",
    ]
    fixed = {name for name in found if METHODS[name].gradient == "unrolled"}
    late = [name for name in found if name not in fixed and not all(run["converged"] for run in found[name])]
    if late:
        notes.append(f"did not converge at every size: {'; '.join(late)}")
    summaries = [{"row": name, "exponent": exponents[name], "sizes": runs} for name, runs in found.items()]
    data = {"experiment": "scaling", "limit": LIMIT, "rows": summaries}
    lines = {name: ([r["variables"] for r in runs], [r["seconds"] for r in runs]) for name, runs in found.items()}
    plots = {"scaling": Plot("variables", "seconds", lines, log=True)}
    return Report("One loss and its gradient on square grids", ["pixels", *found], rows, notes, data, plots=plots)


def _milliseconds(runs: list[JsonObject], side: int) -> str:
    return next((f"{1e3 * run['seconds']:.1f}" for run in runs if run["side"] == side), "-")
