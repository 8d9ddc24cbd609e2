"""Hinge losses of chains equal those of the same model as a graph, with hidden labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig

TABLE = np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 1.0], [0.5, 3.0, 0.0]])


def data(seed, hidden=0.0):
    rng = np.random.default_rng(seed)
    sizes = [1, 4, 6, 3]
    X = [rng.normal(size=(n, 2)) for n in sizes]
    Y = [np.where(rng.random(n) < hidden, -1, rng.integers(0, 3, n)) for n in sizes]
    Y[1][:3] = [0, 1, 2]
    return X, Y


def objective(X, Y, loss, weights=None, **options):
    crf = ig.ChainCRF(loss=loss, l2=0.0, state_features="all", **{"bias": False, "boundary": False, **options})
    problem = crf._problem(crf._choices(), X, Y, weights, None)
    return problem.objective()


def graph_value(X, Y, theta, loss, weights=None):
    """Return the same loss of graphs: nodes (features, labels), and one table for the edges."""
    model = ig.models.graph_model([(x, [(i, i + 1) for i in range(len(x) - 1)]) for x in X], 3)
    problem = ig.losses.LossProblem(model.potentials(theta), np.concatenate(Y), weights)
    found = loss.evaluate(problem, None)
    return found.value.sum(), model.transpose(found.groups)


@pytest.mark.parametrize("loss", [ig.losses.Margin(), ig.losses.Margin(TABLE), ig.losses.Perceptron()])
@pytest.mark.parametrize("hidden", [0.0, 0.4])
def test_chains_and_graphs_agree(loss, hidden):
    for seed in range(4):
        X, Y = data(seed, hidden)
        theta = np.random.default_rng(seed).normal(size=2 * 3 + 9)
        weights = np.random.default_rng(seed + 9).uniform(0.5, 2, len(X))
        of_chain = objective(X, Y, loss, weights)(theta)
        of_graph = graph_value(X, Y, theta, loss, np.repeat(weights, [len(x) for x in X]))
        assert_allclose(of_chain[0], of_graph[0], rtol=1e-10)
        assert_allclose(of_chain[1], of_graph[1], atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"boundary": True}])
@pytest.mark.parametrize("hidden", [0.0, 0.4])
def test_slopes_are_those_of_differences(options, hidden):
    X, Y = data(1, hidden)
    f = objective(X, Y, ig.losses.Margin(TABLE), **options)
    theta = np.random.default_rng(0).normal(size=f.size)
    gradient = f(theta)[1]
    for i in range(0, f.size, 3):
        step = 1e-6 * np.eye(f.size)[i]
        assert_allclose(gradient[i], (f(theta + step)[0] - f(theta - step)[0]) / 2e-6, atol=1e-6)


def test_a_chain_learns_by_its_margin():
    rng = np.random.default_rng(0)
    Y = [rng.integers(0, 3, 8) for _ in range(20)]
    X = [np.eye(3)[y] + 0.3 * rng.normal(size=(8, 3)) for y in Y]
    with pytest.warns(ig.ConvergenceWarning):
        crf = ig.ChainCRF(loss="margin", l2=0.1, max_iter=50).fit(X, Y)
    assert crf.score(X, Y) > 0.95


def words(n, labels, features):
    rng = np.random.default_rng(0)
    look = rng.normal(size=(labels, features)) > 0
    Y = [rng.integers(0, labels, 8) for _ in range(n)]
    return [(look[y] ^ (rng.random((8, features)) < 0.1)).astype(float) for y in Y], Y


@pytest.mark.long
@pytest.mark.parametrize("optimizer", ["lbfgs", "steepest"])
@pytest.mark.parametrize("size", [(40, 5, 20), (20, 8, 30), (40, 10, 40)])
def test_a_step_that_gains_nothing_at_a_kink_is_no_convergence(size, optimizer):
    with pytest.warns(ig.ConvergenceWarning, match="no better point|max_iter"):
        crf = ig.ChainCRF(loss="margin", optimizer=optimizer).fit(*words(*size))
    assert not crf.converged_
