"""Implicit gradients: those of converged message passing and mean field are the unrolled ones in the limit."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig
from isinglass import losses
from isinglass.gradients import rule
from isinglass.losses import LossValue
from isinglass.testing import random_potentials
from isinglass.testing.suite import random_cotangents

LOOPS = ig.FactorGraph([2, 3, 2, 2], [(0, 1), (1, 2), (2, 3), (3, 0), (0,), (1, 3), (0, 1, 2), ()])
LARGE = random_potentials(ig.grid_graph(3, 4, 2), np.random.default_rng(3), 200.0)

TIGHT = {
    "bp": ig.BeliefPropagation(tol=1e-13, max_iter=5000),
    "damped": ig.BeliefPropagation(tol=1e-13, max_iter=5000, damping=0.4, schedule="sequential"),
    "grid": ig.BeliefPropagation(tol=1e-13, max_iter=5000, schedule="residual"),
    "trw": ig.TreeReweighted(tol=1e-13, max_iter=5000),
    "fbp": ig.FractionalBeliefPropagation(tol=1e-13, max_iter=5000, counting_numbers=0.7),
    "mf": ig.MeanField(tol=1e-15, max_iter=20000),
    "convex": ig.ConvexFreeEnergy(tol=1e-12),
}


def random_loss(seed):
    """A loss that is linear in log Z and all beliefs."""

    def loss(result):
        log_z, variables, factors = random_cotangents(result, seed)
        return LossValue(log_z * result.component_log_z, log_z, variables, factors)

    return loss


def same(one, two, rtol=1e-6):
    for a, b in zip(one.groups, two.groups, strict=True):
        assert_allclose(a, b, rtol=rtol, atol=rtol * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize("name", TIGHT)
@pytest.mark.parametrize("copies", [1, 3])
def test_the_limit_of_the_unrolled_gradient(name, copies):
    p = random_potentials(LOOPS, np.random.default_rng(4), 0.6).repeat(copies)
    mine = rule("implicit").evaluate(p, TIGHT[name], random_loss(1))
    other = "perturbation" if name == "convex" else "unrolled"
    same(mine, rule(other).evaluate(p, TIGHT[name], random_loss(1)))


@pytest.mark.parametrize("name", ["bp", "trw", "mf", "convex"])
def test_evidence_and_hard_zeros(name):
    rng = np.random.default_rng(5)
    p = random_potentials(LOOPS, rng, 0.5, zeros=0.15, witness=np.array([1, 2, 0, 1]), evidence={1: 2})
    mine = rule("implicit").evaluate(p, TIGHT[name], random_loss(2))
    same(mine, rule("perturbation").evaluate(p, TIGHT[name], random_loss(2)))


def test_a_grid_in_logarithms():
    """Potentials that underflow linear values: the fixed point is that of the logarithmic loops."""
    algorithm = ig.TreeReweighted(tol=1e-12, max_iter=3000)
    p = ig.Potentials.from_groups(LARGE.graph, [LARGE.groups[0] + [0, 800.0], LARGE.groups[1] * 0.002])
    same(
        rule("implicit").evaluate(p, algorithm, random_loss(3)),
        rule("unrolled").evaluate(p, algorithm, random_loss(3)),
    )


@pytest.mark.long
@pytest.mark.parametrize("inference", ["bp", "trw", "mf", "convex"])
@pytest.mark.parametrize("loss", [n for n, cls in losses.LOSSES.items() if cls.facts.uses == "beliefs"])
def test_every_belief_loss_with_hidden_variables(loss, inference):
    p = random_potentials(ig.grid_graph(2, 3, 2), np.random.default_rng(6), 0.6)
    labels, chosen = np.array([0, -1, 1, 1, -1, 0]), losses.make(loss)
    mine, other = (
        rule(name).evaluate(p, TIGHT[inference], lambda r: chosen(r, labels)) for name in ("implicit", "perturbation")
    )
    same(mine, other)


def test_objections():
    implicit = rule("implicit")
    assert "energy" in implicit.objection(ig.Exact(), True)
    assert "'convex'" in implicit.objection(ig.Exact(), True)
    assert "fixed number of iterations" in implicit.objection(ig.BeliefPropagation(iterations=3), True)
    assert "minimum" in rule("unrolled").objection(ig.ConvexFreeEnergy(), True)
    for algorithm in (ig.BeliefPropagation(), ig.TreeReweighted(), ig.MeanField(), ig.ConvexFreeEnergy()):
        assert implicit.objection(algorithm, True) is None
    with pytest.raises(ig.InputError, match="fixed-point equations"):
        ig.Exact().linearised(ig.infer(random_potentials(LOOPS, np.random.default_rng(0)), "exact"))


def test_a_run_that_did_not_converge_is_reported():
    p = random_potentials(ig.complete_graph(6, 2), np.random.default_rng(2), 3.0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        rule("implicit").evaluate(p, ig.BeliefPropagation(max_iter=2), random_loss(1))
    assert any("has not reached one; use gradient='unrolled'" in str(w.message) for w in seen)


def test_a_fixed_point_about_to_split_is_reported():
    """Where tanh(coupling) (degree - 1) = 1 the uniform fixed point splits: I - J is singular."""
    graph = ig.complete_graph(4, 2)
    table = np.arctanh(0.5) * np.array([[1.0, -1.0], [-1.0, 1.0]])
    groups = [np.zeros((len(g), *g.shape)) if g.arity == 1 else np.tile(table, (len(g), 1, 1)) for g in graph.groups]
    p = ig.Potentials.from_groups(graph, groups)
    with pytest.warns(ig.ConvergenceWarning, match="implicit system"):
        rule("implicit").evaluate(p, ig.BeliefPropagation(), random_loss(1))
