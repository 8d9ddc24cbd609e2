"""Boltzmann machines: which pairs have weights, and learning with hidden units."""

from itertools import product

import numpy as np
import pytest

import isinglass as ig
from isinglass.errors import no_convergence_warnings
from isinglass.models import BoltzmannMachine


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
def test_wrong_calls_are_answered_kindly(call, name):
    with pytest.raises(ig.InputError, match=name):
        call()
