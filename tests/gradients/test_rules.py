"""Gradient rules: on forests all of them and exact inference agree; at fixed points they agree with each other."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig
from checks import each_close, refuses
from isinglass.gradients import RULES, log_z_loss, rule
from isinglass.losses import LossValue
from isinglass.testing import random_potentials


def log_z(result):
    return log_z_loss(np.ones(len(result.component_log_z)))(result)


TREE = ig.FactorGraph([3, 2, 2, 2], [(0, 1, 2), (2, 3), (3,)])
LOOPS = ig.FactorGraph([2, 3, 2, 2], [(0, 1), (1, 2), (2, 3), (3, 0), (0,), (1, 3)])


def squares(result):
    """A loss of the beliefs and log Z."""
    b = result.variables.flat
    value = np.bincount(np.repeat(result.potentials.graph.variable_component, result.potentials.graph.cards), b**2)
    return LossValue(value + result.component_log_z, np.ones(len(value)), 2 * b, None)


def same(one, two, atol):
    each_close(one.groups, two.groups, atol=atol)
    assert_allclose(one.value, two.value, atol=atol)


@pytest.mark.parametrize("loss", [squares, log_z])
def test_all_rules_agree_on_forests(loss):
    p = random_potentials(TREE, np.random.default_rng(0)).repeat(2)
    truth = rule("unrolled").evaluate(p, ig.Brute(), loss)
    for name, each in RULES.items():
        for algorithm in (ig.Exact(), ig.BeliefPropagation(), ig.TreeReweighted()):
            if each.objection(algorithm, loss is squares) is None:
                same(each.evaluate(p, algorithm, loss), truth, 1e-8)
            else:
                assert name == "envelope" or (name, algorithm.name) == ("implicit", "exact")


@pytest.mark.parametrize(
    "algorithm", [ig.BeliefPropagation(tol=1e-13), ig.TreeReweighted(tol=1e-13), ig.MeanField(tol=1e-14, max_iter=5000)]
)
def test_rules_agree_at_fixed_points(algorithm):
    p = random_potentials(LOOPS, np.random.default_rng(1), 0.5)
    unrolled = rule("unrolled").evaluate(p, algorithm, squares)
    same(rule("perturbation").evaluate(p, algorithm, squares), unrolled, 1e-7)
    unrolled = rule("unrolled").evaluate(p, algorithm, log_z)
    same(rule("envelope").evaluate(p, algorithm, log_z), unrolled, 1e-7)


def test_objections():
    truncated = ig.BeliefPropagation(iterations=3)
    assert "fixed number of iterations" in rule("envelope").objection(truncated, False)
    assert "fixed number of iterations" in rule("perturbation").objection(truncated, True)
    assert "log Z alone" in rule("envelope").objection(ig.BeliefPropagation(), True)
    assert "no fixed point" in rule("perturbation").objection(ig.MaxProduct(), True)
    assert rule("unrolled").objection(ig.MaxProduct(iterations=3), True) is None
    refuses("gradient: expected one of", rule, "implizit")
    p = random_potentials(TREE, np.random.default_rng(0))
    refuses("rule for losses of the beliefs", rule("envelope").evaluate, p, ig.BeliefPropagation(), squares)
