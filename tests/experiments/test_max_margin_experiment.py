"""Max-margin learning beside likelihoods, on a few words."""

import os

import numpy as np
import pytest

from isinglass.experiments import make, max_margin


def test_standard_errors_are_those_of_words():
    rng = np.random.default_rng(0)
    truth = [rng.integers(0, 2, 4) for _ in range(400)]
    predicted = [np.where(rng.random(4) < 0.9, y, 1 - y) for y in truth]
    share, error = max_margin.accuracy(predicted, truth)
    assert share == pytest.approx(0.9, abs=0.03)
    assert error == pytest.approx(np.sqrt(0.9 * 0.1 / 1600), rel=0.3)


def test_quick_run():
    if not os.environ.get("ISINGLASS_DATA"):
        pytest.skip("ISINGLASS_DATA is not set")
    report = make("maxmargin", quick=True, rows=["cl", "margin, gap 1e-1"]).run()
    likelihood, margin = (row["letters"] for row in report.data["rows"])
    assert likelihood > 0.75
    assert margin > likelihood - 0.03
    assert "duality gap" in report.data["rows"][1]["message"]
