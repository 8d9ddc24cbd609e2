"""The message-passing engine: reference values, variants of its loops, schedules, bounds, batches, decoding."""

import numpy as np
import pytest
from benchmarks.problems import problem
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from checks import quiet
from isinglass.errors import no_convergence_warnings
from isinglass.graph.grids import grid_shape
from isinglass.graph.message_graph import edges_of
from isinglass.graph.schedules import grid_schedule, tree_schedule
from isinglass.inference.message_passing import engine
from isinglass.testing import random_potentials


@pytest.mark.parametrize(("name", "log_z"), [("ising30", 1126.4002134), ("ising100", 12622.5160095)])
@pytest.mark.parametrize("schedule", ["flooding", "sequential", "grid", "residual"])
def test_bethe_reference_values(name, log_z, schedule):
    r = ig.infer(problem(name), ig.BeliefPropagation(schedule=schedule))
    assert r.info.converged
    assert_allclose(r.log_z, log_z, atol=1e-6)


LARGE_GRID = pytest.param("ising300", 113427.1542293, marks=pytest.mark.long)


@pytest.mark.parametrize(("name", "log_z"), [("potts100_k5", 20148.4327379), LARGE_GRID])
def test_bethe_reference_values_of_larger_models(name, log_z):
    assert_allclose(ig.infer(problem(name), "bp").log_z, log_z, atol=1e-6)


@pytest.mark.parametrize("card", [2, 3, 5])
@pytest.mark.parametrize("zeros", [0.0, 0.3])
@pytest.mark.parametrize("schedule", ["flooding", "sequential"])
def test_loops_for_a_constant_number_of_states_have_the_bits_of_the_others(schedule, zeros, card, monkeypatch):
    rng = np.random.default_rng(card)
    scopes = [(i, (i + 1) % 6) for i in range(6)] + [(0,), (3,)] + ([(1, 3, 5)] if schedule == "sequential" else [])
    p = random_potentials(ig.FactorGraph([card] * 6, scopes), rng, 1.0, zeros)
    bars = rng.normal(size=6 * card)

    def found():
        r = quiet(p, ig.BeliefPropagation(iterations=4, schedule=schedule), tape=True)
        return [r.component_log_z, r.variables.flat, *r.backward(log_z=1.0, variables=bars).groups]

    general = found()
    monkeypatch.setattr(engine, "LARGE", 0)
    for one, two in zip(found(), general, strict=True):
        assert_array_equal(one, two)


def test_how_runs_end():
    p = random_potentials(ig.complete_graph(8, 2), np.random.default_rng(1), 3.0)
    with pytest.warns(ig.ConvergenceWarning, match="raise max_iter, add damping"):
        r = ig.infer(p, ig.TreeReweighted(max_iter=2))
    assert not r.info.converged
    assert r.info.bound is None
    assert r.info.iterations == 2
    p = random_potentials(ig.chain_graph(6, 2), np.random.default_rng(1))
    assert quiet(p, ig.BeliefPropagation(iterations=3)).info.iterations == 3
    assert quiet(p, ig.BeliefPropagation(iterations=0)).info.iterations == 0
    assert ig.infer(p, "bp").info.iterations == 1  # the tree schedule


def test_a_warm_start_is_nearly_done():
    p = random_potentials(ig.grid_graph(6, 6, 2), np.random.default_rng(1), 0.5)
    first = ig.infer(p, "bp")
    again = ig.infer(p, "bp", init=first)
    assert again.info.iterations < first.info.iterations
    assert_allclose(again.log_z, first.log_z, rtol=1e-9)
    with pytest.raises(ig.InputError, match="init: expected a result on this graph"):
        ig.infer(random_potentials(ig.grid_graph(2, 2, 2), np.random.default_rng(1)), "bp", init=first)


def test_schedules_of_trees_and_grids():
    tree = ig.tree_graph(30, 2, random_state=3)
    order = tree_schedule(tree)
    assert sorted(order.tolist()) == sorted([*range(29)] * 2)
    graph = ig.grid_graph(3, 4, 2)
    assert grid_shape(graph) == (3, 4)
    assert grid_shape(graph.repeat(5)) == (3, 4)
    assert grid_shape(ig.random_graph(12, 17, 2, random_state=0)) is None
    assert grid_shape(ig.chain_graph(4, 2)) in ((1, 4), (4, 1))
    once = grid_schedule(graph)
    assert_array_equal(once, once[::-1])
    assert sorted(once.tolist()) == sorted([*range(17)] * 2)
    pairs = edges_of(graph).slot_variable.reshape(-1, 2)[once]
    assert pairs[0].tolist() == [0, 4]  # the first vertical factor, from the upper left


def test_one_grid_sweep_carries_information_across():
    p = ig.Potentials.from_groups(ig.grid_graph(4, 4, 2), [np.zeros((1, 2)), np.eye(2)[None]])
    seen = quiet(p.with_evidence({0: 1}), ig.BeliefPropagation(iterations=1, schedule="grid"))
    assert seen.variable(15)[1] > 0.5 + 1e-6


def test_decoding_by_max_product():
    # All-equal or all-different chains have two best assignments; a decoder by single variables could mix them.
    for table in (np.eye(2), 1 - np.eye(2)):
        p = ig.Potentials.from_groups(ig.chain_graph(7, 2), [np.zeros((1, 2)), table[None]])
        m = ig.map_assignment(p, "bp")
        assert m.optimal
        assert m.score == 6
    p = random_potentials(ig.grid_graph(5, 5, 2), np.random.default_rng(0))
    m = ig.map_assignment(p, ig.BeliefPropagation(damping=0.2))
    assert not m.optimal
    assert m.bound == np.inf
    assert m.score <= ig.map_assignment(p, "exact").score + 1e-9
    assert_allclose(m.score, p.log_score(m.states))


def test_relations_between_algorithms():
    p = random_potentials(ig.grid_graph(4, 4, 3), np.random.default_rng(0), 0.5)
    one, two = ig.infer(p, "bp"), ig.infer(p, "fbp")
    assert_allclose(one.log_z, two.log_z, rtol=1e-9)
    assert_allclose(one.variables.flat, two.variables.flat, atol=1e-9)
    p = problem("ising15")
    lower, exact, upper = (ig.infer(p, name) for name in ("mf", "exact", "trw"))
    assert (lower.info.bound, exact.info.bound, upper.info.bound) == ("lower", "exact", "upper")
    assert lower.log_z < exact.log_z < upper.log_z


def test_beliefs_at_a_fixed_point_are_locally_consistent():
    p = random_potentials(
        ig.FactorGraph([2, 3, 2, 2], [(0, 1), (1, 2, 3), (3, 0), (1,)]), np.random.default_rng(2), 0.7
    )
    for algorithm in (ig.BeliefPropagation(tol=1e-12), ig.TreeReweighted(tol=1e-12)):
        r = ig.infer(p, algorithm)
        for scope, belief in zip(p.graph.scopes, r.factors, strict=True):
            for axis, i in enumerate(scope):
                others = tuple(k for k in range(belief.ndim) if k != axis)
                assert_allclose(belief.sum(axis=others), r.variable(i), atol=1e-9)


@pytest.mark.parametrize("algorithm", [ig.BeliefPropagation(max_iter=3, tol=1e-4), ig.MeanField(max_iter=3, tol=1e-4)])
def test_the_share_of_components_that_converged_is_told(algorithm):
    graph = ig.grid_graph(4, 4, 2)
    rng = np.random.default_rng(0)
    parts = [random_potentials(graph, rng, scale) for scale in (0.05, 3.0, 0.05)]
    with no_convergence_warnings():
        alone = [ig.infer(p, algorithm).info.converged_share for p in parts]
        together = ig.infer(ig.potentials_union(parts), algorithm).info
    assert alone == [1.0, 0.0, 1.0]
    assert together.converged_share == pytest.approx(2 / 3)
    assert not together.converged
