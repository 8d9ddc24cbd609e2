"""ChainCRF: forms of data, labels, predictions, constraints, scikit-learn, files."""

import pickle
from decimal import Decimal
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score, learning_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import isinglass as ig
from checks import refuses
from isinglass.errors import (
    ConvergenceWarning,
    FileFormatError,
    ImpossibleEvidenceError,
    InputError,
    no_convergence_warnings,
)
from isinglass.estimators.sequence.features import BIAS, FeatureIndex
from isinglass.estimators.sequence.training import chain_choices, problem_of
from isinglass.io import read_arrays, write_arrays
from isinglass.learning.optimizers import Adam, Lbfgs


def sentences(n=12, seed=0, labels=("B", "I", "O")):
    """Sequences of tokens with strings; I follows B or I only."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        y, before = [], 2
        for _ in range(rng.integers(1, 7)):
            before = int(rng.choice([0, 1, 2] if before != 2 else [0, 2]))
            y.append(before)
        X.append([["b", f"w={k}" if rng.random() < 0.8 else "w=?", f"n={rng.integers(4)}"] for k in y])
        Y.append([labels[k] for k in y])
    return X, Y


def arrays(X):
    names = sorted({a for x in X for token in x for a in token})
    return [np.array([[float(a in token) for a in names] for token in x]) for x in X]


def crf(**options):
    return ig.ChainCRF(**{"l2": 0.1, **options})


def scores_of(fitted, x):
    """Node scores (length, labels) and transitions, from the named parameters."""
    weights = fitted.state_features_
    nodes = np.array([[sum(weights.get((a, y), 0.0) for a in (*token, BIAS)) for y in fitted.classes_] for token in x])
    for place, name in ((0, "start"), (-1, "end")):
        nodes[place] += fitted.parameters_.get(name, 0.0)
    return nodes, fitted.parameters_["transition"]


def enumerated(nodes, table):
    n, k = nodes.shape
    paths = list(product(range(k), repeat=n))
    values = [nodes[range(n), p].sum() + sum(table[a, b] for a, b in pairwise(p)) for p in paths]
    return paths, np.array(values)


def test_all_forms_of_data_give_the_same_model():
    X, Y = sentences()
    dicts = [[dict.fromkeys(token, True) for token in x] for x in X]
    split = [[{"b": 1, **{a.split("=")[0]: a.split("=")[1] for a in token[1:]}} for token in x] for x in X]
    one = crf().fit(X, Y)
    for other in (dicts, split):
        two = crf().fit(other, Y)
        assert two.state_features_ == one.state_features_
        assert two.predict(other) == one.predict(X)
    dense = arrays(X)
    for form in (dense, [csr_array(x) for x in dense], [x.tolist() for x in dense]):
        two = crf(tol=1e-8).fit(form, Y)
        assert_allclose(two.objective_, one.objective_, rtol=1e-5)
        assert two.predict(form) == one.predict(X)
        assert two.n_features_in_ == dense[0].shape[1]


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"boundary": False}])
def test_marginals_and_likelihood_by_enumeration(options):
    X, Y = sentences()
    fitted = crf(**options).fit(X, Y)
    found, several = fitted.predict_marginals(X), fitted.predict_n_best(X, 4)
    likelihood = fitted.log_likelihood(X, Y)
    for i, x in enumerate(X):
        paths, values = enumerated(*scores_of(fitted, x))
        p = np.exp(values - np.logaddexp.reduce(values))
        expected = np.array([[p[[q[t] == k for q in paths]].sum() for k in range(3)] for t in range(len(x))])
        assert_allclose(found[i], expected, atol=1e-10)
        codes = tuple(fitted.classes_.index(y) for y in Y[i])
        assert_allclose(likelihood[i], np.log(p[paths.index(codes)]), atol=1e-10)
        best = np.sort(np.log(p))[::-1][:4]
        assert_allclose([value for _, value in several[i]], best, atol=1e-10)
        assert several[i][0][0] == fitted.predict([x])[0]


def test_names_get_numbers_in_their_order():
    rng = np.random.default_rng(0)
    sequences = [[[f"w={i}"] for i in rng.integers(3000, size=n)] for n in (2100, 0, 1500, 2000, 3, 4000)]
    names = list(dict.fromkeys(name for x in sequences for token in x for name in token))
    index, data = FeatureIndex.learn(sequences, bias=False)
    assert list(index.names) == names
    assert data.X.indices.tolist() == [names.index(name) for x in sequences for token in x for name in token]
    assert index.encode(sequences).X.indices.tolist() == data.X.indices.tolist()
    grown, data = index.grown([[["w=new", names[5], "w=newer"]]])
    assert data.X.indices.tolist() == [len(names), 5, len(names) + 1]
    assert list(grown.names) == [*names, "w=new", "w=newer"]


def test_many_names_and_odd_ones():
    rng = np.random.default_rng(0)
    X = [[[f"w={rng.integers(3000)}", "line\nend", "\ud800", ""] for _ in range(300)] for _ in range(3)]
    Y = [["a", "b"] * 150] * 3
    fitted = crf(tol=1e9, bias=False).fit(X, Y)
    new = [[["w=1", "w=never", "w=2"], ["line\nend"]] * 300]
    for data in (X, new, [[token[:1] for token in x] for x in X]):
        assert sum(len(token) for x in data for token in x) > 0
        found = fitted.encode(data)
        expected = [i for x in data for token in x for name in token if (i := fitted.index_.names.get(name, -1)) >= 0]
        assert found.X.indices.tolist() == expected
    plain = crf(tol=1e9, bias=False).fit([[token[:1] for token in x] for x in X], Y)
    known = plain.index_.names.get("w=1", -1)
    assert plain.encode([[["w=1", "w=no"]] * 900]).X.indices.tolist() == [known] * 900 * (known >= 0)
    assert pickle.loads(pickle.dumps(plain)).predict(X) == plain.predict(X)


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset])
@pytest.mark.parametrize("outer", [list, tuple])
def test_many_tokens_of_all_forms(kind, outer):
    rng = np.random.default_rng(1)
    X = [outer(kind({f"w={i}", f"p={i % 7}"}) for i in rng.integers(900, size=n)) for n in (700, 0, 2500, 1)]
    Y = [["a"] * len(x) for x in X]
    fitted = crf(tol=1e9, bias=False, n_jobs=2).fit(X, Y)
    assert list(fitted.index_.names) == list(dict.fromkeys(name for x in X for token in x for name in token))
    seen = [fitted.index_.names[name] for x in X for token in x for name in token]
    assert fitted.encode(X).X.indices.tolist() == seen
    assert fitted.predict(X) == Y
    refuses("all lists of strings", fitted.encode, [*X, [type("Own", (list,), {})(["w=1"])]])


def test_encoded_data():
    X, Y = sentences()
    fitted = crf().fit(X, Y)
    data = fitted.encode(X)
    assert fitted.predict(data) == fitted.predict(X)
    assert fitted.score(data, Y) == fitted.score(X, Y)
    refuses("as in fit", crf(bias=False).fit(X, Y).predict, data)


def test_encoded_data_know_their_estimator(tmp_path):
    X, Y = sentences()
    turned = X[::-1], Y[::-1]  # as many attributes, in another order
    fitted, other = crf().fit(X, Y), crf().fit(*turned)
    data = fitted.encode(X)
    assert other.index_.n_attributes == fitted.index_.n_attributes
    calls = [
        other.predict, other.predict_marginals, other.sample, lambda d: other.predict_n_best(d, 2),
        lambda d: other.score(d, Y), lambda d: other.log_likelihood(d, Y), crf().fit(*turned).predict,
    ]  # fmt: skip
    for call in calls:
        refuses(r"X: expected an encoding by this estimator's .* encode them again", call, data)
    fitted.save(tmp_path / "crf.isg")
    for same in (pickle.loads(pickle.dumps(fitted)), ig.ChainCRF.load(tmp_path / "crf.isg"), crf().fit(X, Y)):
        assert same.predict(data) == same.predict(X)
    fitted.fit(*turned)
    refuses("encode them again", fitted.predict, data)
    same = crf(bias=False).fit(X, Y).encode(X)
    assert ig.HMM().fit(X, Y).predict(same) == ig.HMM().fit(X, Y).predict(X)  # the same attributes
    rows = arrays(X)
    assert crf().fit(rows, Y).predict(crf(l2=9.0).fit(rows, Y).encode(rows)) == crf().fit(rows, Y).predict(rows)


def test_unknown_attributes_are_ignored():
    X, Y = sentences()
    fitted = crf().fit(X, Y)
    odd = [[[*token, "never=seen"] for token in x] for x in X]
    assert fitted.predict(odd) == fitted.predict(X)
    assert len(fitted.predict([[["new"], []]])[0]) == 2


def test_seen_and_all():
    X, Y = sentences()
    seen, every = crf(bias=False).fit(X, Y), crf(state_features="all", bias=False).fit(X, Y)
    assert len(every.state_features_) > len(seen.state_features_)
    pairs = {(a, y) for x, labels in zip(X, Y, strict=True) for t, y in zip(x, labels, strict=True) for a in t}
    assert set(seen.state_features_) == pairs
    few = crf(min_count=3, bias=False).fit(X, Y)
    assert set(few.state_features_) < pairs
    assert {a for a, _ in crf(state_features="all", min_count=8, bias=False).fit(X, Y).state_features_} < {
        a for a, _ in pairs
    }


def test_l1_selects_features():
    X, Y = sentences(30)
    dense, sparse = crf(l2=0.01).fit(X, Y), crf(l2=0.01, l1=1.0).fit(X, Y)
    assert (dense.theta_ != 0).mean() > 0.9
    assert (sparse.theta_ != 0).mean() < 0.7
    assert sparse.score(X, Y) > 0.7
    refuses("l1", crf(l1=1.0, optimizer="adam").fit, X, Y)


@pytest.mark.parametrize("loss", ["cl", "pseudo", "ucl", "ccl", "uquad", "cquad", "suclass", "scclass"])
def test_every_loss_learns(loss):
    X, Y = sentences(20)
    with no_convergence_warnings():
        fitted = crf(warm_start=True, decoder="mpm")
        if loss in ("suclass", "scclass"):  # at zero all labels tie, where these have kinks
            fitted.fit(X, Y)
        assert fitted.set_params(loss=loss).fit(X, Y).score(X, Y) > 0.75


def test_decoders_differ_and_are_optimal():
    X, Y = sentences(20)
    fitted = crf(l2=1.0).fit(X, Y)
    marginals = fitted.predict_marginals(X)
    mpm = fitted.set_params(decoder="mpm").predict(X)
    for p, y in zip(marginals, mpm, strict=True):
        assert y == [fitted.classes_[k] for k in p.argmax(axis=1)]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_constrained_decoding_equals_enumeration(seed):
    rng = np.random.default_rng(seed)
    X, _Y = sentences()
    fitted = _fitted()
    x = X[int(rng.integers(len(X)))]
    names = fitted.classes_
    nodes, table = scores_of(fitted, x)
    forced = [names[rng.integers(3)] if rng.random() < 0.3 else None for _ in x]
    allowed = [set(rng.choice(names, rng.integers(1, 4))) if rng.random() < 0.4 else None for _ in x]
    pairs = [(names[rng.integers(3)], names[rng.integers(3)]) for _ in range(rng.integers(0, 3))]
    if rng.random() < 0.5:
        pairs.append((None, names[rng.integers(3)]))
    if rng.random() < 0.5:
        pairs.append((names[rng.integers(3)], None))
    rules = {"forced": [forced], "allowed": [allowed], "forbidden": pairs}

    def fine(path):
        labels = [names[k] for k in path]
        ways = set(zip([None, *labels], [*labels, None], strict=True))
        return (
            all(f in (None, y) for f, y in zip(forced, labels, strict=True))
            and all(a is None or y in a for a, y in zip(allowed, labels, strict=True))
            and not ways & set(pairs)
        )

    paths, values = enumerated(nodes, table)
    values = np.where([fine(p) for p in paths], values, -np.inf)
    if values.max() == -np.inf:
        for call in (fitted.predict, fitted.predict_marginals, fitted.sample):
            refuses("sequence 0", call, [x], error=ImpossibleEvidenceError, **rules)
        return
    best = fitted.predict([x], **rules)[0]
    codes = tuple(names.index(y) for y in best)
    assert_allclose(values[paths.index(codes)], values.max())
    several = fitted.predict_n_best([x], 3, **rules)[0]
    order = np.sort(values[values > -np.inf])[::-1][:3]
    assert_allclose([v for _, v in several], order - np.logaddexp.reduce(values), atol=1e-10)
    drawn = fitted.sample([x], 0, **rules)[0]
    assert fine([names.index(y) for y in drawn])
    p = np.exp(values - np.logaddexp.reduce(values))
    expected = [[p[[q[t] == k for q in paths]].sum() for k in range(3)] for t in range(len(x))]
    assert_allclose(fitted.predict_marginals([x], **rules)[0], expected, atol=1e-10)


_KEPT = []


def _fitted():
    if not _KEPT:
        _KEPT.append(crf(l2=0.5).fit(*sentences()))
    return _KEPT[0]


def test_forbidden_transitions_of_the_model():
    X, Y = sentences()
    rules = [("O", "I"), (None, "I")]
    fitted = crf(forbidden=rules, l2=1.0).fit(X, Y)
    for y in fitted.predict([[["w=1"]] * 5]) + fitted.sample([[["w=1"]] * 20], 0):
        assert y[0] != "I"
        assert ("O", "I") not in set(pairwise(y))
    refuses("labels that the model allows", crf(forbidden=[("B", "I")]).fit, [[["a"], ["b"]]], [["B", "I"]])


def test_boundary_parameters():
    X = [[["a"], ["a"]]] * 4
    Y = [["x", "y"]] * 4
    fitted = crf(boundary=True, l2=0.01).fit(X, Y)
    assert fitted.parameters_["start"].shape == fitted.parameters_["end"].shape == (2,)
    assert fitted.parameters_["start"][0] > fitted.parameters_["start"][1]
    assert fitted.predict([[["a"]] * 2]) == [["x", "y"]]


def test_labels_of_any_kind():
    X, Y = sentences()
    kinds = {"B": ("N", 1), "I": (3,), "O": ("rest", None)}
    fitted = crf().fit(X, [[kinds[y] for y in labels] for labels in Y])
    plain = crf().fit(X, Y)
    assert [[kinds[y] for y in labels] for labels in plain.predict(X)] == fitted.predict(X)
    numbers = [np.array([{"B": 10, "I": 20, "O": 30}[y] for y in labels]) for labels in Y]
    ints = crf().fit(X, numbers)
    assert ints.classes_ == [10, 20, 30]
    assert ints.score(X, numbers) == plain.score(X, Y)
    assert crf().fit(X, [["x"] * len(x) for x in X]).predict(X) == [["x"] * len(x) for x in X]


@pytest.mark.parametrize(
    ("three", "got"),
    [
        ((-1, False, True), "bool and int"),
        ((-1.0, 0, 1), "float and int"),
        ((0, 1.0, True), "bool and float and int"),
        (("N", 3, ("rest", 1)), "int and str and tuple"),
        ((np.float32(0), np.int8(1), np.int8(2)), "float and int"),
    ],
)
def test_labels_of_several_types_are_refused(three, got):
    X, Y = sentences()
    mixed = [[three["BIO".index(y)] for y in labels] for labels in Y]
    fitted = crf().fit(X, Y)
    for call in (
        lambda: crf().fit(X, mixed),
        lambda: ig.HMM().fit(X, mixed),
        lambda: fitted.score(X, mixed),
        lambda: fitted.predict(X, forced=mixed),
        lambda: crf(optimizer="sgd").partial_fit(X, Y, classes=three),
    ):
        refuses(f"labels of one type, got {got}; None is a label that is not observed", call)


@pytest.mark.long
@pytest.mark.parametrize("kind", [int, float, np.float32, np.int8, Decimal, np.longdouble])
def test_minus_one_is_not_observed_among_numbers_of_any_type(kind):
    X, Y = sentences(40)
    holes = [[None if (i + t) % 3 == 0 else y for t, y in enumerate(labels)] for i, labels in enumerate(Y)]
    numbers = {"B": kind(0), "I": kind(1), "O": kind(2), None: kind(-1)}
    fitted, found = crf().fit(X, holes), [[numbers[y] for y in labels] for labels in holes]
    for labels in (found, [np.array(one) for one in found], [[None if y == -1 else y for y in one] for one in found]):
        numbered = crf().fit(X, labels)
        assert numbered.classes_ == [0, 1, 2]
        assert_array_equal(numbered.theta_, fitted.theta_)
        assert numbered.score(X, labels) == fitted.score(X, holes)
    spins = [[kind(1) if y == "B" else kind(-1) for y in labels] for labels in Y]
    refuses(r"\(Y \+ 1\) // 2", crf().fit, X, spins)
    with pytest.raises(InputError, match="classes: expected labels, got None or -1"):
        crf(optimizer="sgd").partial_fit(X, found, classes=[kind(-1), kind(0), kind(1), kind(2)])


def test_masked_labels_are_not_observed():
    X, Y = sentences(40)
    numbers = [np.ma.array(["BIO".index(y) for y in labels], dtype=np.uint8) for labels in Y]
    for i, labels in enumerate(numbers):
        labels[i % len(labels)] = np.ma.masked
    masked = crf().fit(X, numbers)
    filled = crf().fit(X, [labels.astype(int).filled(-1) for labels in numbers])
    assert masked.classes_ == [0, 1, 2]
    assert_array_equal(masked.theta_, filled.theta_)


def test_one_and_minus_one_may_be_scored_and_forced():
    """Which labels there are is known by then, so that -1 beside 1 alone is no spin but not observed."""
    X, Y = sentences(40)
    numbers = [["BIO".index(y) if t % 2 else -1 for t, y in enumerate(labels)] for labels in Y]
    fitted = crf().fit(X, numbers)
    ones = [[1 if y == "I" else -1 for y in labels] for labels in Y]
    hidden = [[1 if y == "I" else None for y in labels] for labels in Y]
    assert fitted.score(X, ones) == fitted.score(X, hidden)
    assert fitted.predict(X, forced=ones) == fitted.predict(X, forced=hidden)
    assert_array_equal(fitted.log_likelihood(X, ones), fitted.log_likelihood(X, hidden))
    crf(max_iter=3, tol=1e9).fit(X, numbers, validation=(X, ones))
    fitted.set_params(warm_start=True, tol=1e9).fit(X, ones)


def test_unknown_classes_have_no_weight():
    X, Y = sentences()
    for weights in ({"B": 2.0, "b": 1.0}, {None: 2.0}, {0: 1.0}):
        with pytest.raises(InputError, match="class_weight: expected labels among the 3 classes as keys"):
            crf(loss="ucl", class_weight=weights).fit(X, Y)


def test_too_many_labels_for_memory_are_refused():
    X, Y = [[["a"]] * 10**5], [list(range(10**5))]
    refuses("tables of 100000 x 100000 labels need", crf(bias=False).fit, X, Y, error=ig.MemoryLimitError)


@pytest.mark.parametrize("make", [ig.ChainCRF, ig.HMM, ig.MEMM])
def test_too_many_threads_are_refused(make):
    X, Y = sentences()
    refuses(r"n_jobs: expected at most [0-9]+ threads, got 1099511627776; or -1", make(n_jobs=2**40).fit, X, Y)
    fitted = make().fit(X, Y)
    refuses("n_jobs", fitted.set_params(n_jobs=2**40).predict, X)
    assert fitted.set_params(n_jobs=-1).predict(X) == fitted.set_params(n_jobs=1).predict(X)


def test_unobserved_labels():
    X, Y = sentences(40)
    holes = [[None if (i + t) % 3 == 0 else y for t, y in enumerate(labels)] for i, labels in enumerate(Y)]
    fitted = crf().fit(X, holes)
    assert fitted.score(X, Y) > 0.7
    numbers = {"B": 0, "I": 1, "O": 2, None: -1}
    ints = crf().fit(X, [np.array([numbers[y] for y in labels]) for labels in holes])
    assert_array_equal(ints.theta_, fitted.theta_)
    scalars = crf().fit(X, [[np.int64(numbers[y]) for y in labels] for labels in holes])
    assert scalars.classes_ == [0, 1, 2]
    assert ints.score(X[:1], [[-1] * (len(X[0]) - 1) + [0]]) in (0.0, 1.0)
    refuses("at least one observed label", crf().fit, X, [[None] * len(x) for x in X])
    with pytest.raises(InputError, match=r"\(Y \+ 1\) // 2"):
        crf().fit(X[:1], [[-1, 1] * 10][:1] if len(X[0]) == 20 else [[1] + [-1] * (len(X[0]) - 1)])


def test_weights():
    X, Y = sentences()
    twice = crf(tol=1e-9).fit(X + X[:4], Y + Y[:4])
    weighted = crf(tol=1e-9).fit(X, Y, sample_weight=[2] * 4 + [1] * (len(X) - 4))
    assert_allclose(weighted.theta_, twice.theta_, atol=1e-4)
    balanced = crf(loss="ucl", class_weight="balanced").fit(X, Y)
    assert not np.allclose(balanced.theta_, crf(loss="ucl").fit(X, Y).theta_)
    assert crf(loss="ucl", class_weight={"B": 2.0}).fit(X, Y).score(X, Y) > 0.5
    refuses("class_weight", crf(class_weight="balanced").fit, X, Y)


def test_threads_give_the_same_bits():
    X, Y = sentences(1500)
    with pytest.warns(ConvergenceWarning):
        one, two = (crf(n_jobs=n, max_iter=5).fit(X, Y) for n in (1, 2))
    assert_array_equal(one.theta_, two.theta_)
    assert one.predict(X) == two.predict(X)
    assert one.sample(X, 3) == two.sample(X, 3)


def test_warm_start_goes_on():
    X, Y = sentences()
    with pytest.warns(ConvergenceWarning):
        fitted = crf(max_iter=3, warm_start=True, tol=1e-10).fit(X, Y)
    first = fitted.objective_
    fitted.set_params(max_iter=200, tol=1e-4).fit(X, Y)
    assert fitted.objective_ < first
    assert fitted.history_[0].value < first + 1e-9


def test_partial_fit():
    X, Y = sentences(40)
    fitted = crf(optimizer=Adam(learning_rate=0.1, batch_size=4, random_state=0), state_features="all")
    for _ in range(8):
        for part in (slice(0, 20), slice(20, 40)):
            fitted.partial_fit(X[part], Y[part], classes=["B", "I", "O"], n_total=40)
    assert fitted.score(X, Y) > 0.8
    assert fitted.n_iter_ == 8 * 10
    refuses("a minibatch optimizer", crf(optimizer="lbfgs").partial_fit, X, Y)
    refuses("l1: expected 0 for partial_fit", crf(l1=1.0).partial_fit, X, Y)
    refuses("n_total: expected a number of at least 40", crf().partial_fit, X, Y, n_total=39)
    refuses("classes", fitted.partial_fit, X, [["new"] * len(x) for x in X])


@pytest.mark.parametrize("state_features", ["seen", "all"])
def test_partial_fit_learns_attributes_that_come_later(state_features):
    X = [[["w=a"], ["w=b"]], [["w=c"], ["w=d"]]]
    Y = [["A", "B"], ["B", "A"]]
    made = crf(optimizer=Adam(learning_rate=0.2, random_state=0), l2=0.0, bias=True, state_features=state_features)
    for _ in range(40):
        for x, y in zip(X, Y, strict=True):
            made.partial_fit([x], [y], classes=["A", "B"])
    assert made.predict(X) == Y
    assert made.n_iter_ == 80
    assert made.n_features_in_ == 4
    assert {attribute for attribute, _ in made.state_features_} == {"w=a", "w=b", "w=c", "w=d", "(bias)"}


def test_what_an_optimizer_keeps_moves_with_its_weight():
    X, Y = [[["w=a"], ["w=b"]]], [["A", "B"]]
    made = crf(optimizer=Adam(learning_rate=0.2, random_state=0), bias=True, state_features="all").partial_fit(X, Y)
    weights, memory = made.state_features_, made._optimizer_state.memory[1]
    moments = dict(zip(weights, memory, strict=False))
    problem = problem_of(made, chain_choices(made), [[["w=new"]]], [["A"]], None, known=True, grow=True)
    names, n = [*problem.index.titles()], problem.model.features.size
    pairs = [(names[a], made.classes_[y]) for a, y in zip(*divmod(problem.model.features.pairs, 2), strict=True)]
    for old, vector in ((weights, made.theta_), (moments, memory)):
        new = problem.growth.vector(vector)
        assert dict(zip(pairs, new[:n], strict=True)) == {pair: old.get(pair, 0.0) for pair in pairs}
        assert_array_equal(new[n:], vector[len(weights) :])
    assert ("w=new", "A") in pairs
    assert pairs[-1] == ("(bias)", "B")


def long_names(n=240):
    """Sentences with rare labels: all but one word of each are outside of a name."""
    rng = np.random.default_rng(0)
    found = [[[f"w={w}", f"v={w % 7}"] for w in rng.integers(0, 40, 6)] for _ in range(n)]
    return found, [["B" if int(t[0][2:]) < 6 else "O" for t in x] for x in found]


@pytest.mark.long
@pytest.mark.parametrize("cls", [ig.ChainCRF, ig.MEMM])
def test_parts_share_the_penalty_and_the_steps(cls, tmp_path):
    """One pass by parts of any size learns about as much as one of all together, with the default optimizer."""
    X, Y = long_names()
    norms = []
    for size in (10, 60, 240):
        made = cls(l2=1.0)
        for a in range(0, len(X), size):
            made.partial_fit(X[a : a + size], Y[a : a + size], classes=["B", "O"], n_total=len(X))
        assert made.score(X, Y) > 0.95
        norms.append(np.linalg.norm(made.theta_))
        assert made.n_iter_ == len(X) // size * min(size, 20)
    assert max(norms) < 2 * min(norms)
    made = cls(l2=1.0).partial_fit(X[:120], Y[:120])
    with pytest.warns(UserWarning, match="partial_fit without n_total: the penalty is that of the sequences seen"):
        made.partial_fit(X[120:180], Y[120:180])
    made.partial_fit(X[180:], Y[180:])  # said once
    made.save(tmp_path / "made.isg")
    kept = cls.load(tmp_path / "made.isg")
    assert kept._seen == made._seen == 240
    with pytest.warns(UserWarning, match="without n_total"):
        kept.partial_fit(X[:2], Y[:2])


def test_the_penalty_of_a_part_is_its_share():
    """A step of plain gradients from zero, and another: what the penalty takes away is its share of the whole one."""
    X, Y = [[["w=a"]], [["w=b"]]], [["A"], ["B"]]
    sgd = ig.learning.optimizers.Sgd(learning_rate=1.0, schedule="constant", random_state=0)
    free, bound = (crf(optimizer=sgd, l2=l2, bias=False, boundary=False) for l2 in (0.0, 0.4))
    for made in (free, bound):
        made.partial_fit(X[:1], Y[:1], classes=["A", "B"], n_total=8)
    before = free.state_features_["w=a", "A"]
    for made in (free, bound):
        made.partial_fit(X[1:], Y[1:], n_total=8)
    assert bound.state_features_["w=a", "A"] == pytest.approx(before * (1 - 2 * 0.4 / 8))
    assert free.state_features_["w=a", "A"] == pytest.approx(before)


def test_means_of_points_go_on_across_calls():
    X, Y = sentences(10)
    made = crf(optimizer=Adam(learning_rate=0.1, batch_size=5, averaging=True, random_state=0))
    for _ in range(3):
        made.partial_fit(X, Y, n_total=10)
    assert (made.n_iter_, made._optimizer_state.averaged) == (6, 6)


def test_a_fit_that_predicts_one_label_says_so():
    X, Y = long_names()
    words = r"the model predicts label 'O' alone on its training data, where 8\d% of labels are; are the features"
    with pytest.warns(ConvergenceWarning, match=words):
        crf(l2=1e4).fit(X, Y)
    with pytest.warns(ConvergenceWarning, match=words):
        crf(l2=1e4).partial_fit(X, Y)
    numbers = [np.array([int(label == "B") for label in y]) for y in Y]
    graphs = [(np.zeros((6, 1)), [(i, i + 1) for i in range(5)]) for _ in X]
    with pytest.warns(ConvergenceWarning, match="the model predicts label 0 alone"):
        ig.GraphCRF().fit(graphs, numbers)


def test_partial_fit_once_is_an_epoch_of_fit():
    X, Y = sentences(10)
    optimizer = Adam(learning_rate=0.1, batch_size=3, epochs=1, random_state=0)
    with pytest.warns(ConvergenceWarning):
        fitted = crf(optimizer=optimizer).fit(X, Y)
    assert_array_equal(crf(optimizer=optimizer).partial_fit(X, Y).theta_, fitted.theta_)


def test_checkpoints(tmp_path):
    X, Y = sentences()
    whole = crf(tol=1e-6).fit(X, Y)
    path = tmp_path / "run.npz"
    stop = crf(tol=1e-6, checkpoint=path, callback=lambda p: p.iteration == 4).fit(X, Y)
    assert stop.n_iter_ == 4
    again = crf(tol=1e-6, checkpoint=path).fit(X, Y)
    assert_array_equal(again.theta_, whole.theta_)
    assert [e.value for e in again.history_] == [e.value for e in whole.history_]
    refuses("checkpoint", crf(tol=1e-6, checkpoint=path, l2=0.2).fit, X, Y)
    refuses("checkpoint", crf(tol=1e-6, checkpoint=path).fit, X[:-1], Y[:-1])


def test_files(tmp_path):
    X, Y = sentences()
    for options, data in (
        ({"boundary": True, "forbidden": [("O", "I"), (None, "I")]}, X),
        ({"bias": True, "optimizer": Lbfgs(tol=1e-3)}, arrays(X)),
    ):
        fitted = crf(**options).fit(data, Y)
        path = tmp_path / "chain.isg"
        fitted.save(path)
        again = ig.ChainCRF.load(path)
        assert again.predict(data) == fitted.predict(data)
        assert_array_equal(again.theta_, fitted.theta_)
        assert again.state_features_ == fitted.state_features_
        assert again.history_ == fitted.history_
        assert again.classes_ == fitted.classes_
    with pytest.raises(FileFormatError):
        ig.GridCRF.load(path)
    damaged = path.read_bytes()[:-50]
    path.write_bytes(damaged)
    with pytest.raises(FileFormatError):
        ig.ChainCRF.load(path)
    labels = [[("N", y) for y in sequence] for sequence in Y]
    crf().fit(X, labels).save(path)
    assert ig.ChainCRF.load(path).classes_[0] == ("N", "B")
    refuses("safe file", crf().fit(X, [[frozenset([y]) for y in sequence] for sequence in Y]).save, path)


def _tampered(path, arrays=None, **metadata):
    file = read_arrays(path)
    changed = {name: value for name, value in {**file.arrays, **(arrays or {})}.items() if value is not None}
    write_arrays(path, changed, schema=file.schema, version=file.version, metadata={**file.metadata, **metadata})


@pytest.mark.parametrize(
    "change",
    [
        {"arrays": {"theta": None}},
        {"arrays": {"theta": np.full(3, np.nan)}},
        {"arrays": {"history": np.zeros((2, 4))}},
        {"arrays": {"labels": np.full(500, 99, np.int32)}},
        {"arrays": {"first": np.arange(5)}},
        {"arrays": {"names": np.zeros(3, np.uint8)}},
        {"arrays": {"forbidden": np.zeros((2, 2), bool)}},
        {"classes": ["B", "B", "O"]},
        {"classes": []},
        {"n_features_in": -1},
        {"n_features_in": 10**9},
        {"named": 1},
        {"boundary": False},
        {"parameters": {"l2": "x"}},
        {"parameters": {"no_such": 1}},
    ],
)
def test_files_that_are_not_what_they_say(tmp_path, change):
    path = tmp_path / "chain.isg"
    crf().fit(*sentences()).save(path)
    _tampered(path)
    ig.ChainCRF.load(path)
    _tampered(path, **change)
    with pytest.raises(FileFormatError):
        ig.ChainCRF.load(path)


def test_scikit_learn():
    X, Y = sentences(24)
    estimator = crf(loss="ucl")
    assert clone(estimator).get_params() == estimator.get_params()
    assert repr(crf(loss="ucl")).startswith("ChainCRF(")
    assert "loss='ucl'" in repr(crf(loss="ucl"))
    fitted = crf().fit(X, Y)
    assert pickle.loads(pickle.dumps(fitted)).predict(X) == fitted.predict(X)
    search = GridSearchCV(crf(), {"l2": [0.1, 10.0], "loss": ["cl", "ucl"]}, cv=3, error_score="raise").fit(X, Y)
    assert search.best_score_ > 0.6
    assert len(search.predict(X)) == len(X)
    assert cross_val_score(crf(), X, Y, cv=4, error_score="raise").min() > 0.4
    _, train, test = learning_curve(crf(), X, Y, cv=3, train_sizes=[0.3, 1.0], error_score="raise")
    assert train.shape == test.shape == (2, 3)
    pipe = make_pipeline(FunctionTransformer(lambda data: data), crf()).fit(X, Y)
    assert pipe.predict(X) == fitted.predict(X)


def test_a_fold_that_lacks_a_label():
    X, Y = sentences(12)
    rare = [["odd"] * len(x) if i == 0 else y for i, (x, y) in enumerate(zip(X, Y, strict=True))]
    scores = cross_val_score(crf(), X, rare, cv=12, error_score="raise")
    assert scores[0] == 0.0
    assert scores[1:].max() > 0.5


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"loss": "nonsense"}, "loss"),
        ({"l2": -1}, "l2"),
        ({"l1": "x"}, "l1"),
        ({"state_features": "some"}, "state_features"),
        ({"min_count": 0}, "min_count"),
        ({"decoder": "best"}, "decoder"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"forbidden": [("B",)]}, "forbidden"),
        ({"max_iter": 0}, "max_iter"),
        ({"callback": 3}, "callback"),
        ({"bias": "yes"}, "bias"),
    ],
)
def test_wrong_options(options, match):
    refuses(match, crf(**options).fit, *sentences())


@pytest.mark.parametrize(
    ("X", "Y", "match"),
    [
        ([], [], "at least one"),
        ("text", [["a"]], "list of sequences"),
        ([["word", "word"]], [["a", "b"]], "tokens"),
        ([[["a"], {"b": 1}]], [["x", "y"]], "all dicts"),
        ([[["a"], ["b"]]], [["x"]], r"Y\[0\]"),
        ([[["a"]]], [["x"], ["y"]], "sequences, as in X"),
        ([[[["a"]]]], [["x"]], "strings"),
        ([[[("a", 1)]]], [["x"]], "strings"),
        ([[{"a": [1]}]], [["x"]], "plain values"),
        ([[{"a": float("nan")}]], [["x"]], "finite"),
        ([np.array([[np.nan]])], [["x"]], "finite"),
        ([np.zeros((2, 3)), np.zeros((1, 2))], [["x", "y"], ["x"]], "same number of features"),
        ([[["a"]]], [[["x"]]], "hashable"),
        ([[["a"]]], [3], r"Y\[0\]"),
    ],
)
def test_wrong_data(X, Y, match):
    refuses(match, crf().fit, X, Y)


def test_wrong_data_at_prediction():
    X, Y = sentences()
    fitted = crf().fit(X, Y)
    refuses("as in fit", fitted.predict, arrays(X))
    refuses("features, as in fit", crf().fit(arrays(X), Y).predict, [np.zeros((2, 3))])
    refuses("forced", fitted.predict, X[:1], forced=[["X"] * len(X[0])])
    refuses("not fitted", crf().predict, X, error=ValueError)


def test_validation_ends_training_and_keeps_the_best():
    rng = np.random.default_rng(0)
    draw = lambda n: [rng.normal(size=(rng.integers(3, 9), 30)) for _ in range(n)]  # noqa: E731
    X, X_val = draw(8), draw(30)
    Y, Y_val = ([(x[:, 0] + rng.normal(size=len(x)) > 0).astype(int) for x in xs] for xs in (X, X_val))
    crf = ig.ChainCRF(l2=1e-6, state_features="all", patience=3).fit(X, Y, validation=(X_val, Y_val))
    seen = [epoch.validation for epoch in crf.history_]
    assert len(seen) == int(np.argmin(seen)) + 1 + 3
    assert "validation loss" in crf.message_
    assert -crf.log_likelihood(X_val, Y_val).sum() == pytest.approx(min(seen))
    refuses(r"validation\[1\]", crf.fit, X, Y, validation=(X_val, [y + 5 for y in Y_val]))
    refuses("a tuple", crf.fit, X, Y, validation=3)


def test_a_rate_that_is_much_too_large_does_not_lose_the_fit():
    X, Y = sentences(40)
    made = crf(optimizer=Adam(learning_rate=1e5, epochs=3, random_state=0), loss="ucl")
    with pytest.warns(ConvergenceWarning, match="smaller learning_rate"):
        made.fit(X, Y)
    assert np.isfinite(made.theta_).all()
    assert made.n_iter_ > 0
    assert len(made.predict(X)) == 40


@pytest.mark.parametrize("size", [1e8, 1e10, 1e12])
def test_log_probabilities_are_at_most_zero(size):
    rng = np.random.default_rng(0)
    X, Y = [rng.normal(size=(6, 3)) for _ in range(30)], [rng.integers(0, 3, 6) for _ in range(30)]
    fitted = ig.ChainCRF(l2=1.0).fit(X, Y)
    large = [size * x for x in X]
    best = fitted.predict(large)
    assert (fitted.log_likelihood(large, best) <= 0).all()
    assert all(value <= 0 for found in fitted.predict_n_best(large, 2) for _, value in found)


@pytest.mark.parametrize("loss", ig.losses.LOSSES)
def test_the_documentation_names_every_loss(loss):
    try:
        ig.ChainCRF(loss=loss)._choices()
    except ig.IsinglassError:  # one of graphs alone
        return
    assert f'"{loss}"' in ig.ChainCRF.__doc__
