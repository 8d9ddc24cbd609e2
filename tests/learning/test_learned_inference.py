"""Options of message passing that are learned with a model: derivatives, training, prediction, and wrong input."""

import numpy as np
import pytest

import isinglass as ig
from isinglass.gradients import rule
from isinglass.learning.objective import Objective
from isinglass.losses import make

FBP = ig.FractionalBeliefPropagation


def ring(n, seed, nodes=6):
    """Draw labels on a ring with a chord, and a noisy feature of each node."""
    rng = np.random.default_rng(seed)
    edges = [(i, (i + 1) % nodes) for i in range(nodes)] + [(0, 3), (1, 4)]
    Y = [np.where(rng.random(nodes) < 0.15, 1, 0) ^ rng.integers(2) for _ in range(n)]
    return [(np.c_[y + rng.normal(size=nodes), np.ones(nodes)], edges) for y in Y], Y


def learner(**options):
    inference = FBP(iterations=3, damping=0.4, counting_numbers=0.8, learn=("damping", "counting_numbers"))
    return ig.GraphCRF(inference, loss="ucl", gradient="unrolled", **{"l2": 0.1, "max_iter": 500} | options)


@pytest.mark.parametrize("loss", ["ucl", "l1", "mse", "cl"])
def test_derivatives_by_damping_and_counting_numbers(loss):
    X, Y = ring(3, 0)
    model = learner()._model(X, 2)
    objective = Objective(model, np.concatenate(Y), make(loss), learner().inference, rule("unrolled"))
    theta = 0.5 * np.random.default_rng(1).normal(size=model.size)
    gradient = objective(theta)[1]
    assert list(model.parameters)[-2:] == ["damping", "counting_numbers"]
    for i in (-2, -1):
        step = 1e-4 * np.eye(model.size)[i]
        up, down, up2, down2 = (objective(theta + k * step)[0] for k in (1, -1, 2, -2))
        assert gradient[i] == pytest.approx((8 * (up - down) - (up2 - down2)) / 12e-4, rel=1e-7, abs=1e-9)
        assert gradient[i] != 0


def test_training_moves_them_and_prediction_uses_them():
    X, Y = ring(40, 1)
    learned = learner().fit(X, Y)
    options = FBP(iterations=3, damping=0.4, counting_numbers=0.8)
    given = ig.GraphCRF(options, loss="ucl", gradient="unrolled", l2=0.1, max_iter=500).fit(X, Y)
    assert learned.objective_ < given.objective_ - 1e-3
    used = learned.infer(X).algorithm
    assert abs(used.damping - 0.4) > 0.01
    assert abs(used.counting_numbers - 0.8) > 0.01


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"learn": ("tol",)}, "learn: expected some of 'damping', 'counting_numbers', got 'tol'"),
        ({"learn": "damping", "damping": 0.0}, "damping: expected a number between 0 and 1 where it is learned, got 0"),
        ({"learn": ["counting_numbers"], "counting_numbers": [1.0, 0.5]}, "counting_numbers: expected one number"),
    ],
)
def test_wrong_options_are_refused(change, message):
    X, Y = ring(3, 0)
    with pytest.raises(ig.InputError, match=message):
        ig.GraphCRF(FBP(iterations=3, **change), loss="ucl", gradient="unrolled").fit(X, Y)


def test_rules_and_optimizers_that_cannot_are_refused():
    X, Y = ring(3, 0)
    fbp = FBP(damping=0.2, learn=["counting_numbers"])
    with pytest.raises(ig.InputError, match="gradient: expected 'unrolled', where 'counting_numbers' is learned"):
        ig.GraphCRF(fbp, loss="ucl", gradient="perturbation").fit(X, Y)
    with pytest.raises(ig.InputError, match="optimizer: expected one without products of the Hessian"):
        learner(optimizer="smd").fit(X, Y)
