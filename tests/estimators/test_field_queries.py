"""Queries to fitted Markov random fields, and the forms of data that they take, against enumeration."""

import numpy as np
import pytest
from field_helpers import exact_table, truth
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from isinglass.learning.markov.data import encode, is_table

GRAPH = ig.FactorGraph([2, 3, 2], [(0, 1), (1, 2), (0, 2)])


@pytest.fixture(scope="module")
def mrf():
    X = ig.sample(truth(GRAPH), 500, random_state=0)
    return ig.MRF(GRAPH, method="ipf").fit(X)


def conditioned(table, row):
    """Return the joint table of a row, given what it shows."""
    index = tuple(slice(None) if x < 0 else slice(x, x + 1) for x in row)
    kept = np.zeros_like(table)
    kept[index] = table[index]
    return kept / kept.sum()


ROWS = np.array([[-1, -1, -1], [0, -1, 1], [-1, 2, -1], [1, 0, 1], [-1, 2, -1]])


def test_probabilities_of_missing_values(mrf):
    table = exact_table(mrf.potentials_)
    found = mrf.predict_proba(ROWS)
    assert [p.shape for p in found] == [(5, 2), (5, 3), (5, 2)]
    for n, row in enumerate(ROWS):
        joint = conditioned(table, row)
        for i in range(3):
            assert_allclose(found[i][n], joint.sum(axis=tuple(k for k in range(3) if k != i)), atol=1e-12)


def test_missing_values_are_filled_in(mrf):
    table = exact_table(mrf.potentials_)
    joint = mrf.impute(ROWS, how="joint")
    single = mrf.impute(ROWS)
    for n, row in enumerate(ROWS):
        best = np.unravel_index(conditioned(table, row).argmax(), table.shape)
        assert_array_equal(joint[n], best)
        assert_array_equal(single[n], [p[n].argmax() for p in mrf.predict_proba(ROWS)])
        assert (joint[n][row >= 0] == row[row >= 0]).all()
    many = mrf.impute(np.tile([[0, -1, 1]], (4000, 1)), how="sample", random_state=0)
    share = np.bincount(many[:, 1], minlength=3) / 4000
    assert_allclose(share, mrf.conditional(1, given={0: 0, 2: 1}), atol=0.03)
    assert_array_equal(many, mrf.impute(np.tile([[0, -1, 1]], (4000, 1)), how="sample", random_state=0))


def test_conditional_distributions(mrf):
    table = exact_table(mrf.potentials_)
    assert_allclose(mrf.conditional([2, 0]), table.sum(axis=1).T, atol=1e-12)
    assert_allclose(mrf.conditional([2, 0], given={1: 2}), table[:, 2].T / table[:, 2].sum(), atol=1e-12)
    assert_allclose(mrf.conditional(0, given=[2]), (table.sum(axis=1) / table.sum(axis=(0, 1))).T, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*likelihood has no maximum")
def test_impossible_conditions():
    mrf = ig.MRF(ig.FactorGraph([2, 2], [(0, 1)]), method="ipf").fit(counts=[[3, 1], [0, 0]])
    assert np.isnan(mrf.conditional(1, given=[0])[1]).all()
    with pytest.raises(ig.ImpossibleEvidenceError):
        mrf.conditional(1, given={0: 1})
    with pytest.raises(ig.ImpossibleEvidenceError):
        mrf.predict_proba([[1, -1]])
    with pytest.raises(ig.InputError, match="other than those asked for"):
        mrf.conditional([0], given={0: 1})
    with pytest.raises(ig.InputError, match="how: expected 'marginal' or 'joint'"):
        mrf.impute([[0, -1]], how="best")


def test_tables_of_counts_are_weighted_samples():
    table = np.random.default_rng(0).integers(1, 9, (2, 3, 2))
    cells = np.argwhere(table > 0)
    weighted = ig.MRF(GRAPH).fit(cells, sample_weight=table[tuple(cells.T)])
    for given in ({"counts": table}, {"X": table}, {"counts": table.tolist()}):
        assert_array_equal(ig.MRF(GRAPH).fit(**given).theta_, weighted.theta_)
    with pytest.raises(ig.InputError, match="None if a table of counts is given"):
        ig.MRF(GRAPH).fit(cells, counts=table)
    with pytest.raises(ig.InputError, match=r"counts of shape \(2, 3, 2\)"):
        ig.MRF(GRAPH).fit(counts=table[0])
    with pytest.raises(ig.InputError, match=r"-1.0 at \(0, 0, 0\)"):
        ig.MRF(GRAPH).fit(counts=table - table[0, 0, 0] - 1)
    with pytest.raises(ig.InputError, match="at least one count"):
        ig.MRF(GRAPH).fit(counts=0 * table)
    with pytest.raises(ig.InputError, match="samples, or counts"):
        ig.MRF(GRAPH).fit()


def test_what_is_a_table():
    pair = ig.FactorGraph([2, 2], [(0, 1)])
    assert is_table(np.array([[43, 9], [44, 4]]), pair)
    assert not is_table(np.array([[0, 1], [1, 1]]), pair)
    assert is_table(np.zeros((3, 4)), ig.FactorGraph([3, 4], []))
    assert not is_table(np.zeros((7, 3), int), GRAPH)


def test_strings_and_missing_values():
    words = [["yes", "b", 1.0], ["no", "a", None], [None, "c", 0], ["no", "b", float("nan")]]
    states, categories = encode(np.array(words, object), GRAPH)
    assert states.tolist() == [[1, 1, 1], [0, 0, -1], [-1, 2, 0], [0, 1, -1]]
    assert categories == [["no", "yes"], ["a", "b", "c"], None]
    plain = [["yes", "b", 1], ["no", "a", None], [None, "c", 0], ["no", "b", 1]]
    numbers = np.array([[1, 1, 1], [0, 0, -1], [-1, 2, 0], [0, 1, 1]])
    one, two = ig.MRF(GRAPH, l2=0.1).fit(np.array(plain, object)), ig.MRF(GRAPH, l2=0.1).fit(numbers)
    assert_array_equal(one.theta_, two.theta_)
    assert one.categories_ == [["no", "yes"], ["a", "b", "c"], None]
    assert two.categories_ is None
    assert_array_equal(one.score_samples(np.array(plain, object)), two.score_samples(numbers))
    filled = one.impute(np.array([["yes", None, 1]], object))
    assert filled[0, 0] == "yes"
    assert filled[0, 1] in ("a", "b", "c")
    assert one.decode([[0, 2, 1]]).tolist() == [["no", "c", 1]]
    with pytest.raises(ig.InputError, match="one of the states 'no', 'yes' of variable 0, got 'maybe' in sample 0"):
        one.score_samples(np.array([["maybe", "a", 1]], object))
    with pytest.raises(ig.InputError, match="labels, as in fit"):
        one.score_samples(numbers)
    with pytest.raises(ig.InputError, match="at most 2 different states, got 3 for variable 0"):
        ig.MRF(GRAPH).fit([["a", "a", "a"], ["b", "a", "a"], ["c", "a", "a"]])


def test_nan_is_a_missing_value():
    X = np.array([[0, 1, np.nan], [1, np.nan, 1], [1, 2, 0]])
    filled = np.where(np.isnan(X), -1, X).astype(int)
    one, two = ig.MRF(GRAPH, l2=0.1).fit(X), ig.MRF(GRAPH, l2=0.1).fit(filled)
    assert_array_equal(one.theta_, two.theta_)
    masked = ig.MRF(GRAPH, l2=0.1).fit(np.ma.masked_invalid(X))
    assert_array_equal(masked.theta_, two.theta_)
