"""Derivatives of runs to a tolerance: each component stops by itself, wherever its messages lie."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from isinglass.kernels.numba.grids.sizes import largest_in_planes

ALGORITHMS = {
    "flooding": ig.BeliefPropagation(schedule="flooding", max_iter=200),
    "grid": ig.BeliefPropagation(schedule="grid", max_iter=200),
    "sequential": ig.BeliefPropagation(schedule="sequential", max_iter=200),
    "residual": ig.BeliefPropagation(schedule="residual", max_iter=200),
    "damped": ig.BeliefPropagation(damping=0.3, max_iter=200),
    "trw": ig.TreeReweighted(max_iter=200),
    "mf": ig.MeanField(),
    "smf": ig.StructuredMeanField(),
}


def _grids(strengths, states=2, side=4):
    """Return grids of some strengths of coupling as one graph, and each by itself."""
    graph = ig.grid_graph(side, side, states)
    unary, pairs = graph.groups
    tables = []
    for seed, strength in enumerate(strengths):
        rng = np.random.default_rng(seed)
        tables.append([rng.normal(size=(len(unary), states)), rng.normal(0, strength, (len(pairs), states, states))])
    together = [np.concatenate(group) for group in zip(*tables, strict=True)]
    alone = [ig.Potentials.from_groups(graph, one) for one in tables]
    return ig.Potentials.from_groups(graph.repeat(len(strengths)), together), alone


@pytest.mark.long
@pytest.mark.parametrize("states", [2, 3])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_each_component_is_what_it_is_alone(name, states):
    algorithm, strengths = ALGORITHMS[name], [0.1, 0.9, 0.4]
    together, alone = _grids(strengths, states)
    bars = np.random.default_rng(9).normal(size=(len(strengths), 16, states))
    bars[2] = 0  # of this one, nothing is asked
    found = ig.infer(together, algorithm, tape=True).backward(variables=bars.reshape(-1, states)).groups
    for k, potentials in enumerate(alone):
        mine = ig.infer(potentials, algorithm, tape=True).backward(variables=bars[k]).groups
        for whole, part in zip(found, mine, strict=True):
            assert_allclose(whole.reshape(len(strengths), *part.shape)[k], part, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("name", "iterations"), [("flooding", 12), ("grid", 8), ("sequential", 8)])
@pytest.mark.filterwarnings("ignore::isinglass.errors.ConvergenceWarning")
def test_what_did_not_converge_goes_back_through_its_iterations(name, iterations):
    """As exactly so many iterations do."""
    together, alone = _grids([0.1, 4.0])
    schedule = ALGORITHMS[name].schedule
    run = ig.infer(together, ig.BeliefPropagation(schedule=schedule, max_iter=iterations, tol=1e-8), tape=True)
    assert run.info.converged_share == 0.5
    bars = np.random.default_rng(9).normal(size=(32, 2))
    found = run.backward(variables=bars).groups
    exactly = ig.BeliefPropagation(schedule=schedule, iterations=iterations)
    other = ig.infer(alone[1], exactly, tape=True).backward(variables=bars[16:]).groups
    for whole, part in zip(found, other, strict=True):
        assert_allclose(whole[len(part) :], part, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_derivatives_are_those_of_differences(name):
    algorithm = ALGORITHMS[name]
    potentials, _ = _grids([0.3], 3)
    rng = np.random.default_rng(5)
    bars = rng.normal(size=(16, 3))
    directions = [rng.normal(size=g.shape) for g in potentials.groups]

    def value(step):
        moved = [g + step * d for g, d in zip(potentials.groups, directions, strict=True)]
        return (
            bars.ravel() * ig.infer(ig.Potentials.from_groups(potentials.graph, moved), algorithm).variables.flat
        ).sum()

    found = ig.infer(potentials, algorithm, tape=True).backward(variables=bars).groups
    along = sum((g * d).sum() for g, d in zip(found, directions, strict=True))
    assert_allclose(along, (value(1e-4) - value(-1e-4)) / 2e-4, rtol=2e-4, atol=2e-5)


def test_components_that_look_close_and_go_on(recwarn):
    """Messages that were moved to the edges for a look are not taken for later ones."""
    together, alone = _grids([0.0, 1.5, 0.05])
    algorithm = ig.BeliefPropagation(schedule="grid")
    found = ig.infer(together, algorithm)
    assert found.info.converged
    for k, potentials in enumerate(alone):
        one = ig.infer(potentials, algorithm)
        assert_allclose(found.variables.flat.reshape(3, -1)[k], one.variables.flat, rtol=1e-12, atol=1e-12)
        assert_allclose(found.messages.reshape(3, -1)[k], one.messages, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(8, 3, 50), (1, 2, 2500)])
def test_largest_sizes_in_planes(shape):
    rng = np.random.default_rng(0)
    planes, used, found = rng.normal(size=shape), rng.random(shape) < 0.8, np.full(shape[1], -1.0)
    largest_in_planes(planes, used, 0, shape[1], np.empty(32), found)
    assert_array_equal(found, np.where(used, np.abs(planes), 0).max(axis=(0, 2)))
    planes[~used] = np.nan
    largest_in_planes(planes, used, 0, shape[1], np.empty(32), found)
    assert np.isfinite(found).all()
    planes[0, 1, np.flatnonzero(used[0, 1])[3]] = np.nan
    largest_in_planes(planes, used, 0, shape[1], np.empty(32), found)
    assert np.isinf(found[1])
    assert np.isfinite(found[0])


@pytest.mark.parametrize("name", ["bp", "trw"])
def test_counting_numbers_of_a_pass_up_and_down_trees(name):
    """With other counting numbers a message depends on its opposite: one pass is no fixed point then."""
    rng = np.random.default_rng(0)
    graph = ig.chain_graph(3, 2)
    p = ig.Potentials.from_groups(graph, [rng.normal(size=(3, 2)), rng.normal(size=(2, 2, 2))])
    bars = np.eye(6)[4]
    found = ig.infer(p, name, tape=True).backward(variables=bars).counting_numbers
    step = 1e-5
    for f in (3, 4):
        beliefs = []
        for h in (step, -step):
            counting = np.ones(graph.n_factors)
            counting[f] += h
            options = {"counting_numbers": counting, "tol": 1e-13, "max_iter": 10_000}
            beliefs.append(ig.infer(p, "fbp", **options).variables.flat @ bars)
        assert_allclose(found[f], (beliefs[0] - beliefs[1]) / (2 * step), atol=1e-8)
