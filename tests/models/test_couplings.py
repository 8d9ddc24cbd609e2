"""Ising and Potts as models that are learned."""

from itertools import product

import numpy as np
import pytest

import isinglass as ig
from checks import refuses
from isinglass.errors import no_convergence_warnings
from isinglass.models import BoltzmannMachine, Hopfield, Ising, Potts


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
        ig.MRF(Ising(ig.chain_graph(2, 2))).fit([[0, 0], [0, 1], [1, 1], [1, 0]]).save("nowhere.npz")


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


def data(n=200):
    """Return rows of two kinds, with noise."""
    rng = np.random.default_rng(0)
    X = np.where(rng.integers(0, 2, (n, 1)) == 1, [1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1])
    return np.where(rng.random(X.shape) < 0.1, 1 - X, X)


def test_hidden_units_of_a_restricted_machine_are_summed_out_by_the_formula():
    rng, machine = np.random.default_rng(0), BoltzmannMachine(4, 3, "restricted")
    W, a, b = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=3)
    p = machine.potentials(W.ravel(), np.concatenate([a, b]))
    V = np.array(list(product((0, 1), repeat=4)))
    minus_free_energy = V @ a + np.logaddexp(0.0, V @ W + b).sum(axis=1)
    found = [ig.infer(p, "exact", evidence=dict(enumerate(v.tolist()))).log_z for v in V]
    np.testing.assert_allclose(found, minus_free_energy, atol=1e-12)
    assert abs(ig.infer(p, "exact").log_z - np.logaddexp.reduce(minus_free_energy)) < 1e-12


@pytest.mark.parametrize("method", ["ml", "em", "cd", "pcd", "sml"])
def test_a_restricted_machine_learns_with_hidden_units(method):
    X, machine = data(), BoltzmannMachine(6, 2, "restricted")
    with no_convergence_warnings():
        mrf = ig.MRF(machine, method=method, max_iter=300).fit(machine.with_hidden(X))
    p = X.mean(axis=0)
    independent = len(X) * (p * np.log(p) + (1 - p) * np.log(1 - p)).sum()
    assert mrf.log_likelihood(machine.with_hidden(X)) > independent + 0.5 * len(X)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: BoltzmannMachine(2, 1, "some"), "edges"),
        (lambda: BoltzmannMachine(2, 1).with_hidden([[0, 1, 0]]), "X"),
    ],
)
def test_wrong_machines(call, name):
    with pytest.raises(ig.InputError, match=name):
        call()


def patterns(n=5, size=40, seed=0):
    return np.random.default_rng(seed).integers(0, 2, (n, size))


@pytest.mark.parametrize("storage", ["hebb", "pseudo-inverse", "pseudolikelihood"])
def test_the_energy_is_that_of_the_ising_model_and_never_rises(storage):
    memory = Hopfield.store(patterns(3, 12), storage)
    rng = np.random.default_rng(1)
    states = rng.integers(0, 2, (6, 12))
    np.testing.assert_allclose(memory.potentials().log_score(states), -memory.energy(states), atol=1e-12)
    for start in states:
        found = memory.recall(start)
        assert found.converged
        assert (np.diff(found.energies) <= 1e-12).all()
        assert found.energies[-1] == pytest.approx(float(memory.energy(found.states)))
        flips = np.where(np.eye(12, dtype=bool), 1 - found.states, found.states)
        assert (memory.energy(flips) >= found.energies[-1] - 1e-12).all()  # a local minimum


def test_pseudo_inverse_storage_keeps_patterns_that_are_alike():
    X = patterns()
    X[1] = X[0]
    X[1, :4] = 1 - X[1, :4]
    for storage, kept in (("pseudo-inverse", True), ("pseudolikelihood", True)):
        memory = Hopfield.store(X, storage)
        assert all(np.array_equal(memory.recall(x).states, x) for x in X) is kept
    weights = Hopfield.store(X, "pseudo-inverse").weights
    spins = 2.0 * X - 1
    projection = spins.T @ np.linalg.pinv(spins.T)
    np.testing.assert_allclose(weights, projection - np.diag(np.diagonal(projection)), atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_patterns_that_come_again_change_nothing(seed):
    rng = np.random.default_rng(seed)
    patterns = rng.integers(0, 2, (int(rng.integers(1, 8)), 88))
    once = Hopfield.store(patterns, "pseudo-inverse")
    again = Hopfield.store(np.vstack([patterns, patterns, patterns[:1]]), "pseudo-inverse")
    np.testing.assert_allclose(again.weights, once.weights, atol=1e-12)
    assert all((again.recall(pattern).states == pattern).all() for pattern in patterns)


def test_clamped_spins_and_weights_of_an_mrf():
    X = patterns()
    mask = np.arange(40) < 20
    start = np.where(mask, 1 - X[0], X[0])
    found = Hopfield.store(X).recall(start, mask)
    np.testing.assert_array_equal(found.states[mask], start[mask])
    assert not Hopfield.store(X).recall(1 - X[0] ^ X[1], max_sweeps=1).converged
    X = patterns(6, 5)
    pairs = [(i, j) for i in range(5) for j in range(i)]
    mrf = ig.MRF(Ising(ig.FactorGraph([2] * 5, pairs)), method="pseudo", l2=0.3, tol=1e-9).fit(X)
    weights = Hopfield.store(X, "pseudolikelihood", l2=0.3).weights
    np.testing.assert_allclose([weights[i, j] for i, j in pairs], mrf.parameters_["coupling"], atol=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Hopfield([[0.0, 1.0], [0.5, 0.0]]), "weights: expected a symmetric matrix with a diagonal of zeros"),
        (lambda: Hopfield(np.eye(2)), "diagonal of zeros"),
        (lambda: Hopfield.store([[0, 2]]), "patterns: expected an array of 2 dimensions of 0 and 1"),
        (lambda: Hopfield.store([[0, 1]], "outer"), "storage: expected 'hebb' or 'pseudo-inverse'"),
        (lambda: Hopfield.store([[0, 1]], "pseudolikelihood", l2=0), "l2"),
        (lambda: Hopfield.store([[0, 1]]).recall([0, 1, 1]), "states: expected 2 states"),
        (lambda: Hopfield.store([[0, 1]]).recall([0, 1], [1, 0]), "clamped: expected 2 times True or False"),
        (lambda: Hopfield.store([[0, 1]]).recall([0, 1], max_sweeps=0), "max_sweeps"),
        (lambda: Hopfield.store([[0, 1]]).potentials(0.0), "temperature: expected a number above zero"),
    ],
)
def test_wrong_networks(call, message):
    with pytest.raises(ig.InputError, match=message):
        call()
