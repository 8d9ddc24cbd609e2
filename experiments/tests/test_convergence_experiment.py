"""Solvers of a convex free energy on their way to the minimum (Domke 2009, figure 4.2), on small problems."""

import os

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig
from isinglass.cli.main import main
from isinglass.inference.free_energy.algorithm import SOLVERS
from isinglass_experiments.catalogue import make
from isinglass_experiments.data import Photographs
from isinglass_experiments.domke import convergence
from isinglass_experiments.domke.convergence import Curve, Iterate, distances, followed, reached


def photographs(_folder=None):
    """Return small photographs of three brightnesses."""
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 3, (4, 16, 16))
    X = np.stack([30 + 70 * Y + rng.integers(0, 60, Y.shape)] * 3, axis=-1).astype(np.uint8)
    Y[:, 0] = -1
    return Photographs(X, Y, X[::-1], Y[::-1])


@pytest.fixture
def tiny(monkeypatch):
    """Replace the photographs by small ones."""
    monkeypatch.setattr(convergence, "load_street_scenes", photographs)


def weak_grid():
    rng = np.random.default_rng(0)
    return ig.Potentials.from_groups(
        ig.grid_graph(4, 5, 3), [rng.normal(0, 0.3, (20, 3)), rng.normal(0, 0.2, (31, 3, 3))]
    )


def test_the_energy_of_the_primal_algorithm_falls():
    """The primal algorithm minimises bounds that touch the energy; all its beliefs stay positive here."""
    p = weak_grid()
    way = followed(p, ig.ConvexFreeEnergy("C", solver="primal"), range(1, 12))
    energies = [one.energy for one in way]
    assert all(np.diff(energies) <= 1e-12)
    assert min(energies) >= -ig.infer(p, ig.ConvexFreeEnergy("C", tol=1e-12)).log_z - 1e-9
    assert [one.iterations for one in way] == list(range(1, len(way) + 1))


def test_half_newton_steps_halve_the_error_and_newton_squares_it():
    p = weak_grid()
    ways = {name: followed(p, ig.ConvexFreeEnergy("C", solver=name), range(1, 13)) for name in ("newton", "primal")}
    errors = distances(ways)
    assert_allclose(np.divide(errors["primal"][5:], errors["primal"][4:-1]), 0.5, atol=0.02)
    assert errors["newton"][2] < errors["newton"][1] ** 1.5 < 1
    assert len(ways["newton"]) < len(ways["primal"])  # a curve ends at the minimum


@pytest.mark.parametrize("solver", ["newton", *SOLVERS])
def test_every_solver_comes_near(solver):
    """The beliefs after T iterations are those of a run of T iterations."""
    p = weak_grid()
    truth = ig.infer(p, ig.ConvexFreeEnergy("B", tol=1e-12)).variables.flat
    way = followed(p, ig.ConvexFreeEnergy("B", solver=solver), [1, 4, 64])
    first, last = (abs(one.beliefs - truth).max() for one in (way[0], way[-1]))
    assert last < 1e-3 < first
    assert way[-1].residual < way[0].residual


def test_what_does_not_apply_is_left_out_and_other_errors_are_not():
    p = weak_grid()
    by_state = ig.EntropyWeights(np.linspace(0.1, 1, 60))
    assert followed(p, ig.ConvexFreeEnergy(by_state, solver="messages"), [1, 2]) == []
    with pytest.raises(ig.InputError, match="weights"):
        followed(p, ig.ConvexFreeEnergy("D"), [1])


def test_errors_are_measured_from_the_least_residual():
    ways = {
        "a": [Iterate(1, 0.5, 0, 0, np.array([0.5, 0.5])), Iterate(2, 0.1, 0, 0, np.array([0.625, 0.375]))],
        "b": [Iterate(1, np.nan, 0, 0, np.array([np.inf, 0.5])), Iterate(3, 1e-9, 0, 0, np.array([0.75, 0.25]))],
        "c": [],
    }
    assert distances(ways) == {"a": [0.25, 0.125], "b": [np.inf, 0.0], "c": []}


def test_a_goal_is_reached_where_errors_stay_below_it():
    iterates = [Iterate(count, 0, 0, 0, np.zeros(1)) for count in (1, 2, 4, 8)]
    curve = Curve("fixed", "lbfgs", iterates, [0.05, 0.2, 0.01, 0.001])
    assert [reached(curve, goal) for goal in (1, 0.1, 1e-4)] == [iterates[0], iterates[2], None]


@pytest.mark.long
def test_report(tiny, monkeypatch):
    monkeypatch.setattr(convergence, "SHOWN", (1, 2))
    report = make("convergence", quick=True, rows=["newton", "primal", "messages"], n_jobs=1).run()
    assert [row[:2] for row in report.rows] == [
        [e, s] for e in ("fixed", "fit") for s in ("newton", "primal", "messages")
    ]
    assert report.rows[5][2:] == ["-"] * 7  # fitted weights depend on configurations
    assert report.data["size"] == [8, 8, 5]
    newton = report.data["rows"][0]["iterates"]
    assert newton[-1]["residual"] <= 1e-12
    assert newton[-1]["error"] <= 1e-12
    assert int(report.rows[0][2]) <= int(report.rows[0][5])
    assert [name for name, _ in report.pictures["convergence-beliefs"]] == ["1 iteration", "2 iterations"]
    assert report.pictures["convergence-beliefs"][0][1].shape == (2, 8, 8)
    assert set(report.plots["convergence-fixed"].lines) == {"newton", "primal", "messages"}
    assert report.plots["convergence-fixed"].log


@pytest.mark.long
def test_the_figure_is_drawn(tiny, tmp_path, capsys):
    folder = tmp_path / "new"
    command = ["reproduce", "convergence", "--quick", "--rows", "newton,primal", "--n-jobs", "1", "--quiet"]
    assert main([*command, "--out", str(folder), "--json", str(folder / "all.json")]) == 0
    assert {path.name for path in folder.iterdir()} >= {"all.json", "convergence-fixed.png", "convergence-beliefs.png"}


@pytest.mark.parametrize("rows", [["simplex"], []])
def test_wrong_options(rows, tiny):
    with pytest.raises(ig.InputError, match="rows: expected some of newton, primal"):
        make("convergence", rows=rows).run()


@pytest.mark.slow
def test_quick_version():
    if not os.environ.get("ISINGLASS_DATA"):
        pytest.skip("ISINGLASS_DATA is not set")
    report = make("convergence", quick=True).run()
    assert len(report.rows) == 2 * (1 + len(SOLVERS))
