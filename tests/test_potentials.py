"""Potentials: tables by scope and by group, tying, evidence, scores, errors."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from checks import refuses
from isinglass.testing import factor_graphs, potentials

G = ig.FactorGraph([2, 3], [(0,), (0, 1), (0,)])


@settings(max_examples=80, deadline=None)
@given(potentials(evidence=False), st.integers(0, 2**31))
def test_scores_against_a_plain_loop(p, seed):
    x = np.random.default_rng(seed).integers(0, p.graph.cards, (3, 2, p.graph.n_variables))
    score = p.log_score(x)
    assert score.shape == (3, 2)
    for index in np.ndindex(3, 2):
        plain = sum(t[tuple(x[index][list(s)])] for s, t in zip(p.graph.scopes, p.log_tables, strict=True))
        assert_allclose(score[index], plain, atol=1e-12)
    assert_array_equal(p.energy(x), -score)


@settings(max_examples=40, deadline=None)
@given(potentials(factor_graphs(max_variables=3)))
def test_tables_survive_grouping_pickling_union_and_repetition(p):
    union = ig.potentials_union([p, p, p])
    for q, copies in ((pickle.loads(pickle.dumps(p)), 1), (p.repeat(3), 3), (union, 3)):
        assert dict(q.evidence) == {
            i + c * p.graph.n_variables: s for c in range(copies) for i, s in p.evidence.items()
        }
        for a, table in enumerate(q.log_tables):
            assert_array_equal(table, p.log_tables[a % p.graph.n_factors])


def test_tables_are_copied_and_read_only():
    table = np.zeros(2)
    p = ig.Potentials(ig.FactorGraph([2], [(0,)]), [table])
    table[0] = 5
    assert p.log_tables[0][0] == 0
    with pytest.raises(ValueError, match="read-only"):
        p.log_tables[0][0] = 1
    with pytest.raises(AttributeError, match="cannot be changed"):
        p.groups = ()


def test_an_item_that_is_no_number_is_named():
    p = ig.Potentials(G, [np.zeros(2), np.zeros((2, 3)), np.zeros(2)])
    for index in ("a", 1.0, None, (0, 1)):
        with pytest.raises(ig.InputError, match="index: expected the number of an item, or a slice, got "):
            p.log_tables[index]
    with pytest.raises(IndexError, match="3 is out of range: there are 3"):
        p.log_tables[np.int64(3)]


def test_tying():
    g = ig.grid_graph(2, 2, 2)
    shared = ig.Potentials.from_groups(g, [np.zeros((1, 2)), np.eye(2)[None]])
    assert [len(t) for t in shared.groups] == [1, 1]
    tied = ig.Potentials.from_groups(g, [np.zeros((1, 2)), np.stack([np.eye(2), 2 * np.eye(2)])], [None, [0, 0, 1, 1]])
    assert tied.log_tables[4][0, 0] == 1
    assert tied.log_tables[7][0, 0] == 2


def test_evidence_is_checked_and_merged():
    p = ig.Potentials(G, [np.zeros(2), np.zeros((2, 3)), np.zeros(2)], evidence={1: 2})
    assert dict(p.with_evidence({0: 1}).evidence) == {0: 1, 1: 2}
    assert dict(p.with_evidence({1: 2}).evidence) == {1: 2}
    assert dict(p.without_evidence().evidence) == {}
    assert p.log_score([0, 2]) == 0
    assert p.log_score([0, 1]) == -np.inf
    for wrong, message in (
        ({1: 0}, r"evidence\[1\]: expected one state, got 0, but the potentials already have 2"),
        ({1: 3}, r"evidence\[1\]: expected a state from 0 to 2, got 3"),
        ({2: 0}, "evidence: expected variables 0 to 1, got variable 2"),
        ({0: -1}, "whole number"),
        ({0: 1.0}, "whole number"),
        ({"a": 1}, "evidence: expected the number of a variable, got 'a'; this graph has no names"),
        ([0, 1], "mapping"),
    ):
        refuses(message, p.with_evidence, wrong)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([np.zeros(2), np.zeros((2, 3))], "one table for each of 3 factors, got 2"),
        ([np.zeros(2), np.zeros((3, 2)), np.zeros(2)], r"log_tables\[1\]: expected shape \(2, 3\), got shape \(3, 2\)"),
        ([np.zeros(2), np.zeros((2, 3)), np.zeros(3)], r"log_tables\[2\]: expected shape \(2,\), got shape \(3,\)"),
        ([[0, np.nan], np.zeros((2, 3)), np.zeros(2)], r"log_tables\[0\]: .* got nan at index \(1,\)"),
        ([np.zeros(2), np.zeros((2, 3)), [np.inf, 0]], r"log_tables\[2\]: .* got inf at index \(0,\)"),
        (
            [np.zeros(2), np.zeros((2, 3)), [np.finfo(float).min, 0]],
            r"log_tables\[2\]: .* got -1.79\d*e\+308 at index \(0,\); sums .* write -np.inf to forbid",
        ),
        ([np.zeros(2), np.zeros((2, 3)), [0, 1e301 + 1j]], r"log_tables\[2\]: .* sums of numbers beyond 1e\+300"),
        ([["a", "b"], np.zeros((2, 3)), np.zeros(2)], r"log_tables\[0\]: expected real numbers"),
    ],
)
def test_wrong_tables_are_named(tables, message):
    refuses(message, ig.Potentials, G, tables)


@pytest.mark.parametrize(
    ("tables", "ids", "message"),
    [
        ([np.zeros((4, 2))], None, "one array for each of 2 groups, got 1"),
        ([np.zeros((3, 2)), np.zeros((4, 2, 2))], None, r"log_tables\[0\]: expected 4 tables, or 1"),
        ([np.zeros((4, 3)), np.zeros((4, 2, 2))], None, r"log_tables\[0\]: expected shape \(tables, 2\)"),
        (
            [np.zeros((2, 2)), np.zeros((4, 2, 2))],
            [[0, 1, 2, 0], None],
            r"table_ids\[0\]: expected numbers from 0 to 1",
        ),
        ([np.zeros((2, 2)), np.zeros((4, 2, 2))], [[0, 1], None], r"table_ids\[0\]: expected one for each of 4"),
        ([np.zeros((2, 2)), np.zeros((4, 2, 2))], [[0.0] * 4, None], r"table_ids\[0\]: expected integers"),
    ],
)
def test_wrong_groups_are_named(tables, ids, message):
    refuses(message, ig.Potentials.from_groups, ig.grid_graph(2, 2, 2), tables, ids)


@pytest.mark.parametrize("states", [[0], [0, 3], [[0, 0, 0]], [0, -1], [0.0, 1.0]])
def test_wrong_states_are_refused(states):
    p = ig.Potentials(G, [np.zeros(2), np.zeros((2, 3)), np.zeros(2)])
    refuses("states", p.log_score, states)


def test_printing_tells_what_the_model_is_and_what_exact_costs():
    p = ig.Potentials.from_groups(ig.grid_graph(10, 10, 2), [np.zeros((1, 2)), np.zeros((1, 2, 2))], evidence={3: 1})
    assert str(p).startswith("Potentials: 100 variables (2 states), 280 factors (arity 1-2), 1 observed, width ")
    assert "exact needs" in str(p)
    huge = ig.Potentials.from_groups(ig.grid_graph(80, 80, 2), [np.zeros((1, 2)), np.zeros((1, 2, 2))])
    assert "exact needs more than" in str(huge)


def test_repr_searches_no_elimination_order(monkeypatch):
    def searched(*_, **__):
        raise AssertionError("repr searched an elimination order")

    monkeypatch.setattr("isinglass.graph.elimination.cost.elimination_order", searched)
    monkeypatch.setattr("isinglass.graph.elimination.order._search", searched)
    p = ig.Potentials.from_groups(ig.grid_graph(10, 10, 2), [np.zeros((1, 2)), np.zeros((1, 2, 2))], evidence={3: 1})
    assert repr(p) == "Potentials: 100 variables (2 states), 280 factors (arity 1-2), 1 observed"
    refuses("searched", str, p, error=AssertionError)


def test_evidence_in_bulk_and_one_by_one_agree():
    g = ig.chain_graph(5, [2, 3, 2, 3, 2])
    p = ig.Potentials.from_groups(g, [np.zeros((1, *group.shape)) for group in g.groups])
    plain = {4: 1, 1: 2, 0: 0}
    for evidence in (
        plain,
        {np.int64(v): np.int64(x) for v, x in plain.items()},
        {np.int8(4): 1, 1: np.uint8(2), 0: 0},
    ):
        found = p.with_evidence(evidence).evidence
        assert list(found.items()) == [(0, 0), (1, 2), (4, 1)]
        assert {type(x) for pair in found.items() for x in pair} == {int}
    for wrong in ({5: 0}, {-1: 0}, {0: 2}, {0: -1}, {10**30: 0}, {0: 10**30}, {True: 0}, {0: False}, {0.0: 0}):
        refuses("evidence", p.with_evidence, wrong)


@pytest.mark.parametrize("algorithm", ["exact", "bp", "trw", "mf", "brute"])
def test_the_largest_logarithms_have_finite_sums(algorithm):
    """The log-scores go from -3e300 to 3e300."""
    tables = [np.array([[1e300, 0], [0, -1e300]]), np.array([1e300, -1e300]), np.array([1e300, -1e300])]
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1), (0,), (1,)]), tables)
    r = ig.infer(p, algorithm)
    np.testing.assert_allclose(r.log_z, 3e300)
    np.testing.assert_array_equal(np.stack(r.variables), [[1.0, 0.0]] * 2)
