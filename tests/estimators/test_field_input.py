"""Samples, questions and statistics of Markov random fields: what must not be taken for something else."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import isinglass as ig
from isinglass.errors import ConvergenceWarning, ImpossibleEvidenceError, InputError, UnknownNameError
from isinglass.estimators.field.summary import Summary
from isinglass.learning.markov.statistics.information import rounded

PAIR = ig.FactorGraph([2, 3], [(0, 1)])
INDEPENDENT = ig.FactorGraph([2, 3], [(0,), (1,)])
COUNTS = np.array([[3.0, 1.0, 2.0], [4.0, 2.0, 5.0]])


def test_the_nan_of_a_list_of_strings_is_a_missing_value():
    for missing in (np.nan, None, -1):
        listed = [["a", "x"], ["b", missing], ["b", "y"]]
        for X in (listed, np.array(listed, object)):
            mrf = ig.MRF(PAIR, l2=0.1).fit(X)
            assert mrf.categories_ == [["a", "b"], ["x", "y"]]
            assert 0 < mrf.predict_proba(X)[1][1, 1] < 1
    for text in ("nan", "-1"):
        with pytest.raises(InputError, match=r"X: expected missing values that are no strings.*dtype=object"):
            ig.MRF(PAIR, l2=0.1).fit(np.array([["a", "x"], ["b", text]]))
        with pytest.raises(InputError, match="dtype=object"):
            ig.learn_structure(np.array([["a", "x"], ["b", text]]))
    with pytest.raises(InputError, match="impute missing values"):
        ig.learn_structure([["a", "x"], ["b", np.nan]])
    spins = ig.MRF(PAIR, l2=0.1).fit(np.array([["a", "-1"], ["b", "1"]]))  # labels that are all numbers
    assert spins.categories_ == [["a", "b"], ["-1", "1"]]
    frame = pd.DataFrame({"a": pd.Categorical([-1, 1, 1]), "b": ["x", "y", "y"]})
    assert ig.MRF(edges=[("a", "b")], l2=0.1).fit(frame).impute(frame)["a"].tolist() == [-1, 1, 1]


def test_masked_strings_are_missing():
    X = np.ma.array([["a", "x"], ["b", "wrong"], ["b", "y"]], mask=[[0, 0], [0, 1], [0, 0]])
    for values in (X, X.astype(object)):
        assert ig.MRF(PAIR, l2=0.1).fit(values).categories_ == [["a", "b"], ["x", "y"]]


def test_labels_that_fit_did_not_see_are_refused():
    plain = ig.MRF(PAIR, method="ipf").fit(counts=COUNTS)
    with pytest.raises(InputError, match="X: expected the number of a state of variable 0, as in fit, got 'a'"):
        plain.predict_proba([["a", 0]])
    mixed = ig.MRF(PAIR, l2=0.1).fit(np.array([["a", 0], ["b", 1]], object))
    for wrong in ("x", 1.5, True):
        with pytest.raises(InputError, match="X: expected the number of a state of variable 1, as in fit"):
            mixed.predict_proba(np.array([["a", wrong]], object))
    names = ig.FactorGraph({"a": ["no", "yes"], "b": 3}, [("a", "b")])
    named = ig.MRF(names, method="ipf").fit(counts=COUNTS)
    for row in (["yes", 2], [1, 2]):
        assert named.predict_proba(np.array([row], object))[0].tolist() == [[0, 1]]


def test_questions_of_the_wrong_kind_are_named():
    mrf = ig.MRF(PAIR, l2=0.1).fit(np.array([["a", 0], ["b", 1]], object))
    for wrong in (1.0, None):
        with pytest.raises(InputError, match="variables: expected a variable, or a list"):
            mrf.conditional(wrong)
    assert_allclose(mrf.conditional(1, given={np.int64(0): "b"}), mrf.conditional(1, given={0: "b"}))
    with pytest.raises(InputError, match="strings or whole numbers"):
        ig.MRF(edges=[("a", "b")]).fit(pd.DataFrame({"a": [np.inf, 1.0], "b": ["x", "y"]}))
    with pytest.raises(UnknownNameError, match="name: expected the name of a row: 'x0=1'"):
        ig.MRF(PAIR, method="ipf").fit(counts=COUNTS).summary()["nonsense"]


def test_pseudolikelihood_refuses_virtual_samples():
    with pytest.raises(InputError, match="no Dirichlet prior for method='pseudo'"):
        ig.MRF(PAIR, method="pseudo", prior="dirichlet").fit(counts=COUNTS)


@pytest.mark.parametrize("method", ["closed-form", "pmm", "camel"])
def test_closed_forms_refuse_structural_zeros(method):
    table = np.where(np.eye(2, 3) > 0, np.nan, COUNTS)
    with pytest.raises(InputError, match=f"without constant tables, for method='{method}'"):
        ig.MRF(INDEPENDENT, method=method).fit(counts=table)


@pytest.mark.parametrize("method", ["ml", "ipf"])
def test_fits_warn_of_empty_margins_beside_structural_zeros(method):
    graph = ig.FactorGraph([3, 3], [(0,), (1,)])
    table = np.array([[np.nan, 2, 3], [1, np.nan, 4], [0, 0, 0.0]])
    with pytest.warns(ConvergenceWarning, match="no sample shows x0=2"):
        assert ig.MRF(graph, method=method).fit(counts=table).degrees_of_freedom() == 0
    table[2] = np.nan  # the state is impossible: nothing to warn of
    assert ig.MRF(graph, method=method).fit(counts=table).degrees_of_freedom() == 0


def test_only_larger_models_are_compared_with():
    graph = ig.FactorGraph([2, 2], [(0,), (1,)])
    X, weights = np.array(list(np.ndindex(2, 2))), [1.0, 4.0, 2.0, 9.0]
    free, tied = (ig.MRF(graph, tied=t).fit(X, sample_weight=weights) for t in (False, True))
    assert tied.compare(free).df == 1
    with pytest.raises(InputError, match="larger: expected a model that contains this one, got one with 1 fewer"):
        free.compare(tied)
    with pytest.raises(InputError, match="larger: expected a fitted MRF, got int"):
        free.compare(3)


@pytest.mark.filterwarnings("ignore:.*likelihood has no maximum")
def test_more_cells_than_floats():
    assert rounded(1500 * np.log(2)).bit_length() in (1500, 1501)
    summary = Summary(10.0, -1.0, 1.0, 1.0, 2**1500, 2, 1.0, 1.0, "fisher", ())
    assert "about 10^451 degrees of freedom" in str(summary)
    graph = ig.FactorGraph([3] * 1100, [(0, 1)])  # one table with zeros, and 1098 variables alone
    mrf = ig.MRF(graph, method="ipf").fit(np.zeros((3, 1100), int) + np.arange(3)[:, None] % 2)
    test = mrf.goodness_of_fit()
    assert test.df > 3**1097
    assert np.isnan(test.p_g2)


@pytest.mark.filterwarnings("ignore:.*likelihood has no maximum")
def test_impossible_samples_have_no_probability_and_are_named():
    mrf = ig.MRF(PAIR, method="ipf").fit(counts=np.where(np.arange(3) == 1, 0.0, COUNTS))
    X = np.array([[0, -1], [-1, 1], [0, 1], [1, 0], [-1, 1]])
    scores = mrf.score_samples(X)
    assert np.isneginf(scores).tolist() == [False, True, True, False, True]
    assert_allclose(np.exp(scores[[0, 3]]), [5 / 14, 4 / 14], atol=1e-12)
    for ask in (mrf.predict_proba, mrf.impute, lambda X: mrf.impute(X, "joint"), lambda X: mrf.impute(X, "sample")):
        with pytest.raises(ImpossibleEvidenceError, match=r"sample 1 has probability zero: .*, \[-1, 1\], meet"):
            ask(X)
        ask(X[[0, 3]])
