"""Samples, questions and statistics of Markov random fields: what must not be taken for something else."""

import numpy as np
import pandas as pd
import pytest
from field_helpers import exact_table, truth
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from checks import refuses
from isinglass.errors import ConvergenceWarning, ImpossibleEvidenceError, InputError, UnknownNameError
from isinglass.estimators.field.summary import Summary
from isinglass.learning.markov.data import encode, is_table
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
        refuses("dtype=object", ig.learn_structure, np.array([["a", "x"], ["b", text]]))
    refuses("impute missing values", ig.learn_structure, [["a", "x"], ["b", np.nan]])
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
    refuses("X: expected the number of a state of variable 0, as in fit, got 'a'", plain.predict_proba, [["a", 0]])
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
        refuses("variables: expected a variable, or a list", mrf.conditional, wrong)
    assert_allclose(mrf.conditional(1, given={np.int64(0): "b"}), mrf.conditional(1, given={0: "b"}))
    with pytest.raises(InputError, match="strings or whole numbers"):
        ig.MRF(edges=[("a", "b")]).fit(pd.DataFrame({"a": [np.inf, 1.0], "b": ["x", "y"]}))
    with pytest.raises(UnknownNameError, match="name: expected the name of a row: 'x0=1'"):
        ig.MRF(PAIR, method="ipf").fit(counts=COUNTS).summary()["nonsense"]


@pytest.mark.filterwarnings("ignore:.* parameters still grow")
def test_what_frames_and_priors_refuse():
    with pytest.raises(InputError, match="no Dirichlet prior for method='pseudo'"):
        ig.MRF(PAIR, method="pseudo", prior="dirichlet").fit(counts=COUNTS)
    with pytest.raises(InputError, match=r"X: expected states from 0 on in 'a' .*got 1, 2; .*astype\(\{'a': str\}\)"):
        ig.MRF(edges=EDGES).fit(pd.DataFrame({"a": [1, 2, 1], "b": [0, 1, 0]}))
    refuses("got 1990, 2000", ig.MRF(edges=EDGES).fit, pd.DataFrame({"a": [1990, 2000, 1990], "b": [0, 1, 0]}))
    refuses(r"in 'a' .*got -1, 1;", ig.MRF(edges=EDGES).fit, pd.DataFrame({"a": [-1, 1, 1], "b": ["x", "y", "y"]}))
    refuses(r"use \(X \+ 1\) // 2", ig.MRF(ig.chain_graph(2, 2)).fit, np.array([[-1, 1], [1, 1]]))
    frame = pd.DataFrame({"a": ["no", None, "yes"] * 5, "b": ["x", "y", "y"] * 5})
    refuses(r"leave them out; log_likelihood\(X\)", ig.MRF(edges=EDGES, method="em", tol=1e-2).fit(frame).aic)
    with pytest.raises(InputError, match="X: expected columns with different names, got 'b' twice"):
        ig.MRF(edges=EDGES).fit(pd.DataFrame([["x", "p", "q"], ["y", "q", "p"]], columns=["a", "b", "b"]))


@pytest.mark.parametrize("method", ["closed-form", "pmm", "camel"])
def test_closed_forms_refuse_structural_zeros(method):
    table = np.where(np.eye(2, 3) > 0, np.nan, COUNTS)
    refuses(f"without constant tables, for method='{method}'", ig.MRF(INDEPENDENT, method=method).fit, counts=table)


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
    refuses("larger: expected a model that contains this one, got one with 1 fewer", free.compare, tied)
    refuses("larger: expected a fitted MRF, got int", free.compare, 3)


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
        refuses(r"sample 1 has probability zero: .*, \[-1, 1\], meet", ask, X, error=ImpossibleEvidenceError)
        ask(X[[0, 3]])


EDGES = [("a", "b")]


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.filterwarnings("ignore:.*likelihood has no maximum", "ignore:.* parameters still grow")
def test_categories_that_are_numbers_keep_their_order(missing: bool) -> None:
    values = [3, 1, 3, 3, *([None] if missing else [])]
    frame = pd.DataFrame({"a": pd.Categorical(values, [3, 2, 1]), "b": (["x", "y"] * 3)[: len(values)]})
    mrf = ig.MRF(edges=EDGES, method="em" if missing else "ipf").fit(frame)
    assert mrf.graph_.names is not None
    assert mrf.graph_.names.states[0] == ("3", "2", "1")
    shares = ig.infer(mrf.potentials_).variable("a")
    expected = [0.8, 0.0, 0.2] if missing else [0.75, 0.0, 0.25]  # all others with x are 3, so the lost one is
    np.testing.assert_allclose(shares, expected, atol=1e-3)
    assert mrf.impute(pd.DataFrame({"a": [None], "b": ["x"]}))["a"].tolist() == [3]


def test_the_column_of_weights_is_no_variable() -> None:
    frame = pd.DataFrame({"a": ["x", "x", "y", "y"], "b": ["p", "q", "p", "q"], "Freq": [3, 4, 5, 6]})
    for weights in (frame["Freq"], frame["Freq"].to_numpy(), [3, 4, 5, 6]):
        with pytest.raises(InputError, match=r"'Freq', which is sample_weight; X.drop\(columns='Freq'\)"):
            ig.MRF(edges=EDGES).fit(frame, sample_weight=weights)
    cells = frame.drop(columns="Freq")
    people = cells.loc[cells.index.repeat(frame["Freq"])]
    counted, single = (ig.MRF(edges=[("a",)], method="ipf") for _ in range(2))
    counted.fit(cells, sample_weight=frame["Freq"])
    with pytest.raises(ig.InputError, match=r"expected the index of X, got another index; sample_weight\.loc"):
        counted.fit(cells, sample_weight=frame["Freq"].iloc[::-1])
    assert counted.deviance() == pytest.approx(single.fit(people).deviance())


def test_counts_are_no_variable() -> None:
    cells = pd.DataFrame({"a": ["x", "x", "y", "y"], "b": ["p", "q", "p", "q"]})
    named = ig.FactorGraph({"a": ["x", "y"], "b": ["p", "q"]}, [("a",), ("b",)])
    for name, counts in [("Freq", [0, 2, 3, 4]), ("n", [1, 2, 3, 4]), ("people", [0, 5, 30, 12])]:
        remedy = rf"fit\(X.drop\(columns='{name}'\), sample_weight=X\['{name}'\]\); if they are names"
        refuses(remedy, ig.MRF(edges=EDGES).fit, cells.assign(**{name: counts}))
        if name != "people":
            refuses(rf"sample_weight=X\['{name}'\]; or X.drop", ig.MRF(named).fit, cells.assign(**{name: counts}))
    weights = pd.Series([1, 2, 3, 4])
    fitted = [
        ig.MRF(named).fit(cells, sample_weight=weights),
        ig.MRF(named).fit(cells.assign(n=weights), sample_weight=weights),
        ig.MRF(named).fit(cells.loc[cells.index.repeat(weights)]),
    ]
    assert len({round(mrf.conditional("b", {"a": "x"})[0], 6) for mrf in fitted}) == 1
    ages = pd.DataFrame({"a": list(range(60)) * 3, "b": list("pq") * 90})
    assert ig.MRF(edges=EDGES, l2=1.0, max_iter=3, tol=10).fit(ages).graph_.cards.tolist() == [60, 2]


@pytest.mark.filterwarnings("ignore:.*likelihood has no maximum")
def test_names_stay_where_cells_are_empty() -> None:
    frame = pd.DataFrame({"a": ["no", "no", "yes", "yes"], "b": ["x", "x", "x", "y"]})
    mrf = ig.MRF(edges=EDGES, method="ipf").fit(frame)
    assert mrf.impossible_ is not None or mrf.zeros_ is not None
    assert ig.infer(mrf.potentials_, evidence={"b": "y"}).variable("a").tolist() == [0.0, 1.0]
    assert mrf.summary().rows[0].name == "a=yes"
    np.testing.assert_array_equal(mrf.score_samples(frame[["b", "a"]]), mrf.score_samples(frame))


def test_summaries_read_well() -> None:
    table = np.array([[20, 10], [5, 15]])
    mrf = ig.MRF(ig.FactorGraph({"a": ["no", "yes"], "b": 2}, [("a", "b")]), method="ipf").fit(counts=table)
    assert "G2 0.000, X2 0.000, 0 degrees of freedom" in str(mrf.summary())  # never -0.000
    row = mrf.summary()["a=yes b=1"]
    assert np.exp(row.estimate) == pytest.approx(20 * 15 / (10 * 5))
    assert row.interval() == pytest.approx((row.estimate - 1.959964 * row.error, row.estimate + 1.959964 * row.error))
    refuses("level: expected a number between 0 and 1, got 95", row.interval, 95)
    alone = ig.MRF(ig.FactorGraph({"a": ["no", "yes"], "b": 2}, [("a",), ("b",)]), method="ipf").fit(counts=table)
    assert repr(alone.compare(mrf)).startswith("FitTest(g2=8.63")
    refuses(r"no scope that contains \('a', 'b'\)", mrf.compare, alone)


def test_a_test_of_fit_is_not_shown_for_more_cells_than_samples() -> None:
    ising = ig.models.Ising(ig.grid_graph(8, 8, 2))
    mrf = ig.MRF(ising, tied=True).fit(ig.sample(ising.potentials(coupling=0.2), 50, random_state=0))
    assert "no test of fit (1.84e+19 degrees of freedom, more than samples), AIC" in str(mrf.summary())


def test_a_category_that_was_never_seen_is_told_where_it_counts() -> None:
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y", "x", "y"] * 5, ["x", "y", "z"]), "b": list("ppqqp") * 4})
    for method in ("ml", "ipf"):
        with pytest.warns(ConvergenceWarning, match="no sample shows a=z, .*along a=z") as found:
            mrf = ig.MRF(edges=[("a",), ("b",)], method=method).fit(frame)
        assert found[0].filename == __file__
        assert not mrf.converged_
        assert mrf.goodness_of_fit().df == 1
    whole = frame.assign(a=frame["a"].cat.remove_unused_categories())
    assert ig.MRF(edges=[("a",), ("b",)]).fit(whole).goodness_of_fit().df == 1


def test_labels_are_decoded_to_themselves() -> None:
    frame = pd.DataFrame({"a": ["x", "y", "x", None], "b": ["p", "q", "q", "p"], "c": list("uuvv")})
    mrf = ig.MRF(edges=EDGES, l2=0.1).fit(frame)
    filled = mrf.impute(frame)
    assert mrf.decode(filled).tolist() == filled.to_numpy().tolist()
    assert mrf.decode([[0, 1, -1]]).tolist() == [["x", "q", None]]
    for states, got in ([[7, 0, 0]], "7 for variable 0"), ([0, 1], "shape"):
        refuses(f"states: .*{got}", mrf.decode, states)


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
    refuses("other than those asked for", mrf.conditional, [0], given={0: 1})
    refuses("how: expected 'marginal' or 'joint'", mrf.impute, [[0, -1]], how="best")


def test_tables_of_counts_are_weighted_samples():
    table = np.random.default_rng(0).integers(1, 9, (2, 3, 2))
    cells = np.argwhere(table > 0)
    weighted = ig.MRF(GRAPH).fit(cells, sample_weight=table[tuple(cells.T)])
    for given in ({"counts": table}, {"X": table}, {"counts": table.tolist()}):
        assert_array_equal(ig.MRF(GRAPH).fit(**given).theta_, weighted.theta_)
    refuses("None if a table of counts is given", ig.MRF(GRAPH).fit, cells, counts=table)
    refuses(r"counts of shape \(2, 3, 2\)", ig.MRF(GRAPH).fit, counts=table[0])
    refuses(r"-1.0 at \(0, 0, 0\)", ig.MRF(GRAPH).fit, counts=table - table[0, 0, 0] - 1)
    refuses("at least one count", ig.MRF(GRAPH).fit, counts=0 * table)
    refuses("samples, or counts", ig.MRF(GRAPH).fit)


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
    refuses("labels, as in fit", one.score_samples, numbers)
    with pytest.raises(ig.InputError, match="at most 2 different states, got 3 for variable 0"):
        ig.MRF(GRAPH).fit([["a", "a", "a"], ["b", "a", "a"], ["c", "a", "a"]])


def test_nan_is_a_missing_value():
    X = np.array([[0, 1, np.nan], [1, np.nan, 1], [1, 2, 0]])
    filled = np.where(np.isnan(X), -1, X).astype(int)
    one, two = ig.MRF(GRAPH, l2=0.1).fit(X), ig.MRF(GRAPH, l2=0.1).fit(filled)
    assert_array_equal(one.theta_, two.theta_)
    masked = ig.MRF(GRAPH, l2=0.1).fit(np.ma.masked_invalid(X))
    assert_array_equal(masked.theta_, two.theta_)
