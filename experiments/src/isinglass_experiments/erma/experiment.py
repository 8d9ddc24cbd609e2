"""Tables 3 to 6 and figure 1 of Stoyanov, Ropson and Eisner (2011), from cells that are kept.

All numbers are differences from the loss of the true model, with 100 iterations of belief propagation, averaged over
models. Tests are of the paired differences of test examples: a permutation test of their signs, and 95 % intervals of
each model. A model is a tie if the two settings differ by less than .00005. Tables have as many test examples as
training examples, as published; the intervals of each model are also given with all test examples.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import ClassVar

import numpy as np

from isinglass.models import table_model
from isinglass.typing import FloatArray, JsonObject
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
from isinglass_experiments.erma.cells import OF_TRUTH, TRUTH, Cell, Found, finished, inference, keep, measured
from isinglass_experiments.erma.data import make_task, model_names
from isinglass_experiments.erma.published import TRUE
from isinglass_experiments.erma.settings import (
    BASELINE,
    CONVERGED,
    LOGL,
    MATCHED,
    TESTS,
    TRAININGS,
    first_of,
    losses_by_setting,
)
from isinglass_experiments.erma.tables import (
    Losses,
    against_matched,
    by_model,
    table_3,
    table_4,
    table_5,
    table_6,
    true_losses,
)

QUICK_FURTHER = 3900
QUICK_MODELS = ("50-100", "50-200", "100-461")
MARGIN = 5e-4
CUT = 2  # iterations of inference, not in the publication: far from convergence, which 10 are not


@register
@dataclass(frozen=True)
class Erma(Experiment):
    """Train the whole system for its loss.

    Parameters
    ----------
    quick : bool
        Three models, the matched settings with 30, 10 and 2 iterations of inference, one perturbation, one start.
    rows : sequence of str, optional
        Models, such as "50-100"; by default all 12.
    draws : int
        The seed of models and data is one less; by default 1.
    examples : int
        For training, and as many for tests.
    further : int
        Further test examples of the settings that are compared model by model, for narrower intervals; at most a tenth
        of the default if quick.
    steps : int
        Iterations of L-BFGS; APPR-LOGL has 25 of meta-descent, as published, and mixtures have few.
    checkpoints : str, optional
        A folder that keeps the cells that are finished, as lines of `erma.jsonl`; another run goes on from them.
    n_jobs : int
        Processes that share the cells; results do not depend on it.

    Examples
    --------
    >>> len(Erma(quick=True).cells()), len(Erma().cells())
    (56, 564)
    """

    rows: Sequence[str] | None = None
    draws: int = 1
    checkpoints: str | None = None
    examples: int = 1000
    further: int = 39_000
    steps: int = 60

    name: ClassVar[str] = "erma"
    summary: ClassVar[str] = "risk of the whole system (Stoyanov et al. 2011, tables 3 to 6)"

    def run(self, progress: Progress | None = None) -> Report:
        """Train and test all cells that are not there yet, and put the tables together."""
        if self.checkpoints is not None:
            os.makedirs(self.checkpoints, exist_ok=True)
        cells, there = self.cells(), dict(finished(self.checkpoints))
        for mixtures in (False, True):  # they begin with what others found
            mine = [c for c in cells if c not in there and mixtures == (first_of(c.training) is not None)]
            work = [(cell, _begun(cell, there)) for cell in mine]
            for cell, found in zip(mine, parallel_map(measured, work, self.n_jobs), strict=True):
                keep(self.checkpoints, cell, found)
                there[cell] = found
                what = f"{cell.model}, {cell.iterations} iterations, {cell.perturbation:.0%} changed: {cell.training}"
                tell(progress, what, sum(c in there for c in cells) / len(cells))
        return self._report({cell: there[cell] for cell in cells})

    def cells(self) -> list[Cell]:
        """Return all cells, those of large models first."""
        models = chosen_rows(self.rows, model_names(), QUICK_MODELS if self.quick else model_names())
        plain = Cell(
            "",
            "",
            0,
            examples=self.examples,
            steps=self.steps,
            restarts=1 if self.quick else 5,
            seed=self.draws - 1,
        )
        columns, changed = ((30, 10, CUT), (0.2,)) if self.quick else ((100, 10, CUT, 20, 30), (0.1, 0.2, 0.3, 0.4))
        found, further = [], min(self.further, QUICK_FURTHER) if self.quick else self.further
        for model in models:
            one = replace(plain, model=model)
            found.append(replace(one, training=TRUTH, iterations=OF_TRUTH))
            for t in columns:
                rows = (*MATCHED.values(), CONVERGED) if self.quick or t != columns[0] else (*TRAININGS, CONVERGED)
                found += [replace(one, training=row, iterations=t) for row in rows]
            for p in changed:
                at = 10 if self.quick else columns[0]
                found += [replace(one, training=row, iterations=at, perturbation=p) for row in MATCHED.values()]
        compared = (TRUTH, *MATCHED.values(), CONVERGED)
        found = [
            replace(cell, further=further)
            if cell.training in compared and cell.iterations in (OF_TRUTH, *columns[:3]) and not cell.perturbation
            else cell
            for cell in (_without_large_changes(found) if self.quick else found)
        ]
        return sorted(found, key=lambda cell: -int(cell.model.split("-")[1]))  # processes end at about the same time

    def _report(self, everything: dict[Cell, Found]) -> Report:
        found = {
            replace(cell, further=0): {test: x[: self.examples] for test, x in one.losses.items()}
            for cell, one in everything.items()
        }
        full = {cell: one.losses for cell, one in everything.items() if cell.further}
        first = max(cell.iterations for cell in found if cell.training != TRUTH)
        tables = {
            "3": table_3(found, first),
            "4": table_4(found),
            "5": table_5(found),
            "6": table_6(found, first),
        }
        rows = [[name, *_texts(row)] for name, table in tables.items() for row in table]
        columns = ["table", "tested", "trained", "condition", "ours", "publ.", "ratio", "wins", "p", "models"]
        data = {
            "experiment": "erma",
            "true": true_losses(found),
            "published_true": TRUE,
            "tables": tables,
            "models": by_model(found) + by_model(full),
            "against_matched": against_matched(found, first),
            "cells": [asdict(cell) for cell in found],
        }
        title = "Losses above those of the true model, means over models"
        return Report(title, columns, rows, _notes(found, full), data, plots=_figure(everything))


def _begun(cell: Cell, there: dict[Cell, Found]) -> FloatArray | None:
    """Return what the first part of a mixture found from each start, if that is there."""
    first = first_of(cell.training)
    found = None if first is None else there.get(replace(cell, training=first))
    return None if found is None else found.starts


def _without_large_changes(cells: list[Cell]) -> list[Cell]:
    """Leave out the perturbed models of more than 50 variables."""
    return [cell for cell in cells if not cell.perturbation or cell.model.startswith("50-")]


def _texts(row: JsonObject) -> list[str]:
    given = row["condition"]
    where = f"{given['iterations']} it." + (f", {given['perturbation']:.0%} changed" if given["perturbation"] else "")
    numbers = ["-" if row[key] is None else f"{row[key]:.5f}" for key in ("delta", "published")]
    ratios = " / ".join("-" if row[key] is None else f"{row[key]:.2f}" for key in ("ratio", "published_ratio"))
    wins = " / ".join(text or "-" for text in (row["wins"], row["published_wins"]))
    p = "-" if row["p"] is None else f"{row['p']:.3g}"
    return [row["test"], row["training"], where, *numbers, ratios, wins, p, str(len(row["models"]))]


def _notes(found: Losses, full: Losses) -> list[str]:
    one, truths = next(iter(found)), true_losses(found)
    shown = ", ".join(f"{test} {truths[test]:.4f} ({TRUE[test]:.4f})" for test in TRUE)
    first = max(cell.iterations for cell in found if cell.training != TRUTH)
    return [
        f"{one.examples} training and {one.examples} test examples; {BASELINE} iterations of meta-descent for "
        f"APPR-LOGL, {one.steps} of L-BFGS for the mean squared error; starts: {one.restarts}",
        f"loss of the true model (published): {shown}",
        *_intervals(found, one.examples),
        *(_intervals(full, one.examples + max(cell.further for cell in full)) if full else []),
        _rivals(found, first),
        f"tables 3 and 6 are with {first} iterations of inference (published: 100)",
        "ratio: to what APPR-LOGL loses above the true model; wins: models that are better, equal, worse than it; "
        "ours / published; p: permutation test, two-sided",
    ]


def _rivals(found: Losses, iterations: int) -> str:
    """Say which settings are better than the matched one, in table 6."""
    better = [row for row in against_matched(found, iterations) if row["difference"] < -MARGIN and row["p"] < 0.05]
    texts = [f"{row['training']} for {row['test']} by {-row['difference']:.5f}" for row in better]
    what = f"settings that are better than the matched one by more than {MARGIN} (p < .05 after Holm's correction)"
    return f"{what}: {'; '.join(texts) or 'none'}"


def _intervals(found: Losses, tests: int) -> list[str]:
    """Say on how many models a matched setting is better, and worse, than APPR-LOGL."""
    rows = [row for row in by_model(found) if row["baseline"] == LOGL and not row["perturbation"]]
    lines = []
    for t in sorted({row["iterations"] for row in rows}, reverse=True):
        texts = []
        for test in TRUE:
            mine = [row for row in rows if row["iterations"] == t and row["test"] == test]
            below, above = sum(row["high"] < 0 for row in mine), sum(row["low"] > 0 for row in mine)
            texts.append(f"{test} {below} below, {above} above, of {len(mine)}")
        lines.append(
            f"models with a 95 % interval below or above APPR-LOGL, {t} it., {tests} tests: {'; '.join(texts)}"
        )
    return lines


def _figure(found: dict[Cell, Found]) -> dict[str, Plot]:
    """Return figure 1: losses along the line from the true parameters to those of two trainings."""
    trained = [cell for cell in found if cell.model == "50-200" and not cell.perturbation]
    plots = {}
    for cell in [cell for cell in trained if cell.training in (LOGL, MATCHED["frac-MSE"])][:2]:
        task = make_task(cell.model, cell.seed, 0.0, cell.examples)
        true, end = task.truth.groups[0].ravel(), found[cell].theta
        places = np.linspace(-0.5, 1.5, 9)
        plain, test = table_model(task.graph), task.test[:300]
        inputs, labels, way = task.inputs(test), task.labels(test), inference(cell.iterations)
        each = [losses_by_setting(plain, (1 - a) * true + a * end, inputs, labels, way) for a in places]
        lines = {t: (places.tolist(), [float(losses[t].mean()) for losses in each]) for t in TESTS if t != LOGL}
        plots[f"erma-{cell.training}"] = Plot("alpha: true parameters at 0, trained ones at 1", "test loss", lines)
        logl = {LOGL: (places.tolist(), [float(losses[LOGL].mean()) for losses in each])}
        plots[f"erma-{cell.training}-logl"] = Plot("alpha", "minus approximate log-likelihood", logl)
    return plots
