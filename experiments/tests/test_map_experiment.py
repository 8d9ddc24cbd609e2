"""Solvers for most probable assignments side by side, on small models; no time is asserted."""

import os

import numpy as np
import pytest

import isinglass as ig
from isinglass_experiments import data, most_probable
from isinglass_experiments.catalogue import make


def test_models_are_those_of_their_seeds():
    p = most_probable.potts(4, 11, 1.0)
    rng = np.random.default_rng(11)
    np.testing.assert_array_equal(p.groups[0], rng.normal(0, 1, (16, 5)))
    np.testing.assert_array_equal(p.groups[1][:, 0, 0], rng.normal(0, 1.0, 24))
    assert (most_probable.ising(4, 9, attractive=True).groups[1][:, 0, 0] > 0).all()


def test_a_solver_that_does_not_take_a_model_is_left_out():
    p = most_probable.potts(3, 0, 1.0)
    assert most_probable.solved("potts", p, "graph-cut", 1.0) == []
    (found,) = most_probable.solved("potts", p, "ilp", 5.0)
    assert found.optimal
    assert found.score == pytest.approx(ig.map_assignment(p).score)


@pytest.mark.long
def test_quick_run(monkeypatch):
    if not os.environ.get("ISINGLASS_DATA"):
        pytest.skip("ISINGLASS_DATA is not set")
    report = make("map", quick=True, rows=["auto", "trws", "icm"], seconds=0.5).run()
    assert {row[1] for row in report.rows} == {"auto", "trws", "icm"}
    rows = report.data["rows"]
    best = {row["problem"]: min(r["bound"] for r in rows if r["problem"] == row["problem"]) for row in rows}
    assert all(row["score"] <= best[row["problem"]] + 1e-6 for row in rows)
    assert any(row["optimal"] for row in rows)


def test_stereo():
    if not os.environ.get("ISINGLASS_DATA"):
        pytest.skip("ISINGLASS_DATA is not set")
    pair = data.load_stereo()
    assert pair.left.shape == (288, 384, 3)
    assert (pair.disparity.min(), pair.disparity.max()) == (-1, 14)
    p = data.stereo_model(pair.left[::4, ::4], pair.right[::4, ::4], 4)
    found = ig.map_assignment(p, "trws").states.reshape(72, 96)
    known = pair.disparity[::4, ::4] >= 0
    right = np.abs(4 * found - pair.disparity[::4, ::4]) <= 4
    assert right[known].mean() > 0.85
