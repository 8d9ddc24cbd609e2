"""Slack rescaling, F1 costs, relaxed margins and R_EL, against an enumeration of all labelings."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import isinglass as ig
from checks import refuses
from isinglass.errors import no_convergence_warnings
from isinglass.losses import LossProblem
from isinglass.testing.solver_suite import checked
from isinglass.testing.strategies import factor_graphs, potentials

SMALL = potentials(factor_graphs(max_card=3), evidence=False, zeros=False)
BINARY = potentials(factor_graphs(max_card=2), evidence=False, zeros=False)
TABLE = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 1.5], [3.0, 1.0, 0.0]])


def everything(p):
    return [np.array(x, int) for x in product(*map(range, p.graph.cards))]


def slack_value(p, y, cost, weights):
    """Return slack rescaling by its definition."""
    seen = np.flatnonzero(y >= 0)
    mean = np.mean(weights[seen]) if len(seen) else 0.0
    right = max(p.log_score(x) for x in everything(p) if (x[seen] == y[seen]).all())
    share = weights / mean if mean > 0 else weights
    found = [
        sum(share[i] * cost(y[i], x[i]) for i in seen) * (1 + p.log_score(x) - right) for x in everything(p)
    ]  # fmt: skip
    return mean * max(found) if mean > 0 else 0.0


def drawn(p, seed, hidden=0.3):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(p.graph.n_variables) < hidden, -1, rng.integers(0, p.graph.cards))
    return y, rng.uniform(0.5, 2.0, p.graph.n_variables)


@checked
@given(p=SMALL, seed=st.integers(0, 999))
def test_slack_rescaling_is_that_of_an_enumeration(p, seed):
    y, weights = drawn(p, seed)
    for cost, of_pair in (("hamming", lambda a, b: float(a != b)), (TABLE, lambda a, b: TABLE[a, b])):
        if isinstance(cost, np.ndarray) and (p.graph.cards != 3).any():
            continue
        found = ig.losses.Slack(cost, n_best=10_000).evaluate(LossProblem(p, y, weights), None)
        assert_allclose(found.value.sum(), slack_value(p, y, of_pair, weights), atol=1e-8)
        assert found.infos[-1].bound == "exact"
        even = ig.losses.Slack(cost).evaluate(LossProblem(p, y), None)
        assert_allclose(even.value.sum(), slack_value(p, y, of_pair, np.ones(len(y))), atol=1e-8)


@checked
@given(p=SMALL, seed=st.integers(0, 999), solver=st.sampled_from(["icm", "trws", "exact"]))
def test_a_search_over_multipliers_states_its_bound(p, seed, solver):
    y, weights = drawn(p, seed, 0.0)
    truth = slack_value(p, y, lambda a, b: float(a != b), weights) / np.mean(weights)
    found = ig.losses.Slack(solver=solver, n_best=1).evaluate(LossProblem(p, y, weights), None)
    (info,) = found.infos
    value = found.value.sum() / np.mean(weights)
    assert -1e-9 <= value <= truth + 1e-8
    assert value + info.residual >= truth - 1e-8
    assert info.bound == ("exact" if info.converged else "lower")
    assert ("under-generating" in info.note) == (not info.converged)
    if info.converged:
        assert_allclose(value, truth, atol=1e-7)


def f1_cost(y, x):
    tp, fp, total = ((y == 1) & (x == 1)).sum(), ((y == 0) & (x == 1)).sum(), (y == 1).sum()
    return 0.0 if tp + fp + total == 0 else 1 - 2 * tp / (tp + fp + total)


@pytest.mark.long
@checked
@given(p=BINARY, seed=st.integers(0, 999))
def test_f1_margins_are_those_of_an_enumeration(p, seed):
    y = np.where(p.graph.cards == 2, drawn(p, seed)[0], -1)
    seen = np.flatnonzero(y >= 0)
    for solver in ("exact", "ilp"):
        found = ig.losses.Margin("f1", solver).evaluate(LossProblem(p, y), None)
        right = max(p.log_score(x) for x in everything(p) if (x[seen] == y[seen]).all())
        truth = max(f1_cost(y, x) + p.log_score(x) for x in everything(p)) - right
        assert_allclose(found.value.sum(), truth if len(seen) else 0.0, atol=1e-8)


@checked
@given(p=potentials(factor_graphs(max_card=3)), seed=st.integers(0, 999))
def test_a_relaxed_margin_is_over_generating(p, seed):
    x = ig.sample(p, 1, random_state=seed)[0]  # labels that hard zeros and evidence allow
    exact = ig.losses.Margin().evaluate(LossProblem(p, x), None)
    relaxed = ig.losses.Margin(relaxed=True).evaluate(LossProblem(p, x), None)
    (info,) = relaxed.infos
    assert (relaxed.value >= exact.value - 1e-7).all()
    assert info.bound in ("exact", "upper")
    assert ("over-generating" in info.note) == (info.bound == "upper")
    if info.bound == "exact":
        assert_allclose(relaxed.value, exact.value, atol=1e-5)


def test_the_slope_of_a_relaxed_margin_is_a_subgradient():
    rng = np.random.default_rng(0)
    g, y = ig.FactorGraph([2] * 3, [(0, 1), (1, 2), (0, 2)]), np.array([0, 1, 1])
    loss, kinds = ig.losses.Margin(relaxed=True), set()
    for _ in range(20):
        here, there = ([rng.normal(0, 2, (3, 2, 2))] for _ in range(2))
        one, two = (loss.evaluate(LossProblem(ig.Potentials.from_groups(g, t), y), None) for t in (here, there))
        assert two.value[0] >= one.value[0] + (one.groups[0] * (there[0] - here[0])).sum() - 1e-7
        kinds.add(one.infos[0].bound)
    assert kinds == {"exact", "upper"}


@checked
@given(p=SMALL, seed=st.integers(0, 999), name=st.sampled_from(["margin", "slack"]))
def test_slopes_are_subgradients(p, seed, name):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, p.graph.cards)
    loss = ig.losses.make(name)
    moved = ig.Potentials.from_groups(p.graph, [t + rng.normal(size=t.shape) for t in p.groups], p.table_ids)
    one, two = (loss.evaluate(LossProblem(q, y), None) for q in (p, moved))
    slope = sum((g * (b - a)).sum() for g, a, b in zip(one.groups, p.groups, moved.groups, strict=True))
    assert two.value.sum() >= one.value.sum() + slope - 1e-8


def test_a_completion_makes_an_upper_bound_that_touches():
    rng = np.random.default_rng(1)
    for name in ("margin", "slack", "perceptron"):
        loss, y = ig.losses.make(name), np.array([0, -1, 2, -1])
        p, q = (ig.testing.random_potentials(ig.chain_graph(4, 3), rng) for _ in range(2))
        best, _ = loss.completed(p, y)
        assert (best[[0, 2]] == y[[0, 2]]).all()
        values = [loss.evaluate(LossProblem(m, y, None, best), None).value[0] for m in (p, q)]
        free = [loss.evaluate(LossProblem(m, y), None).value[0] for m in (p, q)]
        assert_allclose(values[0], free[0])
        assert values[1] >= free[1] - 1e-9


def test_log_expected_and_weighted_costs():
    p = ig.testing.random_potentials(ig.chain_graph(4, 3), np.random.default_rng(0))
    y = np.array([0, 2, 1, -1])
    plain = ig.losses.make("expected")(ig.infer(p), y).value
    assert_allclose(ig.losses.make("log-expected")(ig.infer(p), y).value, np.log(plain))
    p = ig.testing.random_potentials(ig.chain_graph(4, 3), np.random.default_rng(0))
    y, cost = np.array([0, 2, 1, 2]), np.array([1.0, 3.0, 0.5])
    table = cost[:, None] * (1 - np.eye(3))
    values = [ig.losses.Margin(c).evaluate(LossProblem(p, y), None).value for c in (cost, table)]
    assert_allclose(*values)


def test_wrong_input():
    p = ig.testing.random_potentials(ig.chain_graph(3, 3), np.random.default_rng(0))
    y = np.zeros(3, int)

    def refused(loss, match, **more):
        refuses(match, loss.evaluate, LossProblem(p, y, **more), None)

    refused(ig.losses.Slack("f1"), "cost: expected a cost that is a sum")
    refused(ig.losses.Margin("f1"), "labels of two states")
    refused(ig.losses.Margin("f1"), "one weight for all variables", weights=np.array([1.0, 2.0, 1.0]))
    refused(ig.losses.Margin("f1", relaxed=True), "cost: expected a sum over variables")
    refused(ig.losses.Margin([1.0, -2.0, 1.0]), "not negative")
    refused(ig.losses.Slack(n_best=0), "n_best")
    zero = ig.Potentials(ig.FactorGraph([2], [(0,)]), [[0.0, -np.inf]])
    for name in ("margin", "slack", "perceptron"):
        with pytest.raises(ig.errors.ImpossibleLabelError, match="labels of example 0"):
            ig.losses.make(name).evaluate(LossProblem(zero, np.array([1])), None)


def test_solvers_that_leave_variables_undecided_are_refused():
    rng = np.random.default_rng(0)
    g = ig.FactorGraph([2] * 3, [(0, 1), (1, 2), (0, 2)])
    p = ig.Potentials.from_groups(g, [-5.0 * np.eye(2)[None] + 0.01 * rng.normal(size=(3, 2, 2))])
    solver = ig.QPBO(complete=None)
    assert (ig.map_assignment(p, solver).states < 0).any()
    for loss in (ig.losses.Margin(solver=solver), ig.losses.Slack(solver=solver), ig.losses.Perceptron(solver)):
        refuses("decides every variable", loss.evaluate, LossProblem(p, np.zeros(3, int)), None)


def test_a_solver_that_finds_nothing_possible_proves_nothing():
    clash = np.array([[0.0, -np.inf, 0.0], [-np.inf, 0.0, 0.0], [0.0, 0.0, -9.0]])
    g = ig.FactorGraph([3] * 3, [(0, 1), (1, 2), (0, 2)])
    p = ig.Potentials(g, [clash, clash, clash[[1, 0, 2]]])
    y = ig.map_assignment(p, "brute").states
    right, best = float(p.log_score(y)), 0.0
    for x in everything(p):
        best = max(best, (x != y).sum() * (1 + float(p.log_score(x)) - right))
    for solver in ("icm", "annealing", "exact", "ilp"):
        with no_convergence_warnings():
            found = ig.losses.Slack(solver=solver).evaluate(LossProblem(p, y), None)
        assert 0 <= found.value[0] <= best + 1e-9
        if found.infos[0].bound == "exact":
            assert_allclose(found.value[0], best)
        assert found.infos[0].bound == "exact" or solver in ("icm", "annealing")


def enumerated(p, y, cost, weights):
    """Return the hinge of one example by its definition; the cost is a function of (label, state)."""
    seen = [i for i in range(len(y)) if y[i] >= 0]
    mean = np.mean(weights[seen]) if seen else 0.0
    everything = [np.array(x, int) for x in product(*map(range, p.graph.cards))]

    def delta(x):
        return sum(weights[i] / mean * cost(y[i], x[i]) for i in seen) if mean > 0 else 0.0

    worst = max(p.log_score(x) + delta(x) for x in everything)
    right = max(p.log_score(x) for x in everything if all(x[i] == y[i] for i in seen))
    return mean * (worst - right)


@pytest.mark.long
@checked
@given(p=potentials(factor_graphs(max_card=3), evidence=False, zeros=False), seed=st.integers(0, 999))
def test_values_are_those_of_an_enumeration(p, seed):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(p.graph.n_variables) < 0.7, rng.integers(0, p.graph.cards), -1)
    weights = rng.uniform(0.5, 2.0, p.graph.n_variables)
    hamming, none = (lambda a, b: float(a != b)), (lambda a, b: 0.0)
    for name, cost in (("margin", hamming), ("perceptron", none), ("viterbi", none)):
        (value,) = ig.losses.make(name).evaluate(LossProblem(p, y, weights), None).value
        assert_allclose(value, enumerated(p, y, cost, weights), atol=1e-9)


def test_a_table_of_costs():
    table = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 1.0], [3.0, 1.0, 0.0]])
    p = ig.testing.random_potentials(ig.chain_graph(4, 3), np.random.default_rng(0))
    y = np.array([0, 2, 1, -1])
    ig.testing.check_loss(ig.losses.Perceptron("brute"))
    (value,) = ig.losses.Margin(table).evaluate(LossProblem(p, y), None).value
    assert_allclose(value, enumerated(p, y, lambda a, b: table[a, b], np.ones(4)))
    found = ig.losses.ExpectedCost(table)(ig.infer(p), y)
    expected = sum(ig.infer(p).variable(i) @ table[y[i]] for i in range(3))
    assert_allclose(found.value, [expected])


def test_the_margin_bounds_the_cost_of_the_best_assignment():
    rng = np.random.default_rng(3)
    for _ in range(20):
        p = ig.testing.random_potentials(ig.grid_graph(3, 3, 2), rng)
        y = rng.integers(0, 2, 9)
        (value,) = ig.losses.Margin().evaluate(LossProblem(p, y), None).value
        assert value >= (ig.map_assignment(p).states != y).sum() - 1e-9


@checked
@given(p=potentials(factor_graphs(max_card=3), evidence=False, zeros=False), seed=st.integers(0, 999))
def test_an_inexact_solver_is_under_generating(p, seed):
    y = np.random.default_rng(seed).integers(0, p.graph.cards)
    exact = ig.losses.Margin().evaluate(LossProblem(p, y), None)
    rough = ig.losses.Margin(solver="icm").evaluate(LossProblem(p, y), None)
    assert (rough.value >= 0).all()
    assert (rough.value <= exact.value + 1e-9).all()
    assert exact.infos[0].bound == "exact"
    assert rough.infos[0].algorithm == "icm"


def test_infos_tell_a_proof_from_a_guess():
    p = ig.testing.random_potentials(ig.grid_graph(3, 3, 2), np.random.default_rng(0))
    for solver, proved in (("trws", None), ("icm", False), ("ilp", True)):
        (info,) = ig.losses.Margin(solver=solver).evaluate(LossProblem(p, np.zeros(9, int)), None).infos
        assert proved is None or info.converged == proved
        assert info.bound == ("exact" if info.converged else "lower")


def test_wrong_margins():
    p = ig.testing.random_potentials(ig.chain_graph(3, 2), np.random.default_rng(0))

    def refused(loss, match):
        with pytest.raises(ig.InputError, match=match):
            loss.evaluate(LossProblem(p, np.zeros(3, int)), None)

    refused(ig.losses.Margin("edit"), "cost: expected 'hamming', a vector by label or a table")
    refused(ig.losses.Margin(np.ones((2, 2))), "no cost of the right label")
    refused(ig.losses.Margin(np.zeros((3, 3))), "shape")
    refused(ig.losses.Margin([[0, -1], [1, 0]]), "not negative")
    refused(ig.losses.Margin(solver="mf"), "solver: expected one that maximises")
    refused(ig.losses.Slack(solver="no such"), "solver: expected one of .*'trws'")
    refused(ig.losses.Margin(solver="graph-cut"), "submodular")


def test_estimators_decode_with_a_solver():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (4, 5, 5))
    X = np.stack([2.0 * Y - 1 + 0.5 * rng.normal(size=Y.shape), np.ones(Y.shape)], axis=-1)
    loss = ig.losses.Margin(solver="trws")
    options = {"loss": loss, "l2": 0.1, "tol": 1e-3, "inference": "exact", "iterations": None, "decoder": "map"}
    crf = ig.GridCRF(**options).fit(X, Y)
    assert crf.converged_
    assert crf.score(X, Y) > 0.95
    with pytest.warns(ig.ConvergenceWarning):
        crf = ig.GridCRF(**options, optimizer="lbfgs").fit(X, Y)
    assert crf.score(X, Y) > 0.95


def test_a_graph_that_is_too_large_for_exact_decoding_names_a_solver():
    p = ig.models.Ising(ig.grid_graph(40, 40, 2)).potentials(coupling=0.5)
    with pytest.raises(ig.MemoryLimitError, match=r'such as map_assignment\(p, "auto"\)'):
        ig.map_assignment(p, ig.Exact(restarts=0))
    problem = ig.losses.LossProblem(p, np.zeros(1600, int))
    with pytest.raises(ig.MemoryLimitError, match=r'loss=ig.losses.Margin\(solver="trws"\)'):
        ig.losses.Margin(solver=ig.Exact(restarts=0)).evaluate(problem, None)
    assert ig.losses.Margin(solver="trws").evaluate(problem, None).value[0] >= 0
