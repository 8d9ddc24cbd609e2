"""Objectives of sequences: gradients by finite differences, values by the general objective."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from isinglass import losses
from isinglass.errors import InputError
from isinglass.gradients import rule
from isinglass.inference import Exact
from isinglass.learning import Objective
from isinglass.learning.chain import SequenceObjective
from isinglass.models import chain_model
from isinglass.models.chain.attributes import StateFeatures
from isinglass.models.chain.model import PIECE, SequenceModel, Sequences

NAMES = ["cl", "pseudo", "ucl", "ccl", "uquad", "cquad", "suclass", "scclass"]
LENGTHS = (4, 1, 5, 0, 2)
K, A = 3, 6


def data(hidden, seed=0):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    X = csr_array(rng.normal(size=(offsets[-1], A)) * (rng.random((offsets[-1], A)) < 0.6))
    y = rng.integers(0, K, offsets[-1])
    if hidden == "partly":
        y[[1, 6, 7]] = -1
    elif hidden == "sequence":
        y[5:10] = -1
    return X, offsets, y, rng


def objective(X, offsets, y, name, features="all", weights=None, boundary=False, forbidden=(), l2=0.3, threads=1):
    made = StateFeatures.seen(X, y, K) if features == "seen" else StateFeatures.all_pairs(X.shape[1], K)
    table = np.zeros((K + 1, K + 1), bool)
    for pair in forbidden:
        table[pair] = True
    model = SequenceModel(made, boundary, table)
    return SequenceObjective(model, Sequences(made.compiled(X), offsets), y, losses.make(name), l2, weights, threads)


def check_gradient(f, theta):
    _, gradient = f(theta)
    step = 1e-5
    found = [(f(theta + step * e)[0] - f(theta - step * e)[0]) / (2 * step) for e in np.eye(len(theta))]
    assert_allclose(gradient, found, atol=1e-7)


@pytest.mark.long
@pytest.mark.parametrize("features", ["all", "seen"])
@pytest.mark.parametrize("hidden", ["none", "partly", "sequence"])
@pytest.mark.parametrize("name", NAMES)
def test_gradients(name, hidden, features):
    X, offsets, y, rng = data(hidden)
    weights = np.repeat(rng.random(len(LENGTHS)), LENGTHS) if name == "cl" else rng.random(len(y))
    f = objective(X, offsets, y, name, features, weights, boundary=hidden == "none")
    check_gradient(f, rng.normal(size=f.model.size))


@pytest.mark.parametrize("name", NAMES)
def test_gradients_beside_hard_zeros(name):
    X, offsets, y, rng = data("none")

    y[y == 2] = 1  # label 2 may now be forbidden anywhere
    f = objective(X, offsets, y, name, forbidden=[(2, 0), (0, 2), (K, 2)])
    theta = rng.normal(size=f.model.size)
    check_gradient(f, theta)
    assert_array_equal(f(theta)[1][A * K : A * K + K * K].reshape(K, K)[2, 0], 2 * 0.3 * theta[A * K + 2 * K])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("hidden", ["none", "partly"])
@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_the_general_objective(name, hidden, weighted):
    X, offsets, y, rng = data(hidden)
    parts = [X.toarray()[a:b] for a, b in itertools.pairwise(offsets) if b > a]
    model = chain_model(parts, K)
    weights = None
    if weighted:
        weights = np.repeat(rng.random(len(LENGTHS)), LENGTHS) if name == "cl" else rng.random(len(y))
    general = Objective(model, y, losses.make(name), Exact(), rule("unrolled"), 0.3, weights)
    f = objective(X, offsets, y, name, weights=weights)
    theta = rng.normal(size=f.model.size)
    value, gradient = f(theta)
    expected, slopes = general(theta)
    assert_allclose(value, expected, rtol=1e-11)
    assert_allclose(gradient, slopes, atol=1e-9)


@pytest.mark.parametrize("name", ["cl", "ucl"])
def test_gradients_at_scale_300(name):
    X, offsets, y, rng = data("partly")
    f = objective(X, offsets, y, name, l2=0.0)
    theta = 300 * rng.normal(size=f.model.size)
    if name == "ucl":
        theta /= 10
    check_gradient(f, theta)


def test_threads_and_cuts_change_no_bit():
    rng = np.random.default_rng(5)
    lengths = rng.integers(0, 60, 400)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    assert offsets[-1] > 2 * PIECE
    X = csr_array((rng.random((offsets[-1], 40)) < 0.1).astype(float))
    y = rng.integers(0, K, offsets[-1])
    y[rng.random(len(y)) < 0.01] = -1
    for features in ("seen", "all"):
        made = [objective(X, offsets, y, "cl", features, threads=n) for n in (1, 2, 3)]
        theta = rng.normal(size=made[0].model.size)
        one, *others = (f(theta) for f in made)
        for other in others:
            assert other[0] == one[0]
            assert_array_equal(other[1], one[1])


def test_threads_change_no_bit_of_many_weights():
    rng = np.random.default_rng(6)
    offsets, attributes = np.array([0, 30, 90, 100]), 15_000
    X = csr_array((rng.random((100, attributes)) < 0.1).astype(float))
    y = rng.integers(0, K, 100)
    made = [objective(X, offsets, y, "cl", l2=0.5 + np.arange(K * attributes + K**2) % 3, threads=n) for n in (1, 2, 3)]
    theta = 0.01 * rng.normal(size=made[0].model.size)
    one, *others = (f(theta) for f in made)
    for other in others:
        assert other[0] == one[0]
        assert_array_equal(other[1], one[1])
    plain = objective(X, offsets, y, "cl", l2=0.0)(theta)
    assert_allclose(one[0], plain[0] + (made[0].l2 * theta**2).sum(), rtol=1e-13)
    assert_allclose(one[1], plain[1] + 2 * made[0].l2 * theta, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_forbidden_labels_are_refused(name):
    X, offsets, y, rng = data("none")
    y[:4] = [0, 1, 0, 1]
    f = objective(X, offsets, y, name, forbidden=[(0, 1)])
    if name in ("ucl", "uquad", "cquad", "suclass", "scclass"):
        assert np.isfinite(f(rng.normal(size=f.model.size))[0])
        return
    with pytest.raises(InputError, match="labels that the model allows"):
        f(rng.normal(size=f.model.size))


def test_seen_features_are_those_that_occur():
    X = csr_array([[1.0, 0, 0], [0, 2.0, 0], [0, 1.0, 0]])
    made = StateFeatures.seen(X, np.array([1, 0, -1]), 2)
    assert_array_equal(made.attributes, [0, 1])
    assert_array_equal(made.labels, [1, 0])
    assert StateFeatures.seen(X, np.array([1, 0, 0]), 2, min_count=2).attributes.tolist() == [1]
