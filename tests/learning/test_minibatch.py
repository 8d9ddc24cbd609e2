"""Minibatch optimizers: their update rules, the order of the examples, averaging, reproducibility."""

import dataclasses

import numpy as np
import pytest
from optim_helpers import BATCHED, Logistic, same_bits, same_states

from checks import refuses
from isinglass.errors import ConvergenceWarning, ImpossibleLabelError
from isinglass.learning.optimizers import AdaGrad, Adam, Lbfgs, Sgd, make_optimizer

F = Logistic(n=50, features=4, l2=2.0)
RATES = {"sgd": 0.5, "adagrad": 0.3, "adam": 0.1}


def made(name, **options):
    return make_optimizer(name, **{"learning_rate": RATES[name], "batch_size": 7, "random_state": 3, **options})


def run(optimizer, **options):
    return optimizer.minimise_batches(F.on, F.n, np.zeros(4), **options)


@pytest.mark.parametrize("name", BATCHED)
@pytest.mark.parametrize("averaging", [False, True])
def test_approaches_the_minimum(name, averaging):
    best = Lbfgs(tol=1e-9).minimise(F, np.zeros(4))
    result = run(made(name, epochs=60, averaging=averaging, burn_in=20, schedule="sqrt"))
    assert F(result.x)[0] - best.value < 1e-3 * (F(np.zeros(4))[0] - best.value)


@pytest.mark.parametrize("name", BATCHED)
@pytest.mark.parametrize("averaging", [False, True])
def test_the_same_seed_gives_the_same_bits(name, averaging):
    a, b = run(made(name, averaging=averaging)), run(made(name, averaging=averaging))
    assert same_states(a.state, b.state)
    assert same_bits(a.x, b.x)
    assert not same_bits(a.x, run(made(name, averaging=averaging, random_state=4)).x)


def test_order_depends_on_seed_and_epoch_only():
    def order(name, **options):
        seen = []

        def noting(indices, x):
            seen.extend(indices.tolist())
            return F.on(indices, x)

        made(name, epochs=3, **options).minimise_batches(noting, F.n, np.zeros(4))
        return np.reshape(seen[: 3 * F.n], (3, F.n))  # after them the function at the end

    reference = order("sgd")
    for other in (order("adam"), order("adagrad", batch_size=50), order("sgd", batch_size=1, averaging=True)):
        assert same_bits(other, reference)
    assert (np.sort(reference) == np.arange(F.n)).all()
    assert not same_bits(reference[0], reference[1])


def test_runs_of_any_length():
    short, points = run(made("adam", epochs=2)), []
    run(made("adam", epochs=5), callback=lambda p: points.append(p.x))
    assert same_bits(points[short.iterations - 1], short.x)
    result = run(made("adagrad", epochs=500, tol=1e-2))
    assert (result.converged, result.state.epoch < 500) == (False, True)
    assert "proves no minimum" in result.message
    result = run(made("adam", epochs=0))
    assert (result.iterations, result.x.tolist()) == (0, [0.0] * 4)
    assert result.value == F(result.x)[0]
    refuses("delta: expected a positive number", run, AdaGrad(delta=0.0))
    refuses("n_examples: expected a whole number of at least 1", Sgd().minimise_batches, F.on, 0, np.zeros(4))
    state = dataclasses.replace(run(made("sgd", epochs=1)).state)
    refuses("n_examples: expected 50, as in the state, got 49", Sgd().minimise_batches, F.on, 49, state=state)


def test_batch_sizes_and_counts():
    sizes = []

    def noting(indices, x):
        sizes.append(len(indices))
        return F.on(indices, x)

    result = made("sgd", epochs=2, batch_size=20).minimise_batches(noting, F.n, np.zeros(4))
    assert sizes == [20, 20, 10] * 3  # two epochs, and the function at the end
    assert (result.iterations, result.evaluations, result.state.epoch) == (6, 9, 2)
    assert made("sgd", batch_size=1000, epochs=2).minimise_batches(F.on, F.n, np.zeros(4)).iterations == 2


def test_update_rules():
    g = np.array([1.0, -2.0])
    for schedule, factors in {"constant": [1, 1], "inverse": [1, 1 / 3], "sqrt": [1, 1 / np.sqrt(3)]}.items():
        result = Sgd(learning_rate=0.5, epochs=2, schedule=schedule, decay=2.0).minimise(lambda x: (0.0, g), [0.0, 0.0])
        np.testing.assert_allclose(result.x, -0.5 * g * sum(factors), rtol=1e-14)
    gradients = [np.array([1.0, -2.0]), np.array([3.0, 0.5])]
    given = iter([*gradients, gradients[0]])
    result = AdaGrad(learning_rate=0.5, epochs=2, delta=0.1).minimise(lambda x: (0.0, next(given)), [0.0, 0.0])
    total = np.cumsum(np.square(gradients), 0)
    np.testing.assert_allclose(result.x, -(0.5 * np.array(gradients) / (0.1 + np.sqrt(total))).sum(0), rtol=1e-14)


def test_adam_rule():
    gradients = np.random.default_rng(0).normal(size=(5, 3))
    given = iter([*gradients, gradients[0]])
    result = Adam(learning_rate=0.5, epochs=5).minimise(lambda x: (0.0, next(given)), np.zeros(3))
    x = np.zeros(3)
    for t in range(1, 6):  # moments as weighted sums over the past
        past = np.arange(t - 1, -1, -1)[:, None]
        m, v = ((1 - b) * (b**past * gradients[:t] ** p).sum(0) / (1 - b**t) for b, p in ((0.9, 1), (0.999, 2)))
        x -= 0.5 * m / (np.sqrt(v) + 1e-8)
    np.testing.assert_allclose(result.x, x, rtol=1e-12)


@pytest.mark.parametrize("name", BATCHED)
def test_average_is_the_mean_of_the_points(name):
    points = []
    run(made(name, epochs=4), callback=lambda p: points.append(p.x))
    a_epoch = len(points) // 4
    np.testing.assert_allclose(run(made(name, epochs=4, averaging=True)).x, np.mean(points, 0), rtol=1e-12)
    late = run(made(name, epochs=4, averaging=True, burn_in=3))
    np.testing.assert_allclose(late.x, np.mean(points[-a_epoch:], 0), rtol=1e-12)
    assert same_bits(late.state.x, points[-1])


def test_averaging_beats_the_last_point_at_a_constant_rate():
    best = Lbfgs(tol=1e-9).minimise(F, np.zeros(4)).value
    plain, mean = (
        [F(run(made("sgd", schedule="constant", batch_size=1, epochs=20, random_state=s, **o)).x)[0] for s in range(5)]
        for o in ({}, {"averaging": True, "burn_in": 5})
    )
    assert np.mean(mean) - best < 0.2 * (np.mean(plain) - best)


def test_value_of_an_epoch():
    values = []
    result = run(made("sgd", epochs=3), callback=lambda p: values.append(p.value))
    still = made("sgd", learning_rate=1e-12, epochs=1).minimise_batches(F.on, F.n, np.ones(4))
    np.testing.assert_allclose(values[-1], F(result.x)[0], rtol=0.1)  # added up while x moved
    for found in (still, result, run(made("sgd", epochs=3, averaging=True))):
        np.testing.assert_allclose(found.value, F(found.x)[0], rtol=1e-12)
        np.testing.assert_allclose(found.gradient, F(found.x)[1], rtol=1e-9, atol=1e-12)
    assert (result.converged, result.message) == (False, "ran 3 epochs")


@pytest.mark.parametrize("name", BATCHED)
@pytest.mark.parametrize("at", ["function", "callback"])
def test_interrupt_returns_the_last_point(name, at):
    points, count = [], []

    def f(indices, x):
        count.append(1)
        if at == "function" and len(count) == 12:
            raise KeyboardInterrupt
        return F.on(indices, x)

    def note(p):
        points.append(p.x)
        if at == "callback" and len(points) == 11:
            raise KeyboardInterrupt

    result = made(name).minimise_batches(f, F.n, np.zeros(4), callback=note)
    assert (result.message, result.converged, result.iterations) == ("interrupted", False, 11)
    assert same_bits(result.x, points[-1])
    resumed = made(name).minimise_batches(F.on, F.n, state=result.state)
    assert same_states(resumed.state, run(made(name)).state)


@pytest.mark.parametrize("name", BATCHED)
def test_not_finite_stops_at_the_last_good_point(name):
    def f(x):
        return (np.nan if x[0] < 0.5 else 1.0), np.ones(1)

    result = made(name, learning_rate=0.2, epochs=100).minimise(f, [1.0])
    assert "learning_rate" in result.message
    assert not result.converged
    assert np.isfinite(result.x).all()
    diverging = made("sgd", learning_rate=1e10, epochs=100).minimise(lambda x: (0.0, x), [1.0])
    assert "learning_rate" in diverging.message
    assert np.isfinite(diverging.x).all()


@pytest.mark.parametrize("name", BATCHED)
def test_steps_that_make_a_label_impossible_are_shortened(name):
    def f(indices, x):
        if abs(x[0]) > 1.5:
            raise ImpossibleLabelError("Y", "labels that the model allows", "one of belief zero")
        return len(indices) * (x[0] - 1) ** 2, len(indices) * 2 * (x - 1)

    optimizer = make_optimizer(name, learning_rate=40.0, epochs=60, random_state=0)
    with pytest.warns(ConvergenceWarning, match="made a label impossible.*smaller learning_rate"):
        result = optimizer.minimise_batches(f, 40, [0.0])
    assert result.message == "ran 60 epochs"
    assert abs(result.x[0] - 1) < 0.1


def test_a_label_that_stays_impossible_ends_the_run_at_the_last_good_point():
    def f(indices, x):
        if 1 in indices and x[0] > 0:
            raise ImpossibleLabelError("Y", "labels that the model allows", "one of belief zero")
        return -x[0], -np.ones(1)

    optimizer = Sgd(learning_rate=0.1, batch_size=1, random_state=0)
    order = np.random.default_rng([0, 0]).permutation(4).tolist()
    result = optimizer.minimise_batches(lambda i, x: f(i == order[2], x), 4, [0.0])
    assert "a label is impossible" in result.message
    assert not result.converged
    assert result.x.tolist() == [0.1]
    with pytest.raises(ImpossibleLabelError):  # no step led there
        optimizer.minimise_batches(lambda i, x: f(np.ones(1, int), x), 4, [1.0])


def test_by_default_an_epoch_has_about_twenty_steps():
    def steps(n):
        sizes = []
        Sgd(epochs=1, random_state=0).minimise_batches(lambda i, x: (sizes.append(len(i)) or 0.0, 0 * x), n, [0.0])
        assert sum(sizes) == 2 * n  # once more at the end
        return sizes[: len(sizes) // 2]

    assert steps(7) == [1] * 7
    assert steps(3394) == [170] * 19 + [164]


def test_seeds():
    def seed(random_state):
        return run(made("sgd", epochs=1, random_state=random_state)).state.seed

    assert seed(5) == 5
    assert seed(np.random.default_rng(1)) == seed(np.random.default_rng(1))
    assert seed(None) != seed(None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate: expected a positive number"),
        ({"learning_rate": np.inf}, "learning_rate: expected"),
        ({"epochs": -1}, "epochs: expected a whole number of at least 0"),
        ({"batch_size": 0}, "batch_size: expected a whole number of at least 1"),
        ({"schedule": "invers"}, "schedule: expected one of .*; did you mean 'inverse'"),
        ({"decay": -1.0}, "decay: expected a number of at least 0"),
        ({"averaging": True, "burn_in": 10}, "burn_in: expected fewer than the 10 epochs, got 10"),
        ({"random_state": -1}, "random_state: expected"),
        ({"random_state": 2**63}, r"random_state: expected a whole number below 2\*\*63"),
        ({"tol": -1.0}, "tol: expected"),
        ({"beta1": 1.0}, "beta1: expected .* below 1"),
        ({"epsilon": 0.0}, "epsilon: expected a positive number"),
    ],
)
def test_errors(options, message):
    refuses(message, run, Adam(**options))
