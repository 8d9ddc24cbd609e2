"""The l1 penalty: zeros, the conditions of optimality, and a general solver."""

import numpy as np
import pytest
from estimator_helpers import KINDS, graph, graphs, grid, images
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

import isinglass as ig
from checks import refuses
from isinglass import losses
from isinglass.gradients import rule
from isinglass.learning import Objective
from isinglass.learning.optimizers import Adam, Lbfgs, OwlQn
from isinglass.models import graph_model, grid_model

TIGHT = OwlQn(tol=1e-9, ftol=0.0, max_iter=2000)


def smooth(kind, X, Y):
    """The objective without l1, built by hand: l2 of 0.3, two iterations."""
    model = grid_model(X, 2, bias=True) if kind == "grid" else graph_model(X, 2)
    algorithm = ig.BeliefPropagation(iterations=2, schedule="grid" if kind == "grid" else "auto")
    labels = np.concatenate([np.ravel(y) for y in Y])
    return Objective(model, labels, losses.make("ucl"), algorithm, rule("unrolled"), 0.3)


def weights_of(crf, l1, edge_l1):
    return np.concatenate([np.full(a.size, l1 if n == "node" else edge_l1) for n, a in crf.parameters_.items()])


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("l1", "edge_l1"), [(2.0, None), (0.0, 1.5), (1.0, 0.0), (0.5, 3.0)])
def test_conditions_of_optimality(kind, l1, edge_l1):
    make, data = KINDS[kind]
    X, Y = data()
    crf = make(l1=l1, edge_l1=edge_l1, optimizer=TIGHT).fit(X, Y)
    c = weights_of(crf, l1, l1 if edge_l1 is None else edge_l1)
    value, g = smooth(kind, X, Y)(crf.theta_)
    zero = crf.theta_ == 0
    assert zero[c > 0].any()
    assert not zero.all()
    assert_allclose(g[~zero], -c[~zero] * np.sign(crf.theta_[~zero]), atol=1e-6)
    assert (abs(g[zero]) <= c[zero] + 1e-6).all()
    assert_allclose(crf.objective_, value + (c * abs(crf.theta_)).sum(), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_general_solver_finds_the_same(kind):
    make, data = KINDS[kind]
    X, Y = data(2)
    crf = make(l1=0.4, edge_l1=1.2, optimizer=TIGHT).fit(X, Y)
    c, f = weights_of(crf, 0.4, 1.2), smooth(kind, X, Y)

    def split(z):  # theta = u - v with u, v >= 0
        u, v = np.split(z, 2)
        value, g = f(u - v)
        return value + c @ (u + v), np.concatenate([g + c, c - g])

    n = len(c)
    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000, "maxfun": 10**5}
    found = minimize(split, np.zeros(2 * n), jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2 * n, options=options)
    assert_allclose(crf.objective_, found.fun, rtol=1e-9)
    assert_allclose(crf.theta_, found.x[:n] - found.x[n:], atol=1e-4)


def test_names_stand_for_the_quasi_newton_method():
    X, Y = images()
    by_name = grid(l1=1.0).fit(X, Y)
    assert (by_name.theta_ == 0).any()
    assert_array_equal(by_name.theta_, grid(l1=1.0, optimizer=OwlQn(tol=1e-4, max_iter=200)).fit(X, Y).theta_)
    assert_array_equal(by_name.theta_, grid(l1=1.0, optimizer="owlqn").fit(X, Y).theta_)
    assert_array_equal(grid(optimizer="owlqn").fit(X, Y).theta_, grid().fit(X, Y).theta_)  # no penalty: no zeros
    assert_array_equal(grid(l1=1.0, optimizer=OwlQn(l1=9.0, tol=1e-4, max_iter=200)).fit(X, Y).theta_, by_name.theta_)


@pytest.mark.parametrize("optimizer", [Lbfgs(), Adam(), "sgd", "steepest"], ids=str)
def test_other_optimizers_are_refused(optimizer):
    refuses(r"optimizer: .*use 'lbfgs' by name, or 'owlqn'", graph(edge_l1=1.0, optimizer=optimizer).fit, *graphs())


def test_a_checkpoint_knows_the_penalty(tmp_path):
    X, Y = graphs()
    whole = graph(l1=0.5).fit(X, Y)
    graph(l1=0.5, checkpoint=tmp_path / "a", callback=lambda p: p.iteration == 3).fit(X, Y)
    refuses("a checkpoint of this problem", graph(l1=0.6, checkpoint=tmp_path / "a").fit, X, Y)
    again = graph(l1=0.5, checkpoint=tmp_path / "a").fit(X, Y)
    assert again.theta_.tobytes() == whole.theta_.tobytes()
    again.save(tmp_path / "b")
    assert ig.GraphCRF.load(tmp_path / "b").l1 == 0.5
