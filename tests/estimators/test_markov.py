"""HMM and MEMM: probabilities by enumeration, counts, gradients, constraints, scikit-learn, files."""

import pickle
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score

import isinglass as ig
from checks import refuses
from isinglass.errors import FileFormatError, InputError
from isinglass.estimators.sequence.features import BIAS
from isinglass.learning.chain import SequenceObjective
from isinglass.learning.chain_losses import LocalLikelihood
from isinglass.models.chain.attributes import StateFeatures
from isinglass.models.chain.model import SequenceModel, Sequences

NONE_AFTER_C = [("c", "a"), ("c", "b"), ("c", "c")]


def sentences(n=30, seed=0, labels="abc"):
    rng = np.random.default_rng(seed)
    Y = [[labels[i] for i in rng.integers(0, len(labels), rng.integers(1, 6))] for _ in range(n)]
    X = [
        [[f"w={y}" if rng.random() < 0.7 else f"w={rng.choice(list(labels))}", f"n={rng.integers(3)}"] for y in ys]
        for ys in Y
    ]
    return X, Y


def by_hand(est, x):
    """p(y | x) of all labellings, straight from the definitions."""
    k, weights, g = len(est.classes_), est.state_features_, est.parameters_["transition"]
    g = np.where(est.model_.forbidden[:k, :k], -np.inf, g)
    start, end = (est.parameters_.get(name, np.zeros(k)) for name in ("start", "end"))
    f = np.array([[sum(weights.get((a, y), 0.0) for a in (*token, BIAS)) for y in est.classes_] for token in x])
    f[0] += np.where(est.model_.forbidden[k, :k], -np.inf, start)
    f[-1] += np.where(est.model_.forbidden[:k, k], -np.inf, end)
    found = {}
    for path in product(range(k), repeat=len(x)):
        p, before = 1.0, None
        for t, y in enumerate(path):
            row = np.exp(f[t] + (0 if before is None else g[before]))
            total = row.sum() if isinstance(est, ig.MEMM) else 1.0
            p *= row[y] / total if total > 0 else 0.0
            before = y
        found[tuple(est.classes_[y] for y in path)] = p
    total = sum(found.values())
    return {path: p / total for path, p in found.items()}, total


def fitted(kind, **options):
    X, Y = sentences()
    if kind is ig.MEMM:
        options = {"l2": 0.1, **options}
    return kind(**options).fit(X, Y)


@pytest.mark.parametrize(
    ("kind", "options"), [(ig.HMM, {}), (ig.MEMM, {}), (ig.MEMM, {"boundary": False, "bias": False})]
)
def test_all_predictions_by_enumeration(kind, options):
    est = fitted(kind, **options)
    for x in sentences(6, seed=5)[0]:
        table, _ = by_hand(est, x)
        ranked = sorted(table, key=table.get, reverse=True)
        assert tuple(est.predict([x])[0]) == ranked[0]
        marginals = [[sum(p for path, p in table.items() if path[t] == y) for y in est.classes_] for t in range(len(x))]
        assert_allclose(est.predict_marginals([x])[0], marginals, atol=1e-12)
        assert_allclose(est.log_likelihood([x], [list(ranked[-1])]), [np.log(table[ranked[-1]])], rtol=1e-10)
        for (path, value), expected in zip(est.predict_n_best([x], 3)[0], ranked, strict=False):
            assert value == pytest.approx(np.log(table[expected]), abs=1e-10)
            assert table[tuple(path)] == pytest.approx(table[expected], abs=1e-12)


def test_constraints_condition_the_same_distribution():
    est = fitted(ig.MEMM)
    x = sentences(40, seed=3)[0][2]
    assert len(x) > 2
    table, _ = by_hand(est, x)
    left = {p: v for p, v in table.items() if p[1] == "b" and ("a", "b") not in set(pairwise(p))}
    total = sum(left.values())
    forced = [None] * len(x)
    forced[1] = "b"
    found = est.predict_marginals([x], forced=[forced], forbidden=[("a", "b")])[0]
    expected = [[sum(v for p, v in left.items() if p[t] == y) / total for y in "abc"] for t in range(len(x))]
    assert_allclose(found, expected, atol=1e-12)
    assert tuple(est.predict([x], forced=[forced], forbidden=[("a", "b")])[0]) == max(left, key=left.get)


def test_forbidden_neighbours_leave_their_probability_to_others():
    X, Y = sentences(60)
    kept = [i for i, y in enumerate(Y) if ("a", "b") not in set(pairwise(y)) and y[0] != "c"]
    X, Y = [X[i] for i in kept], [Y[i] for i in kept]
    rules = [("a", "b"), (None, "c")]
    for est in (ig.HMM(forbidden=rules), ig.MEMM(l2=0.1, forbidden=rules)):
        est.fit(X, Y)
        for x in X[:8]:
            table, total = by_hand(est, x)
            assert isinstance(est, ig.HMM) or total == pytest.approx(1.0)
            best = max(table, key=table.get)
            assert_allclose(est.log_likelihood([x], [list(best)]), [np.log(table[best])], rtol=1e-9)
            assert ("a", "b") not in set(pairwise(best))
            assert best[0] != "c"
    shares = np.exp(ig.HMM(forbidden=rules).fit(X, Y).parameters_["transition"])
    assert shares[0, 0] + shares[0, 2] == pytest.approx(1.0)
    with pytest.raises(InputError, match="forbidden transition"):
        ig.HMM(forbidden=[(Y[0][0], Y[0][1])] if len(Y[0]) > 1 else [(None, Y[0][0])]).fit(X, Y)


def test_a_label_that_nothing_may_follow():
    X, Y = sentences(60)
    kept = [i for i, y in enumerate(Y) if "c" not in y[:-1]]
    est = ig.MEMM(l2=0.1, forbidden=NONE_AFTER_C).fit([X[i] for i in kept], [Y[i] for i in kept])
    x = next(x for x in X if len(x) == 3)
    table, _ = by_hand(est, x)
    marginals = est.predict_marginals([x])[0]
    assert_allclose(marginals[:, 2], [0, 0, sum(p for path, p in table.items() if path[2] == "c")], atol=1e-12)


def test_probabilities_of_an_hmm_are_smoothed_counts():
    X, Y = [[["u"], ["v"], ["u"]], [["u", "v"]]], [["a", "b", None], ["a"]]
    est = ig.HMM(alpha=0.5).fit(X, Y)
    assert_allclose(np.exp(est.parameters_["transition"]), [[0.5 / 2, 1.5 / 2], [0.5, 0.5]])
    assert_allclose(np.exp(est.parameters_["start"]), [2.5 / 3, 0.5 / 3])
    assert np.exp(est.state_features_["u", "a"]) == pytest.approx(2.5 / 4)
    assert np.exp(est.state_features_["v", "b"]) == pytest.approx(1.5 / 2)
    twice = ig.HMM(alpha=0.5).fit(X * 2, Y * 2)
    weighed = ig.HMM(alpha=0.5).fit(X, Y, sample_weight=[2, 2])
    assert_allclose(twice.theta_, weighed.theta_)
    rows = [csr_array([[1.0, 0], [0, 1], [1, 0]]), csr_array([[1.0, 1]])]
    assert_allclose(ig.HMM(alpha=0.5).fit(rows, Y).theta_, est.theta_)


def test_gradient_and_value_of_the_local_likelihood():
    rng = np.random.default_rng(0)
    offsets, k = np.array([0, 4, 5, 9]), 3
    X = csr_array(rng.integers(0, 2, (9, 4)).astype(float))
    labels = np.array([0, 1, 2, 1, 2, 0, -1, 1, 1])
    forbidden = np.zeros((k + 1, k + 1), bool)
    forbidden[0, 2] = forbidden[k, 1] = True
    model = SequenceModel(StateFeatures.all_pairs(4, k), True, forbidden)
    data = Sequences(model.features.compiled(X), offsets)
    objective = SequenceObjective(model, data, labels, LocalLikelihood(), 0.1)
    theta = rng.normal(size=model.size)
    value, gradient = objective(theta)
    for i in range(model.size):
        step = 1e-6 * np.eye(model.size)[i]
        slope = (objective(theta + step)[0] - objective(theta - step)[0]) / 2e-6
        assert gradient[i] == pytest.approx(slope, abs=1e-7)
    named, expected = model.split(theta), 0.1 * (theta**2).sum()
    f = X @ named["state"].reshape(4, k)
    f[offsets[:-1]] += np.where(forbidden[k, :k], -np.inf, named["start"])
    f[offsets[1:] - 1] += named["end"]
    g = np.where(forbidden[:k, :k], -np.inf, named["transition"])
    for t in (0, 1, 2, 3, 4, 5, 8):  # 6 is not observed, 7 comes after it
        row = f[t] + (g[labels[t - 1]] if t not in offsets else 0)
        expected += np.log(np.exp(row).sum()) - row[labels[t]]
    assert value == pytest.approx(expected, rel=1e-12)


def test_an_memm_at_its_optimum_and_with_wide_scores():
    X, Y = sentences()
    est = ig.MEMM(l2=0.1, tol=1e-8, max_iter=500).fit(X, Y)
    penalty = 0.1 * (est.theta_**2).sum()
    assert est.objective_ == pytest.approx(penalty - est.log_likelihood(X, Y).sum(), rel=1e-10)
    X = [[["x"], ["y"]], [["y"], ["x"]]]
    est = ig.MEMM(l2=0.1).fit(X, [["a", "b"], ["b", "a"]])
    est.theta_ = est.theta_ * 1e4
    marginals = est.predict_marginals(X)[0]
    assert_allclose(marginals.sum(axis=1), 1.0)
    assert np.isfinite(est.log_likelihood(X, [["a", "b"], ["b", "a"]])).all()


@pytest.mark.parametrize("kind", [ig.HMM, ig.MEMM])
def test_scikit_learn(kind, tmp_path):
    X, Y = sentences(40)
    est = clone(kind(decoder="mpm")).fit(X, Y)
    assert est.score(X, Y) > 0.6
    again = pickle.loads(pickle.dumps(est))
    assert again.predict(X) == est.predict(X)
    est.save(tmp_path / "file")
    loaded = kind.load(tmp_path / "file")
    assert loaded.get_params() == est.get_params()
    assert loaded.predict_marginals(X)[3].tobytes() == est.predict_marginals(X)[3].tobytes()
    with pytest.raises(FileFormatError):
        ig.ChainCRF.load(tmp_path / "file")
    name = "alpha" if kind is ig.HMM else "l2"
    search = GridSearchCV(kind(), {name: [0.1, 1e6]}, cv=3).fit(X, Y)
    assert search.best_score_ > 0.6
    scores = cross_val_score(kind(), X, Y, cv=3, scoring=make_scorer(ig.metrics.sequence_accuracy), error_score="raise")
    assert len(scores) == 3
    draws = est.sample(X * 200, random_state=0)
    assert np.mean([y[0] == "a" for y in draws[:: len(X)]]) == pytest.approx(
        est.predict_marginals(X)[0][0, 0], abs=0.12
    )


@pytest.mark.parametrize(
    ("options", "argument"),
    [({"alpha": 0}, "alpha"), ({"alpha": "a"}, "alpha"), ({"decoder": "x"}, "decoder"), ({"n_jobs": 0}, "n_jobs")],
)
def test_wrong_parameters(options, argument):
    X, Y = sentences()
    refuses(argument, ig.HMM(**options).fit, X, Y)


def test_wrong_data():
    refuses("counts", ig.HMM().fit, [np.array([[-1.0]])], [["a"]])
    refuses("at least one observed", ig.HMM().fit, [[["a"]]], [[None]])
