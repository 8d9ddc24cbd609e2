"""An open seam: a learned parameter of inference, in this file alone."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig
from checks import refuses
from isinglass.gradients import rule
from isinglass.inference.algorithm import Algorithm, Cost, Facts
from isinglass.inference.result import Gradients
from isinglass.learning import Objective
from isinglass.learning.optimizers import Lbfgs
from isinglass.losses import make
from isinglass.models import InferenceModel, graph_model
from isinglass.potentials import Potentials

TRIANGLE = [(0, 1), (1, 2), (0, 2)]


@dataclass(frozen=True, eq=False)
class TemperedGradients(Gradients):
    """Derivatives of a loss of tempered inference."""

    by_temperature: float = 0.0

    @property
    def parameters(self):
        return {"log_temperature": np.asarray(self.by_temperature)}


@dataclass(frozen=True)
class Tempered(Algorithm):
    """Exact inference on phi / exp(t); the logarithm t of the temperature is learned, if wished."""

    log_temperature: float = 0.0
    fit: bool = True

    name: ClassVar[str] = "tempered"
    facts: ClassVar[Facts] = Facts("exact inference at a temperature", exact="never", bound=None)

    def cost(self, potentials):
        return Cost(0.0, 1.0, "like brute force")

    def parameters(self, graph):
        return {"log_temperature": self.log_temperature} if self.fit else {}

    def with_parameters(self, values):
        return replace(self, log_temperature=float(values["log_temperature"]))

    def run(self, potentials, progress=None, tape=False, init=None):
        scale = np.exp(-self.log_temperature)
        tables = [scale * table for table in potentials.groups]
        scaled = Potentials._build(potentials.graph, tables, potentials.table_ids, potentials.evidence)
        result = ig.Brute().run(scaled, tape=tape)

        def reverse(*bars):
            inner = result.reverse(*bars)
            slope = -sum((bar * table).sum() for bar, table in zip(inner.groups, tables, strict=True))
            groups = tuple(scale * bar for bar in inner.groups)
            return TemperedGradients(groups, inner.log_tables, np.zeros(0), 0.0, inner.by_counting, slope)

        return replace(result, potentials=potentials, reverse=reverse if tape else None)


def data(seed=0, n=4):
    """Small graphs with one feature that tells the labels, noisily."""
    rng = np.random.default_rng(seed)
    Y = [rng.integers(0, 2, 3) for _ in range(n)]
    return [(np.c_[2.0 * y - 1 + 0.3 * rng.normal(size=3), np.ones(3)], TRIANGLE) for y in Y], Y


def objective_of(loss, algorithm, weights=None, gradient="unrolled"):
    X, Y = data()
    model = algorithm.learned(graph_model(X, 2))
    return Objective(model, np.concatenate(Y), loss, algorithm, rule(gradient), 0.1, weights)


def check_gradient(objective, theta, rtol=1e-6):
    _, gradient = objective(theta)
    for i in range(objective.size):
        step = 1e-5 * np.eye(objective.size)[i]
        difference = (objective(theta + step)[0] - objective(theta - step)[0]) / 2e-5
        assert_allclose(gradient[i], difference, rtol=rtol, atol=rtol)


def fitted(objective):
    return Lbfgs(max_iter=200, tol=1e-8).minimise(objective, np.zeros(objective.size))


def test_a_temperature_is_learned_with_the_model():
    objective = objective_of(ig.losses.UnivariateQuadratic(), Tempered(0.5))
    assert isinstance(objective.model, InferenceModel)
    assert list(objective.model.parameters) == ["node", "edge", "log_temperature"]
    check_gradient(objective, 0.5 * np.random.default_rng(1).normal(size=objective.size))
    fixed = objective_of(ig.losses.UnivariateQuadratic(), Tempered(0.5, fit=False))
    assert objective.size == fixed.size + 1
    assert fitted(objective).value < fitted(fixed).value - 1e-3


@pytest.mark.parametrize("hidden", [(), (1, 4, 5)])
def test_a_likelihood_passes_derivatives_by_the_temperature_on(hidden):
    objective = objective_of(ig.losses.Likelihood(), Tempered(-0.2))
    objective.labels[list(hidden)] = -1
    check_gradient(objective, 0.5 * np.random.default_rng(2).normal(size=objective.size))
    assert len(objective.infos) == (2 if hidden else 1)


def test_an_estimator_learns_the_temperature():
    X, Y = data(n=6)
    options = {"iterations": None, "loss": "uquad", "tol": 1e-6, "l2": 0.1, "bias": False}
    crf = ig.GraphCRF(inference=Tempered(), **options).fit(X, Y)
    fixed = ig.GraphCRF(inference=Tempered(fit=False), **options).fit(X, Y)
    assert crf.parameters_["log_temperature"] < -0.1  # colder: the labels are clear
    assert crf.objective_ < fixed.objective_
    model = graph_model(X, 2)
    at = Tempered(float(crf.parameters_["log_temperature"]))
    expected = ig.infer(model.potentials(crf.theta_[:-1]), at).variables
    assert_allclose(np.concatenate(crf.predict_marginals(X)), np.asarray(expected), atol=1e-12)


def test_rules_and_losses_that_cannot_learn_it():
    objective = objective_of(ig.losses.Likelihood(), Tempered(), gradient="envelope")
    refuses("gradient: expected 'unrolled', where 'log_temperature' is learned", objective, np.zeros(objective.size))
    objective.algorithm = ig.Brute()
    with pytest.raises(
        ig.InputError, match="inference: expected 'convex' or 'fbp', where 'log_temperature' is learned"
    ):
        objective(np.zeros(objective.size))
    pseudo = objective_of(ig.losses.Pseudolikelihood(), Tempered())
    assert pseudo(np.ones(pseudo.size))[1][-1] == 2 * 0.1  # no inference: nothing but the penalty


@pytest.mark.parametrize("name", ["ucl", "uquad", "suclass", "ccl", "cquad", "scclass"])
def test_cost_tables_count_errors(name):
    graph = ig.FactorGraph([2, 3, 2], [(0,), (0, 1), (1, 2), (1, 2, 0)])
    y, weights = np.array([1, 2, -1]), np.array([1.0, 3.0, 5.0])
    costs = ig.losses.make(name).cost_tables(graph, y, weights)
    if name in ("ucl", "uquad", "suclass"):
        assert costs.factors is None
        assert costs.variables.tolist() == [1, 0, 3, 3, 0, 0, 0]
    else:
        assert costs.variables is None
        pair = costs.factors[2:8].reshape(2, 3)  # the only one whose variables are all observed
        assert pair.tolist() == [[2, 2, 2], [2, 2, 0]]
        assert costs.factors.sum() == pair.sum()
    refuses("sum over variables or factors", ig.losses.Likelihood().cost_tables, graph, y)


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
    refuses(message, ig.GraphCRF(FBP(iterations=3, **change), loss="ucl", gradient="unrolled").fit, X, Y)


def test_rules_and_optimizers_that_cannot_are_refused():
    X, Y = ring(3, 0)
    fbp = FBP(damping=0.2, learn=["counting_numbers"])
    with pytest.raises(ig.InputError, match="gradient: expected 'unrolled', where 'counting_numbers' is learned"):
        ig.GraphCRF(fbp, loss="ucl", gradient="perturbation").fit(X, Y)
    refuses("optimizer: expected one without products of the Hessian", learner(optimizer="smd").fit, X, Y)
