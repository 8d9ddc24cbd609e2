"""Hammersley-Clifford: canonical potentials of positive tables, and back."""

import numpy as np
import pytest
from hypothesis import given, settings

import isinglass as ig
from isinglass.testing import factor_graphs, potentials


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


def test_a_markov_distribution_has_potentials_on_the_cliques_of_its_graph():
    rng = np.random.default_rng(1)
    graph = ig.grid_graph(2, 3, 2)
    p = ig.Potentials(graph, [rng.standard_normal(t) for t in [(2,)] * 6 + [(2, 2)] * 7])
    table = ig.infer(p).joint(range(6))
    assert set(ig.canonical_potentials(table).graph.scopes) == {(), *(tuple(sorted(s)) for s in graph.scopes)}


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
