"""Structured hinge losses and the expected cost, against an enumeration of all labelings."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import isinglass as ig
from isinglass.losses import LossProblem
from isinglass.testing.solver_suite import checked
from isinglass.testing.strategies import factor_graphs, potentials

LOSSES = ["margin", "perceptron", "viterbi"]


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


def test_wrong_input():
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
