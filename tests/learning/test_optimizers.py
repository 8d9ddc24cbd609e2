"""Optimizers that see the whole function: against SciPy, l1 against proximal gradients, stopping and interrupts."""

import dataclasses
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optim_helpers import WHOLE, Logistic, Quadratic, proximal_gradient, rosenbrock, same_bits, same_states
from scipy.optimize import minimize

from isinglass.errors import InputError
from isinglass.learning.optimizers import OPTIMIZERS, Adam, Lbfgs, LbfgsState, OwlQn, SteepestDescent, make_optimizer
from isinglass.learning.optimizers.lbfgs import inverse_times

TIGHT = {"tol": 1e-9, "ftol": 0.0}


def tight(name, **options):
    free = {"l1": 0.0} if name == "owlqn" else {}
    return make_optimizer(name, **{**TIGHT, "max_iter": 20000, **free, **options})


@pytest.mark.parametrize("name", ["lbfgs", "steepest", "owlqn"])
def test_the_message_says_what_the_gradient_was_compared_with(name):
    f = Quadratic(np.geomspace(1, 50, 12))
    for stretch in (1.0, 1e3):
        far = f.centre * stretch
        shifted = lambda x, far=far: (f(x - far + f.centre)[0] + 50.0, f(x - far + f.centre)[1])  # noqa: E731
        result = make_optimizer(name, tol=1e-3, ftol=0.0, **({"l1": 0.0} if name == "owlqn" else {})).minimise(
            shifted, np.zeros(12)
        )
        numbers = [float(text) for text in re.findall(r"\d\S*\d", result.message)]
        assert "is within tol = 0.001" in result.message
        assert numbers[0] <= 1.01 * numbers[1] * (numbers[2] if len(numbers) > 2 else 1.0)
        scale = min(np.linalg.norm(result.x), np.sqrt(result.value))
        assert f"times the scale {scale:.3g}" in result.message


@pytest.mark.parametrize("n", [2, 5, 20])
def test_rosenbrock(n):
    result = tight("lbfgs").minimise(rosenbrock, np.full(n, -1.2))
    reference = minimize(rosenbrock, np.full(n, -1.2), jac=True, method="L-BFGS-B", options={"maxiter": 5000})
    assert result.converged
    assert result.evaluations < 3 * reference.nfev
    assert result.value < 1e-8 or abs(result.value - reference.fun) < 1e-6  # one local minimum besides, from n = 4


@pytest.mark.parametrize("name", WHOLE)
def test_quadratic_form(name):
    f = Quadratic(np.geomspace(1, 50, 12))
    result = tight(name).minimise(f, np.zeros(12))
    assert result.converged
    assert "tol" in result.message
    np.testing.assert_allclose(result.x, f.centre, atol=1e-8)
    assert np.linalg.norm(result.gradient) <= 1e-9 * max(1, np.linalg.norm(result.x))


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("seed", range(3))
def test_logistic_regression_against_scipy(name, seed):
    f = Logistic(seed=seed)
    result = tight(name).minimise(f, np.zeros(8))
    reference = minimize(f, np.zeros(8), jac=True, method="BFGS", options={"gtol": 1e-8})
    assert result.converged
    assert abs(result.value - reference.fun) < 1e-8
    np.testing.assert_allclose(result.x, reference.x, atol=1e-6)
    assert result.value == f(result.x)[0]
    assert same_bits(result.gradient, f(result.x)[1])


def test_converges_below_the_resolution_of_the_value():
    f = Logistic()
    high = Lbfgs(tol=1e-10, ftol=0).minimise(lambda x: (f(x)[0] + 1e6, f(x)[1]), np.zeros(8))
    assert high.converged
    assert np.linalg.norm(high.gradient) <= 1e-10 * max(1, np.linalg.norm(high.x))


def test_limited_memory_is_the_bfgs_update():
    rng = np.random.default_rng(0)
    A = np.eye(5) + 0.1 * np.ones((5, 5))
    pairs, optimiser = [], Lbfgs(memory=3)
    state = LbfgsState("lbfgs", np.zeros(5), 0, 0, 0.0, np.zeros(5), 0.0)
    for _ in range(4):
        s = rng.normal(size=5)
        pairs.append((s, A @ s))
        state = optimiser.with_pair(state, s, A @ s)
    assert len(state.steps) == len(state.changes) == 3
    assert optimiser.with_pair(state, s, -A @ s) is state
    H = s @ A @ s / (s @ A @ A @ s) * np.eye(5)
    for s, y in pairs[1:]:
        V = np.eye(5) - np.outer(y, s) / (s @ y)
        H = V.T @ H @ V + np.outer(s, s) / (s @ y)
    v = rng.normal(size=5)
    np.testing.assert_allclose(inverse_times(state, v), H @ v, rtol=1e-12)


def test_without_pairs_it_is_steepest_descent():
    f, points = Quadratic(np.geomspace(1, 5, 4)), [np.zeros(4)]
    result = Lbfgs(memory=0, tol=1e-8, ftol=0).minimise(f, points[0], callback=lambda p: points.append(p.x))
    assert result.converged
    assert result.state.steps == result.state.changes == ()
    for before, after in pairwise(points[:9]):
        gradient, step = f(before)[1], before - after
        assert step @ gradient == pytest.approx(np.linalg.norm(step) * np.linalg.norm(gradient))


@pytest.mark.parametrize(("name", "options"), [*((name, {}) for name in WHOLE), ("owlqn", {"l1": 1e-9})])
def test_a_barrier_beyond_which_values_are_infinite(name, options):
    rng = np.random.default_rng(0)
    A, c = rng.normal(size=(80, 50)), rng.normal(size=50) * 30
    A, b = np.vstack([A, np.eye(50), -np.eye(50)]), np.full(180, 2.0)

    def f(x):  # c x - the sum of logarithms of the room in A x < b
        room = b - A @ x
        if (room <= 0).any():
            return np.inf, np.full(50, np.nan)
        return c @ x - np.log(room).sum(), c + A.T @ (1 / room)

    x = np.zeros(50)
    for _ in range(100):  # Newton's method
        room, step = b - A @ x, 1.0
        slopes = f(x)[1]
        move = np.linalg.solve(A.T * (1 / room**2) @ A, -slopes)
        while not f(x + step * move)[0] <= f(x)[0] + 0.1 * step * (slopes @ move):
            step /= 2
            if step < 1e-12:
                break
        x = x + step * move
    outside = []
    optimiser = tight(name, **{"tol": 1e-4, **options})
    result = optimiser.minimise(lambda x: outside.append(f(x)[0] == np.inf) or f(x), np.zeros(50))
    assert any(outside)
    assert result.converged
    assert result.value == pytest.approx(f(x)[0], abs=1e-6)
    assert f(np.zeros(50))[0] > f(x)[0] + 100


@pytest.mark.parametrize("name", ["lbfgs", "owlqn"])
def test_long_vectors_come_to_the_minimum_and_resume(name, tmp_path):
    n = 2**16 + 99
    scales = np.linspace(0.1, 10, n)

    def f(x):
        return float(np.sum(scales * x**2 / 2 + x**4 / 4 - x)), scales * x + x**3 - 1

    options = {"memory": 4, **({"l1": np.zeros(n)} if name == "owlqn" else {})}
    found = tight(name, **options).minimise(f, np.zeros(n))
    assert found.converged
    np.testing.assert_allclose(scales * found.x + found.x**3, 1, atol=1e-6)
    half = tight(name, max_iter=6, **options).minimise(f, np.full(n, 2.0))
    half.state.save(tmp_path / "state.npz")
    rest = tight(name, max_iter=9, **options).minimise(f, state=LbfgsState.load(tmp_path / "state.npz"))
    assert same_states(rest.state, tight(name, max_iter=9, **options).minimise(f, np.full(n, 2.0)).state)


@pytest.mark.parametrize("l1", [0.1, 3.0, np.array([0, 0, 1, 1, 5, 5, 50, 500.0])])
@pytest.mark.parametrize("seed", range(3))
def test_l1_against_proximal_gradients(l1, seed):
    f = Logistic(seed=seed)
    lipschitz = np.linalg.norm(f.X, 2) ** 2 / 4 + 2 * f.l2
    reference = proximal_gradient(f, np.zeros(8), l1, 1 / lipschitz, 5000)
    result = OwlQn(l1=l1, **TIGHT).minimise(f, np.zeros(8))
    penalised = f(reference)[0] + (l1 * np.abs(reference)).sum()
    assert result.converged
    assert abs(result.value - penalised) < 1e-8
    np.testing.assert_allclose(result.x, reference, atol=1e-7)
    assert ((result.x == 0) == (reference == 0)).all()


@given(st.integers(0, 10**6), st.floats(0.01, 20))
@settings(max_examples=30, deadline=None)
def test_l1_optimality_conditions(seed, l1):
    f = Logistic(n=20, features=5, l2=0.1, seed=seed)
    start = np.random.default_rng(seed).normal(size=5)
    result = OwlQn(l1=l1, tol=1e-7, ftol=0).minimise(f, start)
    gradient = f(result.x)[1]
    assert result.converged
    at_zero = result.x == 0
    np.testing.assert_allclose(gradient[~at_zero], -l1 * np.sign(result.x[~at_zero]), atol=1e-5)
    assert (np.abs(gradient[at_zero]) <= l1 + 1e-5).all()


def test_l1_values_never_rise_and_zeros_are_exact():
    values = []
    f = Logistic(features=30, n=40)
    result = OwlQn(l1=2.0).minimise(f, np.zeros(30), callback=lambda p: values.append(p.value))
    assert (np.diff(values) <= 1e-12 * np.abs(values[0])).all()
    assert 0 < (result.x == 0).sum() < 30


def test_l1_converged_is_close_to_the_minimum_however_large_x_is():
    rng = np.random.default_rng(10)
    n, p = int(rng.integers(10, 40)), int(rng.integers(3, 15))
    A = rng.normal(size=(n, p)) @ np.diag(10 ** rng.uniform(-1.5, 0.5, p))
    b = A @ (rng.normal(size=p) * 10 ** rng.uniform(0, 4) * (rng.random(p) < 0.7))
    l1 = 0.01

    def f(x):
        return (A @ x - b) @ (A @ x - b) / 2, A.T @ (A @ x - b)

    result = OwlQn(l1=l1).minimise(f, np.zeros(p))
    on, signs = result.x != 0, np.sign(result.x)
    best = np.zeros(p)  # the minimum has these signs, for it fulfils the conditions
    best[on] = np.linalg.solve(A[:, on].T @ A[:, on], A[:, on].T @ b - l1 * signs[on])
    assert (np.sign(best) == signs).all()
    assert (np.abs(f(best)[1][~on]) <= l1 + 1e-9).all()
    least = f(best)[0] + l1 * np.abs(best).sum()
    assert result.converged
    assert np.linalg.norm(best) > 1000
    assert result.value - least <= 1e-6 * least


@pytest.mark.parametrize("l1", [0, 0.0, np.zeros(8)])
def test_without_penalty_owlqn_is_lbfgs(l1):
    f = Logistic()
    a, b = Lbfgs(memory=6, **TIGHT).minimise(f, np.ones(8)), OwlQn(l1=l1, **TIGHT).minimise(f, np.ones(8))
    assert same_states(a.state, dataclasses.replace(b.state, optimizer="lbfgs"))
    assert a.message == b.message


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("limit", [0, 1, 7])
def test_max_iter_is_respected(name, limit):
    calls = []
    result = tight(name, max_iter=limit).minimise(rosenbrock, np.full(6, -1.0), callback=lambda p: calls.append(p))
    assert result.iterations == limit == len(calls)
    assert not result.converged
    assert result.message == f"reached max_iter = {limit}"
    assert [p.iteration for p in calls] == list(range(1, limit + 1))


def test_how_runs_end():
    result = Lbfgs(tol=0, ftol=1e-3).minimise(Logistic(), np.zeros(8))
    assert result.converged
    assert "ftol" in result.message
    result = Lbfgs().minimise(rosenbrock, [-1.2, 1.0], callback=lambda p: p.iteration == 4)
    assert (result.iterations, result.converged, result.message) == (4, False, "stopped by the callback")
    result = Lbfgs(max_iter=100).minimise(lambda x: (float(x[0]), np.ones(1)), [0.0])
    assert not result.converged
    with pytest.raises(ZeroDivisionError):
        Lbfgs().minimise(lambda x: 1 / 0, [0.0])
    result = Lbfgs().minimise(lambda x: (3.0, x), np.zeros(0))
    assert (result.converged, result.value, result.iterations) == (True, 3.0, 0)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize(
    ("decrease", "slope", "ends"),
    [(1e-12, 1e-3, True), (1e-12, 20.0, False), (0.0, 1e-3, False), (-1e-15, 1e-3, False)],
)
def test_a_small_decrease_counts_only_if_it_is_one_and_the_gradient_is_small(name, decrease, slope, ends):
    optimizer = make_optimizer(name, **({"l1": 0.0} if name == "owlqn" else {}))
    state = optimizer.minimise(lambda x: (10.0 + float(x @ x), 2 * x), np.ones(2)).state
    changed = dataclasses.replace(state, decrease=decrease, gradient=np.array([slope, 0.0]))
    end = optimizer.ended(changed)
    assert (end is not None and end.converged) is ends


@pytest.mark.parametrize("name", WHOLE)
def test_counts_evaluations_and_values_fall(name):
    count, values = [], []
    f = Logistic()

    def counting(x):
        count.append(1)
        return f(x)

    result = make_optimizer(name).minimise(counting, np.ones(8), callback=lambda p: values.append(p.value))
    assert result.evaluations == len(count)
    assert (np.diff(values) < 0).all()
    assert result.value == values[-1]


@pytest.mark.parametrize("name", WHOLE)
def test_nothing_of_the_caller_is_changed_or_kept(name):
    f, buffer, x0 = Logistic(), np.zeros(8), np.ones(8)

    def reusing(x):
        value, buffer[:] = f(x)
        x[:] = np.nan  # scribbles on what it was given
        return np.float64(value), buffer  # the same array every time

    result = make_optimizer(name).minimise(reusing, x0)
    assert same_bits(x0, np.ones(8))
    assert same_bits(result.x, make_optimizer(name).minimise(f, [1] * 8).x)
    kept = result.state.x.copy()
    result.x[:] = 0
    assert same_bits(result.state.x, kept)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("at", ["function", "callback"])
def test_interrupt_returns_the_best_so_far(name, at):
    points, count = [], []

    def f(x):
        count.append(1)
        if at == "function" and len(count) == 12:
            raise KeyboardInterrupt
        return rosenbrock(x)

    def note(p):
        points.append(p)
        if at == "callback" and len(points) == 4:
            raise KeyboardInterrupt

    result = tight(name).minimise(f, [-1.2, 1.0], callback=note)
    assert (result.message, result.converged) == ("interrupted", False)
    assert result.iterations == len(points)
    assert same_bits(result.x, points[-1].x)
    assert result.value == min(p.value for p in points)
    resumed = tight(name).minimise(rosenbrock, state=result.state)
    assert same_bits(resumed.x, tight(name).minimise(rosenbrock, [-1.2, 1.0]).x)


@pytest.mark.parametrize("name", WHOLE)
def test_interrupt_in_the_first_evaluation(name):
    def f(x):
        raise KeyboardInterrupt

    result = make_optimizer(name).minimise(f, [1.0, 2.0])
    assert result.x.tolist() == [1.0, 2.0]
    assert (result.message, result.converged, result.state) == ("interrupted", False, None)
    assert np.isnan(result.value)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_regions_where_the_function_is_not_finite(name, bad):
    def f(x):  # Σ x - log x for x > 0, from a steep place
        if (x <= 0).any():
            return bad, np.full_like(x, np.nan)
        return (x - np.log(x)).sum(), 1 - 1 / x

    result = tight(name, tol=1e-8).minimise(f, [1e-3, 5.0, 40.0])
    assert result.converged
    np.testing.assert_allclose(result.x, 1, atol=1e-6)


@pytest.mark.parametrize("name", WHOLE)
def test_a_start_that_is_not_finite_is_refused(name):
    with pytest.raises(InputError, match=r"x0: expected a point where the function and its gradient are finite"):
        make_optimizer(name).minimise(lambda x: (np.inf, x), [0.0])


@pytest.mark.parametrize("name", WHOLE)
def test_a_wrong_gradient_stops_with_a_message(name):
    result = tight(name).minimise(lambda x: (x @ x, -2 * x), [1.0, 2.0])
    assert not result.converged
    assert "line search" in result.message
    assert result.x.tolist() == [1.0, 2.0]


def test_a_pair_whose_curvature_is_rounding_is_not_kept():
    state = Lbfgs(max_iter=0).minimise(lambda x: (float(x @ x), 2 * x), np.ones(2)).state
    y = np.array([1e3, 0.0])
    for curvature, kept in ((1e-18, 0), (1e-12, 1), (-1e-12, 0)):
        s = np.array([curvature * 1e3, 1.0])  # s'y = curvature y'y
        assert len(Lbfgs().with_pair(state, s, y).steps) == kept


def test_a_failed_search_forgets_the_pairs_and_goes_on():
    f = Quadratic(np.geomspace(1, 50, 6))
    state = Lbfgs(max_iter=4).minimise(f, np.zeros(6)).state
    misled = dataclasses.replace(state, changes=tuple(np.full(6, np.nan) for _ in state.changes))
    result = Lbfgs(**TIGHT).minimise(f, state=misled)
    assert result.converged
    np.testing.assert_allclose(result.x, f.centre, atol=1e-8)


def test_registry():
    classical = ["adagrad", "adam", "fixed-point", "lbfgs", "owlqn", "proximal", "sgd", "smd", "steepest"]
    assert sorted(OPTIMIZERS) == sorted([*classical, "averaged-perceptron", "bcfw", "cccp", "cutting-plane", "pegasos"])
    assert make_optimizer("steepest") == SteepestDescent()
    assert make_optimizer(Lbfgs(memory=3), tol=0.1) == Lbfgs(memory=3, tol=0.1)
    assert make_optimizer("owlqn", l1=[1.0, 2.0]) == OwlQn(l1=np.array([1.0, 2.0])) != OwlQn(l1=1.0)
    assert hash(OwlQn(l1=np.ones(2))) == hash(OwlQn(l1=np.ones(2)))
    assert all(cls.name == name for name, cls in OPTIMIZERS.items())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: make_optimizer("lbgfs"), r"optimizer: expected one of .*; did you mean 'lbfgs'\?"),
        (lambda f: make_optimizer("lbfgs", speed=3), r"speed: expected an option of 'lbfgs' \(one of tol, .*\), got 3"),
        (lambda f: make_optimizer(Lbfgs), "optimizer: expected a name .* got the class Lbfgs"),
        (lambda f: make_optimizer(3), "optimizer: expected a name .* got int"),
        (lambda f: Lbfgs(tol=-1).minimise(f, [0.0]), "tol: expected a number of at least 0"),
        (lambda f: Lbfgs(max_iter=1.5).minimise(f, [0.0]), "max_iter: expected a whole number"),
        (lambda f: Lbfgs(memory=-1).minimise(f, [0.0]), "memory: expected a whole number of at least 0"),
        (lambda f: Lbfgs(curvature=1.0).minimise(f, [0.0]), "curvature: expected .* below 1"),
        (lambda f: Lbfgs(sufficient=0.95).minimise(f, [0.0]), "sufficient: expected 0 < sufficient < curvature"),
        (lambda f: SteepestDescent(curvature=0).minimise(f, [0.0]), "sufficient: expected 0 < sufficient < curvature"),
        (lambda f: OwlQn(l1=-1).minimise(f, [0.0]), "l1: expected finite numbers of at least 0, one or 1, got -1"),
        (lambda f: OwlQn(l1=[1, 2]).minimise(f, [0.0]), r"l1: expected .* got dtype int64 of shape \(2,\)"),
        (lambda f: OwlQn(l1=[[1], [1, 2]]).minimise(f, [0.0]), "l1: expected .* do not form an array"),
        (lambda f: Lbfgs().minimise(f), "x0: expected a vector .* got None; only with state="),
        (lambda f: Lbfgs().minimise(f, 3.0), "x0: expected a vector of finite real numbers"),
        (lambda f: Lbfgs().minimise(f, [[1], [1, 2]]), "x0: expected .* do not form an array"),
        (lambda f: Lbfgs().minimise(f, [1j]), "x0: expected .* complex128"),
        (lambda f: Lbfgs().minimise(f, [1.0, np.nan]), "x0: expected .* got nan at index 1"),
        (lambda f: Lbfgs().minimise(lambda x: (0.0, x[:1]), [0.0, 0.0]), r"f: expected a gradient of shape \(2,\)"),
        (lambda f: Lbfgs().minimise(lambda x: 3.0, [0.0]), r"f: expected a function that returns \(value, gradient\)"),
        (lambda f: Lbfgs().minimise(f, state=Adam().minimise(f, [0.0]).state), "state: expected .* got one of 'adam'"),
        (lambda f: OwlQn().minimise(f, state=Lbfgs().minimise(f, [0.0]).state), "state: .* got one of 'lbfgs'"),
        (lambda f: Lbfgs().minimise(f, state=3), "state: expected a state of 'lbfgs', got int"),
        (lambda f: Lbfgs().minimise(f, [0.0, 1.0], state=Lbfgs().minimise(f, [0.0]).state), "x0: expected 1 entries"),
    ],
)
def test_errors(call, message):
    with pytest.raises(InputError, match=message):
        call(lambda x: ((x**2).sum(), 2 * x))
