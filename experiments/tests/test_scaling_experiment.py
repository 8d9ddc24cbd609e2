"""Time against the number of variables (Domke 2009, section 7.2), on tiny grids; no time is asserted."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig
from isinglass.cli.main import main
from isinglass.gradients import rule
from isinglass_experiments.catalogue import make
from isinglass_experiments.domke import scaling


@pytest.fixture
def tiny(monkeypatch):
    """Make the grids small and the runs few."""
    monkeypatch.setattr(scaling, "QUICK_SIDES", (3, 4, 6))
    monkeypatch.setattr(scaling, "ENOUGH", 0.0)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_exponents_are_those_of_power_laws(power):
    sizes = np.array([16, 64, 256, 1024, 4096])
    noise = np.exp(0.01 * np.random.default_rng(0).normal(size=5))
    seconds = 3e-6 * sizes**power * noise
    assert scaling.exponent(sizes, seconds) == pytest.approx(power, abs=0.02)
    seconds[:2] = 1.0  # what small sizes cost does not matter
    assert scaling.exponent(sizes, seconds) == pytest.approx(power, abs=0.02)
    assert scaling.exponent(sizes[:2], sizes[:2] ** power) == pytest.approx(power)
    assert np.isnan(scaling.exponent([4], [1.0]))


@pytest.mark.parametrize(("each", "runs"), [(0.001, 20), (0.125, 4), (2.0, 3)])
def test_short_runs_are_repeated_more_often(each, runs):
    now = [0.0]

    def work():
        now[0] += each

    assert_allclose(scaling.timed(work, lambda: now[0]), [each] * runs)


@pytest.mark.parametrize("name", scaling.METHODS)
def test_what_is_timed_is_the_gradient(name):
    """By finite differences: procedural through its iterations, implicit through the fixed point or minimum."""
    method, p = scaling.METHODS[name], scaling.image_model(3)
    labels = np.array([0, 1, 0, 1, 1, 0, 0, 1, 0])

    def value(field):
        q = ig.Potentials.from_groups(p.graph, [field, p.groups[1]])
        algorithm = method.algorithm
        if method.gradient == "implicit":
            algorithm = type(algorithm)(tol=1e-12, max_iter=3000)
        return rule(method.gradient).evaluate(q, algorithm, lambda r: ig.losses.make("ucl")(r, labels))

    step = np.zeros((9, 2))
    step[4, 1] = 1e-5
    slope = (value(p.groups[0] + step).value - value(p.groups[0] - step).value).sum() / 2e-5
    assert value(p.groups[0]).groups[0][4, 1] == pytest.approx(slope, abs=1e-7)


def test_report(tiny):
    report = make("scaling", quick=True).run()
    assert list(report.columns) == ["pixels", *scaling.METHODS]
    assert [row[0] for row in report.rows] == ["3 x 3", "4 x 4", "6 x 6", "exponent"]
    for row in report.data["rows"]:
        assert [run["variables"] for run in row["sizes"]] == [9, 16, 36]
        assert all(run["seconds"] > 0 and run["runs"] == 3 for run in row["sizes"])
        assert all(run["converged"] for run in row["sizes"]) == (row["row"] != "bp-4, unrolled")
        places, heights = report.plots["scaling"].lines[row["row"]]
        assert row["exponent"] == pytest.approx(scaling.exponent(places, heights))
    assert len(report.notes) == 3


def test_a_method_ends_where_it_takes_too_long(tiny, monkeypatch):
    monkeypatch.setattr(scaling, "LIMIT", 0.0)
    report = make("scaling", quick=True, rows=["convex"]).run()
    assert [row[1] == "-" for row in report.rows] == [False, True, True, False]
    assert report.rows[-1] == ["exponent", "nan"]


def test_the_figure_is_drawn(tiny, tmp_path, capsys):
    command = ["reproduce", "scaling", "--quick", "--rows", "bp-4,convex", "--out", str(tmp_path), "--quiet"]
    assert main(command) == 0
    assert (tmp_path / "scaling.png").stat().st_size > 5000
    assert "convex, implicit" in capsys.readouterr().out


@pytest.mark.parametrize("rows", [["gibbs"], []])
def test_wrong_options(rows):
    with pytest.raises(ig.InputError, match="rows: expected some of bp-4, bp, trw, convex"):
        make("scaling", rows=rows).run()
