"""Hopfield networks: storage rules and recall."""

import numpy as np
import pytest

import isinglass as ig
from isinglass.models import Hopfield, Ising


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


def test_clamped_spins_stay():
    X = patterns()
    mask = np.arange(40) < 20
    start = np.where(mask, 1 - X[0], X[0])
    found = Hopfield.store(X).recall(start, mask)
    np.testing.assert_array_equal(found.states[mask], start[mask])
    assert not Hopfield.store(X).recall(1 - X[0] ^ X[1], max_sweeps=1).converged


def test_pseudolikelihood_weights_are_those_of_an_mrf():
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
def test_wrong_input(call, message):
    with pytest.raises(ig.InputError, match=message):
        call()
