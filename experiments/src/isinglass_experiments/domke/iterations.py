"""Other numbers of iterations: J. Domke (2009), section 6.4 and figure 6.11.

A model that was trained for the beliefs after K sweeps is tested after 1 to 10 of them. The thesis finds that models
trained with more than one sweep are robust to further ones, and the one of a single sweep is not. It does not say for
which loss and noise; here, by default, ucl at 50 % noise.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import ClassVar

from isinglass.errors import require
from isinglass.typing import JsonObject
from isinglass_experiments.common.experiment import Plot, Progress, Report, parallel_map, register, tell
from isinglass_experiments.common.methods import (
    SWEEPS,
    DigitsExperiment,
    Plan,
    Training,
    checked_method,
    error,
    inference_of,
    predict,
)
from isinglass_experiments.common.statistics import mean_and_error
from isinglass_experiments.domke.digits import trained

TESTED = tuple(range(1, 11))


@register
@dataclass(frozen=True)
class Iterations(DigitsExperiment):
    """Test models with more or fewer sweeps than they were trained with.

    Parameters
    ----------
    quick : bool
        27 images, models of 1 and 3 sweeps, and fewer iterations of training.
    draws : int, optional
        Draws of images and noise; by default one.
    noise : sequence of one float, optional
        By default 0.5.
    rows : sequence of str, optional
        LOSS-K, trained for K sweeps; by default ucl-1 to ucl-4.
    n_jobs : int
        Processes that share the draws; results do not depend on it.
    """

    name: ClassVar[str] = "iterations"
    summary: ClassVar[str] = "digits, tested with other numbers of sweeps than trained (Domke 2009, figure 6.11)"

    def run(self, progress: Progress | None = None) -> Report:
        """Train every model on every draw; test it with 1 to 10 sweeps."""
        plan = self._plan()
        level, work = plan.noise[0], [(draw, plan) for draw in range(plan.draws)]
        found: list[dict[str, list[float]]] = []
        tell(progress, f"{level:.0%} noise, draw 0", 0.0)
        for errors in parallel_map(_errors, work, self.n_jobs):
            found.append(errors)
            tell(progress, f"{level:.0%} noise, draw {len(found) - 1}", len(found) / plan.draws)
        return _report(plan, found)

    def _plan(self) -> Plan:
        training, images = (Training(max_iter=25, tol=1e-4, most=100), 3) if self.quick else (Training(), 10)
        plan = self.plan([f"ucl-{k}" for k in ((1, 3) if self.quick else SWEEPS)], (0.5,), images, training)
        for row in plan.rows:
            require("-" in checked_method(row), "rows", "methods with sweeps, such as ucl-2", repr(row))
        require(len(plan.noise) == 1, "noise", "one level", f"{len(plan.noise)}")
        return plan


def _errors(draw: int, plan: Plan) -> dict[str, list[float]]:
    """Train the models of one draw; return the test errors of each after 1, 2, ... sweeps."""
    data = plan.data(plan.noise[0], draw)
    found = {}
    for row, fitted in trained(plan.rows, data, plan.training):
        loss = row.split("-")[0]
        tested = [replace(fitted, inference=inference_of(f"{loss}-{k}", plan.training)) for k in TESTED]
        found[row] = [error(predict(one, data.X_test), data.Y_test) for one in tested]
    return found


def _report(plan: Plan, found: list[dict[str, list[float]]]) -> Report:
    rows, level = plan.rows, plan.noise[0]
    means = {row: [mean_and_error([draw[row][i] for draw in found])[0] for i in range(len(TESTED))] for row in rows}
    table = [[row, *(_marked(row, k, value) for k, value in zip(TESTED, means[row], strict=True))] for row in rows]
    title = f"Digits at {level:.0%} noise: test error after 1-10 sweeps (draws: {len(found)})"
    notes = ["[ ]: as many sweeps as in training", "published: a figure only, whose values did not survive"]
    data: JsonObject = {
        "experiment": "iterations",
        "noise": level,
        "draws": len(found),
        "sweeps": list(TESTED),
        "training": asdict(plan.training),
        "rows": [{"row": row, "error": means[row], "draws": [draw[row] for draw in found]} for row in rows],
    }
    curves = {row: (list(TESTED), means[row]) for row in rows}
    plot = Plot("sweeps in testing", "test error", curves)
    return Report(title, ["trained", *map(str, TESTED)], table, notes, data, plots={"iterations": plot})


def _marked(row: str, k: int, value: float) -> str:
    return f"[{value:.4f}]" if row.endswith(f"-{k}") else f"{value:.4f}"
