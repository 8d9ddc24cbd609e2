"""The backward pass of message passing: against complex steps and Richardson-extrapolated central differences."""

from dataclasses import dataclass

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


def test_shared_tables_add_up_and_components_stay_apart():
    rng = np.random.default_rng(0)
    p = random_potentials(ig.grid_graph(2, 3, 2), rng)
    many = p.repeat(3)
    loss = Loss(many.graph, rng)
    algorithm = ig.BeliefPropagation(iterations=4)
    together = run(many, algorithm, tape=True).backward([1.0, 2.0, 3.0], loss.variables, loss.factors)
    total = [np.zeros_like(t) for t in p.groups]
    for c in range(3):
        variables = loss.variables[6 * c : 6 * (c + 1)]
        factors = loss.factors[p.graph.n_factors * c : p.graph.n_factors * (c + 1)]
        one = run(p, algorithm, tape=True).backward(c + 1.0, variables, factors)
        total = [t + g for t, g in zip(total, one.groups, strict=True)]
    each_close(together.groups, total, rtol=1e-12, atol=1e-13)


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


def test_on_a_forest_all_rules_agree():
    p = random_potentials(GRAPHS["tree"], np.random.default_rng(3))
    loss = Loss(p.graph, np.random.default_rng(4))
    results = [run(p, a, tape=True).backward(loss.z, loss.variables, loss.factors) for a in ("exact", "bp", "brute")]
    for other in results[1:]:
        each_close(results[0].groups, other.groups, atol=1e-9)


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
