"""Appearance probabilities: blocks and bridges, uniform spanning trees, covering of rare links."""

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from isinglass.graph.forests import appearance
from isinglass.graph.forests.appearance import appearance_probabilities
from isinglass.graph.forests.blocks import adjacency, link_blocks


def small_graphs():
    """Pairs of vertices: a complete graph, one with parallel links and bridges, random ones."""
    yield np.array([(i, j) for i in range(5) for j in range(i)])
    yield np.array([(0, 1), (1, 0), (0, 1), (1, 2), (2, 3), (3, 4), (4, 2), (4, 5)])
    for seed in range(3):
        graph = nx.gnm_random_graph(9, 15, seed)
        yield np.array(graph.subgraph(max(nx.connected_components(graph), key=len)).edges)


def numbered(pairs):
    variables, local = np.unique(pairs, return_inverse=True)
    return local.reshape(-1, 2), len(variables)


def graph_of(pairs, n):
    return ig.FactorGraph([2] * n, [tuple(pair) for pair in pairs.tolist()])


def resistances(pairs, n):
    """The effective resistance of each link by the pseudo-inverse."""
    incidence = np.eye(n)[pairs[:, 0]] - np.eye(n)[pairs[:, 1]]
    return np.einsum("ei,ij,ej->e", incidence, np.linalg.pinv(incidence.T @ incidence), incidence)


@pytest.mark.parametrize("seed", range(20))
def test_blocks_agree_with_networkx(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(int(rng.integers(1, 2 * n)))])
    block = link_blocks(*adjacency(pairs, n))
    simple = nx.Graph(pairs.tolist())
    expected = {frozenset(frozenset(p) for p in one) for one in nx.biconnected_component_edges(simple)}
    found = {frozenset(frozenset(p) for p in pairs[block == b].tolist()) for b in np.unique(block)}
    assert found == expected
    bridges = {frozenset(p) for p in nx.bridges(nx.MultiGraph(pairs.tolist()))}
    alone = np.bincount(block)[block] == 1
    assert {frozenset(p) for p in pairs[alone].tolist()} == bridges


def test_large_graphs():
    n = 200_000
    pairs = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    assert len(np.unique(link_blocks(*adjacency(pairs, n)))) == n - 1
    # In an infinite square lattice every link has resistance 1/2.
    rho = appearance_probabilities(ig.grid_graph(80, 80, 2))
    assert (rho > 0).all()
    assert_allclose(rho.sum(), 80 * 80 - 1)
    assert_allclose(rho.mean(), 0.5, atol=0.01)


def test_probabilities_are_resistances_and_bridges_are_exactly_one():
    for pairs, n in map(numbered, small_graphs()):
        rho, expected = appearance_probabilities(graph_of(pairs, n)), resistances(pairs, n)
        assert_allclose(rho, expected, atol=1e-12)
        bridges = {frozenset(p) for p in nx.bridges(nx.MultiGraph(pairs.tolist()))}
        assert_array_equal(rho == 1, [frozenset(p) in bridges for p in pairs.tolist()])


@pytest.mark.long
def test_a_link_on_a_very_long_cycle_is_no_bridge():
    n = 1_000_000
    ring = np.stack([np.arange(n), np.roll(np.arange(n), -1)], axis=1)
    graph = ig.FactorGraph.from_groups([2] * (n + 1), [np.concatenate([ring, [[0, n]]])])
    rho = appearance_probabilities(graph)
    assert_array_equal(rho[:-1], (n - 1) / n)
    assert rho[-1] == 1


@pytest.mark.parametrize("draws", [1, 10])
def test_drawn_probabilities_are_a_distribution_over_trees(monkeypatch, draws):
    """On a dense graph with few draws, links are missed and covered: all positive, and the sum is still n - 1."""
    monkeypatch.setattr(appearance, "DENSE", 10)
    monkeypatch.setattr(appearance, "DRAWS", draws)
    rho = appearance_probabilities(ig.complete_graph(30, 2))
    assert (rho > 0).all()
    assert (rho <= 1).all()
    assert_allclose(rho.sum(), 29)


def test_drawn_probabilities_depend_on_their_seed_only(monkeypatch):
    monkeypatch.setattr(appearance, "DENSE", 10)
    graph, other = ig.grid_graph(6, 6, 2), ig.complete_graph(12, 2)
    alone = appearance_probabilities(graph, 3)
    assert_array_equal(appearance_probabilities(ig.grid_graph(6, 6, 2), 3), alone)
    assert (appearance_probabilities(graph, 4) != alone).any()
    beside = appearance_probabilities(ig.disjoint_union([other, graph]), 3)
    assert_array_equal(beside[-len(alone) :], alone)


def test_subsets_of_higher_arity_are_covered(monkeypatch):
    monkeypatch.setattr(appearance, "DRAWS", 1)
    rng = np.random.default_rng(0)
    graph = ig.FactorGraph([2] * 8, [tuple(rng.choice(8, 3, replace=False).tolist()) for _ in range(40)])
    rho = appearance_probabilities(graph)
    assert (rho > 0).all()
    assert (rho <= 1).all()
    assert 2 * rho.sum() <= 7 + 1e-12  # an acyclic subset of triples has at most 7 / 2 of them
