"""All solvers of a convex free energy meet a conic solver, 40 digits and each other, in all beliefs, to 1e-7."""

import numpy as np
import pytest
from conic import Programme, beliefs_of, random_problem
from numpy.testing import assert_allclose

import isinglass as ig
from isinglass.inference.free_energy.newton import Newton
from isinglass.inference.free_energy.problem import Problem
from isinglass.testing import random_potentials

AGREEMENT, KKT = 1e-7, 1e-9
SMALL = {
    "triangle": ig.FactorGraph([2, 2, 3], [(0, 1), (1, 2), (2, 0), (0,)]),
    "triple": ig.FactorGraph([2, 3, 2, 2], [(0, 1, 2), (2, 3), (3, 0), (1,), ()]),
}
ITERATIONS = {"newton": 100, "dual": 100, "primal": 20000, "blocks": 20000, "lbfgs": 5000, "cg": 5000, "messages": 5000}


def solutions(p, weights, names):
    """Return the results of solvers."""
    return {
        name: ig.infer(p, ig.ConvexFreeEnergy(weights, tol=KKT, max_iter=ITERATIONS[name], solver=name))
        for name in names
    }


def agree(p, weights, names):
    """Compare solvers with the conic one and each other, and check the KKT conditions apart from the library."""
    programme = Programme.of(p, weights)
    truth = programme.minimum()
    found = solutions(p, weights, names)
    for r in found.values():
        assert r.info.converged
        assert r.info.residual <= KKT
        assert_allclose(beliefs_of(r), truth, rtol=0, atol=AGREEMENT)
        assert_allclose(r.log_z, programme.log_z(truth), rtol=1e-9)
        for other in found.values():
            assert_allclose(beliefs_of(r), beliefs_of(other), rtol=0, atol=1e-8)
    for name in ("newton", "dual"):
        assert programme.kkt_residual(beliefs_of(found[name])) < KKT


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_all_solvers_on_random_graphs(seed):
    """Mixed arity (to four) and cardinality; weights by factor (even seeds) or by configuration, in [.3, 1]."""
    p, weights = random_problem(seed, 0.3, 1.0)
    agree(p, weights, [name for name in ITERATIONS if seed % 2 == 0 or name != "messages"])


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_beliefs_down_to_the_thirtieth_power(seed):
    """Weights in [.1, 1], and beliefs down to 1e-33, which the primal algorithm would take far too long for."""
    p, weights = random_problem(seed, 0.1, 1.5)
    agree(p, weights, ["newton", "dual", "lbfgs"] + ["messages"] * (seed % 2 == 0))


@pytest.mark.parametrize("name", SMALL)
def test_forty_digits(name):
    """The conic solution, taken to 40 digits, tells which of the two is how far from the minimum."""
    rng = np.random.default_rng(len(name))
    p = random_potentials(SMALL[name], rng, 1.5)
    weights = ig.EntropyWeights(rng.uniform(0.1, 1, p.graph.n_variables), rng.uniform(0.1, 1, p.graph.n_factors))
    programme = Programme.of(p, weights)
    conic = programme.minimum()
    truth = programme.in_digits(conic).astype(float)
    assert_allclose(conic, truth, rtol=0, atol=AGREEMENT)
    found = solutions(p, weights, ITERATIONS)
    for solver, r in found.items():
        atol = 1e-13 if solver in ("newton", "dual") else 1e-9
        assert_allclose(beliefs_of(r), truth, rtol=0, atol=atol)
    assert_allclose(np.log(beliefs_of(found["newton"])), np.log(truth), rtol=0, atol=1e-9)


def a_pair():
    """A pair of variables whose states hardly go together."""
    return ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[0.0, -9.0], [-9.0, 0.0]]])


def test_a_belief_that_is_much_too_small_is_noticed():
    """A Newton step b rho hardly shows that b is to grow by a factor e^rho; `gaps` is what the belief lacks."""
    p = a_pair()
    newton = Newton(Problem.of(p, *ig.EntropyWeights(1.0).on(p.graph)))
    newton.minimise(1e-12, 100)
    small = newton.step.q.argmin()
    lacking = newton.step.q[small] * (1 - 1e-6)
    newton.step.q[small] *= 1e-6
    newton.direction(np.arange(1))
    assert newton.step.dq[small] < lacking / 1000
    assert_allclose(newton.gaps(np.arange(1))[0], lacking, rtol=0.1)


def test_the_primal_algorithm_waits_for_small_beliefs():
    """Its own steps, and Newton's, are below 1e-9 long before a belief of 1e-7 that was set too low has grown."""
    graph = ig.FactorGraph([2, 3, 4, 2, 3], [(0, 1), (1, 2), (2, 3), (3, 0), (1,), (4, 1), ()])
    rng = np.random.default_rng([4, 5])
    p = random_potentials(graph, rng).repeat(2)
    weights = ig.EntropyWeights(rng.uniform(0.1, 1, 10), rng.uniform(0.1, 1, 14))
    truth = ig.infer(p, ig.ConvexFreeEnergy(weights, tol=1e-12))
    r = ig.infer(p, ig.ConvexFreeEnergy(weights, max_iter=1000, solver="primal"))
    assert r.info.converged
    assert_allclose(beliefs_of(r), beliefs_of(truth), rtol=0, atol=1e-9)
