"""Chains of second order: values, gradients and predictions by enumeration of all labellings."""

from itertools import pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import isinglass as ig
from isinglass import losses
from isinglass.errors import InputError
from isinglass.learning.chain import SequenceObjective
from isinglass.models.chain.attributes import StateFeatures
from isinglass.models.chain.model import SequenceModel, Sequences

K = 3
OFFSETS = np.array([0, 4, 5, 5, 8])
LABELS = np.array([0, 1, 1, 2, 1, 0, 2, 0])


def made(labels=LABELS, loss="cl", seed=0, n_jobs=1):
    rng = np.random.default_rng(seed)
    X = csr_array(rng.integers(0, 2, (8, 4)).astype(float))
    forbidden = np.zeros((K + 1, K + 1), bool)
    forbidden[2, 1] = forbidden[K, 2] = forbidden[1, K] = True
    labels = np.where((labels == 1) & np.isin(np.arange(8), [4]), 0, labels)  # 1 may not be last
    model = SequenceModel(StateFeatures.all_pairs(4, K), True, forbidden, 2)
    data = Sequences(model.features.compiled(X), OFFSETS)
    return (
        SequenceObjective(model, data, labels, losses.make(loss), 0.1, threads=n_jobs),
        X,
        rng.normal(size=model.size),
    )


def score(model, X, theta, path):
    """The score of a labelling, from the named parameters."""
    named, f = model.split(theta), model.forbidden
    nodes = X @ named["state"].reshape(-1, K)
    if f[K, path[0]] or f[path[-1], K] or any(f[a, b] for a, b in pairwise(path)):
        return -np.inf
    total = nodes[range(len(path)), path].sum() + named["start"][path[0]] + named["end"][path[-1]]
    before = [K, *path]
    for t in range(1, len(path)):
        total += named["transition"][path[t - 1], path[t]] + named["second"][before[t - 1], path[t - 1], path[t]]
    return total


def tables(model, X, theta):
    """For each sequence all labellings and their probabilities."""
    for a, b in pairwise(OFFSETS.tolist()):
        if a == b:
            continue
        paths = list(product(range(K), repeat=b - a))
        values = np.exp([score(model, X.toarray()[a:b], theta, path) for path in paths])
        yield slice(a, b), paths, values / values.sum()


@pytest.mark.parametrize("hidden", [[], [1], [0, 2], [3, 4, 6]])
def test_likelihood_by_enumeration(hidden):
    labels = LABELS.copy()
    labels[hidden] = -1
    objective, X, theta = made(labels)
    expected = 0.1 * (theta**2).sum()
    for rows, paths, p in tables(objective.model, X, theta):
        y = objective.labels[rows]
        if (y >= 0).any():
            fits = [all(c in (-1, x) for c, x in zip(y, path, strict=True)) for path in paths]
            expected -= np.log(p[fits].sum())
    assert objective(theta)[0] == pytest.approx(expected, rel=1e-11)


def test_univariate_loss_is_of_labels():
    objective, X, theta = made(loss="ucl")
    expected = 0.1 * (theta**2).sum()
    for rows, paths, p in tables(objective.model, X, theta):
        for t, y in enumerate(objective.labels[rows]):
            expected -= np.log(sum(q for path, q in zip(paths, p, strict=True) if path[t] == y))
    assert objective(theta)[0] == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("loss", ["cl", "ucl", "ccl", "uquad", "cquad"])
@pytest.mark.parametrize("hidden", [[], [1, 6]])
def test_gradients(loss, hidden):
    labels = LABELS.copy()
    labels[hidden] = -1
    objective, _, theta = made(labels, loss)
    value, gradient = objective(theta)
    rng = np.random.default_rng(1)
    for _ in range(8):
        v = rng.normal(size=len(theta))
        slope = (objective(theta + 1e-5 * v)[0] - objective(theta - 1e-5 * v)[0]) / 2e-5
        assert gradient @ v == pytest.approx(slope, rel=1e-6, abs=1e-6)
    again, two = made(labels, loss, n_jobs=2)[0](theta)
    assert again == value
    assert two.tobytes() == gradient.tobytes()


def sentences(n=60, seed=0):
    """Labels that depend on the two before: a third label "c" after two of the same kind."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        y = []
        for _ in range(int(rng.integers(1, 6))):
            after = "c" if len(y) > 1 and y[-1] == y[-2] else "ab"[rng.integers(2)]
            y.append(after)
        Y.append(y)
        X.append([[f"w={label if rng.random() < 0.6 else 'x'}"] for label in y])
    return X, Y


def test_predictions_by_enumeration(tmp_path):
    X, Y = sentences()
    crf = ig.ChainCRF(order=2, l2=0.1, forbidden=[("c", "c")], boundary=True).fit(X, Y)
    for x in [x for x in X if len(x) == 4][:3]:
        rows = crf.encode([x]).X
        weights = np.zeros((rows.shape[1], K))
        weights[crf.model_.features.attributes, crf.model_.features.labels] = crf.parameters_["state"]
        paths = list(product(range(K), repeat=4))
        full = SequenceModel(StateFeatures.all_pairs(rows.shape[1], K), True, crf.model_.forbidden, 2)
        theta = np.concatenate([weights.ravel(), crf.theta_[crf.model_.features.size :]])
        values = np.exp([score(full, rows.toarray(), theta, path) for path in paths])
        p = values / values.sum()
        order = np.argsort(-p, kind="stable")
        names = [["abc"[i] for i in path] for path in paths]
        assert crf.predict([x])[0] == names[order[0]]
        for (path, value), i in zip(crf.predict_n_best([x], 5)[0], order, strict=False):
            assert value == pytest.approx(np.log(p[i]), abs=1e-10)
            assert path == names[i]
        marginals = [
            [sum(q for path, q in zip(paths, p, strict=True) if path[t] == k) for k in range(K)] for t in range(4)
        ]
        assert_allclose(crf.predict_marginals([x])[0], marginals, atol=1e-12)
        assert_allclose(crf.log_likelihood([x], [names[order[3]]]), [np.log(p[order[3]])], rtol=1e-10)
        kept = [i for i in order if names[i][2] == "b" and ("a", "b") not in set(pairwise(names[i]))]
        forced = [None, None, "b", None]
        assert crf.predict([x], forced=[forced], forbidden=[("a", "b")])[0] == names[kept[0]]
    path = tmp_path / "crf"
    crf.save(path)
    assert ig.ChainCRF.load(path).predict(X) == crf.predict(X)
    draws = crf.sample([X[0]] * 3000, random_state=0)
    assert np.mean([y[-1] == "a" for y in draws]) == pytest.approx(crf.predict_marginals(X)[0][-1, 0], abs=0.04)


def test_the_second_order_sees_what_the_first_cannot():
    (X, Y), (X_test, Y_test) = sentences(300), sentences(300, seed=1)
    one, two = (ig.ChainCRF(order=order, l2=0.1, decoder="mpm").fit(X, Y) for order in (1, 2))
    assert two.score(X_test, Y_test) > one.score(X_test, Y_test) + 0.02
    assert two.log_likelihood(X_test, Y_test).sum() > one.log_likelihood(X_test, Y_test).sum()


def test_without_triples_it_is_the_first_order():
    X, Y = sentences()
    one = ig.ChainCRF(l2=0.1, boundary=False).fit(X, Y)
    two = ig.ChainCRF(order=2, l2=0.1, boundary=False, max_iter=1, tol=1e9).fit(X, Y)
    two.theta_ = np.concatenate([one.theta_, np.zeros((K + 1) * K * K)])
    best = one.log_likelihood(X, one.predict(X))  # ties may be broken otherwise
    assert_allclose(one.log_likelihood(X, two.predict(X)), best, atol=1e-12)
    assert_allclose(np.concatenate(two.predict_marginals(X)), np.concatenate(one.predict_marginals(X)), atol=1e-12)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"order": 3}, "order"),
        ({"order": "2"}, "order"),
        ({"order": True}, "order"),
        ({"order": 2, "loss": "pseudo"}, "loss"),
    ],
)
def test_wrong_options(options, argument):
    X, Y = sentences(5)
    with pytest.raises(InputError, match=argument):
        ig.ChainCRF(**options).fit(X, Y)
