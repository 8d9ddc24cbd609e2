"""Estimators with names: strings as labels of graphs and images, data frames for Markov random fields."""

import itertools
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import isinglass as ig
from checks import refuses

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    labels = (rng.random((4, 5, 6)) < 0.5).astype(int)
    return labels[..., None] + 0.4 * rng.normal(size=(4, 5, 6, 1)), labels


def test_strings_are_the_numbers_of_their_order(images, tmp_path):
    X, labels = images
    words = np.array(["sea", "sky"])[labels]
    options = {"iterations": 2, "bias": True, "l2": 0.1}
    numbers = ig.GridCRF(**options, class_weight={1: 2.0}).fit(X, labels)
    crf = ig.GridCRF(**options, class_weight={"sky": 2.0}).fit(X, words)
    assert crf.theta_.tolist() == numbers.theta_.tolist()
    assert crf.classes_.tolist() == ["sea", "sky"]
    assert numbers.classes_.tolist() == [0, 1]
    assert (crf.predict(X) == np.array(["sea", "sky"])[numbers.predict(X)]).all()
    assert crf.score(X, words) == numbers.score(X, labels)
    crf.save(tmp_path / "crf.isg")
    for kept in (ig.GridCRF.load(tmp_path / "crf.isg"), pickle.loads(pickle.dumps(crf))):
        assert (kept.predict(X) == crf.predict(X)).all()
        assert kept.classes_.tolist() == ["sea", "sky"]
    assert clone(crf).fit(X, words).theta_.tolist() == crf.theta_.tolist()
    refuses(r"got 'see'; did you mean 'sea'", crf.score, X, np.where(words == "sea", "see", words))
    refuses(r"class_weight: .* got 'ski'; did you mean 'sky'", ig.GridCRF(class_weight={"ski": 2.0}).fit, X, words)
    refuses("n_states: expected the number of labels, 2", ig.GridCRF(n_states=3).fit, X, words)
    refuses("numbers, as in fit", numbers.score, X, words)


def test_unobserved_strings_are_none(images):
    X, labels = images
    hidden = np.random.default_rng(1).random(labels.shape) < 0.2
    numbers = np.where(hidden, -1, labels)
    words = np.where(hidden, None, np.array(["sea", "sky"], object)[labels])
    options = {"iterations": 2, "bias": True, "max_iter": 5, "tol": 1e-12}
    with pytest.warns(ig.ConvergenceWarning):
        first = ig.GridCRF(**options).fit(X, numbers, validation=(X, numbers))
    with pytest.warns(ig.ConvergenceWarning):
        second = ig.GridCRF(**options).fit(X, words, validation=(X, words))
    assert first.theta_.tolist() == second.theta_.tolist()


def test_graphs_with_strings_and_a_warm_start():
    rng = np.random.default_rng(0)
    edges = [(i, i + 1) for i in range(5)]
    Y = [rng.integers(0, 3, 6) for _ in range(6)]
    X = [(np.eye(3)[y] + 0.5 * rng.normal(size=(6, 3)), edges) for y in Y]
    words = [np.array(["a", "b", "c"])[y].tolist() for y in Y]
    crf = ig.GraphCRF(l2=0.1, warm_start=True).fit(X, words)
    assert crf.predict(X)[0].dtype.kind == "U"
    before = crf.score(X, words)
    crf.fit(X, [["a" if word == "c" else word for word in y] for y in words])
    assert crf.classes_.tolist() == ["a", "b", "c"]
    assert before > 0.8
    refuses("the labels of the last fit", crf.fit, X, [["z"] * 6 for _ in Y])
    refuses(r"Y\[0\]: expected labels that are all strings, got 1", ig.GraphCRF().fit, X, [[*y[:-1], 1] for y in words])


@pytest.fixture(scope="module")
def weather():
    rng = np.random.default_rng(0)
    rain = rng.choice(["no", "yes"], 400, p=[0.7, 0.3])
    wet = np.where(rng.random(400) < np.where(rain == "yes", 0.9, 0.1), "wet", "dry")
    frame = {"rain": pd.Categorical(rain, categories=["yes", "no", "hail"]), "wet": wet, "day": rng.integers(0, 3, 400)}
    return pd.DataFrame(frame)


def test_data_frames_have_their_names(weather, tmp_path):
    mrf = ig.MRF(edges=[("rain", "wet"), ("wet", "day")], l2=1e-3).fit(weather)
    assert mrf.graph_.scopes[:] == [(0,), (1,), (2,), (0, 1), (1, 2)]
    assert mrf.graph_.cards.tolist() == [3, 2, 3]
    assert mrf.feature_names_in_.tolist() == ["rain", "wet", "day"]
    shuffled = weather[["day", "wet", "rain"]].assign(more=1)
    assert mrf.log_likelihood(shuffled) == mrf.log_likelihood(weather)
    counts = weather[weather.rain == "yes"].wet.value_counts(normalize=True)
    found = mrf.conditional("wet", given={"rain": "yes"})
    assert found == pytest.approx([counts["dry"], counts["wet"]], abs=1e-3)
    assert mrf.conditional(["wet"], given=["rain"])[0] == pytest.approx(found)
    pairs = ig.MRF(edges=[("rain", "wet")], method="ipf").fit(weather[["rain", "wet"]].astype(str))
    assert "rain=yes wet=wet" in str(pairs.summary())
    mrf.save(tmp_path / "mrf.isg")
    for kept in (ig.MRF.load(tmp_path / "mrf.isg"), pickle.loads(pickle.dumps(mrf))):
        assert kept.graph_.names == mrf.graph_.names
        assert kept.log_likelihood(weather) == mrf.log_likelihood(weather)
        assert kept.feature_names_in_.tolist() == ["rain", "wet", "day"]


def test_missing_values_of_a_frame_are_filled_in(weather):
    mrf = ig.MRF(edges=[("rain", "wet")], l2=1e-3).fit(weather)
    gaps = weather.copy()
    gaps.loc[:50, "wet"] = None
    filled = mrf.impute(gaps)
    assert filled.columns.tolist() == weather.columns.tolist()
    expected = np.where(weather.rain[:51] == "yes", "wet", "dry")
    assert (filled.wet[:51] == expected).all()
    assert (filled.wet[51:] == weather.wet[51:]).all()


class Series:
    """A column as Polars has it."""

    def __init__(self, values, categories):
        self._values, self._categories = values, categories
        self.dtype = "Enum" if categories else "Int64"

    def to_list(self):
        return list(self._values)

    @property
    def cat(self):
        return self

    def get_categories(self):
        return Series(self._categories, None)


class Frame(dict):
    """The part of a Polars data frame that is used."""

    columns = property(lambda self: list(self))
    shape = property(lambda self: (len(self), 2))

    def __len__(self):
        return len(next(iter(self.values())).to_list())


def test_frames_of_another_package(weather):
    frame = Frame(rain=Series(weather.rain.tolist(), ["yes", "no", "hail"]), day=Series(weather.day.tolist(), None))
    mrf = ig.MRF(edges=[("rain", "day")], l2=1e-3).fit(frame)
    other = ig.MRF(edges=[("rain", "day")], l2=1e-3).fit(weather[["rain", "day"]])
    assert mrf.theta_.tolist() == other.theta_.tolist()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, d: m.score(d.rename(columns={"wet": "wets"})), "X: .* got no column 'wet'; is it 'wets'"),
        (lambda m, d: ig.MRF(edges=[("rian", "wet")]).fit(d), "edges: .* did you mean 'rain'"),
        (lambda m, d: ig.MRF(edges=[("rain", "wet")]).fit(np.zeros((3, 2), int)), "X: expected a data frame"),
        (lambda m, d: ig.MRF(m.graph_, edges=[("rain", "wet")]).fit(d), "edges: expected None if a graph is given"),
        (lambda m, d: ig.MRF(edges=[]).fit(d.rename(columns={"wet": 3})), "columns whose names are strings"),
        (lambda m, d: ig.MRF(edges=[]).fit(d.assign(wet=None)), "none in 'wet'"),
        (lambda m, d: m.conditional("wet", given={"rain": "ja"}), r"given\['rain'\]: .*'yes', 'no', 'hail'"),
        (lambda m, d: m.conditional("wet", given={"wet": "dry"}), "given: .* got 'wet'"),
    ],
)
def test_mistakes_with_frames_are_named(weather, call, words):
    mrf = ig.MRF(edges=[("rain", "wet")], l2=1e-3).fit(weather)
    refuses(words, call, mrf, weather)


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


def test_n_best_and_probabilities(fitted):
    crf, X, _ = fitted
    for x, found in zip(X[:3], crf.predict_n_best(X[:3], 5), strict=True):
        cells, log_p = joint_table(crf, x)
        order = np.argsort(-log_p)[:5]
        assert [p for _, p in found] == pytest.approx(log_p[order], abs=1e-9)
        assert next(labels.tolist() for labels, _ in found) == np.array(["a", "b", "c"])[cells[order[0]]].tolist()
    crf, X, _ = fitted
    for one, two in zip(crf.predict_proba(X), crf.predict_marginals(X), strict=True):
        assert one.tolist() == two.tolist()


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
    refuses("labels from 0 to 1, as in fit", crf.log_likelihood, X, Y + 1)
    own = ig.GridCRF(iterations=2, own_parameters=True).fit(X, Y)
    refuses("own_parameters: expected parameters that all iterations share", own.sample, X)
