"""Compile the inner loops in advance, by running every algorithm on tiny models, and the usual fits on tiny data.

A loop is compiled for the types of its arguments: for real and complex numbers, linear values and logarithms, sums and
maxima, and for a few fixed numbers of states. The models here cover these cases. Rarer ones (seven states, complex
potentials given by the caller) are compiled at first use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isinglass.errors import no_convergence_warnings
from isinglass.estimators import ChainCRF, GraphCRF, GridCRF
from isinglass.graph.builders import chain_graph, grid_graph
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.grids import grid_shape
from isinglass.inference import (
    Algorithm,
    AnnealedImportance,
    BeliefPropagation,
    ConvexFreeEnergy,
    Exact,
    GaussianField,
    Gibbs,
    MeanField,
    ParallelTempering,
    SwendsenWang,
    TreeGibbs,
    TreeReweighted,
    Wolff,
    infer,
    map_assignment,
    n_best,
    sample,
)
from isinglass.inference.algorithm import Progress
from isinglass.inference.chain.exact import Transition, best_labels, draw_labels, n_best_labels, posterior
from isinglass.inference.map.relaxations.reparameterisation import Reparameterisation
from isinglass.inference.sampling.algorithm import MonteCarlo
from isinglass.inference.sampling.gibbs import SCANS
from isinglass.inference.sampling.sites import site_model
from isinglass.learning.chain import SequenceObjective
from isinglass.losses import Likelihood, UnivariateLikelihood
from isinglass.models.chain.attributes import StateFeatures
from isinglass.models.chain.model import SequenceModel, Sequences
from isinglass.potentials import Potentials

Step = tuple[str, Callable[[], object]]


@dataclass(frozen=True)
class Warmth:
    """The result of `warmup`.

    Attributes
    ----------
    seconds : float
        The elapsed time.
    compiled, loaded : int
        The number of loops that were compiled, and of those that were in the cache before. A loop counts once for each
        types of its arguments.
    folders : tuple of Path
        The folders of the cache; empty if no folder is writable.
    """

    seconds: float
    compiled: int
    loaded: int
    folders: tuple[Path, ...]


def warmup(progress: Progress | None = None) -> Warmth:
    """Compile the usual inner loops in advance, so that later calls and later processes need not wait.

    Parameters
    ----------
    progress : callable (stage, fraction), optional
        Called before each step.

    Returns
    -------
    Warmth

    Examples
    --------
    >>> import isinglass as ig
    >>> done = ig.warmup()  # doctest: +SKIP
    >>> ig.warmup().compiled  # doctest: +SKIP
    0
    """
    from isinglass.runtime.compilation.jit import Count, cache_folders

    start, compiled, ready = time.perf_counter(), Count.compiled, Count.ready
    steps = list(_steps())
    with no_convergence_warnings():
        for i, (name, run) in enumerate(steps):
            if progress is not None:
                progress(name, i / len(steps))
            run()
    compiled, ready = Count.compiled - compiled, Count.ready - ready
    return Warmth(time.perf_counter() - start, compiled, ready - compiled, tuple(cache_folders()))


def _steps() -> Iterator[Step]:
    """Name every run; each compiles what those before it did not."""
    for what, p in _models().items():
        yield f"exact, {what}", lambda p=p: _exact(p)  # type: ignore[misc]
        for name, algorithm in _algorithms(p.graph).items():
            yield f"{name}, {what}", lambda p=p, a=algorithm: _taped(p, a)  # type: ignore[misc]
        for name, algorithm in _samplers(p).items():
            yield f"{name}, {what}", lambda p=p, a=algorithm: _sampled(p, a)  # type: ignore[misc]
        for algorithm in (BeliefPropagation(iterations=2), TreeReweighted(iterations=2)):
            yield f"max-product {algorithm.name}, {what}", lambda p=p, a=algorithm: map_assignment(p, a)  # type: ignore[misc]
    yield "exact, large tables", _large_tables
    yield "most probable assignments", _solve
    yield "Gaussian fields", _gaussian
    yield "sequences", _sequences
    for labels in (2, 3):
        yield f"GridCRF, {labels} labels", lambda labels=labels: _fit_grids(labels)  # type: ignore[misc]
        yield f"GraphCRF, {labels} labels", lambda labels=labels: _fit_graphs(labels)  # type: ignore[misc]
    yield "ChainCRF", _fit_sequences


def _large_tables() -> None:
    """Ask exact inference on grids whose tables have more than some thousand entries, linear and in logarithms."""
    rng = np.random.default_rng(0)
    for scale in (0.5, 2000.0):
        _exact(_random(grid_graph(13, 13, 2), rng, scale))


def _solve() -> None:
    """Make every kind of step of the solvers, on a pairwise model and on one with larger factors."""
    models, rng = _models(), np.random.default_rng(0)
    for p in (models["binary grid"], models["mixed shapes"]):
        model = Reparameterisation(p)
        model.sweep()
        model.bound()
        x = model.decode()
        model.local.climb(x)
        model.local.anneal(x, 1.0, rng)
        model.local.perturb(x, 2, 2, 1.0, rng)
        model.local.forest(x, rng)


def _gaussian() -> None:
    """Factorise a small precision matrix, invert on its pattern, and draw from it."""
    field = GaussianField(2.0 * np.eye(3))
    field.variances()
    field.sample(1, random_state=0)


def _sequences() -> None:
    """Train a chain on numbers and on indicators, linear and in logarithms, and ask it for labels."""
    from scipy.sparse import csr_array

    offsets = np.array([0, 3])
    table = Transition(np.zeros((2, 2)))
    for X in (np.eye(3), 0.5 * np.eye(3), 3000.0 * np.eye(3)):
        features = StateFeatures.all_pairs(3, 2)
        model = SequenceModel(features, False, np.zeros((3, 3), np.bool_))
        data = Sequences(features.compiled(csr_array(X)), offsets)
        for loss, last in ((Likelihood(), 1), (Likelihood(), -1), (UnivariateLikelihood(), -1)):
            SequenceObjective(model, data, np.array([0, 1, last]), loss)(np.arange(float(model.size)) / 10)
    found = posterior(np.zeros((3, 8)), offsets, table)
    draw_labels(found, np.random.default_rng(0))
    best_labels(np.zeros((3, 8)), offsets, table)
    n_best_labels(np.zeros((3, 8)), table, 2)


def _fit_grids(labels: int) -> None:
    """Train on images, with the default options and as the README does, and predict."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(8, 8, 9, 2)), rng.integers(0, labels, (8, 8, 9))
    Y[0, 0, 0] = -1  # not labelled
    for crf in (GridCRF(max_iter=2), GridCRF(iterations=2, loss="ucl", max_iter=2)):
        crf.fit(X, Y).predict(X[:1])
        crf.predict_marginals(X[:2])
        crf.score(X, Y)


def _fit_graphs(labels: int) -> None:
    """Train on rings and on chains of nodes, and predict."""
    rng = np.random.default_rng(0)
    for edges in ([(0, 1), (1, 2), (2, 3), (3, 0)], [(0, 1), (1, 2), (2, 3)]):
        X = [(rng.normal(size=(4, 2)), np.array(edges)) for _ in range(4)]
        crf = GraphCRF(max_iter=2).fit(X, [rng.integers(0, labels, 4) for _ in X])
        crf.predict(X)
        crf.predict_marginals(X)


def _fit_sequences() -> None:
    """Train on tokens with attributes by name, in dicts, in lists and with numbers, and predict."""
    words, Y = [["a", "b", "a"], ["b", "c"]], [["A", "B", "A"], ["B", "A"]]
    kinds: list[Callable[[str], object]] = [lambda w: {"w": w}, lambda w: [w, "x"], lambda w: {"w": w, "x": 0.5}]
    for token in kinds:
        X = [[token(word) for word in sequence] for sequence in words]
        crf = ChainCRF(max_iter=2).fit(X, Y)
        crf.predict(X)
        crf.predict_marginals(X)
        crf.predict_n_best(X, 2)


def _models() -> dict[str, Potentials]:
    """Return grids (own tables, one table, three states, values that underflow), a chain, a ring, mixed shapes."""
    rng = np.random.default_rng(0)
    grid, mixed = grid_graph(3, 3, 2), FactorGraph([2, 3, 2, 6], [(0,), (0, 1, 2), (1, 2), (2, 3), (3, 0)])
    return {
        "binary grid": _random(grid, rng),
        "binary grid with one table": Potentials.from_groups(grid, [np.zeros((9, 2)), np.eye(2)[None]]),
        "binary ring": _random(FactorGraph([2] * 3, [(0, 1), (1, 2), (2, 0)]), rng),
        "logarithms": _random(grid, rng, 2000.0),
        "binary chain": _random(chain_graph(3, 2), rng),
        "three states": _random(grid_graph(2, 2, 3), rng),
        "mixed shapes": _random(mixed, rng),
    }


def _random(graph: FactorGraph, rng: np.random.Generator, scale: float = 0.5) -> Potentials:
    return Potentials.from_groups(graph, [rng.normal(0, scale, (len(g), *g.shape)) for g in graph.groups])


def _algorithms(graph: FactorGraph) -> dict[str, Algorithm]:
    """Return the iterative algorithms with every schedule that fits the graph."""
    schedules = ["flooding", "sequential", "residual", *(["tree"] if graph.is_forest else [])]
    if grid_shape(graph) is not None:
        schedules.append("grid")
    named: dict[str, Algorithm] = {f"bp {s}": BeliefPropagation(iterations=2, schedule=s) for s in schedules}
    damped = BeliefPropagation(iterations=2, damping=0.1)
    more: dict[str, Algorithm] = {"trw": TreeReweighted(iterations=2), "mf": MeanField(iterations=2)}
    convex: dict[str, Algorithm] = {
        "convex": ConvexFreeEnergy(),
        "convex iterative": ConvexFreeEnergy(system="iterative"),
    }
    return named | more | convex | {"bp damped": damped}


def _samplers(potentials: Potentials) -> dict[str, Algorithm]:
    """Return the samplers that serve a model."""
    named: dict[str, Algorithm] = {f"gibbs {scan}": Gibbs(8, 4, scan=scan) for scan in SCANS}
    others: list[type[MonteCarlo]] = [TreeGibbs, ParallelTempering]
    if site_model(potentials).linear.all():
        others += [SwendsenWang, Wolff]
    return named | {cls.name: cls(8, 4) for cls in others} | {"ais": AnnealedImportance(temperatures=2, chains=4)}


def _sampled(potentials: Potentials, algorithm: Algorithm) -> None:
    infer(potentials, algorithm)


def _taped(potentials: Potentials, algorithm: Algorithm) -> None:
    infer(potentials, algorithm)
    taped = infer(potentials, algorithm, tape=True)
    taped.backward(log_z=1.0)
    taped.backward(variables=taped.variables.flat)  # on grids by other loops


def _exact(potentials: Potentials) -> None:
    """Ask exact inference everything that it answers."""
    infer(potentials, Exact(), tape=True).backward(log_z=1.0)
    infer(potentials, Exact()).joint([0, potentials.graph.n_variables - 1])
    n_best(potentials, 2, Exact())
    sample(potentials, 2, Exact(), random_state=0)
