"""Convex free energies: against a conic solver, on forests, at hard problems, and their derivatives."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig
from checks import each_close, refuses
from isinglass import losses
from isinglass.inference.support import support_of, ties_of
from isinglass.testing import random_potentials
from isinglass.testing.suite import random_cotangents

GRAPHS = {
    "triangle": ig.FactorGraph([2, 2, 2], [(0, 1), (1, 2), (2, 0), (0,)]),
    "mixed": ig.FactorGraph([2, 3, 4, 2, 3], [(0, 1), (1, 2), (2, 3), (3, 0), (1,), (4, 1), ()]),
    "triples": ig.FactorGraph([2, 2, 3, 2], [(0, 1, 2), (1, 2, 3), (3, 0), (2,)]),
    "four and repeated": ig.FactorGraph([2, 3, 2, 2], [(0, 1, 2, 3), (1, 0), (0, 1), (3,), (3,)]),
    "grid": ig.grid_graph(3, 3, 2),
    "loose": ig.FactorGraph([3, 1, 2], [(0, 1), (2,)]),
}


def random_weights(graph, rng, low=0.01):
    """Draw a weight for each state and configuration, log-uniform in [low, 1]."""
    variables = np.exp(rng.uniform(np.log(low), 0, int(graph.cards.sum())))
    factors = [np.exp(rng.uniform(np.log(low), 0, (len(g), *g.shape))) for g in graph.groups]
    return ig.EntropyWeights(variables, factors)


def test_no_locally_consistent_beliefs_have_less_energy():
    """The certificate of a minimum: along every direction that keeps beliefs consistent the slope is zero."""
    rng = np.random.default_rng(0)
    for graph in GRAPHS.values():
        p = random_potentials(graph, rng)
        weights = random_weights(graph, rng)
        r = ig.infer(p, ig.ConvexFreeEnergy(weights, tol=1e-12))
        assert r.info.converged
        assert r.info.residual < 1e-9
        assert 0 <= r.info.duality_gap < 1e-9
        for _ in range(5):
            other = ig.infer(random_potentials(graph, rng, 2.0), "exact")  # consistent beliefs
            assert abs(slope_towards(p, weights, r, other)) < 1e-9


def slope_towards(p, weights, one, two):
    """Return the derivative of the energy at some beliefs towards others: (w (log b + 1) + v)'(other b - b)."""
    by_state, by_entry = weights.on(p.graph)
    b = one.variables.flat
    total = (by_state * (np.log(b) + 1) * (two.variables.flat - b)).sum()
    flat, others = (np.concatenate([g.ravel() for g in r.factors.groups]) for r in (one, two))
    links = np.concatenate([np.full(g.table_size * len(g), g.arity >= 2) for g in p.graph.groups])
    total += (by_entry * (np.log(flat) + 1) * (others - flat))[links].sum()
    return total - sum((t * (c - a)).sum() for t, a, c in zip(p.log_tables, one.factors, two.factors, strict=True))


@pytest.mark.long
def test_five_hundred_random_problems():
    """2 to 5 labels, mixed signs, w from .01 to 1, potentials up to +-30: every one converges."""
    rng = np.random.default_rng(0)
    for n in range(500):
        size = int(rng.integers(3, 9))
        cards, arities = rng.integers(2, 6, size), rng.choice([1, 2, 2, 2, 3], rng.integers(size, 2 * size))
        scopes = [tuple(rng.choice(size, r, replace=False)) for r in arities]
        graph, scale = ig.FactorGraph(cards, scopes), (1.0, 3.0, 10.0, 30.0)[n % 4]
        p = ig.Potentials(graph, [rng.uniform(-scale, scale, cards[list(s)]) for s in scopes])
        r = ig.infer(p, ig.ConvexFreeEnergy(random_weights(graph, rng)))
        assert r.info.converged
        assert r.info.residual < 1e-9


def test_the_homotopy_finds_the_same_minimum():
    from isinglass.inference.free_energy.newton import Newton
    from isinglass.inference.free_energy.problem import Problem

    rng = np.random.default_rng(1)
    p = random_potentials(GRAPHS["triples"], rng, 10.0)
    weights = random_weights(p.graph, rng)
    direct, newton = ig.infer(p, ig.ConvexFreeEnergy(weights)), Newton(Problem.of(p, *weights.on(p.graph)))
    newton.homotopy(0, 1e-9, 100)
    assert newton.converged[0]
    assert newton.rescued[0]
    assert_allclose(newton.problem.beliefs(newton.step.p, newton.step.q)[0], direct.variables.flat, atol=1e-9)


@pytest.mark.parametrize("copies", [1, 2])
def test_bethe_weights_are_exact_on_forests(copies):
    graph = ig.FactorGraph([2, 3, 2, 4, 2], [(0, 1, 2), (2, 3), (3,), (3, 4), (0,)])
    p = random_potentials(graph, np.random.default_rng(0), 3.0).repeat(copies)
    r, truth = ig.infer(p, "convex", weights="bethe", tol=1e-12), ig.infer(p, "exact")
    assert r.info.bound == "exact"
    assert_allclose(r.component_log_z, truth.component_log_z, rtol=1e-10)
    assert_allclose(r.variables.flat, truth.variables.flat, atol=1e-10)
    each_close(r.factors, truth.factors, atol=1e-10)


def test_what_has_not_converged_or_is_not_convex():
    p = random_potentials(ig.complete_graph(5, 2), np.random.default_rng(0))
    with pytest.raises(ig.InputError, match=r"weights: expected ones for which .* convex, .* not positive definite"):
        ig.infer(p, "convex", weights=ig.EntropyWeights(-5.0))
    p = random_potentials(ig.grid_graph(3, 3, 2), np.random.default_rng(0), 10.0)
    with pytest.warns(ig.ConvergenceWarning, match="convex stopped after"):
        r = ig.infer(p, "convex", max_iter=1)
    assert r.info.bound is None


def test_upper_bounds_only_where_they_are_true():
    p = random_potentials(ig.grid_graph(3, 3, 2), np.random.default_rng(0))
    truth = ig.infer(p, "exact").log_z
    for weights in (None, "B", "C", ig.EntropyWeights(0.5, 0.3)):
        r = ig.infer(p, "convex", weights=weights)
        assert r.info.bound == "upper"
        assert r.log_z >= truth
    assert ig.infer(p, "convex", weights=ig.EntropyWeights(0.1, 0.1)).info.bound is None


def test_counting_numbers_of_message_passing_give_the_same_minimum():
    """w_a = c_a, w_i = 1 - sum c_a: the fixed point of tree-reweighted message passing."""
    p = random_potentials(ig.FactorGraph([2, 3, 2], [(0, 1), (1, 2), (2, 0), (1,)]), np.random.default_rng(2))
    trw = ig.infer(p, "trw", tol=1e-13)
    counting = np.array([2 / 3] * 3 + [1.0])
    own = 1 - np.array([4 / 3] * 3)
    r = ig.infer(p, "convex", weights=ig.EntropyWeights(own, counting), tol=1e-12)
    assert_allclose(r.log_z, trw.log_z, rtol=1e-10)
    assert_allclose(r.variables.flat, trw.variables.flat, atol=1e-9)


def test_very_small_beliefs_are_not_cut_off():
    """One variable and costs of hundreds: b = softmax(phi / w), far below the floor of the iteration."""
    p = ig.Potentials(ig.FactorGraph([3, 2], [(0,), (0, 1)]), [[0.0, -1.5, -30.0], np.zeros((3, 2))])
    r = ig.infer(p, "convex", weights=ig.EntropyWeights(0.1, 0.1), tol=1e-12)
    logs = np.log(r.variable(0))
    assert_allclose(logs - logs[0], np.array([0.0, -1.5, -30.0]) / 0.2, rtol=1e-9)


def test_ties_and_supports():
    assert ties_of(np.array([[0, 0], [1, 1], [2, 2]]), (3, 3)).shape == (2, 6)
    graph = ig.FactorGraph([2, 2, 2], [(0, 1), (1, 2)])
    equal = np.log(np.eye(2) + 0.0, where=np.eye(2) > 0, out=np.full((2, 2), -np.inf))
    p = ig.Potentials(graph, [equal, [[0.0, -np.inf], [-np.inf, 1.0]]])
    r = ig.infer(p, "convex", weights="bethe", tol=1e-12)
    assert_allclose(np.asarray(r.variables)[:, 1], np.full(3, np.e / (1 + np.e)), rtol=1e-9)
    narrowed = support_of(p.with_evidence({0: 1}))
    assert narrowed.states.tolist() == [False, True] * 3


def moved(p, direction, t):
    return ig.Potentials._build(
        p.graph, [g + t * d for g, d in zip(p.groups, direction, strict=True)], p.table_ids, p.evidence
    )


def slope(value, step=1e-3):
    """Differences of order eight."""
    terms = zip((4 / 5, -1 / 5, 4 / 105, -1 / 280), range(1, 5), strict=True)
    return sum(c * (value(k * step) - value(-k * step)) for c, k in terms) / step


@pytest.mark.long
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("zeros", [0.0, 0.2])
def test_derivatives_by_costs_and_weights(name, zeros):
    rng = np.random.default_rng(len(name))
    graph = GRAPHS[name]
    p = random_potentials(graph, rng, zeros=zeros)
    weights = random_weights(graph, rng, 0.1)
    algorithm = ig.ConvexFreeEnergy(weights, tol=1e-13)
    result = ig.infer(p, algorithm, tape=True)
    log_z, variables, factors = random_cotangents(result, 1)

    def loss(r):
        of_factors = sum((c * b).sum() for c, b in zip(factors, r.factors, strict=True))
        return float((log_z * r.component_log_z).sum() + variables @ r.variables.flat + of_factors)

    gradients = result.backward(log_z, variables, factors)
    direction = [rng.normal(size=g.shape) for g in p.groups]
    found = sum((g * d).sum() for g, d in zip(gradients.groups, direction, strict=True))
    assert_allclose(found, slope(lambda t: loss(ig.infer(moved(p, direction, t), algorithm))), rtol=1e-6, atol=1e-7)
    by_state = rng.normal(size=len(weights.variables)) * weights.variables
    by_group = [rng.normal(size=w.shape) * w for w in weights.factors]

    def weighted(t):
        shifted = [w + t * d for w, d in zip(weights.factors, by_group, strict=True)]
        return loss(
            ig.infer(p, ig.ConvexFreeEnergy(ig.EntropyWeights(weights.variables + t * by_state, shifted), 1e-13))
        )

    links = [g.arity >= 2 for g in graph.groups]
    found = gradients.weights.variables @ by_state
    found += sum((g * d).sum() for g, d, link in zip(gradients.weights.groups, by_group, links, strict=True) if link)
    assert_allclose(found, slope(weighted), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("loss", [n for n, cls in losses.LOSSES.items() if cls.facts.uses == "beliefs"])
def test_losses_of_sharp_beliefs(loss):
    """Potentials scaled by eight, hidden variables: the implicit gradient meets differences."""
    rng = np.random.default_rng(1)
    p = random_potentials(ig.grid_graph(3, 3, 3), rng, 4.0)
    labels = np.array([0, 1, -1, 2, 1, 0, -1, 2, 1])
    chosen, algorithm = losses.make(loss), ig.ConvexFreeEnergy(tol=1e-13)
    result = ig.infer(p, algorithm, tape=True)
    bars = chosen(result, labels)
    gradients = result.backward(bars.log_z, bars.variables, bars.factors)
    direction = [rng.normal(size=g.shape) for g in p.groups]
    found = sum((g * d).sum() for g, d in zip(gradients.groups, direction, strict=True))

    def value(t):
        return float(chosen(ig.infer(moved(p, direction, t), algorithm), labels).value.sum())

    assert_allclose(found, slope(value, 1e-3), rtol=2e-6, atol=1e-8)


def test_derivatives_where_states_hardly_go_together():
    """Small weights: pairs of unequal states have beliefs far below rounding, and variables move as one."""
    rng = np.random.default_rng(0)
    p = ig.Potentials.from_groups(ig.grid_graph(4, 4, 2), [rng.normal(0, 0.02, (16, 2)), np.eye(2)[None]])
    algorithm = ig.ConvexFreeEnergy(ig.EntropyWeights(0.01, 0.02), tol=1e-12)
    result = ig.infer(p, algorithm, tape=True)
    assert result.info.converged
    assert result.factors.groups[1].min() < 1e-30
    assert result.variables.flat.min() > 0.01
    bars = rng.normal(size=result.variables.flat.size)
    gradients = result.backward(variables=bars)
    direction = [rng.normal(size=g.shape) for g in p.groups]
    found = sum((g * d).sum() for g, d in zip(gradients.groups, direction, strict=True))
    truth = slope(lambda t: float(bars @ ig.infer(moved(p, direction, t), algorithm).variables.flat), 1e-5)
    assert_allclose(found, truth, rtol=1e-6)


def test_components_converge_by_themselves():
    easy = random_potentials(ig.grid_graph(2, 2, 2), np.random.default_rng(0), 0.1)
    hard = random_potentials(ig.grid_graph(2, 2, 2), np.random.default_rng(1), 30.0)
    from isinglass.potentials import potentials_union

    info = ig.infer(potentials_union([easy, hard]), "convex").info
    assert info.component_iterations[0] < info.component_iterations[1]
    assert info.component_converged.all()
    assert (info.component_residual <= 1e-9).all()


def test_a_start_from_an_earlier_result():
    p = random_potentials(ig.grid_graph(4, 4, 2), np.random.default_rng(0), 2.0)
    first = ig.infer(p, "convex")
    again = ig.infer(p, "convex", init=first)
    assert again.info.iterations < first.info.iterations
    assert_allclose(again.variables.flat, first.variables.flat, atol=1e-8)
    refuses("init", ig.infer, random_potentials(ig.grid_graph(2, 2, 2), np.random.default_rng(0)), "convex", init=first)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("D", "weights: expected 'A', 'B', 'C', 'bethe'"),
        (3.0, "weights: expected .* got float"),
        (ig.EntropyWeights(factors=0.0), "weights.factors: expected positive numbers"),
        (ig.EntropyWeights(variables=[1.0, 2.0]), "weights.variables: expected a number"),
        (ig.EntropyWeights(variables=np.nan), "weights.variables: expected finite numbers"),
        (ig.EntropyWeights(factors=[1.0, 2.0]), "weights.factors: expected a number, one for each"),
        (ig.EntropyWeights(factors=[np.ones(3), np.ones((2, 5, 5))]), r"weights.factors\[1\]: expected an array"),
    ],
)
def test_wrong_weights(weights, message):
    p = random_potentials(ig.chain_graph(3, 2), np.random.default_rng(0))
    refuses(message, ig.infer, p, "convex", weights=weights)


def test_large_components_are_banded_and_agree_with_sparse():
    """A grid large enough for LAPACK's banded Cholesky, against the same in complex numbers (sparse)."""
    p = random_potentials(ig.grid_graph(40, 60, 2), np.random.default_rng(0))
    one = ig.infer(p, "convex", tol=1e-11, tape=True)
    q = ig.Potentials._build(p.graph, [g + 0j for g in p.groups], p.table_ids, {})
    two = ig.infer(q, "convex", tol=1e-11, tape=True)
    assert_allclose(two.variables.flat.real, one.variables.flat, atol=1e-11)
    bars = np.random.default_rng(1).normal(size=one.variables.flat.size)
    for a, b in zip(one.backward(variables=bars).groups, two.backward(variables=bars).groups, strict=True):
        assert_allclose(b.real, a, atol=1e-9)


def test_loose_tolerances_leave_out_small_beliefs_and_the_last_step_makes_up_for_it():
    rng = np.random.default_rng(3)
    p = random_potentials(ig.grid_graph(5, 6, 3), rng, 3.0)
    strict = ig.infer(p, "convex")
    loose = ig.infer(p, ig.ConvexFreeEnergy(tol=1e-2, rtol=np.inf))
    assert loose.info.iterations < strict.info.iterations - 2
    assert loose.info.residual > 1e-6  # before the last step
    assert np.abs(loose.variables.flat - strict.variables.flat).max() < loose.info.residual / 10
    sums = np.add.reduceat(loose.variables.flat, np.arange(0, 90, 3))
    assert_allclose(sums, 1, atol=1e-12)
    assert_allclose(loose.log_z, strict.log_z, rtol=1e-6)


@pytest.mark.parametrize(("option", "value"), [("rtol", -1.0), ("rtol", np.nan), ("tol", -1.0)])
def test_wrong_tolerances(option, value):
    p = random_potentials(GRAPHS["triangle"], np.random.default_rng(0), 1.0)
    refuses(option, ig.infer, p, ig.ConvexFreeEnergy(**{option: value}))
