"""Fitting entropies: J. Domke (2009), section 6.3, figures 6.9 and 6.10.

The univariate conditional likelihood of the beliefs that minimise a convex energy is learned with eight entropies:

    A, B, C    weights w(y_c) = 1 of edges, and w(y_i) = .01, .1, 1 of pixels
    r1 - r5    each entry of w(y_c) and w(y_i), one for each configuration, drawn from [0, 1]

then further with the weights as parameters, too. All begin, as in the thesis, with the likelihood of the same energy.
The figures did not survive; at 50 % noise the error of A is .0710 (table 1.1), that of fitted ones .050 to .059.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from isinglass import GridCRF
from isinglass.datasets import NoisyDigits
from isinglass.errors import no_convergence_warnings, require
from isinglass.typing import Array, FloatArray, JsonObject
from isinglass_experiments.common.experiment import Plot, Progress, Report, parallel_map, register, tell
from isinglass_experiments.common.methods import (
    CONVEX,
    LOSSES,
    DigitsExperiment,
    Fitted,
    Plan,
    Training,
    error_text,
    fitted_of,
    ink,
    mean_losses,
    measured,
    optimizer_of,
    predict,
)
from isinglass_experiments.common.statistics import mean_and_error

ROWS = ("A", "B", "C", "r1", "r2", "r3", "r4", "r5")
QUICK_ROWS = ("A", "C", "r1")
KINDS = ("fixed", "fitted")
PUBLISHED: dict[tuple[str, float], dict[str, str]] = {
    ("fixed", 0.5): {"A": ".0710"},
    ("fitted", 0.5): dict.fromkeys(ROWS, ".050-.059"),
}
_SHOWN = 9  # test digits of a picture panel: one of each


class Cell(NamedTuple):
    """One entropy on one draw of images and noise: what is measured, and some beliefs, fixed and fitted."""

    row: str
    noise: float
    draw: int
    measured: dict[str, JsonObject]
    pictures: JsonObject


@register
@dataclass(frozen=True)
class Entropy(DigitsExperiment):
    """Learn with fixed entropies, and fit them.

    Parameters
    ----------
    quick : bool
        9 images, three entropies, and few iterations.
    draws : int, optional
        Draws of images and noise, 0, 1, ...; by default one.
    noise : sequence of float, optional
        By default 0.5.
    rows : sequence of str, optional
        Entropies; by default all of `ROWS`.
    n_jobs : int
        Processes that share the work; results do not depend on it.

    Examples
    --------
    >>> Entropy(rows=["A", "r3"]).quick
    False
    """

    name: ClassVar[str] = "entropy"
    summary: ClassVar[str] = "digits: entropies of convex energies, fixed and fitted (Domke 2009, section 6.3)"

    def run(self, progress: Progress | None = None) -> Report:
        """Train every entropy on every draw at every noise level, fixed and then fitted."""
        plan = self._plan()
        work = [(row, level, draw, plan) for level in plan.noise for draw in range(plan.draws) for row in plan.rows]
        cells: list[Cell] = []
        for cell in parallel_map(_run_job, work, self.n_jobs):
            cells.append(cell)
            tell(progress, f"{cell.noise:.0%} noise, draw {cell.draw}: entropy {cell.row}", len(cells) / len(work))
        return _report(plan, cells)

    def _plan(self) -> Plan:
        rows, images, training = (QUICK_ROWS, 1, Training(max_iter=8)) if self.quick else (ROWS, 10, Training())
        plan = self.plan(rows, (0.5,), images, training)
        for row in plan.rows:
            weights_of(row)
        return plan


def weights_of(row: str) -> str | dict[str, FloatArray]:
    """Return the weights of an entropy: a name, or tables of random numbers, always the same.

    Examples
    --------
    >>> {name: np.shape(table) for name, table in weights_of("r1").items()}
    {'variables': (2,), 'factors': (2, 2)}
    """
    require(row in ROWS, "rows", f"some of {', '.join(ROWS)}", repr(row))
    if not row.startswith("r"):
        return row
    rng = np.random.default_rng(int(row[1:]))
    return {"variables": rng.random(2), "factors": rng.random((2, 2))}


def train(row: str, data: NoisyDigits, training: Training) -> dict[str, Fitted]:
    """Train with an entropy that is fixed, and from there with one that is fitted."""
    inference = replace(CONVEX, weights=weights_of(row))
    crf = GridCRF(
        inference,
        loss="ucl",
        gradient="implicit",
        stages=[{"loss": "cl", "gradient": "envelope"}, "ucl"],
        optimizer=optimizer_of(training, data.Y.size, 1e-10),
        l2=training.l2,
        bias=False,
        n_states=2,
    )
    found = {}
    for kind in KINDS:
        began = time.perf_counter()
        with no_convergence_warnings():  # told in the report
            crf.fit(data.X, data.Y)
        found[kind] = fitted_of(crf, inference, time.perf_counter() - began)
        crf.set_params(stages=None, entropy="fit", warm_start=True)
    return found


def _run_job(row: str, noise: float, draw: int, plan: Plan) -> Cell:
    data = plan.data(noise, draw)
    found, pictures = {}, {"truth": data.Y_test[:_SHOWN], "input": data.X_test[:_SHOWN, :, :, 1]}
    for kind, fitted in train(row, data, plan.training).items():
        result = predict(fitted, data.X_test)
        found[kind] = measured(fitted, result, data.Y_test) | mean_losses(result, data.Y_test)
        pictures[kind] = ink(result, data.Y_test)[:_SHOWN]
    return Cell(row, noise, draw, found, pictures)


def _report(plan: Plan, cells: list[Cell]) -> Report:
    summaries = [_summary(row, level, kind, cells) for row in plan.rows for level in plan.noise for kind in KINDS]
    columns = ["entropy"]
    for level in plan.noise:
        columns += [text for kind in KINDS for text in (f"{level:.0%} {kind}", "publ.")]
    texts = [(s["row"], (error_text(s), s["published"] or "-")) for s in summaries]
    rows = [[row, *(text for own, pair in texts if own == row for text in pair)] for row in plan.rows]
    count = 9 * plan.images
    title = "Digits: test error of ucl with entropies, fixed and fitted"
    data = {
        "experiment": "entropy",
        "images": count,
        "draws": plan.draws,
        "training": asdict(plan.training),
        "weights": {row: _plain(weights_of(row)) for row in plan.rows},
        "rows": summaries,
    }
    return Report(title, columns, rows, _notes(plan, cells), data, _pictures(plan, cells), _plots(plan, summaries))


def _summary(row: str, level: float, kind: str, cells: list[Cell]) -> JsonObject:
    """Return one entropy, fixed or fitted, over draws, ready for JSON."""
    mine = [cell.measured[kind] for cell in cells if (cell.row, cell.noise) == (row, level)]
    found: JsonObject = {"row": row, "noise": level, "kind": kind}
    for name in ("error", *LOSSES):
        found[name], standard_error = mean_and_error([one[name] for one in mine])
        found |= {"standard_error": standard_error} if name == "error" else {}
    return {**found, "published": PUBLISHED.get((kind, level), {}).get(row), "draws": mine}


def _plain(weights: str | dict[str, FloatArray]) -> object:
    return weights if isinstance(weights, str) else {name: table.tolist() for name, table in weights.items()}


def _pictures(plan: Plan, cells: list[Cell]) -> dict[str, list[tuple[str, Array]]]:
    """Return figure 6.9: beliefs of the first draw, fixed and fitted."""
    found = {}
    for level in plan.noise:
        mine = [cell for cell in cells if (cell.noise, cell.draw) == (level, 0)]
        shown = [(title, mine[0].pictures[title]) for title in ("truth", "input")]
        for kind in KINDS:
            columns = [*shown, *((cell.row, cell.pictures[kind]) for cell in mine)]
            found[f"entropy-{100 * level:g}-{kind}"] = columns
    return found


def _plots(plan: Plan, summaries: list[JsonObject]) -> dict[str, Plot]:
    """Return figure 6.10: test error and test losses by entropy."""
    places = list(range(1, len(plan.rows) + 1))
    across = f"entropy: {', '.join(plan.rows)}"
    found = {}
    for name in ("error", *LOSSES):
        lines = {}
        for level in plan.noise:
            for kind in KINDS:
                heights = [s[name] for s in summaries if (s["noise"], s["kind"]) == (level, kind)]
                lines[f"{kind}, {level:.0%} noise"] = (places, heights)
        found[f"entropy-{name}"] = Plot(across, f"test {name}", lines)
    return found


def _notes(plan: Plan, cells: list[Cell]) -> list[str]:
    training = plan.training
    notes = [
        f"{9 * plan.images} training and test images, draws: {plan.draws}; l2 {training.l2:g} on the sum over images; "
        f"L-BFGS, at most {training.max_iter} iterations each for cl, ucl, and ucl with the entropy fitted"
    ]
    late = sum(not one["converged"] for cell in cells for one in cell.measured.values())
    if late:
        notes.append(f"* training did not reach a gradient of 1e-4 of the objective: {late}")
    tests = sum(not one["test_converged"] for cell in cells for one in cell.measured.values())
    return [*notes, f"inference on test images did not converge: {tests}"] if tests else notes
