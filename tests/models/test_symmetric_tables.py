"""Symmetric tables of edges: the same whichever node is written first, with derivatives that are the transpose."""

import pickle

import numpy as np
import pytest
from models_helpers import check_adjoint, check_log_z_gradient, check_once, random_graphs
from numpy.testing import assert_allclose, assert_array_equal

from checks import refuses
from isinglass.models import EdgeTerm, EntropyModel, NodeTerm, SharedTerm, SymmetricTerm, graph_model


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
