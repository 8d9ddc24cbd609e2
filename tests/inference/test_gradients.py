"""The backward pass of message passing: against complex steps and Richardson-extrapolated central differences."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig
from checks import each_close, each_equal, refuses, richardson
from checks import quiet as run
from isinglass.graph.message_graph import edges_of
from isinglass.inference.message_passing.algorithms.base import MessagePassing
from isinglass.testing import random_potentials

GRAPHS = {
    "grid": ig.grid_graph(3, 3, 2),
    "mixed": ig.FactorGraph([2, 3, 2, 4], [(0, 1, 2), (2, 3), (0,), (3,), (1, 3), (0, 3), ()]),
    "repeated": ig.FactorGraph([2, 3, 2, 2, 3], [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3, 4), (2,), (0, 1)]),
    "tree": ig.FactorGraph([3, 2, 2, 2], [(0, 1, 2), (2, 3), (3,)]),
}
SCHEDULES = ["flooding", "sequential", "residual"]


@dataclass(frozen=True)
class Fractional(MessagePassing):
    """Random counting numbers."""

    name = "test-fractional"
    facts = ig.BeliefPropagation.facts
    shift: float = 0.0

    def counting(self, potentials):
        c = np.random.default_rng(3).uniform(0.4, 1.5, len(edges_of(potentials.graph).size))
        c[0] += self.shift
        return c


class Loss:
    """A random linear function of log Z, variable beliefs and factor beliefs."""

    def __init__(self, graph, rng):
        self.z = rng.normal()
        self.variables = [rng.normal(size=k) for k in graph.cards]
        self.factors = [rng.normal(size=tuple(graph.cards[list(s)])) for s in graph.scopes]

    def __call__(self, r):
        parts = zip([*self.variables, *self.factors], [*r.variables, *r.factors], strict=True)
        return self.z * r.log_z + sum((a * b).sum() for a, b in parts)


def moved(p, directions, step):
    return ig.Potentials(p.graph, [t + step * v for t, v in zip(p.log_tables, directions, strict=True)], p.evidence)


def along(gradients, directions, p):
    """The derivative along a direction, where hard zeros do not move."""
    parts = zip(gradients.log_tables, directions, p.log_tables, strict=True)
    return sum(np.where(t > -np.inf, g * v, 0).sum() for g, v, t in parts)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("scale", [50.0, 300.0])
def test_log_potentials_at_extreme_scales(scale, schedule):
    """With 30 % hard zeros, where linear values underflow: against complex steps."""
    for name in ("grid", "mixed"):
        graph = GRAPHS[name]
        for seed in range(4):
            rng = np.random.default_rng([seed, 11])
            p = random_potentials(graph, rng, scale, 0.3)
            algorithm = ig.BeliefPropagation(iterations=3, schedule=schedule)
            loss = Loss(graph, rng)
            mine = run(p, algorithm, tape=True).backward(loss.z, loss.variables, loss.factors)
            directions = [rng.normal(size=t.shape) for t in p.log_tables]
            expected = loss(run(moved(p, directions, 1e-20j), algorithm)).imag / 1e-20
            assert_allclose(along(mine, directions, p), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("schedule", ["flooding", "sequential"])
def test_damping_counting_numbers_and_initial_messages(schedule):
    graph = GRAPHS["mixed"]
    rng = np.random.default_rng(5)
    p = random_potentials(graph, rng, 1.0)
    loss = Loss(graph, rng)
    start = run(p, ig.BeliefPropagation(iterations=2))

    def value(damping=0.2, shift=0.0, init=start):
        return loss(run(p, Fractional(iterations=3, schedule=schedule, damping=damping, shift=shift), init=init))

    taped = run(p, Fractional(iterations=3, schedule=schedule, damping=0.2), tape=True, init=start)
    mine = taped.backward(loss.z, loss.variables, loss.factors)
    assert_allclose(mine.damping, richardson(lambda s: value(damping=0.2 + s)), rtol=1e-7)
    first_link = int(edges_of(graph).link_factor[0])
    assert_allclose(mine.counting_numbers[first_link], richardson(lambda s: value(shift=s)), rtol=1e-7)
    direction = rng.normal(size=len(start.messages))

    def started(step):
        from dataclasses import replace

        return replace(start, messages_of=lambda: start.messages + step * direction)

    expected = richardson(lambda s: value(init=started(s)))
    assert_allclose((mine.initial_messages * direction).sum(), expected, rtol=1e-7)


@pytest.mark.long
@pytest.mark.parametrize("name", GRAPHS)
def test_structured_mean_field(name):
    graph = GRAPHS[name]
    for seed in range(4):
        rng = np.random.default_rng([seed, 17])
        witness = rng.integers(0, graph.cards)
        p = random_potentials(graph, rng, 1.0, 0.3 * (seed > 1), witness, {1: int(witness[1])} if seed == 3 else {})
        algorithm = ig.StructuredMeanField(iterations=seed + 1)
        loss = Loss(graph, rng)
        mine = run(p, algorithm, tape=True).backward(loss.z, loss.variables, loss.factors)
        directions = [rng.normal(size=t.shape) for t in p.log_tables]
        value = along(mine, directions, p)
        complex_step = loss(run(moved(p, directions, 1e-20j), algorithm)).imag / 1e-20
        assert_allclose(value, complex_step, rtol=1e-9, atol=1e-11)
        differences = richardson(lambda s, q=p, v=directions, a=algorithm, f=loss: f(run(moved(q, v, s), a)))
        assert_allclose(value, differences, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("algorithm", ["exact", "brute"])
@pytest.mark.parametrize("name", GRAPHS)
def test_exact_gradients_by_perturbation(name, algorithm):
    graph = GRAPHS[name]
    for seed in range(3):
        rng = np.random.default_rng([seed, 13])
        witness = rng.integers(0, graph.cards)
        p = random_potentials(graph, rng, 1.0, 0.2 * seed, witness, {1: int(witness[1])} if seed else {})
        loss = Loss(graph, rng)
        mine = run(p, algorithm, tape=True).backward(loss.z, loss.variables, loss.factors)
        directions = [rng.normal(size=t.shape) for t in p.log_tables]
        differences = richardson(lambda s, q=p, v=directions, f=loss: f(run(moved(q, v, s), "brute")))
        assert_allclose(along(mine, directions, p), differences, rtol=1e-7, atol=1e-8)


def test_at_convergence_the_derivative_of_log_z_is_the_beliefs():
    p = random_potentials(ig.grid_graph(4, 4, 2), np.random.default_rng(1), 0.5)
    r = ig.infer(p, ig.BeliefPropagation(tol=1e-13), tape=True)
    each_close(r.backward(log_z=1.0).log_tables, r.factors, atol=1e-9)


def test_the_tape_can_be_used_twice_and_is_needed():
    p = random_potentials(ig.grid_graph(2, 2, 2), np.random.default_rng(1))
    for schedule in ("flooding", "sequential"):
        r = run(p, ig.BeliefPropagation(iterations=3, schedule=schedule), tape=True)
        one, two = r.backward(log_z=1.0), r.backward(log_z=1.0)
        each_equal(one.groups, two.groups)
    refuses("tape: expected True", run(p, "bp").backward, log_z=1.0)
    refuses(r"factors\[0\]: expected shape", r.backward, factors=[np.zeros(3)] * p.graph.n_factors)
    refuses("variables: expected 8 numbers", r.backward, variables=np.zeros(3))


CASES, CHUNK, DIRECTIONS = 200, 40, 2
STEPS = (1e-3, -1e-3, 5e-4, -5e-4)  # those of `richardson`
ALL_SCHEDULES = ["flooding", "sequential", "residual", "tree", "grid"]


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
@pytest.mark.parametrize("schedule", ALL_SCHEDULES)
def test_message_passing(schedule, chunk):
    """A finite step may change the sequence of the residual schedule; the imaginary one cannot.

    All finite steps are one batch.
    """
    differences = False if schedule == "residual" else "batch"
    for seed, rng in each(chunk, ALL_SCHEDULES.index(schedule)):
        graph = {"tree": forest, "grid": grid}.get(schedule, any_graph)(rng)
        p = model(graph, rng, seed)
        assert error(p, message_passing(schedule, graph, rng, seed), rng, differences) < 1e-7, seed


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CASES // CHUNK))
def test_naive_mean_field(chunk):
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
        options = {"iterations": int(rng.integers(1, 4)), "schedule": ALL_SCHEDULES[seed % 3]}
        assert error(p, ig.MaxProduct(damping=float(rng.choice([0.0, 0.3])), **options), rng, False) < 1e-9, seed


def test_mean_field_without_a_sweep_and_with_evidence():
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.zeros((2, 2))], {0: 1})
    assert np.isfinite(run(p, ig.MeanField(iterations=0)).log_z)


def test_a_fixed_point_does_not_depend_on_its_first_messages():
    """In a batch, the derivatives by the first messages are 0 where the run has converged, and there alone."""
    graph, rng = ig.grid_graph(3, 3, 2), np.random.default_rng(0)
    calm, wild = (random_potentials(graph, rng, scale) for scale in (0.1, 3.0))
    limits = {"tol": 1e-9, "max_iter": 15}
    bars = rng.normal(size=18)
    alone = [run(p, "bp", tape=True, **limits).backward(variables=bars).initial_messages for p in (calm, wild)]
    both = run(ig.potentials_union([calm, wild]), "bp", tape=True, **limits)
    assert both.info.converged_share == 0.5
    assert not alone[0].any()
    assert alone[1].any()
    found = both.backward(variables=np.tile(bars, 2)).initial_messages
    assert_allclose(np.sort(found), np.sort(np.concatenate(alone)), rtol=1e-10)
