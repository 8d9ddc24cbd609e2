"""Threads: the same bits for any number of them."""

from itertools import pairwise

import numpy as np
import pytest
from estimator_helpers import KINDS, grid, images
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from isinglass.estimators import problem
from isinglass.estimators.choices import choices_of
from isinglass.learning.optimisers import Adam
from isinglass.learning.total import blocks

CHOICES = {
    "ucl": {},
    "cl": {"loss": "cl"},
    "pseudo": {"loss": "pseudo"},
    "cquad": {"loss": "cquad", "iterations": None},
    "mf": {"inference": "mf", "loss": "uquad"},
    "exact": {"inference": "exact", "iterations": None, "gradient": "perturbation"},
    "own": {"own_parameters": True},
}


@pytest.fixture
def _small_blocks(monkeypatch):
    monkeypatch.setattr(problem, "blocks", lambda sizes: blocks(sizes, 13))


def fitted(make, X, Y, **options):
    return make(callback=lambda p: p.iteration == 8, **options).fit(X, Y, sample_weight=np.arange(1, len(Y) + 1))


@pytest.mark.usefixtures("_small_blocks")
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bits_for_any_number(kind, choice):
    make, data = KINDS[kind]
    X, Y = data(7)
    one, two, many = (fitted(make, X, Y, n_jobs=n, **CHOICES[choice]) for n in (None, 2, 5))
    assert one.theta_.tobytes() == two.theta_.tobytes() == many.theta_.tobytes()
    assert one.history_ == two.history_ == many.history_
    for a, b, c in zip(*(crf.predict_marginals(X) for crf in (one, two, many)), strict=True):
        assert_array_equal(a, b)
        assert_array_equal(a, c)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_add_up_to_the_whole(kind, monkeypatch):
    make, data = KINDS[kind]
    X, Y = data(7)
    crf = make(n_jobs=2)
    whole = crf._problem(choices_of(crf), X, Y).objective()
    monkeypatch.setattr(problem, "blocks", lambda sizes: blocks(sizes, 13))
    parts = crf._problem(choices_of(crf), X, Y).objective()
    assert len(whole.parts) == 1
    assert len(parts.parts) > 3
    theta = np.random.default_rng(0).normal(size=whole.size)
    for one, two in zip(whole(theta), parts(theta), strict=True):
        assert_allclose(one, two, rtol=1e-12, atol=1e-12)
    assert_allclose(whole.loss(theta), parts.loss(theta), rtol=1e-12)


@pytest.mark.usefixtures("_small_blocks")
def test_options_for_single_factors_are_not_split():
    X, Y = images(3)
    weights = np.full(3 * (12 + 17), 0.6)
    crf = grid(inference=ig.TreeReweighted(weights=weights, schedule="flooding"))
    assert len(crf._problem(choices_of(crf), X, Y).objective().parts) == 1
    assert crf.fit(X, Y).score(X, Y) > 0.9


@pytest.mark.usefixtures("_small_blocks")
def test_minibatches_are_split_too():
    X, Y = images(6)
    adam = Adam(epochs=2, batch_size=4, random_state=0)
    with pytest.warns(ig.ConvergenceWarning, match="epochs"):
        one = grid(optimizer=adam).fit(X, Y)
    with pytest.warns(ig.ConvergenceWarning, match="epochs"):
        two = grid(optimizer=adam, n_jobs=2).fit(X, Y)
    assert one.theta_.tobytes() == two.theta_.tobytes()


@pytest.mark.usefixtures("_small_blocks")
def test_the_share_that_converged():
    X, Y = images(3)
    X[2] *= 5
    inference = ig.BeliefPropagation(tol=0.01, iterations=2)
    crf = grid(inference=inference, iterations=None, callback=lambda p: p.iteration == 3).fit(X, Y)
    alone = [crf.infer(X[i : i + 1]).info.converged for i in range(3)]
    assert alone == [True, True, False]
    assert crf.history_[-1].converged_share == pytest.approx(2 / 3)
    assert not crf.history_[-1].converged
    assert grid(inference="bp", iterations=None).fit(X, Y).history_[-1].converged


def test_blocks():
    assert blocks(np.array([5])) == [slice(0, 1)]
    rng = np.random.default_rng(0)
    for _ in range(50):
        sizes = rng.integers(1, 9, rng.integers(1, 20))
        found = blocks(sizes, 12)
        assert np.concatenate([sizes[b] for b in found]).tolist() == sizes.tolist()
        assert all(sizes[b].sum() <= 12 for b in found)
        assert all(sizes[a].sum() + sizes[b.start] > 12 for a, b in pairwise(found))
