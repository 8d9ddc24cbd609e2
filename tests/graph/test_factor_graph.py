"""Structure: construction, groups, unions, forests, errors."""

import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import isinglass as ig
from isinglass.testing import factor_graphs

quick = settings(max_examples=80, deadline=None)


@quick
@given(factor_graphs())
def test_scopes_survive_grouping(graph):
    rebuilt = ig.FactorGraph(graph.cards, list(graph.scopes))
    assert list(rebuilt.scopes) == list(graph.scopes)
    for group in graph.groups:
        for row, a in zip(group.scopes, group.factors, strict=True):
            assert graph.scopes[a] == tuple(row)
            assert tuple(graph.cards[row]) == group.shape
    group, row = graph.place
    for a in range(graph.n_factors):
        assert graph.groups[group[a]].factors[row[a]] == a


@quick
@given(factor_graphs())
def test_forest_and_connected_parts_agree_with_networkx(graph):
    bipartite = ig.to_networkx(graph)
    assert graph.is_forest == (nx.is_forest(bipartite) if len(bipartite) else True)
    label = graph.connected_components
    for part in nx.connected_components(bipartite):
        variables = [i for kind, i in part if kind == "variable"]
        assert len(set(label[variables])) <= 1
    assert list(dict.fromkeys(label.tolist())) == list(range(len(set(label.tolist()))))


@quick
@given(factor_graphs(forest=True))
def test_the_forest_strategy_draws_forests(graph):
    assert graph.is_forest


@quick
@given(factor_graphs())
def test_strides_point_at_table_entries(graph):
    flat = graph.flat_scopes
    for a, scope in enumerate(graph.scopes):
        shape = tuple(graph.cards[list(scope)])
        entries = np.arange(int(np.prod(shape))).reshape(shape)
        state = tuple(int(k) - 1 for k in shape)
        slots = slice(flat.first_slot[a], flat.first_slot[a + 1])
        assert (np.array(state, int) * flat.stride[slots]).sum() == entries[state]


@quick
@given(st.lists(factor_graphs(max_variables=4), max_size=4))
def test_union_keeps_every_scope(graphs):
    union = ig.disjoint_union(graphs)
    scopes, shift = [], 0
    for graph in graphs:
        scopes += [tuple(i + shift for i in scope) for scope in graph.scopes]
        shift += graph.n_variables
    assert list(union.scopes) == scopes
    assert_array_equal(union.variable_component, np.repeat(np.arange(len(graphs)), [g.n_variables for g in graphs]))
    assert_array_equal(union.factor_component, np.repeat(np.arange(len(graphs)), [g.n_factors for g in graphs]))
    assert union.n_components == len(graphs)


@quick
@given(factor_graphs(), st.integers(1, 4))
def test_repetition_is_a_union_of_copies(graph, n):
    one, other = graph.repeat(n), ig.disjoint_union([graph] * n)
    assert list(one.scopes) == list(other.scopes)
    assert_array_equal(one.variable_component, other.variable_component)
    assert_array_equal(one.factor_component, other.factor_component)


def test_a_graph_keeps_its_groups_and_is_pickled():
    cards = np.array([2, 2, 3, 3])
    bulk = ig.FactorGraph.from_groups(cards, [[[0], [1]], [[0, 2], [1, 3]], [[2, 0]]])
    assert list(bulk.scopes) == [(0,), (1,), (0, 2), (1, 3), (2, 0)]
    assert [g.shape for g in bulk.groups] == [(2,), (2, 3), (3, 2)]
    assert list(ig.FactorGraph(cards, list(bulk.scopes)).scopes) == list(bulk.scopes)
    cards = np.array([2, 2])
    graph = ig.FactorGraph(cards, [(0, 1)])
    cards[0] = 7
    assert graph.cards[0] == 2
    graph = ig.grid_graph(3, 3, [2, 3] * 4 + [2]).repeat(2)
    copy = pickle.loads(pickle.dumps(graph))
    assert list(copy.scopes) == list(graph.scopes)
    assert copy.n_components == 2
    with pytest.raises(
        ig.InputError, match=r"scopes\[0\]: expected one table shape in a group, got \(2,\) and, in row 1"
    ):
        ig.FactorGraph.from_groups([2, 3], [[[0], [1]]])
    assert str(ig.grid_graph(10, 10, 2)) == "FactorGraph: 100 variables (2 states), 280 factors (arity 1-2)"
    assert str(ig.FactorGraph([], [])) == "FactorGraph: 0 variables, 0 factors, forest"
    assert "3 components" in str(ig.chain_graph(2, 2).repeat(3))


def test_a_graph_cannot_be_changed():
    graph = ig.grid_graph(2, 2, 2)
    with pytest.raises(AttributeError, match="cannot be changed"):
        graph.cards = [3]
    with pytest.raises(ValueError, match="read-only"):
        graph.cards[0] = 3
    with pytest.raises(ValueError, match="read-only"):
        graph.groups[0].scopes[0] = 1


@pytest.mark.parametrize(
    ("cards", "scopes", "message"),
    [
        ([2, 0], [], r"cards: expected at least one state for each variable, got cards\[1\] = 0"),
        ([2.5], [], "cards: expected integers"),
        ([True], [], "cards: expected integers"),
        ("ab", [], "cards: expected integers"),
        ([[2]], [], "cards: expected integers in an array with 1 axis, got shape"),
        ([2, 2], [(0, 2)], r"scopes: expected variables 0 to 1, got 2 in \(0, 2\)"),
        ([2, 2], [(0, -1)], "scopes: expected variables 0 to 1, got -1"),
        ([2, 2], [(0, 0)], r"scopes: expected distinct variables in a scope, got \(0, 0\)"),
        ([2, 2], [(0, 1.5)], "scopes: expected integers"),
        ([2, 2], [0, 1], r"scopes: expected a sequence of tuples .* write \(3,\) for one"),
        ([], [(0,)], "cards is empty"),
    ],
)
def test_wrong_input_names_the_argument(cards, scopes, message):
    with pytest.raises(ig.InputError, match=message):
        ig.FactorGraph(cards, scopes)


@pytest.mark.parametrize("n", [1, 3])
def test_copies_are_forests_where_the_original_is(n):
    mixed = ig.disjoint_union([ig.chain_graph(4, 2), ig.grid_graph(2, 2, 2), ig.chain_graph(1, 3)])
    copies = mixed.repeat(n)
    rebuilt = ig.FactorGraph._build(*copies._parts())  # which does not know that it has copies
    assert copies.forest_components.tolist() == rebuilt.forest_components.tolist() == [True, False, True] * n
