"""Exact gradients where beliefs are tiny, and in batches: no example's depends on the others."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig

GRAPHS = {
    "pair": ig.FactorGraph([2, 2], [(0, 1)]),
    "loop": ig.FactorGraph([2, 3, 2], [(0, 1), (1, 2), (2, 0), (1,)]),
    "grid": ig.grid_graph(2, 3, 2),
    "triple": ig.FactorGraph([2, 2, 3], [(0, 1, 2), (1,)]),
}


def peaked(graph, depth, seed=0):
    """Random tables in which state 1 of variable 0 is about e^-depth times as likely as state 0."""
    rng = np.random.default_rng(seed)
    tables = [rng.normal(size=graph.cards[list(scope)]) for scope in graph.scopes]
    a = next(a for a, scope in enumerate(graph.scopes) if 0 in scope)
    np.moveaxis(tables[a], graph.scopes[a].index(0), 0)[1] -= depth
    return ig.Potentials(graph, tables)


def logarithm(p, i, state, result):
    """The derivative of log b_i(state) by the beliefs."""
    bars = [np.zeros(card) for card in p.graph.cards]
    bars[i][state] = 1 / result.variable(i)[state]
    return bars


@pytest.mark.parametrize("algorithm", ["exact", "brute"])
@pytest.mark.parametrize("depth", [0.0, 40.0, 300.0, 640.0, 699.0, 705.0])
@pytest.mark.parametrize("name", GRAPHS)
def test_the_gradient_of_the_log_of_a_tiny_belief(name, depth, algorithm):
    """It is P(. | x_i) - P(.), whatever the size of the belief."""
    p = peaked(GRAPHS[name], depth)
    r = ig.infer(p, algorithm, tape=True)
    given = ig.infer(p, algorithm, evidence={0: 1})
    found = [r.backward(variables=logarithm(p, 0, 1, r)).log_tables]
    found.append(ig.perturbation(p, algorithm, variables=logarithm(p, 0, 1, r)).log_tables)
    for gradient in found:
        for a in range(p.graph.n_factors):
            assert_allclose(gradient[a], given.factor(a) - r.factor(a), atol=1e-13)


@pytest.mark.parametrize("algorithm", ["exact", "brute"])
def test_large_and_small_derivatives_together(algorithm):
    """Derivatives of tiny and of ordinary beliefs add up; neither is lost beside the other."""
    p = peaked(GRAPHS["grid"], 690.0)
    r = ig.infer(p, algorithm, tape=True)
    tiny, plain = logarithm(p, 0, 1, r), logarithm(p, 5, 1, r)
    both = r.backward(0.5, variables=[a + b for a, b in zip(tiny, plain, strict=True)]).log_tables
    parts = r.backward(0.5, variables=tiny).log_tables, r.backward(variables=plain).log_tables
    for a in range(p.graph.n_factors):
        assert_allclose(both[a], parts[0][a] + parts[1][a], atol=1e-13)


@pytest.mark.parametrize("algorithm", ["exact", "brute"])
def test_evidence_and_hard_zeros_beside_tiny_beliefs(algorithm):
    p = peaked(GRAPHS["triple"], 700.0)
    tables = [np.array(t) for t in p.log_tables]
    tables[0][0, 1, 2] = tables[0][1, 0, 1] = -np.inf
    q = ig.Potentials(p.graph, tables, {1: 1})
    r = ig.infer(q, algorithm, tape=True)
    given = ig.infer(q, algorithm, evidence={0: 1})
    gradient = r.backward(variables=logarithm(q, 0, 1, r)).log_tables
    for a in range(p.graph.n_factors):
        assert_allclose(gradient[a], given.factor(a) - r.factor(a), atol=1e-13)


@pytest.mark.parametrize("algorithm", ["exact", "brute"])
def test_a_gradient_is_the_same_alone_and_in_a_batch(algorithm):
    """Also beside an example with a belief of 1e-304, whose derivative is 1e304."""
    examples = [peaked(graph, depth) for graph, depth in zip(GRAPHS.values(), (699.0, 3.0, 0.0, 50.0), strict=True)]
    union = ig.disjoint_union([p.graph for p in examples])
    whole = ig.Potentials(union, [t for p in examples for t in p.log_tables])
    bars, alone = [], []
    for p in examples:
        r = ig.infer(p, algorithm, tape=True)
        bars += [0.3 * bar for bar in logarithm(p, 0, 1, r)]
        alone += list(r.backward(0.7, variables=bars[-p.graph.n_variables :]).log_tables)
    batch = ig.infer(whole, algorithm, tape=True).backward(0.7, variables=bars).log_tables
    for one, other in zip(alone, batch, strict=True):
        assert np.isfinite(one).all()
        assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_a_converged_perturbation_is_the_same_alone_and_in_a_batch():
    """A step is a power of two, of each example its own."""
    examples = [peaked(ig.chain_graph(3, 2), depth, seed) for seed, depth in enumerate((0.0, 699.0, 2.0))]
    union = ig.disjoint_union([p.graph for p in examples])
    whole = ig.Potentials(union, [t for p in examples for t in p.log_tables])
    options = {"tol": 0.0, "max_iter": 20, "schedule": "tree"}
    bars, alone = [], []
    for p in examples:
        bars += [0.3 * bar for bar in logarithm(p, 0, 1, ig.infer(p, "exact"))]
        alone += list(ig.perturbation(p, "bp", variables=bars[-3:], **options).log_tables)
    batch = ig.perturbation(whole, "bp", variables=bars, **options).log_tables
    for one, other in zip(alone, batch, strict=True):
        assert np.isfinite(one).all()
        assert_allclose(one, other, rtol=1e-12, atol=1e-12)
