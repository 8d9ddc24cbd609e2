"""Models of images: tables against a loop, the fast loops of grids, one size and many."""

import numpy as np
import pytest
from models_helpers import check_adjoint, check_log_z_gradient, check_once
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import isinglass as ig
from checks import each_close, each_equal, refuses
from isinglass.inference.message_passing.moves.lattices import lattice_of
from isinglass.models import grid_model


def edge_counts(height, width):
    return height * (width - 1), (height - 1) * width


def tables_by_loops(images, w, edge_features=None, bias=False, edge_bias=False):
    """All tables in factor order, image after image."""
    found = []
    for c, image in enumerate(images):
        height, width, _ = image.shape
        features = np.concatenate([image, np.ones((height, width, 1))], axis=2) if bias else image
        for i in range(height):
            for j in range(width):
                found += [sum(features[i, j, f] * w["node"][f] for f in range(features.shape[2]))]
        horizontal, vertical = edge_counts(height, width)
        for e in range(horizontal + vertical):
            table = w.get("edge", w.get("edge/horizontal" if e < horizontal else "edge/vertical"))
            if edge_features is not None:
                row = [*edge_features[c][e], 1.0] if edge_bias else edge_features[c][e]
                table = sum(z * part for z, part in zip(row, table, strict=True))
            found.append(table)
    return found


@pytest.mark.parametrize("sizes", [[(3, 4)] * 3, [(2, 3), (4, 2), (1, 1), (1, 3), (3, 1)], [(1, 1)] * 2])
@pytest.mark.parametrize("edges", ["directions", "shared"])
@pytest.mark.parametrize("with_features", [False, True])
@pytest.mark.parametrize("k", [2, 3])
def test_tables_against_a_loop(sizes, edges, with_features, k):
    rng = np.random.default_rng(len(sizes) + k)
    images = [rng.standard_normal((h, w, 2)) for h, w in sizes]
    features = [rng.standard_normal((sum(edge_counts(h, w)), 2)) for h, w in sizes] if with_features else None
    bias, edge_bias = k == 2, with_features and k == 3
    model = grid_model(images, k, edges=edges, edge_features=features, bias=bias, edge_bias=edge_bias)
    theta = rng.standard_normal(model.size)
    p = model.potentials(theta)
    expected = tables_by_loops(images, model.split(theta), features, bias, edge_bias)
    assert p.graph.n_components == len(sizes)
    assert len(p.log_tables) == len(expected)
    each_close(p.log_tables, expected, atol=1e-13)
    check_adjoint(model, rng)
    check_once(model, rng)


def test_parameters_do_not_depend_on_the_sizes():
    for edges in ("directions", "shared"):
        names = [
            grid_model(np.ones((2, h, w, 3)), 4, edges=edges).parameters for h, w in ((5, 6), (1, 1), (1, 4), (4, 1))
        ]
        assert all(found == names[0] for found in names)
    assert names[0] == {"node": (3, 4), "edge": (4, 4)}


@pytest.mark.parametrize("sizes", [[(3, 3), (3, 3)], [(2, 3), (1, 1), (3, 2)], [(1, 1)]])
def test_gradients_of_log_z(sizes):
    rng = np.random.default_rng(0)
    images = [rng.standard_normal((h, w, 2)) for h, w in sizes]
    check_log_z_gradient(grid_model(images, 2), rng)
    features = [rng.standard_normal((sum(edge_counts(h, w)), 1)) for h, w in sizes]
    check_log_z_gradient(grid_model(images, 2, edge_features=features), rng)


def test_the_graph_is_a_repeated_grid():
    model = grid_model(np.zeros((4, 5, 6, 1)), 2)
    lattice = lattice_of(model.graph)
    assert lattice is not None
    assert (lattice.height, lattice.width) == (5, 6)
    expected = ig.grid_graph(5, 6, 2).repeat(4)
    assert list(model.graph.scopes) == list(expected.scopes)
    assert np.array_equal(model.graph.factor_component, expected.factor_component)
    assert np.array_equal(model.graph.variable_component, np.repeat(np.arange(4), 30))


def test_each_direction_has_one_table():
    p = grid_model(np.zeros((4, 5, 6, 1)), 2).potentials(np.arange(10.0))
    assert p.groups[1].tolist() == [[[2.0, 3.0], [4.0, 5.0]], [[6.0, 7.0], [8.0, 9.0]]]
    horizontal, vertical = edge_counts(5, 6)
    assert np.array_equal(p.table_ids[1], np.tile(np.repeat([0, 1], [horizontal, vertical]), 4))
    tied = grid_model(np.zeros((4, 5, 6, 1)), 2, edges="shared").potentials(np.arange(6.0))
    assert tied.groups[1].shape == (1, 2, 2)
    assert not tied.table_ids[1].any()


def test_inference_prepares_tables_once():
    model = grid_model(np.zeros((3, 4, 4, 1)), 2)
    algorithm = ig.BeliefPropagation(iterations=2)
    ig.infer(model.potentials(np.zeros(10)), algorithm)
    before = len(model.graph._cache)
    for i in range(3):
        ig.infer(model.potentials(np.full(10, 0.1 * i)), algorithm)
    assert len(model.graph._cache) == before


def test_a_batch_equals_its_images():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((3, 4, 5, 2))
    model = grid_model(X, 2, bias=True)
    theta = rng.standard_normal(model.size)
    algorithm = ig.BeliefPropagation(iterations=4)
    whole = ig.infer(model.potentials(theta), algorithm)
    for c in range(3):
        one = ig.infer(grid_model(X[c : c + 1], 2, bias=True).potentials(theta), algorithm)
        np.testing.assert_allclose(one.log_z, whole.component_log_z[c], rtol=1e-12)
        for i in range(20):
            np.testing.assert_allclose(one.variable(i), whole.variable(20 * c + i), atol=1e-13)


def test_images_of_any_type_are_copied():
    X = np.ones((2, 3, 3, 1))
    expected = grid_model(X, 2).potentials(np.arange(10.0)).groups[0]
    for dtype in (bool, np.int8, np.float32):
        assert np.array_equal(grid_model(X.astype(dtype), 2).potentials(np.arange(10.0)).groups[0], expected)
    assert np.array_equal(grid_model(X.tolist(), 2).potentials(np.arange(10.0)).groups[0], expected)
    X = np.ones((2, 3, 3, 1))
    model = grid_model(X, 2)
    X[:] = 9
    assert (model.potentials(np.ones(10)).groups[0] == 1).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, Z: grid_model(X, 1.5), "n_states: expected a whole number"),
        (lambda X, Z: grid_model(X[0], 2), r"X: expected an array \(images, height, width, features\), got shape"),
        (lambda X, Z: grid_model([], 2), "X: expected at least one of arrays .* got an empty list"),
        (lambda X, Z: grid_model(X[:0], 2), "X: expected at least one image"),
        (lambda X, Z: grid_model(X[:, :0], 2), r"X\[0\]: expected an image of at least one pixel"),
        (lambda X, Z: grid_model(X * np.nan, 2), r"X: expected finite real numbers, got nan at index \(0, 0, 0, 0\)"),
        (lambda X, Z: grid_model([X[0], X[1, :, :, :1]], 2), "X: expected the same number .* 2 and, in example 1, 1"),
        (lambda X, Z: grid_model([X[0], X[1, 0]], 2), r"X\[1\]: expected an array \(height, width, features\)"),
        (lambda X, Z: grid_model(sparse.csr_array(X[0, 0]), 2), "X: expected a dense array .* got a sparse one"),
        (lambda X, Z: grid_model(5, 2), "X: expected a list of arrays .* got int"),
        (lambda X, Z: grid_model(X, 2, edges="both"), "edges: expected 'directions', 'shared' or 'none', got 'both'"),
        (lambda X, Z: grid_model(X, 2, bias=1), "bias: expected True or False, got 1"),
        (lambda X, Z: grid_model(X, 2, edge_bias=True), "edge_bias: expected False where there are no edge features"),
        (lambda X, Z: grid_model(X, 2, edge_features=Z[:1]), "edge_features: expected an array for each of 2 images"),
        (
            lambda X, Z: grid_model(X, 2, edge_features=Z[:, 1:]),
            r"edge_features\[0\]: expected a row for each of 12 edges of a grid 3 x 3, got 11 rows",
        ),
        (lambda X, Z: grid_model(X, 2, edge_features=list(Z * np.inf)), r"edge_features\[0\]: expected finite"),
        (lambda X, Z: grid_model(X, 2, edge_features=[Z[0], Z[1, :, :2]]), "edge_features: expected the same number"),
    ],
)
def test_wrong_input_is_answered_kindly(call, message):
    refuses(message, call, np.ones((2, 3, 3, 2)), np.ones((2, 12, 3)))


def test_the_structure_of_an_earlier_batch_is_used_again():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 3, 4, 5, 2))
    old = grid_model(first, 2)
    model, alone = grid_model(second, 2, like=old), grid_model(second, 2)
    assert model.graph is old.graph
    theta = rng.normal(size=model.size)
    each_equal(model.potentials(theta).groups, alone.potentials(theta).groups)
    one, two = (ig.infer(m.potentials(theta), "bp", iterations=3, tape=True) for m in (model, alone))
    assert_array_equal(one.variables.flat, two.variables.flat)
    assert_array_equal(*(m.transpose(r.backward(log_z=1.0).groups) for m, r in ((model, one), (alone, two))))
    for other in (
        grid_model(second[:2], 2, like=old),
        grid_model(second.transpose(0, 2, 1, 3), 2, like=old),
        grid_model(second, 3, like=old),
        grid_model([second[0], second[1][:2], second[2]], 2, like=old),
    ):
        assert other.graph is not old.graph


def test_pixels_by_themselves():
    X = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
    model = grid_model(X, 3, edges="none")
    assert model.parameters == {"node": (5, 3)}
    theta = np.random.default_rng(1).normal(size=15)
    scores = X @ theta.reshape(5, 3)
    expected = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    beliefs = ig.infer(model.potentials(theta), ig.BeliefPropagation(iterations=1, schedule="grid")).variables
    assert_allclose(np.asarray(beliefs), expected.reshape(-1, 3), atol=1e-12)
    refuses("edge_features", grid_model, X, 3, edges="none", edge_features=np.zeros((2, 17, 1)))
    refuses("'none'", grid_model, X, 3, edges="some")


def test_the_structure_of_equal_batches_is_kept_but_not_their_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, 5, 3, 4, 2))
    one, two = (grid_model(x, 2) for x in X)
    assert one.graph is two.graph
    assert all(a is b for a, b in zip(one.table_ids, two.table_ids, strict=True))
    theta = rng.normal(size=one.size)
    for model, x in zip((one, two), X, strict=True):
        expected = x.reshape(-1, 2) @ theta[:4].reshape(2, 2)
        np.testing.assert_allclose(model.potentials(theta).groups[0], expected, rtol=1e-12)
    others = [grid_model(X[0], 3), grid_model(X[0][:4], 2), grid_model(X[0], 2, edges="shared")]
    others += [grid_model(X[0].reshape(5, 4, 3, 2), 2), grid_model(X[0], 2, bias=True)]
    assert not {id(other.graph) for other in others} & {id(one.graph)}
