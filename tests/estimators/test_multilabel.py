"""Sets of labels: the distribution is that of its definition, and the graph is the one that was asked for."""

import itertools
import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import ttest_rel
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

import isinglass as ig
from checks import refuses


def label_sets(n=120, features=3, labels=4, seed=0):
    """Labels of which the last two depend on each other beyond the features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features))
    Y = (X @ rng.normal(size=(features, labels)) + 0.7 * rng.normal(size=(n, labels)) > 0).astype(int)
    Y[:, -1] = np.where(rng.random(n) < 0.9, Y[:, -2], 1 - Y[:, -2])
    return X, Y


@pytest.mark.parametrize("graph", ["full", "tree", "none", [(0, 1), (2, 3)]])
def test_the_distribution_is_that_of_its_definition(graph):
    X, Y = label_sets(20)
    crf = ig.MultiLabelCRF(graph=graph, inference="exact", l2=0.3).fit(X, Y)
    cells = np.array(list(itertools.product((0, 1), repeat=4)))
    tables = crf.parameters_.get("edge", np.zeros((0, 2, 2)))
    scores = cells @ (X[:3] @ crf.coef_.T + crf.intercept_).T  # (cells, examples)
    for (i, j), table in zip(crf.edges_, tables, strict=True):
        scores += table[cells[:, i], cells[:, j]][:, None]
    p = np.exp(scores - scores.max(axis=0))
    p /= p.sum(axis=0)
    assert crf.predict_proba(X[:3]) == pytest.approx((p.T @ cells), abs=1e-8)
    place = Y[:3] @ [8, 4, 2, 1]
    assert crf.log_likelihood(X[:3], Y[:3]) == pytest.approx(np.log(p[place, range(3)]), abs=1e-8)
    best, log_p = crf.predict_n_best(X[:1], 2)[0][0]
    assert best.tolist() == cells[p[:, 0].argmax()].tolist()
    assert log_p == pytest.approx(np.log(p[:, 0].max()), abs=1e-8)
    expected = {"full": 6, "tree": 3, "none": 0}.get(graph if isinstance(graph, str) else "", 2)
    assert len(crf.edges_) == expected


def test_without_edges_it_is_logistic_regression():
    X, Y = label_sets()
    crf = ig.MultiLabelCRF(graph="none", loss="cl", inference="exact", l2=0.5, tol=1e-8, max_iter=500).fit(X, Y)
    for k in range(4):
        # the penalty is of both weights of a label: l2 (a² + b²) is least at a = -b, so l2 w²/2 of their difference w
        one = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=5000)
        one.fit(np.c_[X, np.ones(len(X))] * np.sqrt(1 / 0.5), Y[:, k])
        weights = one.coef_[0] * np.sqrt(1 / 0.5)
        assert np.r_[crf.coef_[k], crf.intercept_[k]] == pytest.approx(weights, abs=2e-4)


@pytest.mark.long
def test_the_tree_joins_what_depends_on_each_other():
    X, Y = label_sets()
    crf = ig.MultiLabelCRF(graph="tree").fit(X, Y)
    assert [2, 3] in crf.edges_.tolist()
    with_edges, without = (ig.MultiLabelCRF(graph=g, l2=0.1).fit(X[:60], Y[:60]) for g in ("tree", "none"))
    assert with_edges.log_likelihood(X[60:], Y[60:]).mean() > without.log_likelihood(X[60:], Y[60:]).mean()


@pytest.mark.long
def test_files_pickles_frames_and_searches(tmp_path):
    pd = pytest.importorskip("pandas")
    X, Y = label_sets()
    frame = pd.DataFrame(Y, columns=["sun", "sea", "sand", "shells"])
    crf = ig.MultiLabelCRF(graph="tree", l2=0.1).fit(X, frame)
    assert crf.label_names_ == ["sun", "sea", "sand", "shells"]
    crf.save(tmp_path / "m.isg")
    for kept in (ig.MultiLabelCRF.load(tmp_path / "m.isg"), pickle.loads(pickle.dumps(crf))):
        assert (kept.predict(X) == crf.predict(X)).all()
        assert kept.label_names_ == crf.label_names_
    assert clone(crf).fit(X, Y).theta_.tolist() == crf.theta_.tolist()
    assert (crf.fit(sparse.csr_array(X), Y).predict(X) == crf.predict(X)).all()
    assert crf.label_names_ == [0, 1, 2, 3]
    crf.save(tmp_path / "m.isg")
    assert ig.MultiLabelCRF.load(tmp_path / "m.isg").label_names_ == [0, 1, 2, 3]
    assert cross_val_score(ig.MultiLabelCRF(l2=0.1), X, Y, cv=3).mean() > 0.7
    shown = crf.explain(top=1)
    assert list(shown.features) == [0, 1, 2, 3]
    assert len(shown.matrices) == 3
    hidden = np.where(np.random.default_rng(0).random(Y.shape) < 0.2, -1, Y)
    assert ig.MultiLabelCRF(l2=0.1).fit(X, hidden).score(X, Y) > 0.7


def test_frames_of_features_and_names_of_labels(tmp_path):
    pd = pytest.importorskip("pandas")
    X, Y = label_sets(40)
    features, labels = pd.DataFrame(X, columns=["red", "green", "blue"]), pd.DataFrame(Y, columns=list("abcd"))
    crf = ig.MultiLabelCRF(graph=[("c", "d")], l2=0.1).fit(features, labels)
    assert crf.edges_.tolist() == [[2, 3]]
    assert {w.feature for w in crf.explain().features["a"]} == {"red", "green", "blue", "(bias)"}
    crf.save(tmp_path / "m.isg")
    kept = ig.MultiLabelCRF.load(tmp_path / "m.isg")
    assert kept.feature_names_in_ == ["red", "green", "blue"]
    assert (kept.predict(X) == kept.predict(features)).all()
    refuses(r"order of fit, got 'blue' in the place of 'red'", kept.predict, features[["blue", "green", "red"]])
    refuses("graph: expected names of labels, got 'sea'", ig.MultiLabelCRF(graph=[("a", "sea")]).fit, features, labels)
    assert crf.set_params(graph="tree").fit(X, Y).feature_names_in_ is None


@pytest.mark.long
def test_labels_that_are_nan_are_not_observed():
    X, Y = label_sets(40)
    hidden = np.random.default_rng(0).random(Y.shape) < 0.2
    one = ig.MultiLabelCRF(l2=0.1).fit(X, np.where(hidden, -1, Y))
    two = ig.MultiLabelCRF(l2=0.1).fit(X, np.where(hidden, np.nan, Y))
    assert one.theta_.tolist() == two.theta_.tolist()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda X, Y: ig.MultiLabelCRF().fit(X, [[0], [1, 2]] * 15), "Y: expected an array .*MultiLabelBinarizer"),
        (lambda X, Y: ig.MultiLabelCRF(graph="ring").fit(X, Y), "graph: expected 'full', 'tree', 'none' or pairs"),
        (lambda X, Y: ig.MultiLabelCRF(graph=[(0, 4)]).fit(X, Y), "pairs of different labels from 0 to 3"),
        (lambda X, Y: ig.MultiLabelCRF(graph=[(1, 1)]).fit(X, Y), "pairs of different labels"),
        (lambda X, Y: ig.MultiLabelCRF().fit(X, Y[:, 0]), r"Y: expected an array .examples, labels. of 0 and 1"),
        (lambda X, Y: ig.MultiLabelCRF().fit(X, Y + 1), "Y: expected 0 and 1 for each label, got 2"),
        (lambda X, Y: ig.MultiLabelCRF().fit(X[:5], Y), "Y: expected labels of shape"),
        (lambda X, Y: ig.MultiLabelCRF().fit(X[:0], Y[:0]), "at least one example"),
        (lambda X, Y: ig.MultiLabelCRF().fit(X, Y).predict(X[:, :2]), "3 features, as in fit"),
        (lambda X, Y: ig.MultiLabelCRF().fit(X, Y).score(X, Y[:, :3]), "4 labels, as in fit"),
    ],
)
def test_mistakes_are_named(call, words):
    refuses(words, call, *label_sets(30))


def draw(n, seed, nodes=20):
    """One run of one to four positives on a ring, and a feature with heavy-tailed noise."""
    rng = np.random.default_rng(seed)
    edges, X, Y = [(i, (i + 1) % nodes) for i in range(nodes)], [], []
    for _ in range(n):
        y = np.zeros(nodes, int)
        y[(rng.integers(nodes) + np.arange(rng.integers(1, 5))) % nodes] = 1
        X.append((np.c_[1.5 * y + rng.standard_t(1.5, size=nodes), np.ones(nodes)], edges))
        Y.append(y)
    return X, Y


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
def test_training_for_f_beats_the_likelihood():
    (X, Y), (X_test, Y_test) = draw(100, 0), draw(200, 1)

    def scores(**options):
        found = ig.GraphCRF(l2=0.01, max_iter=30, **options).fit(X, Y).predict(X_test)
        return np.array([ig.metrics.f_measure([y], [x]) for y, x in zip(Y_test, found, strict=True)])

    risk = scores(loss="f1", decoder="f1", iterations=5)
    for decoder in ("mpm", "f1"):
        likelihood = scores(inference="bp", loss="cl", iterations=5, decoder=decoder)
        assert risk.mean() > likelihood.mean()
        assert ttest_rel(risk, likelihood).pvalue < 0.01


@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
@pytest.mark.parametrize("decoder", ["identity", "soft"])
def test_scores_need_decisions(decoder):
    X, Y = draw(5, 0)
    crf = ig.GraphCRF(iterations=2, max_iter=2, decoder=decoder).fit(X, Y)
    refuses("decoder: expected one that decides on states, for score", crf.score, X, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "f1", "decoder": "map"}, "decoder: expected one with a differentiable version, for loss 'f1'"),
        ({"loss": "f1", "decoder": ig.decoding.F1(positive=0)}, "decoder: expected a decoder with positive=1"),
        ({"loss": "f1", "decoder": ig.decoding.F1("exact")}, "form: expected 'independent' or 'even-split'"),
        ({"loss": ig.losses.L1(temperature=0.0)}, "temperature: expected a positive number"),
    ],
)
def test_what_does_not_go_together_is_refused(options, message):
    X, Y = draw(5, 0)
    refuses(message, ig.GraphCRF(iterations=2, stages=[{"max_iter": 1}], **options).fit, X, Y)


@pytest.fixture
def scenes():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (1, 40, 40))
    return Y[..., None] + rng.normal(size=(1, 40, 40, 1)), Y


@pytest.mark.long
def test_an_exact_decoder(scenes) -> None:
    X, Y = scenes
    crf = ig.GridCRF(iterations=1, max_iter=1, decoder="map")
    with ig.errors.no_convergence_warnings():
        crf.fit(X, Y)
    refuses(r"decoding.MAP\('trws'\)", crf.predict, X, error=ig.MemoryLimitError)


@pytest.mark.long
def test_an_exact_margin(scenes) -> None:
    refuses(r"Margin\(solver='trws'\)", ig.GridCRF(loss="margin").fit, *scenes, error=ig.MemoryLimitError)


def test_a_label_that_is_never_observed_is_named():
    X, Y = label_sets(30)
    Y[:, 2] = -1
    with pytest.warns(UserWarning, match="label 2 is never observed, and nothing is learned of it; leave"):
        ig.MultiLabelCRF(graph="none").fit(X, Y)
