"""Threads that share a graph: every algorithm at once, with the bits of a single thread."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import isinglass as ig
from checks import refuses
from isinglass.inference import ALGORITHMS
from isinglass.inference.message_passing import engine
from isinglass.inference.sampling.algorithm import MonteCarlo
from isinglass.validation import jobs_of

THREADS, GRAPHS = 8, 2
SHORT: dict[str, dict[str, Any]] = {
    "fbp": {"counting_numbers": 0.8},
    "ais": {"temperatures": 20, "chains": 20},
    "importance": {"samples": 400},
}


@pytest.fixture(autouse=True)
def hasty() -> Iterator[None]:
    """Let threads take turns as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def models(shape: tuple[int, int] = (5, 5)) -> list[ig.Potentials]:
    """Return models on one graph: one table that all edges share, and others."""
    graph, rng = ig.grid_graph(*shape, 2), np.random.default_rng(0)
    n, links = graph.n_variables, len(graph.groups[1])
    field, coupling = rng.normal(size=(n, 1)) * [-1.0, 1.0], 0.3 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    ising = ig.Potentials.from_groups(graph, [field, coupling[None]])
    return [ising, ig.Potentials.from_groups(graph, [field, rng.normal(0, 0.3, (links, 2, 2))])]


def bits(result: ig.Result) -> bytes:
    parts = [np.asarray(result.component_log_z), result.variables.flat, *(g.ravel() for g in result.factors.groups)]
    return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


def inferred(p: ig.Potentials, algorithm: Any, **options: Any) -> Callable[[], bytes]:
    return lambda: bits(ig.infer(p, algorithm, **options))


def tasks() -> dict[str, Callable[[], bytes]]:
    """Return every algorithm on models that share a graph, and what else uses its caches."""
    found: dict[str, Callable[[], bytes]] = {}
    small = models((3, 4))
    for i, p in enumerate(models()):
        for name, cls in ALGORITHMS.items():
            q = small[i] if name == "brute" else p
            options = {"random_state": 0} if cls.facts.stochastic else {}
            options |= {"sweeps": 20} if issubclass(cls, MonteCarlo) else SHORT.get(name, {})
            found[f"{name} {i}"] = inferred(q, name, **options)
        for schedule in ("flooding", "sequential", "residual", "grid"):
            found[f"bp {schedule} {i}"] = inferred(p, ig.BeliefPropagation(schedule=schedule, iterations=3))
        found[f"observed {i}"] = inferred(p, "exact", evidence={3: 1})
        found[f"map {i}"] = lambda p=p: ig.map_assignment(p).states.tobytes()  # type: ignore[misc]
        found[f"n best {i}"] = lambda p=p: np.array([a.states for a in ig.n_best(p, 5)]).tobytes()  # type: ignore[misc]
        found[f"sample {i}"] = lambda p=p: ig.sample(p, 20, random_state=0).tobytes()  # type: ignore[misc]
        found[f"backward {i}"] = lambda p=p: _backward(p)  # type: ignore[misc]
    return found


def _backward(p: ig.Potentials) -> bytes:
    result = ig.infer(p, ig.BeliefPropagation(iterations=4), tape=True)
    gradients = result.backward(log_z=1.0, variables=np.ones_like(result.variables.flat))
    return b"".join(np.ascontiguousarray(g).tobytes() for g in gradients.groups)


def wrong(works: dict[str, Callable[[], bytes]], wanted: dict[str, bytes], rounds: int) -> list[str]:
    """Call all of them from all threads, each in an order of its own; return what came out otherwise."""
    failures: list[str] = []

    def run(seed: int) -> None:
        rng, names = np.random.default_rng(seed), list(works)
        for _ in range(rounds):
            for name in rng.permutation(names).tolist():
                try:
                    if works[name]() != wanted[name]:
                        failures.append(f"{name}: other bits")
                except BaseException as error:
                    failures.append(f"{name}: {error!r}")

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isinglass.errors.ConvergenceWarning")
def test_every_algorithm_gives_the_same_bits_in_threads_that_share_a_graph() -> None:
    wanted = {name: work() for name, work in tasks().items()}
    for _ in range(GRAPHS):
        assert wrong(tasks(), wanted, 1) == []  # on a graph whose caches are still empty


@pytest.mark.long
def test_more_evidence_than_a_graph_keeps() -> None:
    p = models((4, 4))[0]
    works = {f"{v} {s}": inferred(p, "exact", evidence={v: s}) for v in range(16) for s in range(2)}
    wanted = {name: work() for name, work in works.items()}
    assert wrong(works, wanted, 2) == []


def test_a_single_call_warns_where_it_was_called() -> None:
    p = models()[0]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ig.infer(p, "bp", max_iter=1)
        assert [w.category for w in told] == [ig.errors.ConvergenceWarning]
        assert told[0].filename == __file__


@pytest.mark.long
@pytest.mark.parametrize("jobs", [1, 2])
def test_predict_in_threads_leaves_the_filters_alone(jobs: int) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6, 4, 4, 2)), rng.integers(0, 2, (6, 4, 4))
    crf = ig.GridCRF(ig.BeliefPropagation(max_iter=2, tol=1e-12), gradient="envelope", loss="cl", n_jobs=jobs)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        crf.set_params(max_iter=2).fit(X, Y)
        assert all("training" in str(w.message) for w in told)  # nothing about inference: that is in history_
        del told[:]
        before, shown = list(warnings.filters), warnings.showwarning
        wanted = crf.predict(X)
        works = {"predict": lambda: crf.predict(X).tobytes(), "marginals": lambda: crf.predict_marginals(X).tobytes()}
        assert wrong(works, {"predict": wanted.tobytes(), "marginals": crf.predict_marginals(X).tobytes()}, 10) == []
        assert list(warnings.filters) == before
        assert warnings.showwarning is shown
        assert told == []  # predictions do not warn


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
