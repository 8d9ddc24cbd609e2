"""Queries to results: each against the sum over all assignments, and on approximations against what they promise."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isinglass as ig
from checks import refuses
from isinglass.testing.strategies import random_potentials

EXACT = ["exact", "brute"]


def joint_table(p):
    """The normalised table of all variables."""
    shape = tuple(p.graph.cards.tolist())
    states = np.array(list(itertools.product(*map(range, shape)))).reshape(-1, len(shape))
    weights = np.exp(p.log_score(states))
    return (weights / weights.sum()).reshape(shape)


def marginal(table, *variables):
    summed = table.sum(axis=tuple(k for k in range(table.ndim) if k not in variables))
    return np.transpose(summed, np.argsort(np.argsort(variables)))


def model(seed, scopes=((0, 1), (1, 2), (2, 3), (3, 0), (1,)), cards=(2, 3, 2, 2), size=0.7):
    return random_potentials(ig.FactorGraph(cards, scopes), np.random.default_rng(seed), size)


@pytest.mark.parametrize("algorithm", EXACT)
@given(seed=st.integers(0, 10**6), pair=st.permutations(range(4)))
@settings(max_examples=10, deadline=None)
def test_exact_answers_are_sums_over_assignments(algorithm, seed, pair):
    p = model(seed)
    r, table = ig.infer(p, algorithm), joint_table(p)
    i, j, k, _ = pair
    two = marginal(table, i, j)
    assert r.pair(i, j) == pytest.approx(two, abs=1e-12)
    assert r.entropy() == pytest.approx(-(table * np.log(table)).sum(), abs=1e-9)
    assert r.entropy([i, j]) == pytest.approx(-(two * np.log(two)).sum(), abs=1e-9)
    independent = np.outer(two.sum(axis=1), two.sum(axis=0))
    assert r.mutual_information(i, j) == pytest.approx((two * np.log(two / independent)).sum(), abs=1e-9)
    three = marginal(table, k, i, j)
    assert r.conditional([i, j], given=[k]) == pytest.approx(three / three.sum(axis=(1, 2), keepdims=True), abs=1e-10)
    assert r.conditional(i, given={k: 1}) == pytest.approx(three[1].sum(axis=1) / three[1].sum(), abs=1e-10)
    x, y = np.indices(two.shape)
    covariance = (two * x * y).sum() - (two * x).sum() * (two * y).sum()
    scale = np.sqrt(((two * x**2).sum() - (two * x).sum() ** 2) * ((two * y**2).sum() - (two * y).sum() ** 2))
    assert r.correlation(i, j) == pytest.approx(covariance / scale, abs=1e-9)
    states = np.stack(np.indices(table.shape), axis=-1)
    assert r.expect(lambda s: np.sin(s @ [1, 2, 3, 4])) == pytest.approx((table * np.sin(states @ [1, 2, 3, 4])).sum())
    assert r.expect(lambda s: s[:, 0] > s[:, 1], [j, i]) == pytest.approx(two[x < y].sum())


@pytest.mark.parametrize("algorithm", ["bp", "trw"])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=5, deadline=None)
def test_linear_response_is_exact_on_trees(algorithm, seed):
    p = model(seed, scopes=((0, 1), (1, 2), (2, 3)))
    r, table = ig.infer(p, algorithm, tol=1e-12), joint_table(p)
    for i, j in ((0, 3), (3, 1), (1, 2)):
        assert r.pair(i, j) == pytest.approx(marginal(table, i, j), abs=1e-7)
    assert r.entropy() == pytest.approx(-(table * np.log(table)).sum(), abs=1e-7)


@pytest.mark.parametrize("algorithm", ["bp", "trw", "mf", "convex"])
def test_linear_response_on_loops_is_the_slope_of_the_beliefs(algorithm):
    p = model(3, size=0.4)
    r = ig.infer(p, algorithm, tol=1e-11)
    found, h = r.pair(0, 2), 1e-5
    assert found.sum(axis=1) == pytest.approx(r.variable(0), abs=1e-8)
    assert found.sum(axis=0) == pytest.approx(r.variable(2), abs=1e-8)
    sides = []
    for step in (h, -h):
        tables = [np.array(table) for table in p.log_tables]
        tables[0][0] += step  # of the factor (0, 1): a field on state 0 of variable 0
        sides.append(ig.infer(ig.Potentials(p.graph, tables), algorithm, tol=1e-12).variable(2))
    slope = (sides[0] - sides[1]) / (2 * h)
    assert found[0] - r.variable(0)[0] * r.variable(2) == pytest.approx(slope, abs=1e-6)


def test_linear_response_on_small_models():
    p = model(5, size=0.5)
    exact, r = marginal(joint_table(p), 0, 2), ig.infer(p, "bp")
    assert np.abs(r.pair(0, 2) - exact).max() < 0.5 * np.abs(np.outer(r.variable(0), r.variable(2)) - exact).max()
    shared = ig.Potentials.from_groups(ig.chain_graph(4, 2), [[[0.2, 0.0]] * 4, [[[0.9, 0.0], [0.1, 0.4]]]])
    assert ig.infer(shared, "bp").pair(0, 3) == pytest.approx(ig.infer(shared).pair(0, 3), abs=1e-7)
    p = model(2)
    r = ig.infer(p, "mf", tol=1e-12)
    own = sum(-(b * np.log(b)).sum() for b in r.variables)
    assert r.entropy() == pytest.approx(own, abs=1e-8)


def test_samplers_answer_from_their_draws():
    p = model(1)
    table = joint_table(p)
    r = ig.infer(p, "gibbs", random_state=0, sweeps=4000)
    assert r.pair(0, 2) == pytest.approx(marginal(table, 0, 2), abs=0.02)
    assert r.pair(2, 0) == pytest.approx(r.pair(0, 2).T)
    assert r.expect(lambda s: s.sum(axis=1)) == pytest.approx(
        sum((marginal(table, i) * np.arange(k)).sum() for i, k in enumerate(table.shape)), abs=0.05
    )
    refuses("result with log Z", r.entropy)


def test_expectations_by_draws():
    p = ig.Potentials.from_groups(ig.grid_graph(5, 5, 2), [np.zeros((25, 2)), 0.3 * np.eye(2)[None]])
    r = ig.infer(p)
    refuses(r"at most 1048576 joint states, got 3.36e.07 .* give samples=10_000", r.expect, lambda s: s.sum(axis=1))
    found = r.expect(lambda s: s.sum(axis=1), samples=4000, random_state=0)
    assert found == pytest.approx(12.5, abs=0.5)
    r = ig.infer(ig.Potentials(ig.FactorGraph([2], [(0,)]), [[0.0, 1.0]]))
    refuses("f: expected a function of states", r.expect, 3)


def test_hard_zeros_and_evidence():
    p = ig.Potentials.from_values(ig.FactorGraph([2, 2, 2], [(0, 1), (1, 2)]), [np.eye(2), [[1, 2], [3, 0]]])
    r = ig.infer(p)
    assert r.entropy() == pytest.approx(-sum(q * np.log(q) for q in (1 / 6, 2 / 6, 3 / 6)))
    table = r.conditional(0, given=[1, 2])
    assert np.isnan(table[1, 1]).all()
    assert table[1, 0].tolist() == [0, 1]
    clamped = ig.infer(p, "bp", evidence={1: 1})
    assert clamped.pair(0, 2).tolist() == [[0, 0], [1, 0]]
    assert np.isnan(clamped.conditional(0, given={1: 0})).all()
    assert clamped.conditional(0, given={1: 1}).tolist() == [0, 1]
    assert np.isnan(clamped.correlation(0, 2))
    assert r.pair(1, 1) == pytest.approx(np.diag(r.variable(1)))


def test_correlation_of_given_values():
    p = ig.Potentials.from_values(ig.FactorGraph([3, 2], [(0, 1)]), [[[1, 0], [0, 1], [1, 0]]])
    r = ig.infer(p)
    assert r.correlation(0, 1) == pytest.approx(0)
    assert r.correlation(0, 1, values=([1, 0, 1], [1, 0])) == pytest.approx(1)


def test_names_in_queries():
    g = ig.FactorGraph({"a": ["x", "y"], "b": 2, "c": 2}, [("a", "b"), ("b", "c")])
    p = random_potentials(g, np.random.default_rng(0), 1.0)
    named, r = ig.infer(p), ig.infer(p)
    assert named.conditional(["c"], given={"a": "y"}).tolist() == r.conditional([2], given={0: 1}).tolist()
    assert named.conditional("c", given="a").tolist() == r.conditional(2, given=0).tolist()
    assert named.mutual_information("a", "c") == r.mutual_information(0, 2)
    assert named.expect(lambda s: s[:, 0], ["c"]) == pytest.approx(r.variable(2)[1])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r: r.conditional(0, given={0: 1}), "given: expected variables other than those asked for, got 0"),
        (lambda r: r.pair(0, 9), "j: expected a number below 4"),
        (lambda r: r.correlation(0, 1, values=([1], [2])), r"values\[0\]: expected 2 numbers"),
        (lambda r: r.expect(lambda s: s), "f: expected an array .24,., one number for each assignment"),
        (lambda r: r.expect(lambda s: ["a"] * len(s)), "f: expected a function that gives one number"),
        (lambda r: r.expect(len, samples=0), "samples: expected a whole number"),
        (lambda r: ig.infer(r.potentials, "bp").entropy([0, 1, 3]), "share a factor, .* infer with 'exact'"),
        (lambda r: ig.infer(r.potentials, "bp", iterations=2).pair(0, 2), "iterations: expected None"),
        (lambda r: ig.infer(r.potentials, "max-product").entropy(), "beliefs that approximate marginals"),
    ],
)
def test_questions_without_an_answer_say_why(call, words):
    refuses(words, call, ig.infer(model(0)))
