"""What estimators for sequences make of odd data: nothing at all, arrays of objects, labels that are missing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig
from checks import refuses
from isinglass.errors import ImpossibleEvidenceError, InputError

X = [[{"w": "the"}, {"w": "dog"}], [{"w": "a"}, {"w": "dog"}], [{"w": "cats"}, {"w": "sleep"}]]
Y = [["D", "N"], ["D", "N"], ["N", "V"]]
MAKERS = {"crf": lambda: ig.ChainCRF(l2=0.1), "hmm": lambda: ig.HMM(alpha=0.1), "memm": lambda: ig.MEMM(l2=0.1)}


@pytest.fixture(params=MAKERS)
def estimator(request):
    return MAKERS[request.param]()


@pytest.mark.parametrize("decoder", ["map", "mpm"])
@pytest.mark.parametrize("arrays", [False, True])
def test_no_sequences_have_no_labels(estimator, arrays, decoder):
    data = [np.eye(2), np.eye(2)[::-1], np.eye(2)] if arrays else X
    estimator.set_params(decoder=decoder).fit(data, Y)
    assert estimator.predict([]) == estimator.predict_marginals([]) == estimator.predict_n_best([], 2) == []
    assert estimator.sample([], random_state=0) == []
    assert estimator.log_likelihood([], []).shape == (0,)
    nothing = np.zeros((0, 2)) if arrays else []
    assert estimator.predict([nothing]) == estimator.sample([nothing], random_state=0) == [[]]
    assert estimator.predict_marginals([nothing])[0].shape == (0, 3)
    assert estimator.predict([nothing, data[0]])[1] == estimator.predict(data[:1])[0]
    refuses("X: expected at least one sequence", estimator.fit, [], [])
    refuses("Y: expected at least one observed label", estimator.score, [], [])


def test_arrays_of_objects_are_lists(estimator):
    tokens = np.array(X, dtype=object)
    assert tokens.shape == (3, 2)  # NumPy makes a table of sequences of one length
    truth = estimator.fit(X, Y).theta_
    assert_allclose(estimator.fit(tokens, np.array(Y)).theta_, truth, rtol=0)
    assert estimator.predict(tokens) == estimator.predict(X)
    numbers = np.array([[[1.0, 0.0], [0.0, 1.0]]], dtype=object)
    assert_allclose(estimator.fit(numbers, [[0, 1]]).theta_, estimator.fit([np.eye(2)], [[0, 1]]).theta_, rtol=0)


def test_odd_labels_and_numbers_are_refused(estimator):
    # It is no label, and differs from itself; who means "not observed" says None.
    for nan in (float("nan"), np.float64("nan")):
        with pytest.raises(InputError, match="Y: expected labels, got nan; None is a label that is not observed"):
            estimator.fit(X, [["D", nan], ["D", "N"], ["N", "V"]])
    estimator.fit(X, [[0.5, 1.5], [None, 2.0], [0.5, 3.0]])
    refuses("forced: expected labels, got nan", estimator.predict, X[:1], forced=[[0.5, float("nan")]])
    refuses("X: expected numbers that a float can hold", estimator.fit, [[{"n": 10**400}]], [["a"]])


def test_labels_that_were_never_seen(estimator):
    estimator.fit(X, Y)
    with pytest.raises(InputError, match=r"^Y: expected labels among the 3 classes, got 'Q'; it was not in the data"):
        estimator.log_likelihood(X[:1], [["Q", "N"]])
    refuses(r"^Y\[0\]: expected 2 labels", estimator.log_likelihood, X[:1], [["D"]])
    refuses(r"^forced: expected labels among the 3 classes", estimator.predict, X[:1], forced=[["Q", "N"]])
    refuses(r"^allowed: expected labels among the 3 classes", estimator.predict, X[:1], allowed=[[["D", "Q"], None]])
    with pytest.raises(ImpossibleEvidenceError, match="allowed and known labels"):
        estimator.predict(X[:1], allowed=[[[], None]])


def test_rules_for_labels_that_are_misspelt(estimator):
    names = [["D-noun", "N-noun"], ["D-noun", "N-noun"], ["N-noun", "V-verb"]]
    estimator.fit(X, names)
    unknown = r"expected .*labels.*, got 'D-Noun'; did you mean 'D-noun'\?"
    for pair in (("D-Noun", "N-noun"), ("N-noun", "D-Noun"), (None, "D-Noun"), ("D-Noun", None)):
        with pytest.raises(InputError, match=f"^forbidden: {unknown}"):
            type(estimator)(forbidden=[pair]).fit(X, names)
        for method in (estimator.predict, estimator.predict_marginals, estimator.sample):
            with pytest.raises(InputError, match=f"^forbidden: {unknown}"):
                method(X, forbidden=[pair])
    with pytest.raises(InputError, match=f"^forced: {unknown}"):
        estimator.predict(X[:1], forced=[["D-Noun", None]])
    with pytest.raises(InputError, match=f"^allowed: {unknown}"):
        estimator.predict(X[:1], allowed=[[{"D-Noun", "N-noun"}, None]])


def test_transition_features_are_named(estimator):
    estimator.fit(X, Y)
    weights = estimator.transition_features_
    assert len(weights) == 9
    for (x, y), weight in weights.items():
        row, column = estimator.classes_.index(x), estimator.classes_.index(y)
        assert weight == estimator.parameters_["transition"][row, column]
    assert weights["D", "N"] > weights["N", "D"]
