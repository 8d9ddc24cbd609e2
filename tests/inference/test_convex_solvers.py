"""All solvers of a convex free energy find the same minimum, or say that they did not."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig
from checks import refuses
from isinglass.testing import random_potentials

GRAPHS = {
    "triangle": ig.FactorGraph([2, 2, 2], [(0, 1), (1, 2), (2, 0), (0,)]),
    "mixed": ig.FactorGraph([2, 3, 4, 2, 3], [(0, 1), (1, 2), (2, 3), (3, 0), (1,), (4, 1), ()]),
    "triples": ig.FactorGraph([2, 2, 3, 2], [(0, 1, 2), (1, 2, 3), (3, 0), (2,)]),
    "four": ig.FactorGraph([2, 3, 2, 2, 2], [(0, 1, 2, 3), (1, 0), (0, 1), (3,), (3,)]),
}


@pytest.mark.parametrize("solver", ["lbfgs", "cg"])
def test_gradients_of_the_dual_with_entropy_a(solver):
    """Small weights of variables: from lambda = 0 beliefs would begin at e^100; it says so where it gives up."""
    p = random_potentials(ig.grid_graph(4, 4, 2), np.random.default_rng(0))
    truth = ig.infer(p, ig.ConvexFreeEnergy(tol=1e-12))
    r = ig.infer(p, ig.ConvexFreeEnergy(max_iter=5000, solver=solver))
    assert r.info.converged
    assert_allclose(r.variables.flat, truth.variables.flat, rtol=0, atol=1e-9)
    with pytest.warns(ig.ConvergenceWarning):
        assert not ig.infer(p, ig.ConvexFreeEnergy(max_iter=3, solver=solver)).info.converged


def test_the_bound_takes_half_newton_steps():
    """From consistent beliefs, with H = 2 w / b, a step is half of that with H = w / b."""
    from isinglass.inference.free_energy.newton import Newton
    from isinglass.inference.free_energy.problem import Problem

    p = random_potentials(GRAPHS["mixed"], np.random.default_rng(0))
    newton, everything = Newton(Problem.of(p, *ig.EntropyWeights().on(p.graph))), np.arange(1)
    newton.direction(everything)
    whole = newton.step.dp.copy(), newton.step.dq.copy()
    newton.direction(everything, scale=2.0)
    assert_allclose(newton.step.dp, whole[0] / 2, atol=1e-14)
    assert_allclose(newton.step.dq, whole[1] / 2, atol=1e-14)


def test_evidence_and_hard_zeros_without_ties():
    rng = np.random.default_rng(3)
    p = random_potentials(GRAPHS["triples"], rng, zeros=0.1, witness=np.array([1, 1, 2, 0]), evidence={0: 1})
    truth = ig.infer(p, "convex", tol=1e-12)
    for solver in ("primal", "blocks", "dual", "lbfgs", "cg", "messages"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ig.ConvergenceWarning)
            r = ig.infer(p, "convex", solver=solver, max_iter=3000, tol=1e-9)
        assert_allclose(r.variables.flat, truth.variables.flat, atol=1e-7)


def test_what_solvers_refuse():
    p = random_potentials(ig.chain_graph(3, 2), np.random.default_rng(0))
    for solver in ("blocks", "dual", "messages", "lbfgs", "cg"):
        refuses("weights of variables are not positive", ig.infer, p, "convex", weights="bethe", solver=solver)
    refuses("solver: expected 'auto' or 'newton' or 'primal'", ig.infer, p, "convex", solver="simplex")
    by_state = ig.EntropyWeights(np.linspace(0.2, 1.0, 6), 1.0)
    refuses(
        "solver: expected 'newton' where weights depend", ig.infer, p, "convex", weights=by_state, solver="messages"
    )
    equal = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[0.0, -np.inf], [-np.inf, 0.0]]])
    refuses("hard zeros tie variables", ig.infer, equal, "convex", solver="dual")
