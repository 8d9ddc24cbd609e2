"""One rule for the labels of all estimators: the classes are the labels that occur, more of them only by `n_states`."""

import numpy as np
import pytest
from estimator_helpers import graph, graphs, grid, images

import isinglass as ig
from isinglass.metrics import report

RNG = np.random.default_rng(0)


def sequences():
    Y = [RNG.integers(0, 2, 5) for _ in range(6)]
    return [np.c_[1 - y, y] + 0.5 * RNG.random((5, 2)) for y in Y], Y


def chain(cls):
    return lambda **options: cls(**options), sequences()


KINDS = {
    "grid": (grid, images()),
    "list of images": (grid, tuple(map(list, images()))),
    "graph": (graph, graphs()),
    "chain": chain(ig.ChainCRF),
    "memm": chain(ig.MEMM),
    "hmm": chain(ig.HMM),
}
LABELS = {"a mask": (0, 255), "from 1": (1, 2), "far": (3, 10**9), "strings": ("sea", "sky")}


def renamed(Y, labels, hidden):
    """Every seventh label of images, graphs or sequences is not observed; the others get other names."""

    def one(y):
        found = np.array([hidden, *labels], object)[np.where(np.arange(y.size).reshape(y.shape) % 7 == 3, 0, y + 1)]
        return found if isinstance(hidden, str) or hidden is None else found.astype(np.int64)

    found = [one(np.asarray(y)) for y in Y]
    return np.array(found) if isinstance(Y, np.ndarray) else found


def flat(Y):
    return np.concatenate([np.ravel(np.asarray(y, object)) for y in Y]).tolist()


@pytest.mark.long
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("kind", KINDS)
def test_labels_with_gaps_are_those_that_occur(kind, labels, tmp_path):
    make, (X, Y) = KINDS[kind]
    names = LABELS[labels]
    plain, void = renamed(Y, (0, 1), -1), "void" if labels == "strings" else 77
    weights = {} if kind == "hmm" else {"class_weight": {1: 2.0}}
    known = make(**({} if kind in ("chain", "memm") else weights)).fit(X, plain)
    for hidden in (-1, void) if labels != "strings" else (None, void):
        own = {"class_weight": {names[1]: 2.0}} if weights and kind not in ("chain", "memm") else {}
        other = renamed(Y, names, hidden)
        crf = make(ignore_label=void, **own).fit(X, other)
        assert list(crf.classes_) == list(names)
        assert crf.theta_.tobytes() == known.theta_.tobytes()
        assert flat(crf.predict(X)) == [names[y] for y in flat(known.predict(X))]
        assert crf.score(X, other) == known.score(X, plain)
        assert crf.log_likelihood(X, other).tolist() == known.log_likelihood(X, plain).tolist()
        assert report(other, crf.predict(X), ignore_label=void).accuracy == pytest.approx(known.score(X, plain))
        crf.save(tmp_path / "crf.isg")
        kept = type(crf).load(tmp_path / "crf.isg")
        assert flat(kept.predict(X)) == flat(crf.predict(X))
        assert kept.score(X, other) == crf.score(X, other)
        assert np.array_equal(flat(kept.predict_marginals(X)), flat(known.predict_marginals(X)))
    if kind != "hmm" and labels == "a mask":
        assert ig.diagnose(crf.set_params(max_iter=2), X, other).error == pytest.approx(1 - crf.score(X, other))


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_without_examples_needs_n_states(kind):
    make, (X, Y) = KINDS[kind]
    twice = [2 * np.asarray(y) for y in Y]
    assert list(make().fit(X, twice).classes_) == [0, 2]
    crf = make(n_states=4).fit(X, twice)
    assert list(crf.classes_) == [0, 1, 2, 3]
    assert crf.predict_marginals(X)[0].shape[-1] == 4
    with pytest.raises(ig.InputError, match=r"Y: expected labels below n_states = 2, got 2; give n_states=3, or leave"):
        make(n_states=2).fit(X, twice)
    with pytest.raises(ig.InputError, match="n_states: expected a whole number"):
        make(n_states=1).fit(X, twice)
    with pytest.raises(ig.InputError, match=r"Y.*: expected labels .*, got 1; (it was not|give n_states=2 to fit)"):
        make().fit(X, twice).log_likelihood(X, Y)
    with pytest.raises(ig.InputError, match=r"Y: expected labels from 0 on.*got -100; .* give ignore_label=-100"):
        make().fit(X, [np.where(y == 1, 1, -100) for y in Y])
    with pytest.raises(ig.InputError, match="labels -1 and 1 only"):
        make(ignore_label=255).fit(X, renamed(Y, (-1, 1), 255))
    with pytest.raises(ig.InputError, match=r"ignore_label: expected a label of the type of the others, such as [01]"):
        make(ignore_label="255").fit(X, Y)


def test_sets_of_labels_with_an_ignored_one():
    X = RNG.normal(size=(30, 2))
    Y = (X @ RNG.normal(size=(2, 3)) > 0).astype(int)
    hidden = RNG.random(Y.shape) < 0.2
    known = ig.MultiLabelCRF(l2=0.1).fit(X, np.where(hidden, -1, Y))
    for void in (np.where(hidden, 255, Y), np.where(hidden, 255.0, Y)):
        crf = ig.MultiLabelCRF(l2=0.1, ignore_label=255).fit(X, void)
        assert crf.theta_.tobytes() == known.theta_.tobytes()
        assert crf.score(X, void) == known.score(X, np.where(hidden, -1, Y))
    with pytest.raises(ig.InputError, match="n_states: expected None or 2"):
        ig.MultiLabelCRF(n_states=3).fit(X, Y)


def test_a_warm_start_keeps_its_labels():
    make, (X, Y) = KINDS["grid"]
    crf = make(warm_start=True, max_iter=3, tol=1.0).fit(X, 255 * Y)
    assert crf.fit(X, 255 * np.maximum(Y, 0)).classes_.tolist() == [0, 255]
    with pytest.raises(ig.InputError, match=r"warm_start: expected the labels of the last fit, \[0, 255\]"):
        crf.fit(X, Y)
    assert crf.classes_.tolist() == [0, 255]
    assert set(flat(crf.predict(X))) <= {0, 255}


LOCAL = [("grid", "pseudo"), ("grid", "ccl"), ("graph", "scclass"), ("chain", "pseudo"), ("chain", "cquad")]


@pytest.mark.parametrize(("kind", "loss"), LOCAL)
def test_losses_of_neighbours_count_the_labels_that_they_cannot_use(kind, loss):
    """On a checkerboard of labels nothing was learned, and it was called converged."""
    make, (X, Y) = KINDS[kind]
    if kind == "graph":  # paths, whose nodes are in two parts
        X = [(x, [(i, i + 1) for i in range(len(x) - 1)]) for x, _ in X]
    odd = [np.indices(np.shape(y)).sum(axis=0) % 2 == 1 for y in Y]
    hidden = [np.where(o, -1, y) for o, y in zip(odd, Y, strict=True)]
    with pytest.raises(ig.InputError, match=r"Y: expected observed neighbours of labels, for loss '\w+', got none of"):
        make(loss=loss).fit(X, hidden if kind != "grid" else np.array(hidden))
    hidden[0] = Y[0]
    with pytest.warns(
        UserWarning, match=r"loss '\w+' leaves out \d+ of \d+ labels, whose neighbours were not observed"
    ):
        make(loss=loss, max_iter=1, tol=100.0).fit(X, hidden if kind != "grid" else np.array(hidden))


def test_a_local_model_counts_them_likewise():
    X, Y = KINDS["memm"][1]
    with pytest.warns(UserWarning, match=r"'local' leaves out \d+ of \d+ labels.*ChainCRF uses all"):
        ig.MEMM().fit(X, [np.where(np.arange(5) % 2 == 1, -1, y) for y in Y])
