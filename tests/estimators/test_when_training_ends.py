"""When an optimizer that is given by name ends training."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig
from isinglass.learning.optimizers import Lbfgs


def test_a_smaller_tol_gives_a_smaller_gradient():
    rng = np.random.default_rng(0)
    Y = [rng.integers(0, 3, 8) for _ in range(40)]
    X = [np.eye(3)[y] + rng.normal(size=(8, 3)) for y in Y]
    usual, tight = (ig.ChainCRF(tol=tol, max_iter=2000).fit(X, Y) for tol in (1e-4, 1e-10))
    assert "ftol = 1e-10" in usual.message_
    assert "the gradient norm" in tight.message_
    assert tight.history_[-1].gradient_norm < 1e-9
    assert [epoch.value for epoch in tight.history_[: usual.n_iter_]] == [epoch.value for epoch in usual.history_]


@pytest.mark.parametrize(("tol", "ftol"), [(1e-3, 1e-10), (1e-4, 1e-10), (1e-6, 1e-14), (0.0, 0.0)])
def test_the_relative_decrease_that_ends_training_follows_tol(tol, ftol):
    for estimator in (ig.ChainCRF(tol=tol), ig.ChainCRF(tol=tol, l1=0.1), ig.ChainCRF(tol=tol, optimizer="steepest")):
        assert_allclose(estimator._choices().optimizer.ftol, ftol, rtol=1e-12)
    assert ig.ChainCRF(tol=tol, optimizer=Lbfgs(ftol=1e-3))._choices().optimizer.ftol == 1e-3
    assert ig.ChainCRF(tol=1e-4)._choices().optimizer == Lbfgs(tol=1e-4, max_iter=200)
