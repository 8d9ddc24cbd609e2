"""The number of threads: `n_jobs`, and its default."""

import numpy as np
import pytest

import isinglass as ig
from checks import refuses
from isinglass.inference.algorithm import threaded
from isinglass.inference.message_passing import engine
from isinglass.validation import jobs_of


@pytest.fixture
def model():
    rng, graph = np.random.default_rng(0), ig.grid_graph(3, 3, 2)
    return ig.Potentials.from_groups(graph, [rng.normal(size=(9, 2)), rng.normal(size=(12, 2, 2))])


@pytest.fixture
def teams(monkeypatch):
    """Record how many threads message passing asks for."""
    asked, real = [], engine.team

    def recording(threads):
        asked.append(threads)
        return real(threads)

    monkeypatch.setattr(engine, "team", recording)
    return asked


def test_the_default_is_one(monkeypatch):
    monkeypatch.delenv("ISINGLASS_THREADS", raising=False)
    assert jobs_of(None) == 1


def test_the_environment_variable(monkeypatch, model, teams):
    monkeypatch.setattr("os.cpu_count", lambda: 5)
    for given, wanted in {"3": 3, "-1": 5, " 2 ": 2, "": 1}.items():
        monkeypatch.setenv("ISINGLASS_THREADS", given)
        assert jobs_of(None) == wanted
        assert jobs_of(4) == 4
        ig.infer(model, "bp")
        assert max(teams) == wanted
        teams.clear()


@pytest.mark.parametrize("given", ["0", "many", "-2", "1.5"])
def test_a_wrong_environment_variable_is_named(monkeypatch, given, model):
    monkeypatch.setenv("ISINGLASS_THREADS", given)
    refuses("ISINGLASS_THREADS", ig.infer, model, "bp")


def test_functions_take_it(model, teams):
    wanted = ig.infer(model, "bp", n_jobs=1)
    teams.clear()
    assert ig.infer(model, "bp", n_jobs=3).variables.flat.tobytes() == wanted.variables.flat.tobytes()
    assert teams[0] == 3
    ig.map_assignment(model, "max-product", n_jobs=3)
    ig.n_best(model, 1, "trw", n_jobs=3)
    assert ig.infer(model, ig.BeliefPropagation(n_jobs=2), n_jobs=3).log_z == wanted.log_z
    assert teams[-1] in (1, 3)
    for name in ("exact", "brute", "mf"):  # that may ignore it
        assert ig.infer(model, name, n_jobs=2).log_z == ig.infer(model, name).log_z
    assert ig.sample(model, 3, random_state=0, n_jobs=2).tolist() == ig.sample(model, 3, random_state=0).tolist()


def test_all_processors(model, teams, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    ig.infer(model, "bp", n_jobs=-1)
    assert max(teams) == 3


@pytest.mark.parametrize("given", [0, -2, 1.5, "two"])
def test_wrong_numbers_are_refused(model, given):
    for name in ("bp", "exact"):
        refuses("n_jobs", ig.infer, model, name, n_jobs=given)
    refuses("n_jobs", ig.map_assignment, model, n_jobs=given)
    refuses("n_jobs", ig.sample, model, 2, n_jobs=given)


def test_algorithms_keep_their_number_without_it():
    assert threaded(ig.BeliefPropagation(n_jobs=4), None).n_jobs == 4
    assert threaded(ig.Exact(), 2).facts.threads in (False, True)


@pytest.mark.filterwarnings("ignore::isinglass.errors.ConvergenceWarning")
def test_fit_on_one_large_example_uses_the_threads_inside(teams):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(1, 6, 6, 2)), rng.integers(0, 2, (1, 6, 6))
    crf = ig.GridCRF("bp", iterations=2, n_jobs=3, max_iter=2).fit(X, Y)
    assert max(teams) == 3
    alone = ig.GridCRF("bp", iterations=2, max_iter=2).fit(X, Y)
    assert alone.theta_.tobytes() == crf.theta_.tobytes()
    teams.clear()
    crf.predict(X)
    assert max(teams) == 3
