"""The compiled likelihood of known labels: the same as the general one, and the same bits for any number of threads."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from isinglass import losses
from isinglass.kernels.numba.arithmetic.exponentials import exp_of_negative
from isinglass.learning import chain
from isinglass.learning.chain import SequenceObjective
from isinglass.models.chain import layout
from isinglass.models.chain.attributes import StateFeatures
from isinglass.models.chain.layout import aligned, width_of
from isinglass.models.chain.model import PIECE, SequenceModel, Sequences


def problem(card, labels_each, binary=True, tokens=3000, attributes=60, seed=0):
    """Return attributes that each occur with some labels only, so that some have rows of weights and others lists."""
    rng = np.random.default_rng(seed)
    lengths = []
    while sum(lengths) < tokens:
        lengths.append(int(rng.integers(0, 40)))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    y = rng.integers(0, card, offsets[-1])
    few = np.array([rng.permutation(card) < n for n in np.resize(labels_each, attributes)])
    X = (rng.random((offsets[-1], attributes)) < 0.3) & few[:, y].T
    return csr_array(X * (1.0 if binary else rng.normal(size=X.shape))), offsets, y, lengths


def objective(X, offsets, y, card, threads=1, weights=None, boundary=False):
    features = StateFeatures.seen(X, y, card)
    model = SequenceModel(features, boundary, np.zeros((card + 1, card + 1), bool))
    data = Sequences(features.compiled(X), offsets)
    return SequenceObjective(model, data, y, losses.make("cl"), 0.1, weights, threads)


def check_both_ways(f, theta):
    """Compare with the objective that goes by the scores of whole pieces."""
    assert f.known is not None
    value, gradient = f(theta)
    f.known = None
    other, expected = f(theta)
    assert_allclose(value, other, rtol=1e-12)
    assert_allclose(gradient, expected, rtol=1e-12, atol=1e-12 * abs(expected).max())


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize(("card", "labels_each"), [(5, (1, 5)), (22, (2, 20)), (25, (3, 9)), (90, (20, 80))])
def test_the_compiled_pass_is_the_general_likelihood(card, labels_each, binary):
    X, offsets, y, lengths = problem(card, labels_each, binary)
    rng = np.random.default_rng(1)
    weights = np.repeat(0.5 + rng.random(len(lengths)), lengths)
    f = objective(X, offsets, y, card, weights=weights, boundary=True)
    rich = f.model.features.rich
    assert rich.any()
    assert not rich.all()
    check_both_ways(f, rng.normal(size=f.model.size))


def test_long_lists_are_not_written_out():
    X, offsets, y, _ = problem(90, (20,))
    f = objective(X, offsets, y, 90)
    assert f.training.entries is None
    assert len(f.training.lists[1])


def test_chains_that_underflow_are_done_in_logarithms():
    X, offsets, y, _ = problem(5, (1, 5))
    f = objective(X, offsets, y, 5, boundary=True)
    theta = np.random.default_rng(2).normal(size=f.model.size)
    f(theta)  # leaves slopes where those of the next point will be
    check_both_ways(f, 200 * theta)


@pytest.mark.long
@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize(("card", "labels_each"), [(22, (2, 20)), (90, (20, 80))])
def test_threads_change_no_bit(card, labels_each, binary):
    X, offsets, y, _ = problem(card, labels_each, binary, tokens=4 * PIECE)
    made = [objective(X, offsets, y, card, threads) for threads in (1, 2, 3, 16)]
    theta = np.random.default_rng(3).normal(size=made[0].model.size)
    one, *others = (f(theta) for f in made)
    for other in others:
        assert other[0] == one[0]
        assert_array_equal(other[1], one[1])


def test_many_small_pieces_on_many_threads(monkeypatch):
    """Threads make pieces in any order, and share few places for slopes: no piece may be lost, or added twice."""
    monkeypatch.setattr(chain, "_IN_CACHE", 64)
    X, offsets, y, _ = problem(5, (1, 5), tokens=2000)
    one, *made = [objective(X, offsets, y, 5, threads) for threads in (1, 2, 16)]
    assert len(one.cuts) > 90
    for seed in range(8):
        theta = np.random.default_rng(seed).normal(size=one.model.size)
        value, gradient = one(theta)
        for f in made:
            other, found = f(theta)
            assert other == value
            assert_array_equal(found, gradient)
    check_both_ways(one, theta)


def test_a_long_sequence_is_laid_out_in_blocks(monkeypatch):
    monkeypatch.setattr(layout, "_BLOCK", 256)
    X, offsets, y, _ = problem(5, (1, 5), binary=False)
    f = objective(X, np.array([0, 7, 7, offsets[-1]]), y, 5, threads=2, boundary=True)
    assert len(f.cuts) == 2
    assert len(f.training.cuts.blocks) > 90
    check_both_ways(f, np.random.default_rng(5).normal(size=f.model.size))


def test_the_way_back_is_the_transpose():
    """Rows, entries that are written out, and lists that are not: <X w, s> = <w, X' s> for any slopes s."""
    for card, labels_each, threads in ((22, (2, 20), 1), (22, (2, 20), 3), (90, (20, 80), 2), (90, (20,), 1)):
        X, offsets, y, _ = problem(card, labels_each, binary=False, tokens=400)
        f = objective(X, offsets, y, card, threads)
        rng = np.random.default_rng(6)
        theta, slopes = rng.normal(size=f.model.size), aligned(len(y), width_of(card))
        slopes[:, :card] = rng.normal(size=(len(y), card))
        f.training.transpose(slopes, f.spread)
        found, n = np.empty(f.model.features.size), f.model.features.size
        f.training.gradient(f.spread, found)
        weights = np.zeros((X.shape[1], card))
        weights[f.model.features.attributes, f.model.features.labels] = theta[:n]
        expected = (X.T @ slopes[:, :card])[f.model.features.attributes, f.model.features.labels]
        assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        assert_allclose(((X @ weights) * slopes[:, :card]).sum(), found @ theta[:n], rtol=1e-9)


def test_empty_sequences_and_single_tokens():
    X, _, y, _ = problem(5, (1, 5), tokens=100)
    for offsets in ([0, 0, 0], [0, 0, 1, 1, 2, 2]):
        n = offsets[-1]
        features = StateFeatures.all_pairs(X.shape[1], 5)
        model = SequenceModel(features, True, np.zeros((6, 6), bool))
        data = Sequences(features.compiled(csr_array(X[:n])), np.array(offsets))
        for threads in (1, 2):
            f = SequenceObjective(model, data, y[:n], losses.make("cl"), 0.1, None, threads)
            check_both_ways(f, np.random.default_rng(7).normal(size=model.size))


def test_the_exponential_is_within_two_units_in_the_last_place():
    points = -np.concatenate([[0.0, 1e-300, 707.9], 10 ** np.random.default_rng(4).uniform(-8, 2.8, 2000)])
    with np.errstate(over="ignore"):  # of the exponent's bits, which wrap
        found = [exp_of_negative.py_func(x) for x in points]
    exact = np.array([math.exp(x) for x in points])
    assert_array_equal(abs(found - exact) <= 2 * np.spacing(exact), True)
    assert exp_of_negative.py_func(-np.inf) == 0.0
    assert math.isnan(exp_of_negative.py_func(np.nan))
