"""Images of different sizes, in lists."""

import numpy as np
import pytest
from estimator_helpers import graph, grid, images
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from checks import refuses
from isinglass.graph.grids import grid_shape, grid_shapes
from isinglass.graph.schedules import grid_schedule
from isinglass.learning.optimizers import Adam

SIDES = [(3, 4), (5, 2), (1, 6), (3, 4), (4, 1), (1, 1)]


def mixed(seed=0):
    rng = np.random.default_rng(seed)
    Y = [np.add.outer(np.arange(h), np.arange(w)) // 2 % 2 for h, w in SIDES]
    return [np.eye(2)[y] + 0.5 * rng.normal(size=(*y.shape, 2)) for y in Y], Y


def as_graphs(X):
    """The same problem on graphs: horizontal, then vertical edges."""
    found = []
    for image in X:
        h, w, f = image.shape
        site = np.arange(h * w).reshape(h, w)
        edges = [*zip(site[:, :-1].ravel(), site[:, 1:].ravel(), strict=True)]
        edges += [*zip(site[:-1].ravel(), site[1:].ravel(), strict=True)]
        found.append((image.reshape(-1, f), np.array(edges, int).reshape(-1, 2)))
    return found


@pytest.mark.parametrize("schedule", ["flooding", "sequential"])
def test_a_list_is_learned_as_graphs_are(schedule):
    X, Y = mixed()
    inference = ig.BeliefPropagation(schedule=schedule)
    on_grids = grid(edges="shared", inference=inference).fit(X, Y)
    on_graphs = graph(bias=True, inference=inference).fit(as_graphs(X), [y.ravel() for y in Y])
    assert_allclose(on_grids.theta_, on_graphs.theta_, atol=1e-5)
    for one, two in zip(on_grids.predict_marginals(X), on_graphs.predict_marginals(as_graphs(X)), strict=True):
        assert_allclose(one.reshape(two.shape), two, atol=1e-5)


def test_predictions_are_lists_and_do_not_depend_on_the_others():
    X, Y = mixed()
    crf = grid().fit(X, Y)  # with the sweep over grids
    assert crf.score(X, Y) > 0.8
    for i, (labels, beliefs) in enumerate(zip(crf.predict(X), crf.predict_marginals(X), strict=True)):
        assert labels.shape == Y[i].shape
        assert beliefs.shape == (*Y[i].shape, 2)
        assert_allclose(crf.predict_marginals(X[i : i + 1])[0], beliefs, rtol=1e-12)
        assert_allclose(crf.predict_marginals(X[i][None])[0], beliefs, rtol=1e-12)


def test_a_list_of_equal_sizes_is_the_array():
    X, Y = images()
    listed = grid().fit(list(X), list(Y))
    assert listed.theta_.tobytes() == grid().fit(X, Y).theta_.tobytes()
    assert isinstance(listed.predict(list(X)), list)
    assert_array_equal(listed.predict(list(X)), listed.predict(X))
    assert grid().fit(list(X), Y).theta_.tobytes() == listed.theta_.tobytes()


def test_weights_minibatches_and_checkpoints(tmp_path):
    X, Y = mixed()
    one = grid(tol=1e-8).fit(X, Y, sample_weight=[1, 2, 0, 1, 1, 1])
    two = grid(tol=1e-8).fit([X[i] for i in (0, 1, 1, 3, 4, 5)], [Y[i] for i in (0, 1, 1, 3, 4, 5)])
    assert_allclose(one.theta_, two.theta_, atol=1e-4)
    with pytest.warns(ig.ConvergenceWarning, match="epochs"):
        grid(optimizer=Adam(epochs=2, batch_size=2, random_state=0)).fit(X, Y)
    grid(checkpoint=tmp_path / "a", callback=lambda p: p.iteration == 2).fit(X, Y)
    assert grid(checkpoint=tmp_path / "a").fit(X, Y).theta_.tobytes() == grid().fit(X, Y).theta_.tobytes()
    refuses("a checkpoint of this problem", grid(checkpoint=tmp_path / "a").fit, [X[0] + 1e-12, *X[1:]], Y)


def test_the_sweep_over_grids_of_different_sizes():
    parts = [ig.grid_graph(2, 3, 2), ig.grid_graph(4, 1, 2), ig.grid_graph(2, 2, 2)]
    union = ig.disjoint_union(parts)
    assert grid_shapes(union) == [(2, 3), (1, 4), (2, 2)]  # a column is a row
    assert grid_shape(union) is None
    links = [0, 7, 10]
    expected = [grid_schedule(part) + first for part, first in zip(parts, links, strict=True)]
    assert_array_equal(grid_schedule(union), np.concatenate(expected))
    refuses("a regular grid", grid_schedule, ig.disjoint_union([parts[0], ig.complete_graph(4, 2)]))
    empty = ig.disjoint_union([parts[0], ig.FactorGraph([], [])])
    assert grid_shapes(empty) is None
    assert grid_shape(empty) is None
