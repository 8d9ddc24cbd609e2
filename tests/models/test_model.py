"""Compiled models: several terms in one group, shared parameters and tables, names, masks, errors."""

import pickle

import numpy as np
import pytest
from models_helpers import check_adjoint, check_log_z_gradient, check_once, complex_normal
from numpy.testing import assert_array_equal
from scipy import sparse

import isinglass as ig
from checks import each_equal, refuses
from isinglass.models import CliqueTerm, EdgeTerm, IndicatorTerm, Model, NodeTerm, SharedTerm, graph_model


def mixed(rng):
    """A model with cardinalities 2 and 3, pairs and a triple, several terms in a group, and shared names."""
    graph = ig.FactorGraph([2, 3, 2, 3], [(0,), (2,), (1,), (3,), (0, 1), (2, 3), (2, 1), (0, 1, 2), (0, 2)])
    assert [g.shape for g in graph.groups] == [(2,), (3,), (2, 3), (2, 3, 2), (2, 2)]
    shared = rng.standard_normal((2, 4))
    agree = sparse.csr_array(np.eye(3)[:2].reshape(6, 1))
    return Model(
        graph,
        [
            [NodeTerm("two", shared, 2), SharedTerm("two/bias", (2,))],
            [NodeTerm("three", shared, 3)],
            [
                SharedTerm("pair", (2, 3), n_tables=2, table_ids=[0, 1, 0]),
                EdgeTerm("pair/features", rng.standard_normal((2, 2)), (2, 3), table_ids=[-1, 0, 1]),
                IndicatorTerm("pair/agree", agree, (2, 3)),
            ],
            [CliqueTerm("triple", rng.standard_normal((1, 2)), (2, 3, 2))],
            [],
        ],
    )


def test_several_terms_in_a_group_against_a_loop():
    rng = np.random.default_rng(0)
    model = mixed(rng)
    w = model.split(rng.standard_normal(model.size))
    p = model.potentials(model.join(w))
    pair = model._terms[2]
    for row, a in enumerate((4, 5, 6)):
        for x in range(2):
            for y in range(3):
                total = w["pair"][(0, 1, 0)[row], x, y] + (w["pair/agree"][0] if x == y else 0.0)
                if row:
                    total += sum(pair[1].features[row - 1, j] * w["pair/features"][j, x, y] for j in range(2))
                assert p.log_tables[a][x, y] == pytest.approx(total, abs=1e-14)
    for row, a in enumerate((0, 1)):
        for x in range(2):
            total = w["two/bias"][x] + sum(model._terms[0][0].features[row, j] * w["two"][j, x] for j in range(4))
            assert p.log_tables[a][x] == pytest.approx(total, abs=1e-14)
    assert not p.log_tables[8].any()


@pytest.mark.parametrize("seed", range(3))
def test_mixed_models_have_right_gradients(seed):
    rng = np.random.default_rng(seed)
    model = mixed(rng)
    check_adjoint(model, rng)
    check_log_z_gradient(model, rng)
    check_once(model, rng)


def test_kinds_names_and_masks():
    graph = ig.FactorGraph.from_groups([2, 2], [[[0]], [[1]]])
    features = [[1.0]], [[10.0]]
    model = Model(graph, [[NodeTerm("node", f, 2)] for f in features])
    assert model.parameters == {"node": (1, 2)}
    assert [t.tolist() for t in model.potentials([1.0, 2.0]).log_tables] == [[1.0, 2.0], [10.0, 20.0]]
    assert model.transpose([np.ones((1, 2)), np.ones((1, 2))]).tolist() == [11.0, 11.0]
    model = mixed(np.random.default_rng(0))
    assert model.kinds["two"] == model.kinds["two/bias"] == "node"
    assert model.kinds["pair/agree"] == "edge"
    assert model.kinds["triple"] == "clique"
    masks = [model.mask(kind) for kind in ("node", "edge", "clique")]
    assert np.array_equal(np.sum(masks, axis=0), np.ones(model.size))
    assert model.split(masks[1].astype(float))["pair"].all()


def test_split_and_join_are_inverse():
    rng = np.random.default_rng(0)
    model = mixed(rng)
    for theta in (rng.standard_normal(model.size), complex_normal(rng, model.size)):
        named = model.split(theta)
        assert {name: array.shape for name, array in named.items()} == model.parameters
        assert np.array_equal(model.join(named), theta)
        named["two"][:] = 7
        assert not (theta == 7).any()
    assert np.array_equal(model.join(dict(reversed(named.items()))), model.join(named))


def test_what_models_share_and_pass_on():
    graph = ig.chain_graph(50, 3).repeat(20)
    model = Model(graph, [[SharedTerm("node", (3,))], [SharedTerm("edge", (3, 3))]])
    p = model.potentials(np.arange(12.0))
    assert [g.shape for g in p.groups] == [(1, 3), (1, 3, 3)]
    assert not p.table_ids[1].any()
    two = Model(graph, [[], [SharedTerm("edge", (3, 3)), SharedTerm("more", (3, 3))]])
    assert [g.shape for g in two.potentials(np.arange(18.0)).groups] == [(1, 3), (1, 3, 3)]
    model = Model(ig.FactorGraph([2], [(0,)]), [[SharedTerm("node", (2,))]])
    theta = np.array([1.0, 2.0])
    p, named = model.potentials(theta), model.split(theta)
    theta[:] = 0
    assert p.log_tables[0].tolist() == named["node"].tolist() == [1.0, 2.0]
    model = graph_model([([[1.0], [2.0]], [(0, 1)])], 2)
    p = model.potentials(np.zeros(6), {1: 0})
    assert dict(p.evidence) == {1: 0}
    assert dict(model.potentials(np.ones(6), p.evidence).evidence) == {1: 0}
    assert dict(model.potentials(np.ones(6)).evidence) == {}
    refuses(r"evidence\[1\]: expected a state from 0 to 1", model.potentials, np.zeros(6), {1: 2})


def test_hessian_by_a_complex_step():
    rng = np.random.default_rng(3)
    model = graph_model([(rng.standard_normal((4, 2)), [(0, 1), (1, 2), (2, 3), (3, 0)])], 2)
    theta, v = rng.standard_normal((2, model.size))

    def gradient(t):
        run = ig.infer(model.potentials(t), ig.BeliefPropagation(iterations=5), tape=True)
        return model.transpose(run.backward(log_z=1.0).groups)

    product = gradient(theta + 1e-20j * v).imag / 1e-20
    differences = (gradient(theta + 1e-5 * v) - gradient(theta - 1e-5 * v)) / 2e-5
    np.testing.assert_allclose(product, differences, atol=1e-8)


def test_models_can_be_pickled():
    rng = np.random.default_rng(0)
    model = mixed(rng)
    again = pickle.loads(pickle.dumps(model))
    theta = rng.standard_normal(model.size)
    for one, two in zip(model.potentials(theta).groups, again.potentials(theta).groups, strict=True):
        assert np.array_equal(one, two)
    check_once(again, rng)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g, m: Model("graph", []), "graph: expected a FactorGraph"),
        (lambda g, m: Model(g, [[]]), "terms: expected a list of terms for each of 2 groups, got 1"),
        (lambda g, m: Model(g, [[3], []]), r"terms\[0\]\[0\]: expected a Term, got int"),
        (lambda g, m: Model(g, [SharedTerm("node", (2,)), []]), r"terms\[0\]: expected a list of terms"),
        (
            lambda g, m: Model(g, [[SharedTerm("n", (3,))], []]),
            r"terms\[0\]\[0\] \('n'\): expected tables of shape \(2,\)",
        ),
        (lambda g, m: Model(g, [[NodeTerm("n", np.zeros((2, 1)), 2)], []]), "one table for each of 3 factors, or one"),
        (
            lambda g, m: Model(g, [[SharedTerm("n", (2,), table_ids=[0])], []]),
            "expected table_ids for 3 factors, got 1",
        ),
        (lambda g, m: Model(g, [[SharedTerm("n", (2,))], [SharedTerm("n", (2, 2))]]), "terms: expected one shape"),
        (
            lambda g, m: Model(g, [[NodeTerm("n", np.ones((3, 2)), 2)], [SharedTerm("n", (2, 2))]]),
            "terms: expected one kind of the parameters 'n', got 'node' and 'edge'",
        ),
        (lambda g, m: m.potentials(np.zeros(5)), r"theta: expected shape \(6,\), got shape \(5,\)"),
        (lambda g, m: m.potentials([0, 0, 0, np.nan, 0, 0]), r"theta: expected finite .* theta\[3\] = nan, in 'edge'"),
        (lambda g, m: m.potentials(["a"] * 6), "theta: expected real or complex numbers"),
        (lambda g, m: m.transpose([np.zeros((3, 2))]), "bars: expected arrays of the shapes"),
        (lambda g, m: m.transpose([np.zeros((3, 2)), np.zeros((2, 2, 2))]), "bars: expected arrays of the shapes"),
        (lambda g, m: m.join({"node": np.zeros(2)}), "named: expected a mapping with the names 'node', 'edge'"),
        (lambda g, m: m.join(3), "named: expected a mapping .* got int"),
        (
            lambda g, m: m.join({"node": np.zeros(3), "edge": np.zeros((2, 2))}),
            r"named\['node'\]: expected shape \(2,\), got shape \(3,\)",
        ),
        (lambda g, m: m.mask("nodes"), "kind: expected 'node', 'edge' or 'clique', got 'nodes'"),
    ],
)
def test_wrong_calls_are_answered_kindly(call, message):
    graph = ig.chain_graph(3, 2)
    model = Model(graph, [[SharedTerm("node", (2,))], [SharedTerm("edge", (2, 2))]])
    refuses(message, call, graph, model)


def test_other_terms_of_the_same_parameters():
    rng = np.random.default_rng(0)
    edges = [(0, 1), (1, 2)]
    old, new = (rng.normal(size=(3, 2)) for _ in range(2))
    model, expected = graph_model([(old, edges)], 2), graph_model([(new, edges)], 2)
    theta = rng.normal(size=model.size)
    before = model.potentials(theta).groups[0]
    other = model.with_terms(0, [NodeTerm("node", new, 2)])
    each_equal(other.potentials(theta).groups, expected.potentials(theta).groups)
    bars = [rng.normal(size=group.shape) for group in other.potentials(theta).groups]
    assert_array_equal(other.transpose(bars), expected.transpose(bars))
    assert_array_equal(model.potentials(theta).groups[0], before)  # left as it was
    np.testing.assert_allclose(before, old @ theta[:4].reshape(2, 2), rtol=1e-12)
    assert all(a is b for a, b in zip(other.table_ids, model.table_ids, strict=True))
    refuses("terms of the parameters", model.with_terms, 0, [NodeTerm("node", new[:, :1], 2)])
