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
from isinglass.inference import ALGORITHMS
from isinglass.inference.sampling.algorithm import MonteCarlo

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
@pytest.mark.filterwarnings("ignore::isinglass.errors.ConvergenceWarning")
def test_algorithms_that_share_tables_differently() -> None:
    works = {name: work for name, work in tasks().items() if name in ("bp 0", "trw 0", "mf 0", "max-product 0")}
    assert wrong(works, {name: work() for name, work in works.items()}, 50) == []


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
