"""Open seams: a loss of a new family and a learned parameter of inference, each in this file alone."""

from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig
from isinglass.gradients import rule
from isinglass.inference.algorithm import Algorithm, Cost, Facts
from isinglass.inference.result import Gradients
from isinglass.learning import Objective
from isinglass.learning.optimizers import Lbfgs
from isinglass.losses import Evaluation, Loss, LossFacts, LossProblem
from isinglass.losses.observed import component_weights, known_states
from isinglass.models import InferenceModel, graph_model
from isinglass.potentials import Potentials

TRIANGLE = [(0, 1), (1, 2), (0, 2)]


@dataclass(frozen=True)
class StructuredHinge(Loss):
    """max_x (score(x) + cost(x, y)) - max_{x agrees with y} score(x): loss-augmented decoding, by enumeration.

    The cost is the number of wrong variables, as the univariate losses export it. With every variable observed this is
    the hinge of Tsochantaridis et al. (2005), else that of Yu and Joachims (2009). The weight of an example multiplies
    the whole.
    """

    margin: float = 1.0

    name: ClassVar[str] = "hinge"
    facts: ClassVar[LossFacts] = LossFacts(
        "max_x (s(x) + cost(x, y)) - s(y)", convex=True, consistent=False, uses="potentials", note="has kinks"
    )

    def evaluate(self, problem, differentiate):
        potentials = problem.shared(self.name)
        graph, weights = potentials.graph, component_weights(problem.weights, potentials.graph)
        costs = self.margin * ig.losses.UnivariateLikelihood().cost_tables(graph, problem.labels).variables
        free = known_states(np.full(graph.n_variables, -1), potentials)  # nothing but the evidence
        worst = self.best(potentials, free, costs)
        right = self.best(potentials, known_states(problem.labels, potentials), 0 * costs)
        slopes = tuple(np.zeros_like(tables) for tables in potentials.groups)
        for sign, (_, states) in ((1.0, worst), (-1.0, right)):
            for slope, group, ids in zip(slopes, graph.groups, potentials.table_ids, strict=True):
                mine = weights[graph.factor_component[group.factors]]
                np.add.at(slope, (ids, *states[group.scopes].T), sign * mine)
        return Evaluation(weights * (worst[0] - right[0]), slopes)

    def best(self, potentials, known, costs):
        """Return the best score plus cost of each component, and its assignment, which agrees with what is known."""
        graph, first = potentials.graph, np.cumsum(potentials.graph.cards) - potentials.graph.cards
        value, found = np.zeros(graph.n_components, potentials.dtype), known.copy()

        def score(x, c):
            return sum(
                tables[t][tuple(x[scope])]
                for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True)
                for scope, t, a in zip(group.scopes, ids, group.factors, strict=True)
                if graph.factor_component[a] == c
            )

        for c in range(graph.n_components):
            mine = np.flatnonzero(graph.variable_component == c)

            def at(states, c=c, mine=mine):
                x = found.copy()
                x[mine] = states
                return score(x, c) + costs[first[mine] + x[mine]].sum(), states

            choices = [[known[i]] if known[i] >= 0 else range(graph.cards[i]) for i in mine]
            value[c], found[mine] = max(map(at, product(*choices)), key=lambda pair: pair[0].real)
        return value, found


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


@pytest.mark.parametrize("seed", range(3))
def test_a_structured_hinge_has_the_gradient_of_its_worst_assignment(seed):
    objective = objective_of(StructuredHinge(), ig.Brute())
    check_gradient(objective, 0.3 * np.random.default_rng(seed).normal(size=objective.size))  # no kink nearby
    assert objective.infos == []  # it ran no inference but its own


def test_a_structured_hinge_keeps_the_promises_of_a_loss():
    ig.testing.check_loss(StructuredHinge())
    p = ig.testing.random_potentials(ig.grid_graph(2, 2, 3), np.random.default_rng(0), 1.0).with_evidence({0: 2})
    (value,) = StructuredHinge(margin=0.0).evaluate(LossProblem(p, np.array([-1, 1, -1, 0])), None).value
    best, right = (ig.map_assignment(q, "brute").score for q in (p, p.with_evidence({0: 2, 1: 1, 3: 0})))
    assert_allclose(value, best - right)


def test_a_structured_hinge_bounds_the_number_of_errors():
    objective = objective_of(StructuredHinge(), ig.Brute())
    theta = 0.3 * np.random.default_rng(5).normal(size=objective.size)
    values, _ = objective.parts(theta)
    for c, (x, y) in enumerate(zip(*data(), strict=True)):
        best = ig.map_assignment(graph_model([x], 2).potentials(theta), "brute").states
        assert values[c] >= (best != y).sum() - 1e-12


def test_a_structured_hinge_trains_an_estimator():
    X, Y = data(n=6)
    options = {"inference": "brute", "iterations": None, "decoder": "map", "l2": 1e-3, "tol": 1e-3}
    with pytest.warns(ig.ConvergenceWarning, match=r"found no better point: the function has kinks.*; raise tol$"):
        crf = ig.GraphCRF(loss=StructuredHinge(), **options).fit(X, Y)
    assert crf.score(X, Y) == 1.0


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
    with pytest.raises(ig.InputError, match="gradient: expected 'unrolled', where 'log_temperature' is learned"):
        objective(np.zeros(objective.size))
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
    with pytest.raises(ig.InputError, match="sum over variables or factors"):
        ig.losses.Likelihood().cost_tables(graph, y)
