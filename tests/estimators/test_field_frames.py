"""Data frames as samples of a Markov random field: numbers that are names, weights, empty cells."""

import numpy as np
import pandas as pd
import pytest

import isinglass as ig
from isinglass.errors import ConvergenceWarning, InputError

EDGES = [("a", "b")]


def test_numbers_without_zero_are_refused() -> None:
    with pytest.raises(InputError, match=r"X: expected states from 0 on in 'a' .*got 1, 2; .*astype\(\{'a': str\}\)"):
        ig.MRF(edges=EDGES).fit(pd.DataFrame({"a": [1, 2, 1], "b": [0, 1, 0]}))
    with pytest.raises(InputError, match="got 1990, 2000"):
        ig.MRF(edges=EDGES).fit(pd.DataFrame({"a": [1990, 2000, 1990], "b": [0, 1, 0]}))


def test_a_column_of_spins_among_others_is_refused() -> None:
    with pytest.raises(InputError, match=r"in 'a' .*got -1, 1;"):
        ig.MRF(edges=EDGES).fit(pd.DataFrame({"a": [-1, 1, 1], "b": ["x", "y", "y"]}))
    with pytest.raises(InputError, match=r"use \(X \+ 1\) // 2"):
        ig.MRF(ig.chain_graph(2, 2)).fit(np.array([[-1, 1], [1, 1]]))


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.filterwarnings("ignore:.*likelihood has no maximum")
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
    assert counted.deviance() == pytest.approx(single.fit(people).deviance())


def test_counts_are_no_variable() -> None:
    cells = pd.DataFrame({"a": ["x", "x", "y", "y"], "b": ["p", "q", "p", "q"]})
    named = ig.FactorGraph({"a": ["x", "y"], "b": ["p", "q"]}, [("a",), ("b",)])
    for name, counts in [("Freq", [0, 2, 3, 4]), ("n", [1, 2, 3, 4]), ("people", [0, 5, 30, 12])]:
        remedy = rf"fit\(X.drop\(columns='{name}'\), sample_weight=X\['{name}'\]\); if they are names"
        with pytest.raises(InputError, match=remedy):
            ig.MRF(edges=EDGES).fit(cells.assign(**{name: counts}))
        if name != "people":
            with pytest.raises(InputError, match=rf"sample_weight=X\['{name}'\]; or X.drop"):
                ig.MRF(named).fit(cells.assign(**{name: counts}))
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
    with pytest.raises(InputError, match="level: expected a number between 0 and 1, got 95"):
        row.interval(95)
    alone = ig.MRF(ig.FactorGraph({"a": ["no", "yes"], "b": 2}, [("a",), ("b",)]), method="ipf").fit(counts=table)
    assert repr(alone.compare(mrf)).startswith("FitTest(g2=8.63")
    with pytest.raises(InputError, match=r"no scope that contains \('a', 'b'\)"):
        mrf.compare(alone)


def test_a_test_of_fit_is_not_shown_for_more_cells_than_samples() -> None:
    ising = ig.models.Ising(ig.grid_graph(8, 8, 2))
    mrf = ig.MRF(ising, tied=True).fit(ig.sample(ising.potentials(coupling=0.2), 50, random_state=0))
    assert "no test of fit (1.84e+19 degrees of freedom, more than samples), AIC" in str(mrf.summary())


def test_statistics_of_incomplete_samples_say_what_is_left() -> None:
    frame = pd.DataFrame({"a": ["no", None, "yes"] * 5, "b": ["x", "y", "y"] * 5})
    with pytest.raises(InputError, match=r"leave them out; log_likelihood\(X\)"):
        ig.MRF(edges=EDGES, method="em", tol=1e-2).fit(frame).aic()


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


def test_columns_of_the_same_name_are_refused() -> None:
    with pytest.raises(InputError, match="X: expected columns with different names, got 'b' twice"):
        ig.MRF(edges=EDGES).fit(pd.DataFrame([["x", "p", "q"], ["y", "q", "p"]], columns=["a", "b", "b"]))


def test_labels_are_decoded_to_themselves() -> None:
    frame = pd.DataFrame({"a": ["x", "y", "x", None], "b": ["p", "q", "q", "p"], "c": list("uuvv")})
    mrf = ig.MRF(edges=EDGES, l2=0.1).fit(frame)
    filled = mrf.impute(frame)
    assert mrf.decode(filled).tolist() == filled.to_numpy().tolist()
    assert mrf.decode([[0, 1, -1]]).tolist() == [["x", "q", None]]
    for states, got in ([[7, 0, 0]], "7 for variable 0"), ([0, 1], "shape"):
        with pytest.raises(InputError, match=f"states: .*{got}"):
            mrf.decode(states)
