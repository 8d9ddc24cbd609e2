"""What graphs mean: separation, moral graphs, d-separation, chordal graphs and junction trees, against networkx."""

import itertools

import numpy as np
import pytest

import isinglass as ig
from checks import refuses

nx = pytest.importorskip("networkx")

N_GRAPHS = 1000


def undirected(rng):
    n = int(rng.integers(1, 10))
    return nx.gnp_random_graph(n, float(rng.uniform(0, 0.8)), seed=int(rng.integers(2**31)))


def directed(rng):
    graph = nx.DiGraph()
    n = int(rng.integers(1, 9))
    order = rng.permutation(n).tolist()
    graph.add_nodes_from(range(n))
    p = rng.uniform(0, 0.7)
    graph.add_edges_from((order[i], order[j]) for i in range(n) for j in range(i + 1, n) if rng.random() < p)
    return graph


def three_sets(rng, n):
    part = rng.integers(0, 4, n)
    return [np.flatnonzero(part == k).tolist() for k in range(3)]


def interactions(graph):
    found = nx.Graph()
    found.add_nodes_from(range(graph.n_variables))
    for scope in graph.scopes:
        found.add_edges_from(itertools.combinations(scope, 2))
    return found


@pytest.mark.long
def test_separation_agrees_with_networkx():
    rng = np.random.default_rng(0)
    seen = []
    for _ in range(N_GRAPHS):
        graph = undirected(rng)
        a, b, c = three_sets(rng, len(graph))
        rest = graph.subgraph(set(graph) - set(c))
        linked = any(nx.has_path(rest, i, j) for i in a for j in b)
        mine = ig.separated(ig.from_networkx(graph, 2), a, b, given=c)
        assert mine is not linked
        seen.append(mine and bool(a) and bool(b))
        i = int(rng.integers(len(graph)))
        assert ig.markov_blanket(ig.from_networkx(graph, 2), i) == tuple(sorted(graph[i]))
    assert 100 < sum(seen) < 900  # both answers were asked for


@pytest.mark.long
def test_d_separation_and_moral_graphs_agree_with_networkx():
    rng = np.random.default_rng(1)
    seen = []
    for _ in range(N_GRAPHS):
        dag = directed(rng)
        parents = [sorted(dag.predecessors(i)) for i in range(len(dag))]
        a, b, c = three_sets(rng, len(dag))
        mine = ig.d_separated(parents, a, b, given=c)
        assert mine == nx.is_d_separator(dag, set(a), set(b), set(c))
        seen.append(mine and bool(a) and bool(b))
        moral = interactions(ig.moralise(dag))
        assert nx.utils.graphs_equal(moral, nx.moral_graph(dag))
        kept = set(a).union(*(nx.ancestors(dag, i) for i in a))
        assert ig.ancestral_graph(parents, a) == tuple(tuple(p) if i in kept else () for i, p in enumerate(parents))
    assert 50 < sum(seen) < 950


@pytest.mark.long
def test_chordal_graphs_cliques_and_junction_trees_agree_with_networkx():
    rng = np.random.default_rng(2)
    chordal = 0
    for _ in range(N_GRAPHS):
        graph = undirected(rng)
        mine = ig.from_networkx(graph, rng.integers(1, 4, len(graph)))
        assert ig.is_chordal(mine) == nx.is_chordal(graph)
        assert set(ig.cliques(mine)) == {tuple(sorted(c)) for c in nx.find_cliques(graph)}
        full = ig.triangulate(mine)
        assert nx.is_chordal(interactions(full))
        assert (full is mine) == nx.is_chordal(graph)
        check_junction_tree(mine, ig.junction_tree(mine), interactions(full))
        chordal += nx.is_chordal(graph)
    assert 200 < chordal < 900


def check_junction_tree(graph, tree, filled):
    assert set(tree.cliques) == {tuple(sorted(c)) for c in nx.chordal_graph_cliques(filled)}
    assert tree.width == max(map(len, tree.cliques)) - 1
    links = tree.to_networkx()
    assert nx.is_forest(links)
    assert nx.number_connected_components(links) == nx.number_connected_components(filled)
    for (a, b), separator in zip(tree.edges, tree.separators, strict=True):
        assert a < b
        assert set(separator) == set(tree.cliques[a]) & set(tree.cliques[b])
    for i in range(graph.n_variables):  # running intersection
        assert nx.is_connected(links.subgraph([c for c in tree.cliques if i in c]))
    for scope, owner in zip(graph.scopes, tree.factor_clique, strict=True):
        assert set(scope) <= set(tree.cliques[owner])


@pytest.mark.long
def test_independencies_are_those_of_separation():
    rng = np.random.default_rng(3)
    for _ in range(30):
        graph = undirected(rng)
        mine = ig.from_networkx(graph, 2)
        for kind in ("pairwise", "local", "global"):
            for a, b, given in ig.implied_independencies(mine, kind):
                assert ig.separated(mine, a, b, given=given)
        strangers = [e for e in itertools.combinations(range(len(graph)), 2) if not graph.has_edge(*e)]
        assert [(*s.a, *s.b) for s in ig.implied_independencies(mine)] == strangers
        n = len(graph)
        expected = sum(
            ig.separated(mine, i, j, given=c)
            for i, j in strangers
            for r in range(n - 1)
            for c in itertools.combinations(set(range(n)) - {i, j}, r)
        )
        assert len(ig.implied_independencies(mine, "global")) == expected


def test_a_blanket_in_a_directed_graph_has_parents_children_and_their_parents():
    dag = [(), (), (0, 1), (2,), (2, 5), ()]
    assert ig.markov_blanket(ig.moralise(dag), 2) == (0, 1, 3, 4, 5)


def test_directed_graphs_by_names():
    dag = {"rain": [], "sprinkler": ["rain"], "wet": ["rain", "sprinkler"], "slippery": ["wet"]}
    moral = ig.moralise(dag)
    assert moral.names.variables == tuple(dag)
    assert moral.scopes[:] == ig.moralise([(), (0,), (0, 1), (2,)]).scopes[:]
    assert ig.markov_blanket(moral, "sprinkler") == (0, 2)
    assert ig.d_separated(dag, ["rain", "sprinkler"], "slippery", given="wet")
    assert not ig.d_separated(dag, "rain", "slippery")
    assert ig.ancestral_graph(dag, "sprinkler") == ((), (0,), (), ())
    assert ig.d_separated(nx.DiGraph([("a", "b"), ("b", "c")]), "a", "c", given="b")
    refuses("the cycle a -> b -> a", ig.moralise, {"a": ["b"], "b": ["a"]})
    refuses("did you mean 'rain'", ig.moralise, {"rain": [], "wet": ["rian"]})
    refuses(r"the parents in a list, got 'rain'; write \['rain'\]", ig.moralise, {"rain": [], "wet": "rain"})
    refuses("did you mean 'wet'", ig.d_separated, dag, "rain", "wett")


@pytest.mark.long
def test_a_large_chordal_graph_takes_linear_time():
    tree = ig.junction_tree(ig.chain_graph(20_000, 2))
    assert len(tree.cliques) == 19_999
    assert tree.width == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ig.d_separated([(1,), (2,), (0,)], 0, 1), "the cycle 0 -> 2 -> 1 -> 0"),
        (lambda: ig.d_separated([(0,)], 0, ()), "the cycle 0 -> 0"),
        (lambda: ig.moralise(nx.DiGraph([(0, 1), (1, 0)])), "the cycle"),
        (lambda: ig.moralise(nx.Graph([(0, 1)])), "a directed graph"),
        (lambda: ig.moralise([(), (3,)]), "variables 0 to 1"),
        (lambda: ig.moralise([(), (0,)], [2, 2, 2]), "each of 2 variables"),
        (lambda: ig.separated(ig.chain_graph(3, 2), 0, 0), "not in A"),
        (lambda: ig.separated(ig.chain_graph(3, 2), 0, 2, given=[2]), "not in B"),
        (lambda: ig.separated(ig.chain_graph(3, 2), 0, 7), "variables 0 to 2"),
        (lambda: ig.separated([(0, 1)], 0, 1), "a FactorGraph"),
        (lambda: ig.implied_independencies(ig.chain_graph(3, 2), "all"), "'pairwise' or 'local'"),
        (lambda: ig.implied_independencies(ig.chain_graph(13, 2), "global"), "at most 12 variables"),
    ],
)
def test_wrong_input_is_named(call, words):
    refuses(words.replace("(", r"\("), call)
