"""The Ising and Potts models at their transitions, and the race of samplers, on tiny problems."""

import numpy as np
import pytest

import isinglass as ig
from isinglass_experiments.catalogue import make
from isinglass_experiments.sampling import ising, onsager, potts, race


@pytest.mark.parametrize("coupling", [0.1, 0.3, onsager.CRITICAL, 0.5, 0.9])
@pytest.mark.parametrize(("height", "width"), [(3, 3), (2, 4), (4, 3)])
def test_kaufmans_solution(coupling, height, width):
    p = ig.models.Ising(ig.lattice_graph((height, width), 2, periodic=True)).potentials(coupling=coupling)
    assert onsager.log_z(coupling, height, width) == pytest.approx(ig.infer(p, "exact").log_z, abs=1e-9)


def test_the_exact_energy():
    p = ising.torus(4, 0.4)
    pairs = np.array([0.5 * np.trace(b) for b in ig.infer(p, "exact").factors.groups[1]]) * 4 - 1
    assert onsager.energy(0.4, 4, 4) == pytest.approx(-pairs.sum() / 16, abs=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("name", ising.SAMPLERS)
def test_what_samplers_observe_is_right(name):
    found = ising.observe(4, 0.35, name, 1500, 0)
    assert abs(found.energy - onsager.energy(0.35, 4, 4)) < 5 * found.energy_error + 1e-3
    assert 0 < found.squares < 1
    assert found.squares**2 <= found.fourths <= found.squares


def test_cumulants_cross():
    k = np.array([0.43, 0.44, 0.45])
    assert ising.crossing(k, 0.6 + (k - 0.441), 0.6 + 3 * (k - 0.441) - 20 * (k - 0.441) ** 2) == pytest.approx(0.441)
    assert np.isnan(ising.crossing(k, k, k + 1 + k**2))


@pytest.mark.long
def test_the_ising_experiment(monkeypatch):
    monkeypatch.setattr(ising, "QUICK_SIDES", (4, 6))
    monkeypatch.setattr(ising, "COUPLINGS", (0.3, 0.5))
    monkeypatch.setattr(ising, "QUICK_SWEEPS", 40)
    monkeypatch.setattr(ising, "QUICK_CUMULANT_SWEEPS", 40)
    report = make("ising", quick=True, n_jobs=1).run()
    assert len(report.rows) == 2
    assert {"energy", "magnetisation", "log_z", "binder"} == set(report.plots)
    assert "4 and 6" in report.data["crossings"]
    assert report.data["log_z"]["mf"][0] < 0 < report.data["log_z"]["trw"][0]
    for one in report.data["ais"]:  # beside Kaufman's log Z
        assert one["reliable"]
        assert abs(one["gap"]) <= 3 * one["stderr"] <= 0.9


def test_regions_of_a_picture():
    assert potts.regions(np.zeros((3, 4), int)).tolist() == [[12] * 4] * 3
    assert potts.regions(np.arange(12).reshape(3, 4)).tolist() == [[1] * 4] * 3


def test_the_potts_experiment(monkeypatch):
    monkeypatch.setattr(potts, "QUICK_SIDE", 8)
    monkeypatch.setattr(potts, "QUICK_SWEEPS", 20)
    report = make("potts", quick=True, n_jobs=1).run()
    assert [row[1] for row in report.rows] == ["random", "equal"] * 4
    assert report.rows[2][3] == "-0.968"
    assert len(report.pictures["potts"]) == 4
    for run in report.data["runs"]:
        assert -2 <= run["energy"] <= 0
        assert 1 <= run["regions"] <= 64


@pytest.mark.long
def test_the_race(monkeypatch):
    monkeypatch.setattr(race, "models", lambda: {"pairs": lambda: race.ising("random", 0.1, 0.1)})
    monkeypatch.setattr(race, "SAMPLERS", ("gibbs", "swendsen-wang"))
    monkeypatch.setattr(race, "APPROXIMATIONS", ("bp", "mf"))
    monkeypatch.setattr(race, "QUICK_LIMIT", 0.05)
    report = make("sampling", quick=True).run()
    assert report.rows[0][0] == "pairs"
    assert report.data["models"]["pairs"]["bp"]["error"] < 0.01
    assert report.data["models"]["pairs"]["gibbs"]["error"] < 0.1
    p = race.triples(20, 10, 0.3)
    assert race.race(p, np.zeros(40), "wolff", 1.0) == {"seconds": None, "error": None, "sweeps": 0}
    with ig.errors.no_convergence_warnings():
        late = race.race(p, np.zeros(40), "gibbs", 0.1)  # a truth that it cannot reach
    assert late["seconds"] is None
    assert late["sweeps"] > 100
    assert race._cell(late, 0.1).startswith("> 0.1 (")
    assert race._cell({"seconds": None, "error": 0.2}, 0.1) == "(0.200)"


def test_the_models_of_the_race():
    for name, make_one in race.models().items():
        assert make_one().graph.n_variables <= 144, name
