"""Spans as conlleval counts them, and whole sequences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_val_score

import isinglass as ig
from checks import refuses
from isinglass.features import to_bio, to_bioes, window_attributes, with_forms, word_form
from isinglass.metrics import sequence_accuracy, span_f1, span_scores, spans

LABELS = st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"]), max_size=12)


def conlleval(truth, guess):
    """Count right spans token by token, as the script does: both begin, agree in type on the way, and both end."""

    def begins(before, label):
        if label == "O":
            return False
        return label[0] == "B" or before == "O" or before[2:] != label[2:]

    def ends(label, after):
        return label != "O" and (after == "O" or after[0] == "B" or after[2:] != label[2:])

    right, inside, before, last = 0, False, ("O", "O"), len(truth)
    for t in range(last + 1):
        now = (truth[t], guess[t]) if t < last else ("O", "O")
        if inside:
            over = [ends(a, b) for a, b in zip(before, now, strict=True)]
            if all(over):
                right += 1
                inside = False
            elif any(over) or now[0][2:] != now[1][2:]:
                inside = False
        if all(begins(a, b) for a, b in zip(before, now, strict=True)) and now[0][2:] == now[1][2:]:
            inside = True
        before = now
    return right


@given(LABELS, st.data())
def test_spans_are_those_of_conlleval(truth, data):
    guess = data.draw(
        st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"]), min_size=len(truth), max_size=len(truth))
    )
    scores = span_scores([truth], [guess])[None]
    assert scores.right == conlleval(truth, guess)
    assert scores.true == conlleval(truth, truth)
    assert scores.predicted == conlleval(guess, guess)


@given(st.lists(LABELS, min_size=1, max_size=4))
def test_truth_has_the_best_score(Y):
    assert span_f1(Y, Y) == (1.0 if any(map(spans, Y)) else 0.0)
    assert sequence_accuracy(Y, Y) == 1.0


def test_spans_of_schemes_and_types():
    assert spans(["I-NP", "I-NP", "B-NP", "O", "I-VP"]) == spans(["B-NP", "I-NP", "B-NP", "O", "B-VP"])
    Y, Z = [["B-A", "B-B", "O"], ["B-A"]], [["B-A", "B-A", "B-B"], ["O"]]
    scores = span_scores(Y, Z)
    for name in ("right", "predicted", "true"):
        assert getattr(scores[None], name) == sum(getattr(scores[kind], name) for kind in ("A", "B"))
    assert (scores["A"].right, scores["A"].predicted, scores["A"].true) == (1, 2, 2)
    assert span_scores([["O"]], [["O"]])[None].f1 == 0.0


def test_as_scorers():
    X = [[["w=a"], ["w=b"], ["w=c"]]] * 6
    Y = [["B-X", "I-X", "O"]] * 6
    for metric in (span_f1, sequence_accuracy):
        scores = cross_val_score(ig.ChainCRF(l2=0.1), X, Y, cv=3, scoring=make_scorer(metric), error_score="raise")
        np.testing.assert_array_equal(scores, 1.0)


@pytest.mark.parametrize(
    ("truth", "guess", "match"),
    [
        ([["O"]], [], "sequences"),
        ([["O"]], [["O", "O"]], r"Y_pred\[0\]"),
        ([["X"]], [["O"]], "IOB"),
        ([[1]], [[1]], "IOB"),
        ([["E-NP"]], [["O"]], "IOB"),
    ],
)
def test_wrong_input(truth, guess, match):
    refuses(match, span_f1, truth, guess)


def test_f_of_examples_and_of_a_corpus():
    true, predicted = [[1, 0, -1], [1, 1, 1], [0, 0, 0]], [[1, 1, 1], [1, 0, 0], [0, 0, 0]]
    each = [2 / 3, 0.5, 1.0]  # where nothing is observed nothing counts, and F of nothing in nothing is 1
    assert ig.metrics.f_measure(true, predicted) == pytest.approx(np.mean(each))
    assert ig.metrics.f_measure(true, predicted, average="corpus") == pytest.approx(2 * 2 / (4 + 3))
    assert ig.metrics.f_measure(true[:1], predicted[:1], beta=2.0) == pytest.approx(5 * 1 / (4 * 1 + 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0, 1]], [[0]]), r"predicted\[0\]: expected shape \(2,\)"),
        (([0, 1], [0, 1]), r"true\[0\]: expected the states of an example, got a single number"),
        ((1, 1), "true: expected a sequence of int arrays, got int"),
        (([], []), "true: expected at least one example"),
        (([[1]], [[1]], 1, 0.0), "beta: expected a positive number"),
        (([[1]], [[1]], 1, 1.0, "macro"), "average: expected 'examples' or 'corpus'"),
    ],
)
def test_wrong_arguments_of_f(arguments, message):
    refuses(message, ig.metrics.f_measure, *arguments)


TAGS = st.lists(st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B"]), max_size=12)


@given(TAGS)
@settings(max_examples=60, deadline=None)
def test_schemes_keep_the_spans(labels):
    assert spans(to_bio(labels)) == spans(labels)
    fine = to_bioes(labels)
    assert spans(to_bio(fine)) == spans(labels)
    assert to_bioes(to_bio(fine)) == fine
    assert sum(label[0] in "BS" for label in fine) == len(spans(labels))


def test_what_words_look_like():
    assert [word_form("iPhone-7", form) for form in ("shape", "short-shape", "is-upper", "is-digit", "suffix9")] == [
        "xXxxxx-d", "xXx-d", "0", "0", "iPhone-7",
    ]  # fmt: skip
    assert word_form("42", "is-digit") == "1"
    assert list(with_forms({"w": ["A"], "t": ["N"]}, {"w": ["lower"]})) == ["w", "t", "w.lower"]
    for call, words in (
        (lambda: word_form("a", "lowr"), "did you mean 'lower'"),
        (lambda: word_form("a", "prefix0"), "prefix1 to suffix9"),
        (lambda: with_forms({"w": ["a"]}, {"v": ["lower"]}), "forms: expected names of columns"),
        (lambda: to_bio(["X-NP"]), "labels such as"),
    ):
        refuses(words, call)


def test_windows():
    found = window_attributes({"a": ["x", "y", "z"], "b": ["1", "2", "3"]}, {"a": [(-1, 1)], "b": [(0,), (3,)]})
    assert found == [
        ["a-1|1=<s>|y", "b0=1", "b3=</s>"],
        ["a-1|1=x|z", "b0=2", "b3=</s>"],
        ["a-1|1=y|</s>", "b0=3", "b3=</s>"],
    ]
    assert window_attributes({"a": ["x", "y"]}, {}) == [[], []]
    refuses("columns", window_attributes, {"a": ["x"], "b": []}, {"a": [(0,)]})
    refuses(r"names of columns \('a'\), got 'b'", window_attributes, {"a": ["x"]}, {"b": [(0,)]})
    refuses("whole offsets", window_attributes, {"a": ["x"]}, {"a": [("0",)]})
