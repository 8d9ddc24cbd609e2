"""Ising and Potts as models that are learned."""

from itertools import product

import numpy as np
import pytest

import isinglass as ig
from checks import refuses
from isinglass.models import Ising, Potts


@pytest.mark.parametrize("per_site", [False, True])
@pytest.mark.parametrize("family", [Ising, Potts])
def test_scores_against_the_formula(family, per_site):
    rng, k = np.random.default_rng(0), 2 if family is Ising else 3
    graph = ig.grid_graph(2, 2, k)
    shape = (4,) if k == 2 else (4, 3)
    J, h = (rng.standard_normal(4), rng.standard_normal(shape)) if per_site or k == 3 else (0.4, -0.3)
    p = family(graph).potentials(coupling=J, field=h)
    J, h, pairs = np.broadcast_to(J, 4), np.broadcast_to(h, shape), [scope for scope in graph.scopes if len(scope) == 2]
    for x in product(range(k), repeat=4):
        expected = sum(h[i] * (2 * a - 1) if k == 2 else h[i, a] for i, a in enumerate(x))
        same = [(x[a] == x[b]) if k == 3 else (2 * x[a] - 1) * (2 * x[b] - 1) for a, b in pairs]
        assert p.log_score(x) == pytest.approx(expected + J @ same, abs=1e-12)
    assert len(p.groups[1]) == (4 if np.ndim(J) and (per_site or k == 3) else 1)


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


def test_fields_are_counted_once_and_couplings_go_by_factor():
    graph = ig.FactorGraph([2, 2], [(0,), (0, 1), (0,), (1, 0)])
    p = Ising(graph).potentials(coupling=[1.0, 10.0], field=[0.5, 0.0])
    assert p.log_score([1, 1]) == 11.5
    assert p.log_tables[3][0, 0] == 10.0
    refuses("field: expected fields only at variables that have a factor", Ising(graph).potentials, field=1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Ising(3), "graph: expected a FactorGraph"),
        (lambda: Ising(ig.chain_graph(2, 3)), r"graph: expected binary variables .* shape \(3,\)"),
        (
            lambda: Ising(ig.chain_graph(3, 2)).potentials([1.0]),
            "coupling: expected one number, or one for each of 2 pairs",
        ),
        (lambda: Ising(ig.chain_graph(3, 2)).potentials(field=np.nan), "field: expected finite real numbers"),
    ],
)
def test_wrong_calls_are_answered_kindly(call, message):
    refuses(message, call)
