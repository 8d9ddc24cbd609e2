"""Losses of beliefs: values by plain loops, derivatives by complex steps, the chain through inference."""

import numpy as np
import pytest
from loss_helpers import BELIEF_LOSSES, GRAPHS, draw, flat_factors, with_beliefs
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from checks import refuses, richardson
from isinglass.errors import no_convergence_warnings
from isinglass.gradients import rule
from isinglass.losses import LOSSES, LossProblem, make


def term(name, belief, at, lam):
    """One term of a loss, as the thesis prints it."""
    flat = np.ravel(belief)
    if name.endswith("cl"):
        return -np.log(flat[at])
    if name.endswith("quad"):
        return -2 * flat[at] + (flat**2).sum()
    rivals = np.delete(flat, at)
    return 1 / (1 + np.exp(-lam * (rivals.max() - flat[at]))) if len(rivals) else 0.0


def by_loops(name, result, labels, weights, lam=5.0):
    """The loss of each component, variable by variable or factor by factor."""
    graph = result.potentials.graph
    weights = np.ones(graph.n_variables) if weights is None else weights
    total = np.zeros(graph.n_components)
    if "u" in name[:2]:
        for i in np.flatnonzero(labels >= 0):
            total[graph.variable_component[i]] += weights[i] * term(name, result.variable(i), labels[i], lam)
        return total
    for a, scope in enumerate(graph.scopes):
        y = labels[list(scope)]
        if len(scope) >= 2 and (y >= 0).all():
            at = np.ravel_multi_index(tuple(y), graph.cards[list(scope)])
            value = weights[list(scope)].mean() * term(name, result.factor(a), at, lam)
            total[graph.factor_component[a]] += value
    return total


@pytest.mark.parametrize("loss", BELIEF_LOSSES)
@pytest.mark.parametrize("name", GRAPHS)
def test_values_are_the_thesis_formulas(name, loss):
    for seed in range(4):
        p, labels, weights, _ = draw(name, seed, 0.2 * (seed == 3))
        result = ig.infer(p, "brute")
        found = make(loss)(result, labels, weights)
        assert found.value.shape == (p.graph.n_components,)
        assert_allclose(found.value, by_loops(loss, result, labels, weights), rtol=1e-13, atol=1e-14)
        assert_array_equal(found.log_z, 0)


@pytest.mark.parametrize("loss", BELIEF_LOSSES)
@pytest.mark.parametrize("name", GRAPHS)
def test_derivatives_by_beliefs(name, loss):
    for seed in range(4):
        p, labels, weights, rng = draw(name, seed)
        result = ig.infer(p, "brute")
        variables, factors = result.variables.flat, flat_factors(result)
        u, v = rng.normal(size=variables.shape), rng.normal(size=factors.shape)

        def value(step, variables=variables, factors=factors, u=u, v=v, r=result, y=labels, w=weights):
            moved_result = with_beliefs(r, variables + step * u, factors + step * v)
            return make(loss)(moved_result, y, w).value.sum()

        found = make(loss)(result, labels, weights)
        mine = found.variables @ u + (0.0 if found.factors is None else found.factors @ v)
        assert_allclose(mine, value(1e-20j).imag / 1e-20, rtol=1e-13, atol=1e-14)
        assert_allclose(mine, richardson(value, 1e-5), rtol=1e-6, atol=1e-8)


def test_a_clique_needs_all_its_labels():
    p, labels, *_ = draw("mixed", 0)
    labels[3] = -1
    found = make("ccl")(ig.infer(p, "brute"), labels)
    one_hot = np.zeros(12)
    one_hot[np.ravel_multi_index(tuple(labels[:3]), (2, 3, 2))] = 1
    assert_array_equal(found.factors[:12] != 0, one_hot)
    assert not found.factors[12:].any()


def test_smoothed_errors():
    p, labels, *_ = draw("mixed", 0)
    result = ig.infer(p, "brute")
    wrong = sum(int(result.variable(i).argmax() != y) for i, y in enumerate(labels))
    assert_allclose(make("suclass", lam=1e6)(result, labels).value, wrong, atol=1e-12)
    p, labels, *_ = draw("mixed", 0)
    for y in (labels, (labels + 1) % p.graph.cards):
        found = make("suclass", lam=1e6)(ig.infer(p, "brute"), y)
        assert np.isfinite(found.value).all()
        assert np.isfinite(found.variables).all()
    p = ig.Potentials(ig.FactorGraph([3], [(0,)]), [np.log([0.2, 0.4, 0.4])])
    found = make("suclass")(ig.infer(p, "brute"), [0])
    assert found.variables[1] == -found.variables[0] > 0
    assert found.variables[2] == 0


def forbidding():
    return ig.Potentials(ig.FactorGraph([2, 2], [(0, 1), (0,)]), [[[0.0, -np.inf], [0.0, 0.0]], [0.0, 0.0]])


def test_a_forbidden_label_is_named():
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0,), (0, 1)]), [[0.0, -np.inf], np.zeros((2, 2))])
    with pytest.raises(ig.InputError, match="label 1 for variable 0, whose belief is zero under 'brute'; a hard zero"):
        make("ucl")(ig.infer(p, "brute"), [1, 0])
    with pytest.raises(
        ig.InputError, match=r"labels \(0, 1\) for factor 0 on variables \(0, 1\), whose belief is zero"
    ):
        make("ccl")(ig.infer(forbidding(), "brute"), [0, 1])
    refuses("labels that the model allows", make("ucl"), ig.infer(p, "brute", evidence={1: 0}), [0, 1])
    make("ucl")(ig.infer(p, "brute"), [1, 0], [0.0, 1.0])  # a weight of zero asks nothing
    assert make("uquad")(ig.infer(p, "brute"), [1, -1]).value.tolist() == [1.0]


@pytest.mark.parametrize(
    ("labels", "weights", "message"),
    [
        ([0, 2], None, r"labels: expected states from 0 to 1, or -1 \(not observed\), got 2 for variable 1"),
        ([-2, 0], None, "labels: .* got -2 for variable 0"),
        ([0, 0, 0], None, "labels: expected one for each of 2 variables, got 3"),
        ([0.0, 1.0], None, "labels: expected integers .* got dtype float64; convert it"),
        ([[0, 1]], None, r"labels: expected integers in an array with 1 axis, got shape \(1, 2\)"),
        ([True, False], None, "labels: expected integers"),
        (["a", "b"], None, "labels: expected integers"),
        ([0, 1], [1.0], r"weights: expected 2 finite numbers of at least 0, one for each variable, got shape \(1,\)"),
        ([0, 1], [1.0, -1.0], "weights: .* got -1.0 for variable 1"),
        ([0, 1], [np.nan, 1.0], "weights: .* got nan for variable 0"),
        ([0, 1], [np.inf, 1.0], "weights: .* got inf for variable 0"),
        ([0, 1], [1j, 1.0], "weights: .* dtype complex"),
        ([0, 1], [[1.0], [1.0, 2.0]], "weights: .* values that do not form an array"),
    ],
)
def test_wrong_labels_and_weights_are_answered_kindly(labels, weights, message):
    p = forbidding()
    result = ig.infer(p, "brute")
    calls = {name: lambda y, w, c=cls: c()(result, y, w) for name, cls in LOSSES.items()}
    for name in ("margin", "slack", "perceptron", "viterbi", "cd", "pcd", "sml"):
        calls[name] = lambda y, w, n=name: make(n).evaluate(LossProblem(p, y, w), None)
    calls["cl"] = lambda y, w: make("cl").score(p, y, w)
    calls["pseudo"] = lambda y, w: make("pseudo").value_and_grad(p, y, w)
    exact = rule("envelope").differentiate(ig.Exact())
    for name in ("piecewise", "mpf"):
        calls[name] = lambda y, w, name=name: make(name).evaluate(LossProblem(p, y, w), exact)
    for call in calls.values():
        refuses(message, call, labels, weights)


def test_the_callers_arrays_stay_as_they_are():
    p, labels, weights, _ = draw("mixed", 1)
    kept = labels.copy(), weights.copy()
    for loss in BELIEF_LOSSES:
        make(loss)(ig.infer(p, "brute"), labels, weights)
    make("pseudo").value_and_grad(p.with_evidence({0: int(max(labels[0], 0))}), labels, weights)
    assert_array_equal(labels, kept[0])
    assert_array_equal(weights, kept[1])


def test_max_marginals_can_be_scored_too():
    p, labels, *_ = draw("grid", 0)
    with no_convergence_warnings():
        assert np.isfinite(make("ucl")(ig.infer(p, "max-product"), labels).value).all()
