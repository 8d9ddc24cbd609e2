"""All solvers of a convex free energy meet a conic solver, 40 digits and each other, in all beliefs, to 1e-7."""

import numpy as np
import pytest
from conic import Programme, beliefs_of, random_problem
from numpy.testing import assert_allclose

import isinglass as ig
from checks import refuses
from isinglass.errors import no_convergence_warnings
from isinglass.inference.free_energy.newton import Newton
from isinglass.inference.free_energy.problem import Problem
from isinglass.inference.free_energy.solvers.blocks import _Part, _parts, blocks
from isinglass.inference.free_energy.solvers.primal import primal
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


def test_evidence_and_hard_zeros_without_ties():
    rng = np.random.default_rng(3)
    p = random_potentials(GRAPHS["triples"], rng, zeros=0.1, witness=np.array([1, 1, 2, 0]), evidence={0: 1})
    truth = ig.infer(p, "convex", tol=1e-12)
    for solver in ("primal", "blocks", "dual", "lbfgs", "cg", "messages"):
        with no_convergence_warnings():
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


MIXED = ig.FactorGraph([2, 3, 4, 2, 3], [(0, 1), (1, 2), (2, 3), (3, 0), (1,), (4, 1), (0, 2, 3)])


def newton_on(p, weights):
    return Newton(Problem.of(p, *weights.on(p.graph)))


def beliefs(newton):
    """Return all beliefs of a single component, variables first, as a programme has them."""
    return np.concatenate([newton.step.p, newton.step.q])


@pytest.mark.parametrize("inside", [[1], [0, 3], [2, 3, 4]])
def test_a_step_is_that_of_algorithm_two(inside):
    """b_k' = -H^-1 (g + A_k' y) with (A_k H^-1 A_k') y = -(d_k - A_-k b_-k + A_k H^-1 g), in dense matrices."""
    rng = np.random.default_rng(len(inside))
    p = random_potentials(MIXED, rng)
    weights = ig.EntropyWeights(rng.uniform(0.2, 1, 5), rng.uniform(0.2, 1, 7))
    newton, programme = newton_on(p, weights), Programme.of(p, weights)
    primal(newton, 0.0, 3)  # consistent beliefs on their way
    b = beliefs(newton)
    part = _Part.of(newton.problem, 0, np.array(inside))
    k = np.concatenate([part.problem.shape.state_at, len(newton.step.p) + part.problem.shape.entry_at])
    k = k[np.concatenate([~np.repeat(part.held, part.problem.shape.blocks.cards), np.ones(len(part.step.q), bool)])]
    own = programme.matrix[:, k]
    relevant = np.abs(own).max(axis=1) > 0
    own, right = (
        own[relevant],
        programme.right[relevant] - np.delete(programme.matrix[relevant], k, 1) @ np.delete(b, k),
    )
    inverse = b[k] / programme.w[k] / 2
    gradient = programme.w[k] * (np.log(b[k]) - 1) + programme.v[k]
    y = -np.linalg.lstsq(own * inverse @ own.T, right + own @ (inverse * gradient), rcond=None)[0]
    expected = b.copy()
    expected[k] = -inverse * (gradient + own.T @ y)
    assert expected.min() > 0
    assert np.abs(expected - b).max() > 1e-3
    part.move(newton, (np.ones(len(newton.step.p)), np.ones(len(newton.step.q))))
    assert_allclose(beliefs(newton), expected, rtol=0, atol=1e-13)


def test_one_block_is_the_primal_algorithm():
    """A few iterations with beliefs set to (10 c)^-2 among them: the same numbers."""
    p = random_potentials(MIXED, np.random.default_rng(0), 3.0)
    one, two = newton_on(p, ig.EntropyWeights(0.5, 0.3)), newton_on(p, ig.EntropyWeights(0.5, 0.3))
    primal(one, 0.0, 7)
    blocks(two, 0.0, 7)
    assert np.isin(beliefs(one), 1 / (10 * np.arange(1.0, 8)) ** 2).any()
    assert_allclose(beliefs(two), beliefs(one), rtol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize(("size", "overlap"), [(1, 0), (2, 0), (2, 1), (3, 1)])
@pytest.mark.parametrize("seed", range(4))
def test_blocks_on_random_graphs(seed, size, overlap):
    p, weights = random_problem(seed, 0.3, 1.0)
    truth, newton = ig.infer(p, ig.ConvexFreeEnergy(weights, tol=1e-12)), newton_on(p, weights)
    blocks(newton, 1e-9, 5000, size, overlap)
    assert newton.converged.all()
    assert newton.violation(np.arange(len(newton.residual))).max() < 1e-9
    assert_allclose(newton.problem.beliefs(newton.step.p, newton.step.q)[0], truth.variables.flat, rtol=0, atol=1e-9)


def test_components_and_grids():
    """Two grids of five blocks each; one is easier, and done before the other."""
    from isinglass.potentials import potentials_union

    easy = random_potentials(ig.grid_graph(6, 8, 2), np.random.default_rng(0), 0.01)
    hard = random_potentials(ig.grid_graph(6, 8, 2), np.random.default_rng(1), 2.0)
    p = potentials_union([easy, hard])
    newton, weights = newton_on(p, ig.EntropyWeights()), ig.EntropyWeights()
    parts = list(_parts(newton.problem, 10, 1))
    assert [part.component for part in parts] == [0] * 5 + [1] * 5
    covered = np.concatenate([part.problem.shape.state_at[np.repeat(~part.held, 2)] for part in parts])
    assert len(np.unique(covered)) == len(newton.step.p)
    blocks(newton, 1e-9, 1000, 10, 1)
    truth = ig.infer(p, ig.ConvexFreeEnergy(weights, tol=1e-12))
    assert newton.converged.all()
    assert newton.iterations[0] < newton.iterations[1]
    assert_allclose(newton.problem.beliefs(newton.step.p, newton.step.q)[0], truth.variables.flat, rtol=0, atol=1e-9)
