"""Losses of decisions: their values by hand, and their derivatives by tables, temperature, damping and counting."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig
from checks import richardson
from isinglass import losses
from isinglass.decoding import F1, make
from isinglass.losses import LossProblem
from isinglass.testing import random_potentials

LOOP = ig.FactorGraph([2] * 5, [(i, (i + 1) % 5) for i in range(5)] + [(i,) for i in range(5)])
LABELS = np.array([1, 0, -1, 1, 0])


def loop(seed):
    return random_potentials(LOOP, np.random.default_rng(seed))


TASKS = [
    losses.Hamming(temperature=0.7), losses.L1(), losses.MSE(), losses.MSE("mpm", 0.5), losses.FMeasure(),
    losses.FMeasure(F1("even-split"), 0.6), losses.FMeasure("mpm", beta=2.0), losses.FMeasure(beta=0.5),
    losses.Hybrid("f1", "mse", 0.3), losses.Hybrid(losses.L1("soft"), "cl", 0.5), losses.L1("bayes"),
]  # fmt: skip


def error(decision, y):
    return np.mean(decision != y)


def f_of(decision, y):
    total = decision.sum() + y.sum()
    return 2 * (decision * y).sum() / total if total else 1.0


@pytest.mark.parametrize("seed", range(4))
def test_at_low_temperature_they_are_the_losses_of_the_decisions(seed):
    r, seen = ig.infer(loop(seed), "brute"), LABELS >= 0
    y, cold = LABELS[seen], 1e-6
    decided = make("mpm")(r, seen)[seen]
    for loss in (losses.Hamming(temperature=cold), losses.L1(temperature=cold), losses.MSE("mpm", cold)):
        assert loss(r, LABELS).value[0] == pytest.approx(error(decided, y), abs=1e-9)
    for decoder in (make("f1"), make("f1", form="even-split"), make("mpm")):
        expected = 1 - f_of(decoder(r, seen)[seen], y)
        assert losses.FMeasure(decoder, cold)(r, LABELS).value[0] == pytest.approx(expected, abs=1e-9)
    means = make("identity")(r, seen)[seen]
    assert losses.MSE()(r, LABELS).value[0] == pytest.approx(((means - y) ** 2).mean(), abs=1e-12)


def value(loss, p, algorithm):
    return loss.evaluate(LossProblem(p, LABELS), ig.gradients.forward(algorithm)).value.sum()


@pytest.mark.parametrize("loss", TASKS, ids=str)
def test_derivatives_by_tables_through_unconverged_bp(loss):
    rng, p = np.random.default_rng(7), loop(7)
    algorithm = ig.BeliefPropagation(iterations=4, damping=0.2)
    v = [rng.normal(size=group.shape) for group in p.groups]

    def along(t):
        moved = ig.Potentials.from_groups(p.graph, [g + t * d for g, d in zip(p.groups, v, strict=True)])
        return value(loss, moved, algorithm)

    found = loss.evaluate(LossProblem(p, LABELS), ig.gradients.rule("unrolled").differentiate(algorithm))
    slope = sum((g * d).sum() for g, d in zip(found.groups, v, strict=True))
    assert slope == pytest.approx(richardson(along), abs=1e-7)


@pytest.mark.parametrize("loss", [task for task in TASKS if not isinstance(task, losses.Hybrid)], ids=str)
def test_derivatives_by_what_steers_inference_and_decision(loss):
    p, counting = loop(3), np.array([0.8, 1.1, 0.9, 1.0, 1.2, 1, 1, 1, 1, 1])

    def risk(damping=0.3, numbers=counting, t=loss.temperature):
        algorithm = ig.FractionalBeliefPropagation(5, damping=damping, counting_numbers=numbers)
        return losses.make(loss, temperature=t)(ig.infer(p, algorithm), LABELS).value[0]

    algorithm = ig.FractionalBeliefPropagation(5, damping=0.3, counting_numbers=counting)
    found = ig.gradients.risk_gradients(p, algorithm, loss, LABELS)
    assert found.value[0] == risk()
    assert found.damping == pytest.approx(richardson(lambda s: risk(damping=0.3 + s)), abs=1e-7)
    assert found.options["temperature"][0] == pytest.approx(
        richardson(lambda s: risk(t=loss.temperature + s)), abs=1e-7
    )
    for a in range(5):
        step = np.eye(10)[a]
        by_hand = richardson(lambda c, step=step: risk(numbers=counting + c * step))
        assert found.counting_numbers[a] == pytest.approx(by_hand, abs=1e-7)


def test_derivatives_by_the_first_messages():
    p, loss = loop(2), losses.FMeasure()
    start = ig.infer(p, ig.BeliefPropagation(iterations=1))
    algorithm = ig.BeliefPropagation(iterations=3)
    found = ig.gradients.risk_gradients(p, algorithm, loss, LABELS, init=start)
    direction = np.random.default_rng(0).normal(size=start.messages.shape)

    def along(t):
        moved = ig.Result(
            p, start.component_log_z, start.variables, start.factors, start.info,
            messages_of=lambda: start.messages + t * direction,
        )  # fmt: skip
        return loss(ig.infer(p, algorithm, init=moved), LABELS).value[0]

    assert found.initial_messages @ direction == pytest.approx(richardson(along), abs=1e-7)


@pytest.mark.parametrize("loss", [losses.L1(), losses.FMeasure(), losses.Hybrid("hamming", "mse", 0.4)], ids=str)
def test_hessian_vector_products(loss):
    rng, p = np.random.default_rng(5), loop(5)
    v = [rng.normal(size=t.shape) for t in p.log_tables]

    def of_result(r):
        found = loss(r, LABELS)
        return found.log_z, found.variables, found.factors

    algorithm = ig.BeliefPropagation(iterations=3)
    product = ig.hessian_vector_product(p, algorithm, v, loss=of_result)

    def gradient(t):
        moved = ig.Potentials(p.graph, [table + t * d for table, d in zip(p.log_tables, v, strict=True)])
        r = ig.infer(moved, algorithm, tape=True)
        return np.concatenate([g.ravel() for g in r.backward(*of_result(r)).log_tables])

    mine = np.concatenate([g.ravel() for g in product.log_tables])
    assert_allclose(mine, richardson(gradient), atol=2e-6)


def test_a_loss_of_ones_own():
    def squares(shares, labels):
        miss = shares[:, 1] - labels
        return (miss**2).mean(), np.stack([0 * miss, 2 * miss / len(miss)], axis=1)

    own, r = losses.TaskLoss(cost=squares, decoder="identity"), ig.infer(loop(1), "brute")
    mine, theirs = own(r, LABELS), losses.MSE()(r, LABELS)
    assert_allclose(mine.value, theirs.value)
    assert_allclose(mine.variables, theirs.variables, atol=1e-12)
    ig.testing.check_loss(losses.Hybrid("f1", losses.L1(temperature=0.8), 0.3))


def test_no_positives_and_stages():
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0,), (1,)]), [[0.0, -np.inf], [0.0, -np.inf]])
    r = ig.infer(p, "brute")
    found = losses.FMeasure("mpm")(r, [0, 0])
    assert found.value.tolist() == [0.0]  # F(empty, empty) = 1
    assert losses.FMeasure("mpm")(r, [1, 0]).value.tolist() == [1.0]
    assert (found.variables == 0).all()
    assert [loss.weight for loss in losses.hybrids("f1", "mse", (0, 1))] == [0, 1]
    assert [loss.temperature for loss in losses.annealed(losses.L1("mpm"), [2.0, 0.5])] == [2.0, 0.5]
    one, zero = losses.Hybrid("l1", "cl", 1.0), losses.Hybrid("l1", "cl", 0.0)
    p, exact = loop(0), ig.Exact()
    assert value(one, p, exact) == value(losses.L1(), p, exact)
    assert value(zero, p, exact) == value(losses.Likelihood(), p, exact)


R = ig.infer(loop(0), "brute")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: losses.L1(temperature=0.0)(R, LABELS), "temperature: expected a positive number, got 0"),
        (lambda: losses.L1("map")(R, LABELS), "decoder: expected one with a differentiable version"),
        (lambda: losses.FMeasure(F1(positive=0)), "decoder: expected a decoder with positive=1"),
        (lambda: losses.FMeasure("mpm", positive=2)(R, LABELS), "positive: expected outputs with the state 2"),
        (lambda: losses.FMeasure(beta=-1.0)(R, LABELS), "beta: expected"),
        (lambda: losses.FMeasure()(R, LABELS, np.arange(5.0)), "weights: expected one weight for all variables"),
        (lambda: losses.Hybrid("l1", "mse", 1.5)(R, LABELS), "weight: expected a number between 0 and 1, got 1.5"),
        (lambda: losses.Hybrid("l1", "cl")(R, LABELS), "loss: expected two losses of beliefs, got 'cl'"),
        (lambda: losses.Hybrid("l1", "mse", [0.1, 0.2])(R, LABELS), "weight: expected a number between 0 and 1"),
        (lambda: losses.Hybrid("l3"), "loss: expected one of"),
        (lambda: losses.annealed("ucl"), "loss: expected a loss of decisions, with a temperature.* got 'ucl'"),
        (lambda: losses.annealed("l1", [1.0, 0.0]), "temperatures: expected a positive number"),
        (lambda: losses.TaskLoss()(R, LABELS), "cost: expected a function of shares and labels, got NoneType"),
        (
            lambda: losses.TaskLoss(cost=lambda q, y: 1.0)(R, LABELS),
            r"cost: expected a function .* derivatives \(4, 2\)",
        ),
        (lambda: losses.L1()(R, LABELS[:3]), "labels: expected one for each of 5 variables"),
    ],
)
def test_wrong_calls_are_answered_kindly(call, message):
    with pytest.raises(ig.InputError, match=message):
        call()
