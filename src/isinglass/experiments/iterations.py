"""Other numbers of iterations: J. Domke (2009), section 6.4 and figure 6.11.

A model that was trained for the beliefs after K sweeps is tested after 1 to 10 of them. The thesis finds that models
trained with more than one sweep are robust to further ones, and the one of a single sweep is not. It does not say for
which loss and noise; here, by default, ucl at 50 % noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import ClassVar

from isinglass.datasets import noisy_digits
from isinglass.errors import InputError
from isinglass.experiments.common.experiment import Experiment, Plot, Progress, Report, parallel_map, register, tell
from isinglass.experiments.common.methods import SWEEPS, Training, checked_method, error, inference_of, predict
from isinglass.experiments.common.statistics import mean_and_error
from isinglass.experiments.digits import trained
from isinglass.typing import JsonObject
from isinglass.validation import number, whole_number

TESTED = tuple(range(1, 11))


@register
@dataclass(frozen=True)
class Iterations(Experiment):
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

    quick: bool = False
    draws: int | None = None
    noise: Sequence[float] | None = None
    rows: Sequence[str] | None = None
    n_jobs: int = 2

    name: ClassVar[str] = "iterations"
    summary: ClassVar[str] = "digits, tested with other numbers of sweeps than trained (Domke 2009, figure 6.11)"

    def run(self, progress: Progress | None = None) -> Report:
        """Train every model on every draw; test it with 1 to 10 sweeps."""
        rows, level, draws = self._rows(), self._level(), whole_number(self.draws or 1, "draws", 1)
        training, images = (Training(max_iter=25, tol=1e-4, most=100), 3) if self.quick else (Training(), 10)
        work = [(rows, level, draw, images, training) for draw in range(draws)]
        found: list[dict[str, list[float]]] = []
        tell(progress, f"{level:.0%} noise, draw 0", 0.0)
        for errors in parallel_map(_errors, work, self.n_jobs):
            found.append(errors)
            tell(progress, f"{level:.0%} noise, draw {len(found) - 1}", len(found) / draws)
        return _report(rows, level, found, training)

    def _rows(self) -> tuple[str, ...]:
        rows = [f"ucl-{k}" for k in (SWEEPS if not self.quick else (1, 3))] if self.rows is None else list(self.rows)
        for row in rows:
            if "-" not in checked_method(row):
                raise InputError("rows", "methods with sweeps, such as ucl-2", repr(row))
        if not rows:
            raise InputError("rows", "at least one", "none")
        return tuple(dict.fromkeys(rows))

    def _level(self) -> float:
        levels = (0.5,) if self.noise is None else tuple(self.noise)
        if len(levels) != 1:
            raise InputError("noise", "one level", f"{len(levels)}")
        return number(levels[0], "noise", 0, 1)


def _errors(rows: tuple[str, ...], level: float, draw: int, images: int, training: Training) -> dict[str, list[float]]:
    """Train the models of one draw; return the test errors of each after 1, 2, ... sweeps."""
    data = noisy_digits(level, images, images, random_state=draw)
    found = {}
    for row, fitted in trained(rows, data, training):
        loss = row.split("-")[0]
        tested = [replace(fitted, inference=inference_of(f"{loss}-{k}", training)) for k in TESTED]
        found[row] = [error(predict(one, data.X_test), data.Y_test) for one in tested]
    return found


def _report(rows: tuple[str, ...], level: float, found: list[dict[str, list[float]]], training: Training) -> Report:
    means = {row: [mean_and_error([draw[row][i] for draw in found])[0] for i in range(len(TESTED))] for row in rows}
    table = [[row, *(_marked(row, k, value) for k, value in zip(TESTED, means[row], strict=True))] for row in rows]
    title = f"Digits at {level:.0%} noise: test error after 1-10 sweeps (draws: {len(found)})"
    notes = ["[ ]: as many sweeps as in training", "published: a figure only, whose values did not survive"]
    data: JsonObject = {
        "experiment": "iterations",
        "noise": level,
        "draws": len(found),
        "sweeps": list(TESTED),
        "training": asdict(training),
        "rows": [{"row": row, "error": means[row], "draws": [draw[row] for draw in found]} for row in rows],
    }
    curves = {row: (list(TESTED), means[row]) for row in rows}
    plot = Plot("sweeps in testing", "test error", curves)
    return Report(title, ["trained", *map(str, TESTED)], table, notes, data, plots={"iterations": plot})


def _marked(row: str, k: int, value: float) -> str:
    return f"[{value:.4f}]" if row.endswith(f"-{k}") else f"{value:.4f}"
