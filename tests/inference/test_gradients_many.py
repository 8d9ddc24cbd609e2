"""Two hundred random models for each schedule: the whole gradient, along random directions, beside differences.

Mixed cardinalities, arities up to four, repeated scopes, hard zeros, evidence; fixed numbers of iterations; random
derivatives by log Z, variable beliefs and factor beliefs. An error is measured against the norm of the gradient: along
a standard normal direction a gradient g moves by about |g|.
"""

from dataclasses import replace

import numpy as np
import pytest
from test_gradients import Loss, moved

import isinglass as ig
from checks import quiet as run
from checks import richardson
from isinglass.testing import random_potentials

CASES, CHUNK, DIRECTIONS = 200, 40, 2
STEPS = (1e-3, -1e-3, 5e-4, -5e-4)  # those of `richardson`
SCHEDULES = ["flooding", "sequential", "residual", "tree", "grid"]


def any_graph(rng, distinct=False):
    """Loops, repeated scopes (unless `distinct`), arities up to four."""
    n = int(rng.integers(3, 6))
    scopes = [tuple(rng.permutation(n)[: rng.choice([1, 2, 2, 2, 3, min(4, n)])].tolist()) for _ in range(n + 2)]
    if distinct:
        scopes = [s for k, s in enumerate(scopes) if all(len(set(s) & set(t)) < 2 for t in scopes[:k])]
    return ig.FactorGraph(rng.integers(2, 5, n), scopes)


def forest(rng):
    n = int(rng.integers(3, 8))
    scopes, used = [(int(rng.integers(n)),)], 1
    while used < n:
        new = int(rng.integers(1, min(3, n - used) + 1))
        scopes.append(tuple(rng.permutation([int(rng.integers(used)), *range(used, used + new)]).tolist()))
        used += new
    return ig.FactorGraph(rng.integers(2, 5, n), scopes)


def grid(rng):
    height, width = rng.integers(2, 4, 2).tolist()
    return ig.grid_graph(height, width, rng.integers(2, 4, height * width))


def model(graph, rng, seed):
    witness = rng.integers(0, graph.cards)
    evidence = {0: int(witness[0])} if seed % 4 == 3 else {}
    zeros = 0.2 if seed % 3 == 1 else 0.0
    return random_potentials(graph, rng, float(rng.choice([0.5, 1.0])), zeros, witness, evidence)


def message_passing(schedule, graph, rng, seed):
    """Belief propagation, fractional and tree-reweighted in turn."""
    options = {"iterations": int(rng.integers(1, 5)), "schedule": schedule, "damping": float(rng.choice([0.0, 0.3]))}
    if seed % 3 == 0:
        return ig.BeliefPropagation(**options)
    if seed % 3 == 1:
        return ig.FractionalBeliefPropagation(counting_numbers=rng.uniform(0.5, 1.3, graph.n_factors), **options)
    return ig.TreeReweighted(**options)


def error(p, algorithm, rng, differences, **options):
    """The largest error of the gradient along a direction, relative to its norm."""
    loss = Loss(p.graph, rng)
    tables = run(p, algorithm, tape=True, **options).backward(loss.z, loss.variables, loss.factors).log_tables
    finite = np.concatenate([(t > -np.inf).ravel() for t in p.log_tables])
    gradient = np.where(finite, np.concatenate([g.ravel() for g in tables]), 0)
    directions = [[rng.normal(size=t.shape) for t in p.log_tables] for _ in range(DIRECTIONS)]
    if differences == "batch":
        known = together(p, algorithm, loss, directions)
        expected = [richardson(lambda s, k=k: known[k, s]) for k in range(DIRECTIONS)]
    elif differences:
        expected = [richardson(lambda s, v=v: loss(run(moved(p, v, s), algorithm, **options))) for v in directions]
    else:
        expected = [loss(run(moved(p, v, 1e-20j), algorithm)).imag / 1e-20 for v in directions]
    mine = [gradient @ np.concatenate([v.ravel() for v in direction]) for direction in directions]
    return max(abs(np.subtract(mine, expected))) / np.linalg.norm(gradient)


def together(p, algorithm, loss, directions):
    """Return the loss after all steps along all directions, by direction and step: one inference of a batch."""
    points = [(k, s) for k in range(len(directions)) for s in STEPS]
    graph, n = p.graph, len(points)
    groups, factors = [], []
    for group, tables in zip(graph.groups, p.groups, strict=True):
        stacked = [np.array([v[a] for a in group.factors]).reshape(tables.shape) for v in directions]
        groups.append(np.concatenate([tables + s * stacked[k] for k, s in points]))
        factors.append(np.concatenate([np.zeros(0), *(loss.factors[a].ravel() for a in group.factors)]))
    evidence = {i + c * graph.n_variables: state for i, state in p.evidence.items() for c in range(n)}
    if isinstance(algorithm, ig.FractionalBeliefPropagation):
        algorithm = replace(algorithm, counting_numbers=np.tile(algorithm.counting_numbers, n))
    r = run(ig.Potentials.from_groups(graph.repeat(n), groups, evidence=evidence), algorithm)
    values = loss.z * r.component_log_z.reshape(n, -1).sum(axis=1)
    values += r.variables.flat.reshape(n, -1) @ np.concatenate(loss.variables)
    for beliefs, bars in zip(r.factors.groups, factors, strict=True):
        values += beliefs.reshape(n, -1) @ bars
    return dict(zip(points, values.tolist(), strict=True))


def each(chunk, kind):
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        yield seed, np.random.default_rng([seed, kind])


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CASES // CHUNK))
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_message_passing(schedule, chunk):
    """A finite step may change the sequence of the residual schedule; the imaginary one cannot.

    All finite steps are one batch.
    """
    differences = False if schedule == "residual" else "batch"
    for seed, rng in each(chunk, SCHEDULES.index(schedule)):
        graph = {"tree": forest, "grid": grid}.get(schedule, any_graph)(rng)
        p = model(graph, rng, seed)
        assert error(p, message_passing(schedule, graph, rng, seed), rng, differences) < 1e-7, seed


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CASES // CHUNK))
def test_mean_field(chunk):
    for seed, rng in each(chunk, 10):
        p = model(any_graph(rng), rng, seed)
        start = run(p, ig.MeanField(iterations=1))  # with hard zeros from an assignment, which a finite step may change
        assert error(p, ig.MeanField(iterations=int(rng.integers(1, 5))), rng, True, init=start) < 1e-7, seed


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CASES // CHUNK))
def test_max_product(chunk):
    """By complex steps, and few iterations: messages that have gone around a loop meet ties."""
    for seed, rng in each(chunk, 11):
        p = model(any_graph(rng, distinct=True), rng, seed)
        options = {"iterations": int(rng.integers(1, 4)), "schedule": SCHEDULES[seed % 3]}
        assert error(p, ig.MaxProduct(damping=float(rng.choice([0.0, 0.3])), **options), rng, False) < 1e-9, seed


def test_mean_field_without_a_sweep_and_with_evidence():
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.zeros((2, 2))], {0: 1})
    assert np.isfinite(run(p, ig.MeanField(iterations=0)).log_z)
