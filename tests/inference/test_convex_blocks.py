"""The block form of the primal algorithm: its steps are those printed, its limit is the minimum."""

import numpy as np
import pytest
from conic import Programme, beliefs_of, random_problem
from numpy.testing import assert_allclose

import isinglass as ig
from isinglass.inference.free_energy.newton import Newton
from isinglass.inference.free_energy.problem import Problem
from isinglass.inference.free_energy.solvers.blocks import ONE, _Part, _parts, blocks
from isinglass.inference.free_energy.solvers.primal import primal
from isinglass.testing import random_potentials

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


def test_the_rim_is_held():
    p = random_potentials(ig.chain_graph(5, 3), np.random.default_rng(0))
    newton = newton_on(p, ig.EntropyWeights())
    part = _Part.of(newton.problem, 0, np.array([1]))
    part.direction(ONE, scale=2.0)
    assert part.held.tolist() == [True, False, True]
    assert np.abs(part.step.dp[[0, 1, 2, 6, 7, 8]]).max() == 0
    assert np.abs(part.step.dp[3:6]).min() > 0
    for rows, marginal in ((part.step.dq[:9].reshape(3, 3), 1), (part.step.dq[9:].reshape(3, 3), 0)):
        assert_allclose(rows.sum(axis=marginal), 0, atol=1e-15)
        assert_allclose(rows.sum(axis=1 - marginal), part.step.dp[3:6], atol=1e-15)


def test_by_name():
    p = random_potentials(MIXED, np.random.default_rng(3))
    weights = ig.EntropyWeights(0.5, 0.5)
    r = ig.infer(p, ig.ConvexFreeEnergy(weights, solver="blocks", max_iter=1000))
    assert r.info.converged
    assert_allclose(beliefs_of(r), beliefs_of(ig.infer(p, ig.ConvexFreeEnergy(weights))), rtol=0, atol=1e-9)
