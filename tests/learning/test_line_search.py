"""Strong Wolfe conditions at every accepted point, on random smooth functions and off the domain."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optim_helpers import rosenbrock

from isinglass.learning.optimizers import Lbfgs, SteepestDescent
from isinglass.learning.optimizers.base import Counted, dot
from isinglass.learning.optimizers.descent import ROUNDING, Trial, evaluate
from isinglass.learning.optimizers.lbfgs import LbfgsState, inverse_times, wolfe_search


class Smooth:
    """A random function that is smooth, bounded below and not convex."""

    def __init__(self, seed, n):
        rng = np.random.default_rng(seed)
        scale = 10.0 ** rng.uniform(-3, 3)
        self.A, self.c = rng.normal(size=(4, n)) * rng.uniform(0.1, 3), rng.normal(size=4)
        self.scale, self.wave, self.centre = scale, rng.uniform(0, 2), rng.normal(size=n)

    def __call__(self, x):
        z, far = self.A @ x - self.c, x - self.centre
        value = np.logaddexp(z, -z).sum() + self.wave * np.cos(z).sum() + 0.05 * far @ far
        gradient = self.A.T @ (np.tanh(z) - self.wave * np.sin(z)) + 0.1 * far
        return self.scale * float(value), self.scale * gradient


def origin_of(f, x, direction):
    value, gradient = f(x)
    return Trial(0.0, value, float(gradient @ direction), x, gradient)


def assert_strong_wolfe(origin, found, sufficient, curvature):
    slack = ROUNDING * abs(origin.value)
    assert found.value <= origin.value + sufficient * found.step * origin.slope + slack
    assert abs(found.slope) <= curvature * abs(origin.slope)


@given(
    st.integers(0, 10**6),
    st.integers(1, 6),
    st.floats(-6, 6),
    st.sampled_from([(1e-4, 0.9), (1e-4, 0.1), (0.1, 0.2), (1e-3, 0.01)]),
)
@settings(max_examples=300, deadline=None)
def test_accepted_points_satisfy_both_conditions(seed, n, exponent, constants):
    f = Smooth(seed, n)
    x = np.random.default_rng(seed + 1).normal(size=n)
    origin = origin_of(f, x, -f(x)[1])
    found = wolfe_search(Counted(f), origin, -origin.gradient, 10.0**exponent, *constants)
    assert found is not None
    assert_strong_wolfe(origin, found, *constants)


@pytest.mark.long
@pytest.mark.parametrize("optimizer", [Lbfgs(tol=1e-6), SteepestDescent(tol=1e-3, max_iter=200)])
@given(seed=st.integers(0, 10**6), n=st.integers(2, 6))
@settings(max_examples=40, deadline=None)
def test_every_step_of_a_run_satisfies_both_conditions(optimizer, seed, n):
    f = Smooth(seed, n)
    points = [np.random.default_rng(seed).normal(size=n)]
    optimizer.minimise(f, points[0], callback=lambda p: points.append(p.x))
    for before, after in itertools.pairwise(points):
        (v0, g0), (v1, g1), s = f(before), f(after), after - before
        if np.abs(s).max() < 1e-6:
            continue  # the difference of the points is too rough
        assert v1 <= v0 + 0.99e-4 * g0 @ s + ROUNDING * abs(v0)
        assert abs(g1 @ s) <= optimizer.curvature * abs(g0 @ s) * (1 + 1e-6)


@pytest.mark.parametrize("first", [1e-8, 1e-3, 1.0, 1e3, 1e12])
def test_any_first_step_will_do(first):
    x = np.array([-1.2, 1.0])
    origin = origin_of(rosenbrock, x, -rosenbrock(x)[1])
    with np.errstate(over="ignore", invalid="ignore"):
        found = wolfe_search(Counted(rosenbrock), origin, -origin.gradient, first, 1e-4, 0.9)
    assert_strong_wolfe(origin, found, 1e-4, 0.9)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("where", ["value", "gradient"])
def test_shortens_the_step_off_the_domain(bad, where):
    def barrier(x):  # -log(1 - x) - 3 x, for x < 1
        if x[0] >= 1:
            return (bad, x) if where == "value" else (-1e9, np.array([bad]))
        return float(-np.log(1 - x[0]) - 3 * x[0]), 1 / (1 - x) - 3

    origin = origin_of(barrier, np.zeros(1), np.ones(1))
    for first in (0.9, 5.0, 1e6):
        found = wolfe_search(Counted(barrier), origin, np.ones(1), first, 1e-4, 0.1)
        assert_strong_wolfe(origin, found, 1e-4, 0.1)


def test_an_infinite_point_is_not_asked_for():
    def f(x):
        assert np.isfinite(x).all()
        return float(np.cosh(x[0] / 100)), np.sinh(x / 100) / 100

    direction = np.array([-1e300])
    origin = origin_of(f, np.ones(1), direction)
    with np.errstate(over="ignore"):
        wolfe_search(Counted(f), origin, direction, 1e100, 1e-4, 0.9)


def test_gives_up_on_what_is_unbounded_below():
    counted = Counted(lambda x: (float(-x[0]), -np.ones(1)))
    origin = Trial(0.0, 0.0, -1.0, np.zeros(1), -np.ones(1))
    assert wolfe_search(counted, origin, np.ones(1), 1.0, 1e-4, 0.9) is None
    assert counted.evaluations <= 40


@pytest.mark.parametrize("n", [5, 70_000])
@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_is_not_finite_is_seen(n, place, bad):
    x, zeros = np.ones(n), np.zeros(n)
    x[place] = bad
    trial = evaluate(Counted(lambda _: (1.0, x)), zeros, 1.0, zeros)  # the slope is a sum of products with zero
    assert trial.value == np.inf


@pytest.mark.parametrize("n", [5, 70_000])
def test_overflow_is_silent(n):
    huge = np.full(n, 1e308)
    with np.errstate(all="raise"):
        assert dot(huge, huge) == np.inf
        state = LbfgsState("lbfgs", huge, 0, 0, 0.0, huge, 0.0, (huge,), (huge,))
        assert not np.isfinite(inverse_times(state, huge)).any()


def test_a_label_of_belief_zero_is_a_step_too_long():
    from isinglass.errors import ImpossibleLabelError

    def f(x):
        if x[0] > 1.5:
            raise ImpossibleLabelError("labels", "possible ones", "one of belief zero")
        return float((x[0] - 1.0) ** 2), 2 * (x - 1.0)

    assert Lbfgs().minimise(f, [-30.0]).x[0] == pytest.approx(1.0, abs=1e-4)
    with pytest.raises(ImpossibleLabelError):
        Lbfgs().minimise(f, [2.0])
