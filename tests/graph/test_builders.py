"""Builders: which edges, in which order."""

import networkx as nx
import numpy as np
import pytest

import isinglass as ig
from checks import refuses


def edges(graph):
    return [scope for scope in graph.scopes if len(scope) == 2]


def test_grids_and_small_graphs():
    graph = ig.grid_graph(2, 3, 4)
    assert list(graph.scopes[:6]) == [(i,) for i in range(6)]
    assert edges(graph) == [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]
    assert set(graph.cards) == {4}
    refuses("neighbours: expected 4 or 8 in 2 dimensions, got 6", ig.lattice_graph, (3, 3), 2, neighbours=6)
    graph = ig.chain_graph(3, [2, 3, 4])
    assert [g.shape for g in graph.groups] == [(2,), (3,), (4,), (2, 3), (3, 4)]
    assert list(graph.scopes) == [(0,), (1,), (2,), (0, 1), (1, 2)]
    assert list(ig.grid_graph(1, 1, 2).scopes) == [(0,)]
    assert {frozenset(e) for e in edges(ig.complete_graph(5, 2))} == {frozenset(e) for e in nx.complete_graph(5).edges}


@pytest.mark.parametrize(
    ("shape", "neighbours", "count"),
    [((5,), None, 4), ((4, 5), 4, 31), ((4, 5), 8, 55), ((2, 3, 4), 6, 46), ((2, 3, 4), 26, None), ((3, 1), 4, 2)],
)
def test_lattices_against_networkx(shape, neighbours, count):
    graph = ig.lattice_graph(shape, 2, neighbours)
    index = np.arange(np.prod(shape)).reshape(shape)
    sites = list(np.ndindex(*shape))
    diagonal = neighbours == 3 ** len(shape) - 1 and len(shape) > 1
    expected = set()
    for one in sites:
        for two in sites:
            gap = np.abs(np.subtract(one, two))
            if one < two and gap.max() == 1 and (diagonal or gap.sum() == 1):
                expected.add((int(index[one]), int(index[two])))
    found = edges(graph)
    assert len(found) == len(set(found))
    assert {tuple(sorted(e)) for e in found} == expected
    assert count is None or len(found) == count


def test_random_trees_and_graphs():
    tree = ig.tree_graph(500, 2, random_state=1)
    assert tree.is_forest
    assert len(edges(tree)) == 499
    graph = ig.random_graph(50, 300, 2, random_state=2)
    assert len(set(edges(graph))) == 300
    assert all(i < j for i, j in edges(graph))
    assert edges(graph) == edges(ig.random_graph(50, 300, 2, random_state=2))
    assert len(edges(ig.random_graph(7, 21, 2, random_state=0))) == 21  # all pairs
    refuses("n_edges: expected at most the 21 pairs", ig.random_graph, 7, 22, 2)


def test_networkx_both_ways():
    source = nx.petersen_graph()
    nx.set_node_attributes(source, {i: 2 + i % 2 for i in source}, "states")
    graph = ig.from_networkx(source, "states")
    assert {frozenset(e) for e in edges(graph)} == {frozenset(e) for e in source.edges}
    assert graph.cards.tolist() == [2 + i % 2 for i in range(10)]
    back = ig.to_networkx(graph)
    assert back.number_of_nodes() == 10 + 25
    assert back.edges[("variable", 0), ("factor", 0)]["slot"] == 0
    refuses("undirected", ig.from_networkx, nx.DiGraph([(0, 1)]), 2)
    refuses("itself", ig.from_networkx, nx.Graph([(0, 0)]), 2)
    refuses("attribute 'k' at every node", ig.from_networkx, source, "k")


@pytest.mark.parametrize("call", [
    lambda: ig.grid_graph(2, 2, [2, 2, 2]),
    lambda: ig.grid_graph(0, 2, 2),
    lambda: ig.grid_graph(2, 2.0, 2),
    lambda: ig.chain_graph(3, 0),
    lambda: ig.pairwise_graph(3, [(0, 1, 2)], 2),
    lambda: ig.pairwise_graph(3, [(0, 3)], 2),
    lambda: ig.tree_graph(3, 2, random_state="x"),
])  # fmt: skip
def test_wrong_input(call):
    with pytest.raises(ig.InputError):
        call()


def test_periodic_lattices():
    torus = ig.lattice_graph((3, 4), 2, periodic=True)
    degree = np.bincount(np.ravel(torus.groups[1].scopes))
    assert degree.tolist() == [4] * 12
    assert (0, 1) in torus.scopes[:]
    assert (3, 0) in torus.scopes[:]  # along a row
    assert (8, 0) in torus.scopes[:]  # along a column
    cube = ig.lattice_graph((3, 3, 3), 2, neighbours=26, periodic=True)
    assert (np.bincount(np.ravel(cube.groups[1].scopes)) == 26).all()
    assert len({frozenset(scope) for scope in cube.scopes[27:]}) == 27 * 13
    assert ig.lattice_graph((2,), 2, periodic=True).scopes[2:] == [(0, 1), (1, 0)]
    assert ig.lattice_graph((1, 3), 2, periodic=True).scopes[3:] == [(0, 1), (1, 2), (2, 0)]
    refuses("periodic: expected True or False", ig.lattice_graph, (3,), 2, periodic=1)
