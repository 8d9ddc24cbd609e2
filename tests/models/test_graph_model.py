"""Models of graphs and chains: tables against a loop, one disjoint union, sparse and dense features, errors."""

import pickle

import numpy as np
import pytest
from models_helpers import check_adjoint, check_log_z_gradient, check_once, random_graphs
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import isinglass as ig
from checks import each_close, refuses
from isinglass.models import EdgeTerm, EntropyModel, NodeTerm, SharedTerm, SymmetricTerm, chain_model, graph_model


def tables_by_loops(examples, w, bias=False, edge_bias=False):
    found = []
    for example in examples:
        for row in example[0]:
            row = [*row, 1.0] if bias else row
            found.append(sum(x * part for x, part in zip(row, w["node"], strict=True)))
        for e in range(len(example[1])):
            if len(example) == 2:
                found.append(w["edge"])
            else:
                row = [*example[2][e], 1.0] if edge_bias else example[2][e]
                found.append(sum(z * part for z, part in zip(row, w["edge"], strict=True)))
    return found


@pytest.mark.parametrize("edge_features", [None, 2])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("bias", [False, True])
def test_tables_against_a_loop(edge_features, k, bias):
    rng = np.random.default_rng(k)
    examples = random_graphs(rng, 6, edge_features=edge_features)
    edge_bias = bias and edge_features is not None
    model = graph_model(examples, k, bias=bias, edge_bias=edge_bias)
    theta = rng.standard_normal(model.size)
    expected = tables_by_loops(examples, model.split(theta), bias, edge_bias)
    p = model.potentials(theta)
    assert len(p.log_tables) == len(expected)
    each_close(p.log_tables, expected, atol=1e-13)
    check_adjoint(model, rng)
    check_once(model, rng)


def test_tables_of_edges():
    one = graph_model([(np.zeros((2, 1)), [(1, 0)])], 2).potentials([0, 0, 1.0, 2.0, 3.0, 4.0])
    assert one.log_score([0, 1]) == 3.0  # node 1 is the first end
    rng = np.random.default_rng(2)
    model = graph_model(random_graphs(rng, 5), 2)
    p = model.potentials(rng.standard_normal(model.size))
    assert p.groups[1].shape == (1, 2, 2)
    assert not p.table_ids[1].any()
    examples = random_graphs(np.random.default_rng(6), 3, edge_features=2)
    assert graph_model(examples, 2, edge_features=False).parameters["edge"] == (2, 2)
    assert graph_model(examples, 2, edge_features=True).parameters["edge"] == (2, 2, 2)


@pytest.mark.parametrize("edge_features", [None, 2])
def test_gradients_of_log_z(edge_features):
    rng = np.random.default_rng(1)
    check_log_z_gradient(graph_model(random_graphs(rng, 3, edge_features=edge_features), 2), rng)


def test_the_graph_is_the_disjoint_union():
    rng = np.random.default_rng(2)
    examples = random_graphs(rng, 7)
    graph = graph_model(examples, 3).graph
    expected = ig.disjoint_union([ig.pairwise_graph(len(X), edges, 3) for X, edges in examples])
    assert list(graph.scopes) == list(expected.scopes)
    for name in ("cards", "variable_component", "factor_component", "n_components"):
        assert np.array_equal(getattr(graph, name), getattr(expected, name))
    for one, two in zip(graph.groups, expected.groups, strict=True):
        assert np.array_equal(one.scopes, two.scopes)
        assert np.array_equal(one.factors, two.factors)
        assert one.shape == two.shape


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array, sparse.csc_array])
@pytest.mark.parametrize("bias", [False, True])
def test_sparse_equals_dense(make, bias):
    rng = np.random.default_rng(3)
    examples = random_graphs(rng, 4, edge_features=2)
    thin = [(make(X), edges, make(Z)) for X, edges, Z in examples]
    half = [*thin[:2], *examples[2:]]
    options = {"bias": bias, "edge_bias": bias}
    plain = graph_model(examples, 3, **options)
    theta, bars = rng.standard_normal(plain.size) + 1j, None
    for other in (graph_model(thin, 3, **options), graph_model(half, 3, **options)):
        assert sparse.issparse(other._terms[0][0].features)
        p, q = plain.potentials(theta), other.potentials(theta)
        bars = [rng.standard_normal(g.shape) for g in p.groups]
        each_close(p.groups, q.groups, atol=1e-13)
        np.testing.assert_allclose(plain.transpose(bars), other.transpose(bars), atol=1e-12)


def test_a_batch_equals_its_examples():
    rng = np.random.default_rng(4)
    examples = random_graphs(rng, 5, edge_features=2)
    model = graph_model(examples, 2)
    theta = rng.standard_normal(model.size)
    whole = ig.infer(model.potentials(theta), "exact")
    start, gradients = 0, 0.0
    for c, example in enumerate(examples):
        small = graph_model([example], 2)
        one = ig.infer(small.potentials(theta), "exact", tape=True)
        np.testing.assert_allclose(one.log_z, whole.component_log_z[c], rtol=1e-12)
        for i in range(len(example[0])):
            np.testing.assert_allclose(one.variable(i), whole.variable(start + i), atol=1e-12)
        start += len(example[0])
        gradients = gradients + small.transpose(one.backward(log_z=1.0).groups)
    taped = ig.infer(model.potentials(theta), "exact", tape=True)
    np.testing.assert_allclose(model.transpose(taped.backward(log_z=1.0).groups), gradients, atol=1e-11)


@pytest.mark.parametrize("algorithm", ["exact", "bp", "trw", "mf"])
def test_examples_without_edges_or_nodes(algorithm):
    rng = np.random.default_rng(5)
    lone, none = (rng.standard_normal((2, 3)), []), (np.zeros((0, 3)), np.zeros((0, 2), int))
    for examples in ([lone], [lone, none, lone], [none, lone, (rng.standard_normal((2, 3)), [(0, 1)])]):
        model = graph_model(examples, 2)
        assert model.parameters == {"node": (3, 2), "edge": (2, 2)}
        theta = rng.standard_normal(model.size)
        p = model.potentials(theta)
        result = ig.infer(p, algorithm, tape=True)
        assert result.component_log_z.shape == (len(examples),)
        back = model.transpose(result.backward(log_z=1.0).groups)
        assert np.isfinite(back).all()
        assert model.split(back)["edge"].sum() == pytest.approx(sum(len(edges) for _, edges in examples))


X, E = np.zeros((3, 2)), [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ([], "examples: expected at least one of tuples"),
        (5, "examples: expected a list of tuples .* got int"),
        ([X], r"examples\[0\]: expected a tuple .* got ndarray"),
        ([(X,)], r"examples\[0\]: expected a tuple .* got 1 parts"),
        (
            [(X, E), (X, [(0, 3)])],
            r"examples\[1\]: edges: expected nodes 0 to 2, got \(0, 3\) in row 0; count nodes from 0",
        ),
        ([(X, [(0, -1)])], r"examples\[0\]: edges: expected nodes 0 to 2"),
        ([(X[:0], [(0, 1)])], r"examples\[0\]: edges: expected no edges, as there are no nodes"),
        ([(X, [(0, 1), (2, 2)])], r"edges: expected no edge from a node to itself, got \(2, 2\) in row 1"),
        ([(X, [(0, 1, 2)])], r"edges: expected an array \(edges, 2\), got shape \(1, 3\)"),
        ([(X, [(0, 1, 2), (1, 2, 0)])], r"got shape \(2, 3\); transpose it"),
        ([(X, [(0.0, 1.0)])], "edges: expected integers .* got dtype float64"),
        ([(X, [(0, 1), (2,)])], "edges: .* values that do not form an array"),
        ([(X, E), (X[:, :1], E)], "node_features: expected the same number .* got 2 and, in example 1, 1"),
        ([(X[0], E)], r"examples\[0\]: node_features: expected an array \(nodes, features\)"),
        ([(X * np.nan, E)], r"node_features: expected finite real numbers, got nan at index \(0, 0\)"),
        ([(X, E, np.zeros((3, 1)))], "edge_features: expected a row for each of 2 edges, got 3 rows"),
        ([(X, E, np.zeros((2, 1))), (X, E)], "examples: expected edge features in every example, or in none"),
        (
            [(X, E, None)],
            r"examples\[0\]: expected a tuple \(node_features, edges, edge_features\), got no edge features",
        ),
    ],
)
def test_wrong_examples_are_answered_kindly(examples, message):
    refuses(message, graph_model, examples, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_states": 0}, "n_states: expected a whole number of at least 1, got 0"),
        ({"edge_features": True}, r"examples\[0\]: expected a tuple .* got no edge features"),
        ({"edge_features": 3}, "edge_features: expected True or False, got 3"),
        ({"edge_bias": True}, "edge_bias: expected False where there are no edge features"),
    ],
)
def test_wrong_options_are_answered_kindly(options, message):
    refuses(message, graph_model, [(X, E)], **{"n_states": 2, **options})


def test_chains_are_graphs():
    rng = np.random.default_rng(7)
    sequences = [rng.standard_normal((n, 3)) for n in (4, 1, 0, 2)]
    model = chain_model(sequences, 3, bias=True)
    examples = [(x, [(t, t + 1) for t in range(len(x) - 1)]) for x in sequences]
    same = graph_model(examples, 3, bias=True)
    assert list(model.graph.scopes) == list(same.graph.scopes)
    assert model.graph.is_forest
    theta = rng.standard_normal(model.size)
    for one, two in zip(model.potentials(theta).groups, same.potentials(theta).groups, strict=True):
        assert np.array_equal(one, two)
    thin = chain_model([sparse.csr_array(x) for x in sequences], 3, bias=True)
    np.testing.assert_allclose(thin.potentials(theta).groups[0], model.potentials(theta).groups[0], atol=1e-13)
    check_adjoint(model, rng)
    refuses("sequences: expected at least one", chain_model, [], 2)
    refuses(r"sequences\[0\]: expected an array \(length, features\)", chain_model, [[1.0, 2.0]], 2)


def test_edges_of_few_types_share_their_tables():
    rng = np.random.default_rng(8)
    edges = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)]
    types = [0, 0, 1, 1, 0]
    examples = [(rng.standard_normal((4, 2)), edges, np.eye(2)[types]) for _ in range(3)]
    model = graph_model(examples, 3)
    apart = graph_model([(x, e, sparse.csr_array(z)) for x, e, z in examples], 3)
    theta = rng.standard_normal(model.size)
    assert model.potentials(theta).groups[1].shape == (2, 3, 3)
    assert apart.potentials(theta).groups[1].shape == (15, 3, 3)
    each_close(model.potentials(theta).log_tables, apart.potentials(theta).log_tables, rtol=1e-13)
    check_adjoint(model, rng)
    few = graph_model([(rng.standard_normal((2, 2)), [(0, 1)], np.eye(2)[[1]])], 3)
    np.testing.assert_array_equal(few.potentials(theta).groups[1][0], theta[-9:].reshape(3, 3))


def turned(examples):
    """The same graphs, with each edge written the other way."""
    return [(nodes, edges[:, ::-1], *rest) for nodes, edges, *rest in examples]


@pytest.mark.parametrize("edge_features", [None, 2])
@pytest.mark.parametrize("k", [2, 3])
def test_scores_do_not_depend_on_the_order_of_nodes(edge_features, k):
    rng = np.random.default_rng(k)
    examples = random_graphs(rng, 5, edge_features=edge_features)
    models = [graph_model(some, k, symmetric=True) for some in (examples, turned(examples))]
    theta = rng.normal(size=models[0].size)
    states = rng.integers(0, k, (20, models[0].graph.n_variables))
    one, two = (model.potentials(theta).log_score(states) for model in models)
    assert_allclose(one, two, rtol=1e-13)
    directed = [graph_model(some, k).potentials(theta).log_score(states) for some in (examples, turned(examples))]
    assert not np.allclose(*directed)
    for model in models:
        check_adjoint(model, rng)
        check_log_z_gradient(model, rng)
        check_once(model, rng)


def test_tables_are_those_of_the_symmetric_part():
    rng = np.random.default_rng(0)
    examples = random_graphs(rng, 3, edge_features=3)
    model, directed = graph_model(examples, 2, symmetric=True), graph_model(examples, 2)
    theta = rng.normal(size=model.size)
    kept = model.reduced(theta)
    assert_array_equal(model.split(kept)["node"], model.split(theta)["node"])
    edge = model.split(kept)["edge"]
    assert_array_equal(edge, edge.swapaxes(1, 2))
    assert_allclose(model.potentials(theta).groups[1], directed.potentials(kept).groups[1], rtol=1e-14)
    assert_array_equal(directed.reduced(theta), theta)


def test_some_features_are_symmetric():
    rng = np.random.default_rng(1)
    examples = random_graphs(rng, 3, edge_features=2)
    model = graph_model(examples, 3, edge_bias=True, symmetric=[0, 2])
    edge = model.split(model.reduced(rng.normal(size=model.size)))["edge"]
    assert [np.array_equal(table, table.T) for table in edge] == [True, False, True]
    check_adjoint(model, rng)
    check_log_z_gradient(model, rng)
    none = graph_model(examples, 3, symmetric=[])
    assert_array_equal(none.reduced(np.arange(float(none.size))), np.arange(none.size))


def test_terms():
    term = SymmetricTerm(EdgeTerm("edge", np.ones((2, 1)), 3), [0])
    term.check()
    assert "SymmetricTerm(EdgeTerm" in repr(term)
    again = pickle.loads(pickle.dumps(graph_model(random_graphs(np.random.default_rng(0)), 2, symmetric=True)))
    theta = np.arange(float(again.size))
    assert not np.array_equal(again.reduced(theta), theta)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e, _: graph_model(e, 2, symmetric="yes"), "symmetric"),
        (lambda e, _: graph_model(e, 2, symmetric=[0]), "symmetric: expected no numbers of features"),
        (lambda _, f: graph_model(f, 2, symmetric=[2]), "symmetric: expected numbers of features, from 0 to 1"),
        (lambda _, f: graph_model(f, 2, symmetric=[-1]), "symmetric"),
        (lambda _, f: graph_model(f, 2, symmetric=[True]), "symmetric"),
        (lambda _, f: graph_model(f, 2, symmetric=1), "symmetric"),
        (lambda *_: SymmetricTerm(NodeTerm("node", np.ones((2, 1)), 2)), "term: expected a term of pairs"),
        (lambda *_: SymmetricTerm(SharedTerm("edge", (2, 3))), "term: expected a term of pairs"),
    ],
)
def test_wrong_choices(call, message):
    rng = np.random.default_rng(0)
    refuses(message, call, random_graphs(rng), random_graphs(rng, edge_features=2))


def test_entropy_weights_of_pairs_are_symmetric_too():
    rng = np.random.default_rng(2)
    examples = random_graphs(rng, 2)
    model = EntropyModel(graph_model(examples, 2, symmetric=True), symmetric=True)
    theta = 0.3 * rng.normal(size=model.size)
    pairs = model.weights(theta)[1][1]
    assert_array_equal(pairs, pairs.swapaxes(-1, -2))
    kept = model.split(model.reduced(theta))
    for name in ("edge", "entropy/factors/1"):
        assert_array_equal(kept[name], kept[name].swapaxes(-1, -2))
    bars = rng.normal(size=2 * model.graph.n_variables), [np.zeros(1), rng.normal(size=pairs.shape)]

    def value(x):
        by_state, groups = model.weights(x)
        return (bars[0] * by_state).sum() + (bars[1][1] * groups[1]).sum()

    found, step = model.weights_transpose(theta, *bars), 1e-6
    for i in range(model.size):
        up, down = (value(theta + s * step * np.eye(model.size)[i]) for s in (1, -1))
        assert_allclose(found[i], (up - down) / (2 * step), rtol=1e-6, atol=1e-8)
    refuses("symmetric", EntropyModel, graph_model(examples, 2), factors=[[1.0, 2.0], [3.0, 1.0]], symmetric=True)
