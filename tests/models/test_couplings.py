"""Ising and Potts as models that are learned."""

from itertools import product

import numpy as np
import pytest

import isinglass as ig
from checks import refuses
from isinglass.models import Ising, Potts


def test_scores_of_potts_against_the_formula():
    rng = np.random.default_rng(0)
    graph = ig.grid_graph(2, 2, 3)
    J, h = rng.standard_normal(4), rng.standard_normal((4, 3))
    p = Potts(graph).potentials(J, h)
    pairs = [scope for scope in graph.scopes if len(scope) == 2]
    for x in product(range(3), repeat=4):
        expected = sum(h[i, a] for i, a in enumerate(x))
        expected += sum(j * (x[a] == x[b]) for j, (a, b) in zip(J, pairs, strict=True))
        assert p.log_score(x) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("family", [Ising, Potts])
def test_the_model_has_the_same_tables(family, tied):
    states = 2 if family is Ising else 3
    graph = ig.FactorGraph([states] * 3, [(0,), (0, 1), (1, 2), (2,), (0,)])  # two factors at 0, none at 1
    rng, model = np.random.default_rng(1), family(graph).model(tied)
    for term in model.terms:
        term.check()
    theta = rng.standard_normal(model.size)
    named = model.split(theta)
    field = np.zeros((3, *named["field"].shape[(0 if tied else 1) :]))
    field[[0, 2]] = named["field"]
    direct = family(graph).potentials(named["coupling"], field)
    states_of = np.array(list(product(range(states), repeat=3)))
    np.testing.assert_allclose(model.potentials(theta).log_score(states_of), direct.log_score(states_of), atol=1e-12)


@pytest.mark.parametrize("family", [Ising, Potts])
def test_maximum_likelihood_matches_moments(family):
    """At the optimum, the expected field and coupling statistics are those of the data."""
    states = 2 if family is Ising else 3
    graph = ig.grid_graph(2, 3, states)
    X = np.random.default_rng(0).integers(0, states, (60, 6))
    X[:, 1] = np.where(np.random.default_rng(1).random(60) < 0.6, X[:, 0], X[:, 1])
    mrf = ig.MRF(family(graph), tol=1e-8).fit(X)
    assert set(mrf.parameters_) == {"field", "coupling"}
    r = ig.infer(mrf.potentials_)
    for i in range(6):
        np.testing.assert_allclose(r.variable(i), np.bincount(X[:, i], minlength=states) / 60, atol=1e-5)
    for a, scope in enumerate(graph.scopes):
        if len(scope) == 2:
            equal = np.mean(X[:, scope[0]] == X[:, scope[1]])
            assert np.trace(r.factor(a)) == pytest.approx(equal, abs=1e-5)
    tied = ig.MRF(family(graph), tied=True, method="pseudo").fit(X)
    assert np.shape(tied.parameters_["coupling"]) == ()


def test_wrong_input():
    refuses("graph: expected equally many states", Potts, ig.FactorGraph([2, 3], [(0,)]))
    refuses("variables of 3 states and factors of one or two", Potts, ig.FactorGraph([3, 3, 3], [(0, 1, 2)]))
    refuses(r"field: expected one number, or shape \(3,\)", Potts(ig.grid_graph(2, 2, 3)).potentials, field=[1.0, 2.0])
    for huge in ({"field": 1e301}, {"coupling": [1.0, 1.0, -1e308, 1.0]}):
        refuses(r"(field|coupling): expected numbers up to 1e\+300", Potts(ig.grid_graph(2, 2, 3)).potentials, **huge)
    refuses("graph: expected a FactorGraph, or a Model", ig.MRF(3).fit, [[0]])
    with pytest.raises(ig.InputError, match="pickle the estimator"):
        ig.MRF(Ising(ig.chain_graph(2, 2))).fit([[0, 1], [1, 1], [1, 0]]).save("nowhere.npz")
