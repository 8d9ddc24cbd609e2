"""Whole labellings of graphs and images, against sums over all of them."""

import itertools

import numpy as np
import pytest

import isinglass as ig


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    edges = [(0, 1), (1, 2), (2, 3), (3, 0)]
    Y = [rng.integers(0, 3, 4) for _ in range(12)]
    X = [(np.eye(3)[y] + 0.8 * rng.normal(size=(4, 3)), edges) for y in Y]
    words = [np.array(["a", "b", "c"])[y] for y in Y]
    return ig.GraphCRF(l2=0.2, bias=True).fit(X, words), X, words


def joint_table(crf, example):
    """All labellings of one example of four nodes, and their log-probabilities."""
    nodes, edges = example
    cells = np.array(list(itertools.product(range(3), repeat=4)))
    own = np.c_[nodes, np.ones(4)] @ crf.parameters_["node"]
    scores = own[np.arange(4), cells].sum(axis=1)
    scores += sum(crf.parameters_["edge"][cells[:, i], cells[:, j]] for i, j in edges)
    return cells, scores - np.logaddexp.reduce(scores)


def test_log_probabilities(fitted):
    crf, X, words = fitted
    expected = []
    for x, y in zip(X[:4], words, strict=False):
        cells, log_p = joint_table(crf, x)
        codes = np.searchsorted(["a", "b", "c"], y)
        expected.append(log_p[(cells == codes).all(axis=1)][0])
    assert crf.log_likelihood(X[:4], words[:4]) == pytest.approx(expected, abs=1e-9)
    hidden = [np.array([*y[:3], None], object) for y in words[:1]]
    cells, log_p = joint_table(crf, X[0])
    codes = np.searchsorted(["a", "b", "c"], words[0][:3])
    agreeing = (cells[:, :3] == codes).all(axis=1)
    assert crf.log_likelihood(X[:1], hidden) == pytest.approx([np.logaddexp.reduce(log_p[agreeing])], abs=1e-9)


def test_n_best(fitted):
    crf, X, _ = fitted
    for x, found in zip(X[:3], crf.predict_n_best(X[:3], 5), strict=True):
        cells, log_p = joint_table(crf, x)
        order = np.argsort(-log_p)[:5]
        assert [p for _, p in found] == pytest.approx(log_p[order], abs=1e-9)
        assert next(labels.tolist() for labels, _ in found) == np.array(["a", "b", "c"])[cells[order[0]]].tolist()


def test_samples_have_the_marginals(fitted):
    crf, X, _ = fitted
    many = [X[0]] * 3000
    drawn = np.array(crf.sample(many, random_state=0))
    cells, log_p = joint_table(crf, X[0])
    for node in range(4):
        for k, label in enumerate("abc"):
            truth = np.exp(log_p[cells[:, node] == k]).sum()
            assert (drawn[:, node] == label).mean() == pytest.approx(truth, abs=0.04)
    assert (crf.sample(X, random_state=1)[0] == crf.sample(X, random_state=1)[0]).all()
    assert len(crf.sample(X[:2], random_state=1, algorithm=ig.Gibbs(sweeps=20))) == 2


def test_proba_is_marginals(fitted):
    crf, X, _ = fitted
    for one, two in zip(crf.predict_proba(X), crf.predict_marginals(X), strict=True):
        assert one.tolist() == two.tolist()


def test_images_and_mistakes():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (3, 2, 3))
    X = Y[..., None] + 0.5 * rng.normal(size=(3, 2, 3, 1))
    crf = ig.GridCRF(bias=True, l2=0.2).fit(X, Y)
    assert crf.sample(X, 0).shape == Y.shape
    assert crf.predict_n_best(X, 2)[1][0][0].shape == (2, 3)
    assert crf.log_likelihood(X, Y).shape == (3,)
    lists = crf.predict_n_best(list(X), 1)
    assert [one[0][0].tolist() for one in lists] == [one[0][0].tolist() for one in crf.predict_n_best(X, 1)]
    with pytest.raises(ig.InputError, match="labels from 0 to 1, as in fit"):
        crf.log_likelihood(X, Y + 1)
    own = ig.GridCRF(iterations=2, own_parameters=True).fit(X, Y)
    with pytest.raises(ig.InputError, match="own_parameters: expected parameters that all iterations share"):
        own.sample(X)
