"""Reports on predictions, against scikit-learn and sums written out."""

import numpy as np
import pytest
from sklearn import metrics as sk

import isinglass as ig
from checks import refuses
from isinglass.metrics import brier_score, calibration_error, reliability, report

RNG = np.random.default_rng(0)
TRUTH = RNG.integers(0, 4, (6, 5, 7))
GUESS = np.where(RNG.random(TRUTH.shape) < 0.7, TRUTH, RNG.integers(0, 4, TRUTH.shape))
PROBA = RNG.dirichlet(np.ones(4), TRUTH.shape)


def test_labels_and_classes_are_those_of_scikit_learn():
    found = report(TRUTH, GUESS)
    y, p = TRUTH.ravel(), GUESS.ravel()
    assert found.accuracy == pytest.approx(sk.accuracy_score(y, p))
    assert found.hamming_loss == pytest.approx(sk.hamming_loss(y, p))
    assert found.confusion.tolist() == sk.confusion_matrix(y, p).tolist()
    assert found.macro_f1 == pytest.approx(sk.f1_score(y, p, average="macro"))
    assert found.mean_iou == pytest.approx(sk.jaccard_score(y, p, average="macro"))
    each = sk.precision_recall_fscore_support(y, p)
    for k, scores in found.per_class.items():
        assert [scores.precision, scores.recall, scores.f1, scores.support] == pytest.approx([m[k] for m in each])
    assert found.exact_match == 0.0
    assert report(TRUTH, TRUTH).exact_match == 1.0
    assert found.to_frame().loc[2, "f1"] == found.per_class[2].f1
    assert found.confusion_frame().to_numpy().tolist() == found.confusion.tolist()


def test_lists_arrays_and_strings_are_the_same():
    words = np.array(["a", "b", "c", "d"])
    one = report(TRUTH, GUESS)
    two = report([words[y] for y in TRUTH], [words[p].tolist() for p in GUESS])
    assert two.accuracy == one.accuracy
    assert two.confusion.tolist() == one.confusion.tolist()
    assert two.classes == ["a", "b", "c", "d"]


def test_unobserved_labels_count_nowhere():
    hidden = RNG.random(TRUTH.shape) < 0.3
    masked = np.where(hidden, -1, TRUTH)
    found = report(masked, GUESS, proba=PROBA)
    y, p = TRUTH[~hidden], GUESS[~hidden]
    assert found.n_labels == len(y)
    assert found.accuracy == pytest.approx(sk.accuracy_score(y, p))
    assert found.brier == pytest.approx(((PROBA[~hidden] - np.eye(4)[y]) ** 2).sum(axis=1).mean())
    nothing = [[None if h else t for h, t in zip(*pair, strict=True)] for pair in zip(hidden[0], TRUTH[0], strict=True)]
    assert report(nothing, GUESS[0]).accuracy == report(masked[0], GUESS[0]).accuracy


def test_confidence_is_compared_with_the_share_that_is_right():
    found = report(TRUTH, GUESS, proba=PROBA)
    y, p = TRUTH.ravel(), PROBA.reshape(-1, 4)
    assert found.log_loss == pytest.approx(sk.log_loss(y, p))
    confidence, right = p.max(axis=1), p.argmax(axis=1) == y
    total = 0.0
    for low in np.arange(15) / 15:
        inside = (confidence >= low) & (confidence < low + 1 / 15)
        if inside.any():
            total += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    assert found.calibration_error == pytest.approx(total)
    assert calibration_error(y, p) == pytest.approx(total)
    assert reliability(y, p, 5).counts.sum() == len(y)
    assert brier_score([0, 1], [[1, 0], [0, 1]]) == 0
    assert report(TRUTH, GUESS, proba=list(PROBA)).brier == found.brier


def test_spans_are_found_by_their_labels():
    Y = [["B-NP", "I-NP", "O"], ["O", "B-VP", "O"]]
    found = report(Y, [["B-NP", "I-NP", "O"], ["O", "O", "O"]])
    assert found.spans[None].recall == 0.5
    assert found.summary()["span_f1"] == pytest.approx(2 / 3)
    assert "spans" in str(found)
    assert report([["N", "V"]], [["N", "N"]]).spans is None
    assert report([["O"]], [["O"]]).spans is None


def test_coverage_of_lists():
    Y = [["a", "b"], ["b", None], ["a", "a"]]
    lists = [
        [(["a", "a"], -0.1), (["a", "b"], -0.5)],
        [(["b", "a"], -0.1)],
        [(["b", "b"], -0.1), (["a", "b"], -0.2), (["b", "a"], -0.3)],
    ]
    found = report(Y, [listed[0][0] for listed in lists], n_best=lists)
    assert found.coverage == pytest.approx([1 / 3, 2 / 3, 2 / 3])


def test_pictures_of_reports():
    pytest.importorskip("matplotlib")
    found = report(TRUTH, GUESS, proba=PROBA)
    assert len(ig.viz.heat_map(found).axes) == 1
    assert len(ig.viz.reliability_diagram(found).axes) == 2
    refuses("give proba=", ig.viz.reliability_diagram, report(TRUTH, GUESS))
    refuses(r"what: expected an array .rows, columns., got shape", ig.viz.heat_map, [1.0, 2.0])
    refuses("rows: expected names", ig.viz.heat_map, np.eye(2), ["a"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: report("abc", "abc"), "Y: expected a list of examples"),
        (lambda: report(["ab"], ["ab"]), r"Y\[0\]: expected the labels of an example, got 'ab'"),
        (lambda: report([[1, 2]], [[1, 2], [1]]), "P: expected 1 examples"),
        (lambda: report([[1, 2]], [[1]]), r"P\[0\]: expected 2 labels"),
        (lambda: report([[-1]], [[1]]), "at least one observed label"),
        (lambda: report([[1]], [[-1]]), "P: expected a label for each variable"),
        (lambda: report([[1]], [[1]], classes=[2]), "classes: expected all labels that occur, got none for 1"),
        (lambda: report([[1]], [[1]], classes=[1, 1]), "classes: expected each label once, got 2, 1 different"),
        (lambda: report([[1]], [[1]], classes=[1, {}]), "classes: expected labels such as numbers or text, got {}"),
        (lambda: report([[{"x": 1}]], [[1]]), "Y, P: expected labels such as numbers or text, got {'x': 1}"),
        (lambda: report([[0]], [[1]], proba=[[[0.5, 0.6]]]), "probabilities that sum to one"),
        (lambda: report([[0]], [[1]], proba=[[[1.0]]]), "a last axis of 2 classes, .* give classes"),
        (lambda: report([[0]], [[1]], proba=[[[0.5, 0.5]] * 2]), "proba: expected probabilities of 1 labels, got 2"),
        (lambda: report([[0]], [[1]], n_best=[]), "n_best: expected a list for each of 1 examples"),
        (lambda: report([[0]], [[1]], n_best=[[[0, 1]]]), r"n_best\[0\]\[0\]: expected 1 labels, got 2"),
    ],
)
def test_wrong_reports_are_named(call, words):
    refuses(words, call)
