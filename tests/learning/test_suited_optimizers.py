"""The optimizer that training uses where none is chosen."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from checks import refuses
from isinglass.learning.objective import Objective
from isinglass.learning.optimizers import OPTIMIZERS, Lbfgs, Smd, make_optimizer, minimise_with_restarts
from isinglass.learning.total import Total
from isinglass.models import table_model


def chains(n=40):
    rng = np.random.default_rng(0)
    Y = [rng.integers(0, 5, 8) for _ in range(n)]
    look = rng.normal(size=(5, 20)) > 0
    return [(look[y] ^ (rng.random((8, 20)) < 0.1)).astype(float) for y in Y], Y


def graphs(n=20):
    X, Y = chains(n)
    return [(x, [(i, (i + 1) % 8) for i in range(8)]) for x in X], Y


def images():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (6, 4, 4))
    return np.eye(2)[Y] + 0.3 * rng.normal(size=(6, 4, 4, 2)), Y


def label_sets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    return X, (X[:, :3] + 0.1 * rng.normal(size=(60, 3)) > 0).astype(int)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "data", "optimizer"),
    [
        (ig.ChainCRF, chains, "bcfw"),
        (ig.GraphCRF, graphs, "cutting-plane"),
        (ig.GridCRF, images, "cutting-plane"),
        (ig.MultiLabelCRF, label_sets, "cutting-plane"),
    ],
)
def test_a_margin_is_trained_well_by_default(kind, data, optimizer, capsys):
    crf = kind(loss="margin", verbose=True).fit(*data())
    assert f"optimizer: {optimizer!r}, by the loss" in capsys.readouterr().out
    assert crf.get_params()["optimizer"] == "auto"
    assert crf.converged_
    assert "duality gap" in crf.message_
    assert "tol = 0.01" in crf.message_
    assert crf.score(*data()) > 0.9
    assert crf.objective_ <= 1.01 * kind(loss="margin", optimizer="cutting-plane", tol=0.01).fit(*data()).objective_


def test_the_choice_follows_loss_and_penalties():
    def name(kind=ig.ChainCRF, **options):
        return kind(**options)._choices().optimizer.name

    assert name() == name(ig.GraphCRF) == name(ig.MEMM) == "lbfgs"
    assert ig.ChainCRF()._choices().optimizer == Lbfgs(tol=1e-4, max_iter=200)
    assert name(loss="margin", optimizer="lbfgs") == name(loss="margin", l2=0) == "lbfgs"
    assert name(ig.GraphCRF, loss="margin", edge_l2=0) == "lbfgs"
    assert name(loss="margin", l1=0.1) == name(l1=0.1) == "owlqn"
    assert name(loss="slack") == name(loss=ig.losses.Margin("f1")) == "cutting-plane"
    assert name(loss="perceptron") == name(loss="viterbi", l2=0) == "averaged-perceptron"
    assert name(ig.GraphCRF, loss="pcd") == name(ig.GraphCRF, loss="pcd", optimizer="lbfgs") == "adagrad"
    refuses("optimizer", name, optimizer="best")


def test_declared_optimizers():
    declared = {cls.facts.optimizer for cls in ig.losses.LOSSES.values()} - {None}
    assert declared == {"cutting-plane", "averaged-perceptron"}
    assert declared <= set(OPTIMIZERS)
    X, Y = chains()
    assert ig.ChainCRF(loss="perceptron", l2=0).fit(X, Y).score(X, Y) > 0.95


@pytest.mark.long
@pytest.mark.parametrize(("kind", "data"), [(ig.ChainCRF, chains), (ig.GraphCRF, graphs)])
def test_hidden_labels_are_completed(kind, data):
    X, Y = data(10)
    Y = [np.where(np.arange(8) == i % 8, -1, y) for i, y in enumerate(Y)]
    crf = kind(loss="margin").fit(X, Y)
    assert "with these completions" in crf.message_
    refuses("all observed", kind(loss="margin", optimizer="cutting-plane").fit, X, Y)


def test_the_perceptron_leaves_zero_parameters_on_graphs():
    """There all assignments tie; the labels are one of them."""
    rng = np.random.default_rng(0)
    edges, W = np.array([(i, (i + 1) % 6) for i in range(6)]), rng.normal(size=(4, 3))
    X = [(rng.normal(size=(6, 4)), edges) for _ in range(12)]
    Y = [np.argmax(x @ W, axis=1) for x, _ in X]
    crf = ig.GraphCRF(loss="perceptron", l2=0.0).fit(X, Y)
    assert crf.converged_
    assert crf.score(X, Y) > 0.95


LOOP = ig.FactorGraph([2] * 4, [(i, (i + 1) % 4) for i in range(4)] + [(i,) for i in range(4)])
RNG = np.random.default_rng(0)
SAMPLES = RNG.integers(0, 2, (20, 4))


class Bowl:
    """Half of x' A x, with its Hessian."""

    def __init__(self, a):
        self.a, self.asked = a, 0

    def __call__(self, x):
        return float(x @ self.a @ x / 2), self.a @ x

    def hessian_product(self, x, v):
        self.asked += 1
        return self.a @ v


def test_steps_are_those_of_the_equations():
    f = Bowl(np.array([[3.0, 1.0], [1.0, 2.0]]))
    options = {"learning_rate": 0.1, "mu": 0.3, "lam": 0.8}
    x, eta, v = np.array([1.0, -2.0]), np.full(2, 0.1), np.zeros(2)
    for _ in range(7):
        g = f.a @ x
        eta = eta * np.maximum(0.5, 1 - 0.3 * g * v)
        x, v = x - eta * g, 0.8 * v - eta * (g + 0.8 * f.a @ v)
    found = Smd(**options, epochs=7).minimise(f, [1.0, -2.0])
    assert_allclose(found.x, x, rtol=1e-13)
    assert_allclose(found.state.memory[0], eta, rtol=1e-13)
    assert f.asked == 6  # v is zero in the first step
    plain = Smd(**options, epochs=7).minimise(lambda x: f(x), [1.0, -2.0])
    assert_allclose(plain.x, x, rtol=1e-7)  # by differences of gradients
    assert found.evaluations == 7 + 2 * 6 + 1  # and the function at the end


def objective(loss, algorithm, rule="unrolled"):
    model = ig.models.ConditionedModel(table_model(LOOP), np.full((20, 4), -1))
    return Objective(model, SAMPLES.ravel(), ig.losses.make(loss), algorithm, ig.gradients.rule(rule))


@pytest.mark.parametrize(
    ("loss", "algorithm", "rule"),
    [
        ("cl", ig.Exact(), "unrolled"),
        ("cl", ig.Exact(), "envelope"),
        ("cl", ig.BeliefPropagation(3), "unrolled"),
        ("f1", ig.BeliefPropagation(3), "unrolled"),
        ("mse", ig.Exact(), "unrolled"),
        ("l1", ig.BeliefPropagation(damping=0.3, tol=1e-12), "unrolled"),
    ],
    ids=str,
)
def test_hessian_products_of_objectives(loss, algorithm, rule):
    f = Total([objective(loss, algorithm, rule)], l2=0.3)
    theta, v = 0.5 * np.random.default_rng(1).normal(size=(2, f.size))
    differences = (
        8 * (f(theta + 1e-4 * v)[1] - f(theta - 1e-4 * v)[1]) - (f(theta + 2e-4 * v)[1] - f(theta - 2e-4 * v)[1])
    ) / 12e-4
    assert_allclose(f.hessian_product(theta, v), differences, rtol=1e-6, atol=1e-6)
    assert not f.hessian_product(theta, 0 * v).any()


def test_the_optimum_of_a_convex_objective_is_reached():
    f = Total([objective("cl", ig.Exact(), "envelope")], l2=0.5)
    best = Lbfgs(tol=1e-9).minimise(f, np.zeros(f.size))
    found = Smd(learning_rate=0.02, epochs=150, mu=0.01).minimise(f, np.zeros(f.size))
    assert f(found.x)[0] == pytest.approx(best.value, abs=1e-4)


@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
def test_minibatches_of_an_estimator_and_resuming(tmp_path):
    edges = [(0, 1), (1, 2), (2, 0)]
    Y = [RNG.integers(0, 2, 3) for _ in range(8)]
    X = [(np.c_[y + 0.5 * RNG.normal(size=3), np.ones(3)], edges) for y in Y]
    smd = Smd(learning_rate=0.1, epochs=4, batch_size=3, random_state=0)
    crf = ig.GraphCRF(iterations=2, optimizer=smd, l2=0.1).fit(X, Y)
    part = make_optimizer(smd, epochs=2)
    path = tmp_path / "run.npz"
    ig.GraphCRF(iterations=2, optimizer=part, l2=0.1, checkpoint=path).fit(X, Y)
    again = ig.GraphCRF(iterations=2, optimizer=smd, l2=0.1, checkpoint=path).fit(X, Y)
    assert_array_equal(again.theta_, crf.theta_)
    assert crf.history_[-1].value < crf.history_[2].value


def test_restarts_keep_the_best_run():
    def wave(x):
        return float((x**2 / 20 + np.cos(x)).sum()), x / 10 - np.sin(x)

    best, values = minimise_with_restarts(Lbfgs(), wave, [9.0, -9.0], restarts=5, scale=4.0, random_state=3)
    again, _ = minimise_with_restarts(Lbfgs(), wave, [9.0, -9.0], restarts=5, scale=4.0, random_state=3)
    assert best.value == min(values)
    assert values[0] == Lbfgs().minimise(wave, [9.0, -9.0]).value
    assert_array_equal(best.x, again.x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Smd(mu=-1.0).minimise(Bowl(np.eye(1)), [1.0]), "mu: expected a number of at least 0"),
        (lambda: Smd(lam=1.5).minimise(Bowl(np.eye(1)), [1.0]), "lam: expected"),
        (lambda: Smd(learning_rate=0.0).minimise(Bowl(np.eye(1)), [1.0]), "learning_rate: expected"),
        (lambda: minimise_with_restarts(Lbfgs(), Bowl(np.eye(1)), [1.0], restarts=0), "restarts: expected"),
        (lambda: minimise_with_restarts(Lbfgs(), Bowl(np.eye(1)), [1.0], scale=0.0), "scale: expected"),
    ],
)
def test_wrong_options_are_refused(call, message):
    with pytest.raises(ig.InputError, match=message):
        call()
