"""Max-product: max-marginals, derivatives, and proofs of optimality, by enumeration."""

from dataclasses import dataclass
from itertools import chain, combinations, product

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_gradients import GRAPHS, Loss, along, moved

import isinglass as ig
from checks import quiet as run
from checks import richardson
from isinglass.graph.message_graph import edges_of
from isinglass.inference.message_passing.algorithms.decode import agrees
from isinglass.inference.message_passing.algorithms.max_product import MaxProduct
from isinglass.testing import random_potentials


def assignments(p, fixed):
    """Return all assignments in which some variables have given states."""
    return np.array(list(product(*(fixed.get(i, range(card)) for i, card in enumerate(p.graph.cards)))))


def max_marginal(p, scope):
    """By enumeration, scaled to sum to one."""
    table = np.full(tuple(p.graph.cards[list(scope)]), -np.inf)
    states = assignments(p, {i: [s] for i, s in p.evidence.items()})
    np.maximum.at(table, tuple(states[:, list(scope)].T), p.log_score(states))
    table = np.exp(table - table.max())
    return table / table.sum()


@pytest.mark.parametrize("schedule", ["auto", "flooding", "sequential", "residual"])
def test_max_marginals_are_exact_on_forests(schedule):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        graph = GRAPHS["tree"] if seed % 2 else ig.tree_graph(6, 3, random_state=seed)
        witness = rng.integers(0, graph.cards)
        p = random_potentials(graph, rng, 2.0, 0.2, witness, {1: int(witness[1])} if seed % 3 == 0 else {})
        r = ig.infer(p, ig.MaxProduct(schedule=schedule, tol=1e-13))
        assert r.info.converged
        assert r.info.bound is None
        assert_allclose(r.log_z, ig.map_assignment(p, "brute").score, rtol=1e-12, atol=1e-12)
        for i in range(graph.n_variables):
            assert_allclose(r.variable(i), max_marginal(p, (i,)), atol=1e-12)
        for a, scope in enumerate(graph.scopes):
            assert_allclose(r.factor(a), max_marginal(p, scope), atol=1e-12)


@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize("schedule", ["flooding", "sequential", "residual"])
@pytest.mark.parametrize("name", ["grid", "mixed", "tree"])  # messages that circle in parallel factors meet ties
def test_derivatives(name, schedule, damping):
    graph = GRAPHS[name]
    for seed in range(4):
        rng = np.random.default_rng([seed, 37])
        witness = rng.integers(0, graph.cards)
        p = random_potentials(graph, rng, 1.0, 0.2 * (seed > 1), witness, {1: int(witness[1])} if seed == 3 else {})
        algorithm = ig.MaxProduct(iterations=seed + 1, schedule=schedule, damping=damping)
        loss = Loss(graph, rng)
        mine = run(p, algorithm, tape=True).backward(loss.z, loss.variables, loss.factors)
        directions = [rng.normal(size=t.shape) for t in p.log_tables]
        expected = loss(run(moved(p, directions, 1e-20j), algorithm)).imag / 1e-20
        assert_allclose(along(mine, directions, p), expected, rtol=1e-11, atol=1e-12)


@dataclass(frozen=True)
class FractionalMax(MaxProduct):
    """Max-product with random counting numbers."""

    name = "test-fractional-max"
    powers = True
    shift: float = 0.0

    def counting(self, potentials):
        c = np.random.default_rng(3).uniform(0.4, 1.5, len(edges_of(potentials.graph).size))
        c[0] += self.shift
        return c


def test_derivatives_by_damping_and_counting_numbers():
    graph = GRAPHS["mixed"]
    rng = np.random.default_rng(5)
    p = random_potentials(graph, rng)
    loss = Loss(graph, rng)

    def value(damping=0.2, shift=0.0):
        return loss(run(p, FractionalMax(iterations=3, damping=damping, shift=shift)))

    mine = run(p, FractionalMax(iterations=3, damping=0.2), tape=True).backward(loss.z, loss.variables, loss.factors)
    assert_allclose(mine.damping, richardson(lambda s: value(damping=0.2 + s), 1e-4), rtol=1e-7)
    first = int(edges_of(graph).link_factor[0])
    assert_allclose(mine.counting_numbers[first], richardson(lambda s: value(shift=s), 1e-4), rtol=1e-7)


def test_the_derivative_of_the_score_is_the_indicator_of_the_best_assignment():
    p = random_potentials(GRAPHS["tree"], np.random.default_rng(3))
    states = ig.map_assignment(p, "max-product").states
    gradient = ig.infer(p, "max-product", tape=True).backward(log_z=1.0)
    for scope, bar in zip(p.graph.scopes, gradient.log_tables, strict=True):
        expected = np.zeros(bar.shape)
        expected[tuple(states[list(scope)])] = 1
        assert_allclose(bar, expected, atol=1e-13)


def test_a_decoded_assignment_that_is_impossible_does_not_spoil_the_derivative():
    """Odd cycles of hard inequalities and the like: the identity needs a possible assignment, and finds one."""
    rng = np.random.default_rng(0)
    graph = ig.random_graph(6, 9, 3, random_state=1)
    for _ in range(30):
        p = random_potentials(graph, rng, 1.0, 0.5)
        algorithm = ig.MaxProduct(iterations=1)
        directions = [rng.normal(size=t.shape) for t in p.log_tables]
        mine = run(p, algorithm, tape=True).backward(log_z=1.0)
        expected = run(moved(p, directions, 1e-20j), algorithm).log_z.imag / 1e-20
        assert_allclose(along(mine, directions, p), expected, rtol=1e-10, atol=1e-12)


def small_models(n=120):
    for seed in range(n):
        rng = np.random.default_rng([seed, 41])
        if seed % 3 == 0:
            graph = ig.FactorGraph([2, 3, 2, 2], [(0, 1), (1, 2), (2, 3), (3, 0), (0, 1, 2), (1,), (3,)])
        else:
            variables = int(rng.integers(4, 7))
            graph = ig.random_graph(
                variables, int(rng.integers(variables, variables * (variables - 1) // 2 + 1)), 2, rng
            )
        yield random_potentials(graph, rng, float(rng.choice([0.5, 1.5])))


def has_one_cycle_at_most(graph, chosen):
    """Whether each connected part of the variables and the factors that touch them has at most one cycle."""
    g = nx.Graph()
    g.add_nodes_from(chosen)
    for a, scope in enumerate(graph.scopes):
        if len(scope) >= 2:
            g.add_edges_from((("a", a), i) for i in scope if i in chosen)
    return all(g.subgraph(part).number_of_edges() <= len(part) for part in nx.connected_components(g))


def best_change(p, states, chosen):
    """The best score over all states of the chosen variables."""
    return p.log_score(assignments(p, {i: [s] for i, s in enumerate(states) if i not in chosen})).max()


@pytest.mark.long
@pytest.mark.parametrize("name", ["bp", "max-product"])
def test_a_local_optimum_is_one(name):
    """No change on variables that induce trees and single loops helps; on some graphs, a larger change does."""
    proved = beaten = 0
    for p in small_models():
        m = ig.map_assignment(p, name, damping=0.2)
        assert not (m.optimal and not m.locally_optimal)
        if not m.locally_optimal:
            continue
        proved += 1
        n = p.graph.n_variables
        for chosen in chain.from_iterable(combinations(range(n), k) for k in range(1, n + 1)):
            if has_one_cycle_at_most(p.graph, set(chosen)):
                assert best_change(p, m.states, set(chosen)) <= m.score + 1e-7
        beaten += m.score < ig.map_assignment(p, "exact").score - 1e-7
    assert proved > 60
    assert beaten


@pytest.mark.long
def test_agreement_of_tree_reweighted_messages_proves_a_global_optimum():
    proved = 0
    for p in small_models():
        m = ig.map_assignment(p, "trw")
        if m.optimal:
            proved += 1
            assert m.locally_optimal
            assert m.bound == m.score
            assert_allclose(m.score, ig.map_assignment(p, "exact").score, atol=1e-7)
    assert proved > 40


def test_nothing_is_proved_by_ties_given_weights_or_a_run_that_stopped_early():
    tied = ig.Potentials.from_groups(ig.grid_graph(3, 3, 2), [np.zeros((1, 2)), np.eye(2)[None]])
    for name in ("bp", "trw", "max-product"):
        m = ig.map_assignment(tied, name)
        assert not m.optimal
        assert not m.locally_optimal
        assert m.bound == np.inf
    p = random_potentials(ig.grid_graph(3, 3, 2), np.random.default_rng(0), 1.0)
    assert ig.map_assignment(p, "trw").optimal
    assert not ig.map_assignment(p, "trw", weights=0.6).optimal
    assert not ig.map_assignment(p, "trw", iterations=1).optimal
    assert not ig.map_assignment(p, "fbp", counting_numbers=0.9).locally_optimal


def test_agreement():
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.zeros((2, 2))])
    unique, joint = np.array([0.7, 0.3, 0.4, 0.6]), np.array([0.2, 0.5, 0.2, 0.1])
    assert agrees(p, unique, joint, np.array([0, 1]), 0.0)
    assert not agrees(p, unique, joint, np.array([0, 0]), 0.0)
    assert not agrees(p, unique, joint[::-1], np.array([0, 1]), 0.0)
    assert not agrees(p, np.array([0.5, 0.5, 0.4, 0.6]), joint, np.array([0, 1]), 0.0)


def test_exact_assignments_are_local_optima_too():
    p = random_potentials(ig.grid_graph(2, 2, 2), np.random.default_rng(0))
    best, second = ig.n_best(p, 2)
    assert best.optimal
    assert best.locally_optimal
    assert not second.locally_optimal


def test_ties_and_imaginary_parts():
    p = random_potentials(GRAPHS["grid"], np.random.default_rng(0))
    q = moved(p, [np.arange(t.size).reshape(t.shape) for t in p.log_tables], 1e-20j)
    beliefs = ig.infer(q, ig.MaxProduct(iterations=1)).variables.flat.reshape(-1, 2)
    assert_allclose(beliefs.imag.sum(axis=1) / 1e-20, 0, atol=1e-12)
    # Whatever the choice: with one more on both entries of a column, b_1(0) = e / (1 + e), whose derivative is 1/4.
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.zeros((2, 2))])
    bar = ig.infer(p, ig.MaxProduct(iterations=1), tape=True).backward(variables=[[0.0, 0.0], [1.0, 0.0]])
    assert_allclose(bar.log_tables[0][:, 0].sum(), 0.25, atol=1e-12)
