"""Tables 3 to 6 of Stoyanov, Ropson and Eisner (2011), and what they do not show: single models, rivals.

Losses are compared example by example: with those of the true model, of APPR-LOGL and of the matched setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from isinglass.typing import FloatArray, JsonObject
from isinglass_experiments.common.statistics import holm, sign_test
from isinglass_experiments.erma.cells import OF_TRUTH, TRUTH, Cell
from isinglass_experiments.erma.published import TABLE_3, TABLE_4, TABLE_5, TABLE_6, TRUE
from isinglass_experiments.erma.settings import CONVERGED, LOGL, MATCHED, TESTS

TIE = 5e-5
Losses = dict[Cell, dict[str, FloatArray]]


def truth_of(cell: Cell) -> Cell:
    """Return the cell of the true model."""
    return replace(cell, training=TRUTH, iterations=OF_TRUTH, perturbation=0.0, further=0)


def baseline_of(cell: Cell) -> Cell:
    """Return the cell of APPR-LOGL under the same conditions."""
    return replace(cell, training=LOGL, further=0)


def row_of(
    found: Losses, test: str, training: str, published: Sequence[float | None], wins: str = "", **where: object
) -> JsonObject:
    """Compare a training setting with the true model, and with APPR-LOGL, over all models that have it.

    `published` has the difference from the true model, and that of APPR-LOGL.
    """
    mine = [
        cell for cell in found if cell.training == training and all(getattr(cell, k) == v for k, v in where.items())
    ]
    delta, of_baseline = (
        float(np.mean([(found[at(cell)][test] - found[truth_of(cell)][test]).mean() for cell in mine]))
        if mine
        else None
        for at in (_itself, baseline_of)
    )
    gains = [found[cell][test] - found[baseline_of(cell)][test] for cell in mine]
    means = [float(gain.mean()) for gain in gains]
    counts = [sum(m < -TIE for m in means), sum(abs(m) <= TIE for m in means), sum(m > TIE for m in means)]
    compared = training != LOGL and test != LOGL
    return {
        "test": test,
        "training": training,
        "condition": where,
        "delta": delta,
        "published": published[0],
        "ratio": _ratio(delta, of_baseline) if compared else None,
        "published_ratio": _ratio(*published) if compared else None,
        "wins": None if training == LOGL else "-".join(map(str, counts)),
        "published_wins": wins,
        "p": None if training == LOGL or not gains else sign_test(np.concatenate(gains)),
        "models": [cell.model for cell in mine],
    }


def _itself(cell: Cell) -> Cell:
    return replace(cell, further=0)


def _ratio(delta: float | None, of_baseline: float | None) -> float | None:
    """Return the share of the loss above the true model's that is left, where APPR-LOGL has one."""
    return delta / of_baseline if delta is not None and of_baseline is not None and of_baseline > 0 else None


def table_3(found: Losses, iterations: int) -> list[JsonObject]:
    """Return all training settings of each loss."""
    rows = []
    for test in TESTS:
        known = [training for key, training in TABLE_3 if key == test]
        for training in [*known, CONVERGED]:
            published, wins = TABLE_3.get((test, training), (None, ""))
            both = published, TABLE_3[test, LOGL][0]
            rows.append(row_of(found, test, training, both, wins, iterations=iterations, perturbation=0.0))
    return [row for row in rows if row["models"]]


def table_4(found: Losses) -> list[JsonObject]:
    """Return the matched settings and APPR-LOGL on perturbed models."""
    places = sorted({(cell.perturbation, cell.iterations) for cell in found if cell.perturbation})
    rows = []
    for test in TESTS:
        for training in dict.fromkeys((LOGL, MATCHED[test])):
            for p, t in places:
                published = TABLE_4.get((test, training != LOGL, p)), TABLE_4.get((test, False, p))
                rows.append(row_of(found, test, training, published, perturbation=p, iterations=t))
    return rows


def table_5(found: Losses) -> list[JsonObject]:
    """Return the matched settings and APPR-LOGL by the iterations of inference."""
    columns = sorted({cell.iterations for cell in found if cell.training == LOGL}, reverse=True)
    rows = []
    for test in TESTS:
        for training in dict.fromkeys((LOGL, MATCHED[test])):
            for t in columns:
                published = TABLE_5.get((test, training != LOGL, t)), TABLE_5.get((test, False, t))
                rows.append(row_of(found, test, training, published, iterations=t, perturbation=0.0))
    return rows


def table_6(found: Losses, iterations: int) -> list[JsonObject]:
    """Return all pairs; p-values of the four settings of a row are corrected for their number (Holm)."""
    table = []
    for test in TESTS:
        rows = []
        for setting, training in MATCHED.items():
            published = TABLE_6[test, setting], TABLE_6[test, LOGL]
            rows.append(row_of(found, test, training, published, iterations=iterations, perturbation=0.0))
        tested = [row for row in rows if row["p"] is not None]
        for row, p in zip(tested, holm([row["p"] for row in tested]).tolist(), strict=True):
            row["p"] = p
        table += rows
    return table


def against_matched(found: Losses, iterations: int) -> list[JsonObject]:
    """Compare the matched setting of each loss with the other settings of table 6, over all models that have both.

    The p-values of a loss are corrected for their number (Holm).
    """
    rows: list[JsonObject] = []
    for test in TRUE:
        others = [training for training in MATCHED.values() if training != MATCHED[test]]
        gains = {training: _gains(found, test, training, MATCHED[test], iterations) for training in others}
        gains = {training: gain for training, gain in gains.items() if len(gain)}
        ps = holm([sign_test(gain) for gain in gains.values()]).tolist()
        for (training, gain), p in zip(gains.items(), ps, strict=True):
            rows.append({"test": test, "training": training, "difference": float(gain.mean()), "p": p})
    return rows


def _gains(found: Losses, test: str, training: str, baseline: str, iterations: int) -> FloatArray:
    """Return the differences of all examples of all models that have both settings."""
    mine = [c for c in found if (c.training, c.iterations, c.perturbation) == (training, iterations, 0.0)]
    pairs = [(cell, replace(cell, training=baseline)) for cell in mine]
    return np.concatenate([np.zeros(0), *(found[one][test] - found[two][test] for one, two in pairs if two in found)])


def by_model(found: Losses) -> list[JsonObject]:
    """Compare matched settings with both baselines, model by model, with 95 % intervals of the mean difference."""
    rows = []
    for cell in found:
        tests = [test for test in TESTS if MATCHED[test] == cell.training and test != LOGL]
        for test in tests:
            for baseline in (LOGL, CONVERGED):
                other = replace(cell, training=baseline)
                if other in found:
                    gain = found[cell][test] - found[other][test]
                    half = 1.96 * float(gain.std(ddof=1)) / np.sqrt(len(gain))
                    mean = float(gain.mean())
                    where = {"model": cell.model, "iterations": cell.iterations, "perturbation": cell.perturbation}
                    named = {"test": test, "training": cell.training, "baseline": baseline, "tests": len(gain)}
                    rows.append({**where, **named, "difference": mean, "low": mean - half, "high": mean + half})
    return rows


def true_losses(found: Losses) -> JsonObject:
    """Return the mean losses of the true models."""
    mine = [found[cell] for cell in found if cell.training == TRUTH]
    return {test: float(np.mean([losses[test].mean() for losses in mine])) for test in TESTS}
