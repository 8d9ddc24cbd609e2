"""Conditioning: observed variables leave the graph, and nothing else changes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import isinglass as ig
from checks import each_close, refuses
from isinglass.gradients import forward, rule
from isinglass.losses import LossProblem
from isinglass.losses.conditioned import ConditionedLikelihood
from isinglass.models import ConditionedModel, Conditioning, table_model
from isinglass.testing import factor_graphs, potentials, random_potentials

MIXED = ig.FactorGraph([2, 3, 2, 4, 2], [(0, 1, 2), (2, 3), (0,), (3,), (1, 3), (0, 3), (), (4, 2), (1,)])


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), hidden=st.lists(st.booleans(), min_size=5, max_size=5))
def test_beliefs_and_log_z_are_those_given_the_evidence(seed, hidden):
    rng = np.random.default_rng(seed)
    p = random_potentials(MIXED, rng)
    states = np.where(hidden, -1, rng.integers(0, MIXED.cards))
    made = Conditioning(p.graph, p.table_ids, [len(t) for t in p.groups], states)
    left = made.potentials(p)
    with_evidence = ig.infer(p, "brute", evidence={i: int(x) for i, x in enumerate(states) if x >= 0})
    found = ig.infer(left, "brute")
    assert found.log_z == pytest.approx(with_evidence.log_z, abs=1e-10)
    for new, old in enumerate(made.variables):
        assert_allclose(found.variable(new), with_evidence.variable(old), atol=1e-12)
    bars = [rng.normal(size=t.shape) for t in left.groups]
    direction = [rng.normal(size=t.shape) for t in p.groups]
    moved = made.potentials(ig.Potentials.from_groups(p.graph, direction, p.table_ids)).groups
    forth = sum((b * m).sum() for b, m in zip(bars, moved, strict=True))
    back = sum((b * d).sum() for b, d in zip(made.back(bars), direction, strict=True))
    assert forth == pytest.approx(back, abs=1e-9)


def test_every_example_has_its_own_pattern():
    rng = np.random.default_rng(1)
    plain = table_model(MIXED)
    theta = rng.normal(size=plain.size)
    states = np.where(rng.random((6, 5)) < 0.5, -1, rng.integers(0, MIXED.cards, (6, 5)))
    states[2], states[3] = -1, rng.integers(0, MIXED.cards)  # all hidden, and all observed
    model = ConditionedModel(plain, states)
    p = plain.potentials(theta)
    for algorithm in ("exact", "bp"):
        together = ig.infer(model.potentials(theta), algorithm)
        for e, row in enumerate(states):
            alone = ig.infer(ConditionedModel(plain, [row]).potentials(theta), algorithm)
            assert_allclose(together.component_log_z[e], alone.log_z, rtol=1e-10)
            if algorithm == "exact":
                truth = ig.infer(p, "brute", evidence={i: int(x) for i, x in enumerate(row) if x >= 0})
                assert_allclose(alone.log_z, truth.log_z, rtol=1e-10)


def test_the_gradient_of_log_z_reaches_the_parameters():
    rng = np.random.default_rng(2)
    plain = table_model(MIXED)
    states = np.where(rng.random((4, 5)) < 0.5, -1, rng.integers(0, MIXED.cards, (4, 5)))
    model = ConditionedModel(plain, states)
    theta, v = rng.normal(size=(2, plain.size))
    slope = model.transpose(ig.infer(model.potentials(theta), "exact", tape=True).backward(log_z=1.0).groups) @ v
    up, down = (ig.infer(model.potentials(theta + s * v), "exact").log_z for s in (1e-5, -1e-5))
    assert slope == pytest.approx((up - down) / 2e-5, rel=1e-7)
    complex_step = ig.infer(model.potentials(theta + 1e-20j * v), "exact").log_z
    assert slope == pytest.approx(complex_step.imag / 1e-20, rel=1e-10)


def test_hard_zeros_and_markov_distributions():
    graph = ig.FactorGraph([2, 2, 2], [(0, 1), (1, 2)])
    p = ig.Potentials(graph, [[[0.0, -np.inf], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]])
    left = Conditioning(graph, p.table_ids, [2], np.array([0, -1, -1])).potentials(p)
    assert ig.infer(left, "bp").variable(0).tolist() == [1.0, 0.0]
    rng = np.random.default_rng(1)
    graph = ig.grid_graph(2, 3, 2)
    p = ig.Potentials(graph, [rng.standard_normal(t) for t in [(2,)] * 6 + [(2, 2)] * 7])
    table = ig.infer(p).joint(range(6))
    assert set(ig.canonical_potentials(table).graph.scopes) == {(), *(tuple(sorted(s)) for s in graph.scopes)}


@pytest.mark.parametrize("seed", range(3))
def test_the_likelihood_of_labels_with_hidden_variables(seed):
    rng = np.random.default_rng(seed)
    p = ig.potentials_union([random_potentials(MIXED, rng), random_potentials(MIXED, rng)])
    labels = np.where(rng.random(10) < 0.4, -1, rng.integers(0, p.graph.cards))
    problem = LossProblem(p, labels, np.repeat([1.0, 2.0], 5))
    back = rule("unrolled").differentiate(ig.Exact())
    one, two = (loss.evaluate(problem, back) for loss in (ig.losses.Likelihood(), ConditionedLikelihood()))
    assert_allclose(one.value, two.value, atol=1e-10)
    each_close(one.groups, two.groups, atol=1e-10)
    assert_allclose(ConditionedLikelihood().evaluate(problem, forward(ig.Exact())).value, one.value, atol=1e-10)


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ([[0, 1]], r"states: expected an int array \(examples, 5\), .* got shape \(1, 2\)"),
        ([[0, 3, 0, 0, 0]], "states: expected .* got 3 for variable 1 of example 0"),
        ([[0, -2, 0, 0, 0]], "states: expected .* got -2 for variable 1 of example 0"),
        (np.zeros((0, 5), int), r"states: expected .* got shape \(0, 5\)"),
    ],
)
def test_wrong_states_are_refused(states, message):
    refuses(message, ConditionedModel, table_model(MIXED), states)


def test_the_formula_with_signs():
    rng = np.random.default_rng(0)
    table = rng.uniform(0.1, 1, (2, 3, 2))
    found = ig.canonical_potentials(table, reference=[1, 2, 0])
    for scope, phi in zip(found.graph.scopes, found.log_tables, strict=True):
        for x in np.ndindex(phi.shape):
            total = 0.0
            for chosen in np.ndindex((2,) * len(scope)):  # which of the variables are in B
                at = [1, 2, 0]
                for k, i in enumerate(scope):
                    at[i] = x[k] if chosen[k] else at[i]
                total += (-1) ** (len(scope) - sum(chosen)) * np.log(table[tuple(at)])
            assert phi[x] == pytest.approx(total, abs=1e-12)
    assert len(found.graph.scopes) == 8


@settings(max_examples=60, deadline=None)
@given(potentials(factor_graphs(max_variables=5), zeros=False, evidence=False))
def test_there_and_back(p):
    free = p.without_evidence()
    found = ig.canonical_potentials(free)
    n = p.graph.n_variables
    states = np.stack(np.meshgrid(*map(np.arange, p.graph.cards), indexing="ij"), axis=-1).reshape(-1, n)
    np.testing.assert_allclose(found.log_score(states), free.log_score(states), atol=1e-7)
    if n:
        table = ig.infer(free, "brute").joint(range(n))
        again = ig.canonical_potentials(table)
        np.testing.assert_allclose(ig.infer(again, "brute").joint(range(n)), table, atol=1e-9)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ([[0.5, 0.0], [0.25, 0.25]], r"0.0 at index \(0, 1\)"),
        ([0.5, np.nan], "nan"),
        (ig.Potentials(ig.FactorGraph([2], [(0,)]), [[0.0, -np.inf]]), "a zero in the table of factor 0"),
    ],
)
def test_zeros_are_refused(model, words):
    with pytest.raises(ig.InputError, match=words):
        ig.canonical_potentials(model)
