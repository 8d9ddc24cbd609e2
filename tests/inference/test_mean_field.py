"""Mean field: when it has converged, which fixed points it leaves, and its derivatives at those."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from checks import each_close, each_equal
from isinglass.testing import random_potentials

BOTH = pytest.mark.parametrize("name", ["mf", "smf"])


def torus(side, coupling, field=0.0):
    """Return an Ising model on a torus."""
    at = np.arange(side * side).reshape(side, side)
    links = [np.stack([at.ravel(), np.roll(at, -1, axis).ravel()], axis=1) for axis in (0, 1)]
    graph = ig.FactorGraph.from_groups(np.full(side * side, 2), [at.reshape(-1, 1), np.concatenate(links)])
    tables = [np.array([[-field, field]]), coupling * np.array([[[1.0, -1.0], [-1.0, 1.0]]])]
    return ig.Potentials.from_groups(graph, tables)


def magnetisation(result):
    return np.array(result.variables) @ [-1, 1]


def test_a_large_magnet_leaves_the_symmetric_point():
    p = torus(64, 1.0)
    held, free = ig.infer(p, "mf", iterations=5, check_stability=True), ig.infer(p, "mf", check_stability=True)
    assert_array_equal(held.variables.flat, 0.5)
    assert held.info.stable is False
    assert free.info.stable is True
    assert free.info.converged
    assert free.log_z > held.log_z + 1000
    assert abs(magnetisation(free).mean()) > 0.99
    assert np.abs(magnetisation(free)).min() > 0.99
    assert free.info.iterations < 50


@pytest.mark.long
@BOTH
def test_a_magnet_leaves_the_symmetric_point_and_the_seed_says_where_to(name):
    p = torus(6, 1.0)
    held = ig.infer(p, name, iterations=5)
    found = {np.sign(magnetisation(ig.infer(p, name, random_state=seed)).mean()) for seed in range(8)}
    assert found == {-1, 1}
    r = ig.infer(p, name)
    assert r.log_z > held.log_z + 1
    assert_array_equal(r.variables.flat, ig.infer(p, name).variables.flat)
    again = ig.infer(p, name, init=held)
    assert again.log_z > held.log_z + 1


@BOTH
def test_a_weak_magnet_stays_where_it_is(name):
    p = torus(16, 0.1)
    r = ig.infer(p, name, check_stability=True)
    assert_array_equal(r.variables.flat, 0.5)
    assert r.info.iterations == 1
    assert r.info.stable is True
    assert ig.infer(p, name).info.stable is None


@pytest.mark.long
@BOTH
def test_stability_is_that_of_small_changes(name):
    """Sweeps from beliefs a little off the symmetric point come back, or go away, as `stable` says."""
    for coupling, stable in ((0.24, True), (0.45, False)):
        p = torus(8, coupling)
        held = ig.infer(p, name, iterations=1, check_stability=True)
        assert held.info.stable is stable
        near = ig.infer(torus(8, coupling, 1e-6), name, iterations=200)
        assert bool(np.abs(magnetisation(near)).max() < 1e-3) is stable


def test_the_leading_eigenvalue():
    """On a torus without field the covariances are one, and the couplings 4 K at most, times two for spins."""
    from isinglass.inference.mean_field.naive import _Ascent

    for coupling in (0.2, 0.3):
        ascent = _Ascent(torus(8, coupling), None)
        assert_allclose(ascent.stability(0).values, 4 * coupling, rtol=1e-6)


def test_a_saddle_point_that_symmetry_holds():
    """One part has a field, and settles; another, that hangs on by a table that says nothing, is a magnet."""
    field = ig.FactorGraph([2, 2, 2, 2], [(0,), (0, 1), (1, 2), (2, 3)])
    magnet = np.array([[2.0, -2.0], [-2.0, 2.0]])
    p = ig.Potentials(field, [[0.0, 1.0], [[0.3, 0.0], [0.0, 0.3]], np.zeros((2, 2)), magnet])
    r = ig.infer(p, "mf")
    assert np.abs(magnetisation(r)[2:]).min() > 0.9
    assert r.log_z > ig.infer(p, "mf", iterations=r.info.iterations).log_z + 0.5


def test_states_that_are_alike_in_part_are_told_apart():
    grid = ig.grid_graph(4, 4, 3)
    p = ig.Potentials.from_groups(grid, [np.tile([-0.1, 0, 0], (16, 1)), 2 * np.eye(3)[None]])
    r = ig.infer(p, "mf", check_stability=True)
    assert r.info.stable
    assert r.log_z > 48  # with states 1 and 2 alike: 35.6


@pytest.mark.parametrize("seed", range(10))
def test_influences_that_cancel_but_for_rounding_hold_no_saddle_point(seed):
    rng = np.random.default_rng(seed)
    h, strong, weak = rng.normal() * 2, np.eye(2) * rng.uniform(2, 3), np.eye(2) * rng.uniform(0.1, 0.9)
    edges = [(0, 2), (1, 2), (2, 3), (3, 4), (4, 5), (5, 2), (2, 4), (3, 5), (0, 3), (1, 3)]
    tables = [np.array(field) for field in [[0, h], [h, 0], *[[0.0, 0.0]] * 4]]
    tables += [weak if min(edge) < 2 else strong for edge in edges]
    p = ig.Potentials(ig.FactorGraph([2] * 6, [(i,) for i in range(6)] + edges), tables)
    assert ig.infer(p, "mf", check_stability=True).info.stable


def test_three_states_and_links_of_three():
    equal = np.where(np.arange(27).reshape(3, 3, 3) % 13 == 0, 4.0, 0.0)
    graph = ig.FactorGraph([3] * 5, [(0, 1, 2), (1, 2, 3), (2, 3, 4), (4, 0, 1)])
    p = ig.Potentials(graph, [equal] * 4)
    held, free = ig.infer(p, "mf", iterations=3, check_stability=True), ig.infer(p, "mf", check_stability=True)
    assert held.info.stable is False
    assert free.info.stable is True
    assert held.log_z < free.log_z <= ig.infer(p).log_z
    assert max(belief.max() for belief in free.variables) > 0.9


@BOTH
def test_what_leaves_does_not_depend_on_what_is_beside_it(name):
    rng = np.random.default_rng(0)
    parts = [torus(4, 1.0), torus(5, 0.1), random_potentials(ig.grid_graph(3, 3, 2), rng), torus(4, 0.5)]
    together, states = ig.infer(ig.potentials_union(parts), name), 0
    for c, p in enumerate(parts):
        alone = ig.infer(p, name)
        size = alone.variables.flat.size
        assert_array_equal(together.variables.flat[states : states + size], alone.variables.flat)
        assert together.component_log_z[c] == alone.log_z
        states += size


def test_the_residual_is_one_of_logarithms():
    """Beliefs of 1e-9 that are still to fall by half have not converged."""
    p = ig.Potentials(
        ig.FactorGraph([2, 2], [(0, 1), (0,), (1,)]), [[[0.0, 0.0], [0.0, 3.0]], [0.0, -20.0], [0.0, -1.0]]
    )
    one = ig.infer(p, "mf", iterations=1)
    change = np.diff(np.log(one.variable(0))) - np.diff(np.log([0.5, 0.5]))
    assert one.info.residual >= np.tanh(np.abs(change) / 4)[0] * (1 - 1e-12)
    for tol in (1e-4, 1e-8):
        r = ig.infer(p, "mf", tol=tol)
        truth = ig.infer(p, "mf", iterations=500)
        assert_allclose(np.log(r.variables.flat), np.log(truth.variables.flat), atol=100 * tol)


def any_model(seed):
    """Potentials N(0, s²), s to 300, hard zeros, evidence; connected."""
    rng = np.random.default_rng([3, seed])
    scale, n = float(rng.choice([1, 10, 100, 300])), int(rng.integers(2, 7))
    scopes = [(int(rng.integers(i)), i) for i in range(1, n)]
    scopes += [tuple(rng.choice(n, 2, replace=False).tolist()) for _ in range(int(rng.integers(3)))]
    graph, states = ig.FactorGraph(rng.integers(2, 4, n), scopes), np.zeros(n, int)
    return random_potentials(graph, rng, scale, 0.2 * (seed % 2), states, {0: 0} if seed % 3 == 0 else None)


@pytest.mark.long
@BOTH
def test_what_is_called_converged_stays(name):
    """A thousand more sweeps do not move a belief. Twenty models side by side, as each would be alone."""
    models = [any_model(seed) for seed in range(20)]
    p = ig.potentials_union(models)
    r, truth = ig.infer(p, name), np.array([ig.infer(model).log_z for model in models])
    assert r.info.converged
    assert (r.component_log_z <= truth + 1e-9 * np.maximum(1, np.abs(truth))).all()
    again = ig.infer(p, name, iterations=1000, init=r)
    assert_allclose(again.variables.flat, r.variables.flat, atol=1e-4)


@BOTH
@pytest.mark.parametrize("start", ["zero", "warm", "cold"])
def test_derivatives_are_those_of_the_fixed_point(name, start):
    """A run that begins at its fixed point stops at once; its derivative does not."""
    rng = np.random.default_rng(1)
    graph = ig.grid_graph(3, 4, 2)
    shape = [(len(g), *g.shape) for g in graph.groups]
    size = 0.0 if start == "zero" else 0.4
    tables = [size * rng.normal(size=s) for s in shape]
    tables[1] += 0.15 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    p = ig.Potentials.from_groups(graph, tables)
    algorithm = ig.MeanField(tol=1e-12) if name == "mf" else ig.StructuredMeanField(tol=1e-12)
    init = ig.infer(p, algorithm) if start == "warm" else None
    bars, direction = rng.normal(size=24), [rng.normal(size=s) for s in shape]
    found = ig.infer(p, algorithm, tape=True, init=init).backward(variables=bars).groups
    h = 1e-5
    values = [
        bars @ ig.infer(ig.Potentials.from_groups(graph, moved), algorithm, init=init).variables.flat
        for moved in ([t + s * h * d for t, d in zip(tables, direction, strict=True)] for s in (1, -1))
    ]
    slope = sum((g * d).sum() for g, d in zip(found, direction, strict=True))
    assert_allclose(slope, (values[0] - values[1]) / (2 * h), rtol=1e-7)
    if name == "mf":
        other = ig.perturbation(p, algorithm, variables=bars, init=init).groups
        each_close(found, other, atol=1e-9)


@BOTH
def test_covariances_of_a_symmetric_model(name):
    """Products with the Hessian of the bound, from a start that is the fixed point, against differences."""
    p = torus(6, 0.15)
    graph, moved = p.graph, [np.zeros((36, 2)), np.zeros((72, 2, 2))]
    own = ig.Potentials.from_groups(graph, [np.zeros((36, 2)), np.repeat(p.groups[1], 72, axis=0)])
    moved[0][0, 1] = 1.0

    class Direction:
        groups = tuple(moved)

    found = ig.hessian_vector_product(own, name, Direction, log_z=1.0).groups[0]
    h = 1e-5
    sides = [
        ig.infer(ig.Potentials.from_groups(graph, [s * h * moved[0], own.groups[1]]), name, tol=1e-13) for s in (1, -1)
    ]
    slope = (sides[0].variables.flat - sides[1].variables.flat) / (2 * h)
    assert_allclose(found.ravel(), slope, rtol=1e-6, atol=1e-8)
    assert found[1, 1] > 1e-2
    assert found[21, 1] > 1e-5  # the far corner


def test_a_run_that_did_not_converge_is_differentiated_as_it_ran():
    p = random_potentials(ig.grid_graph(3, 3, 2), np.random.default_rng(0), 1.0)
    bars = np.random.default_rng(1).normal(size=18)
    with pytest.warns(ig.ConvergenceWarning):
        stopped = ig.infer(p, "mf", max_iter=4, tape=True)
    exactly = ig.infer(p, "mf", iterations=4, tape=True)
    each_equal(stopped.backward(variables=bars).groups, exactly.backward(variables=bars).groups)


def test_a_start_that_lowers_the_bound_is_undone(monkeypatch):
    """Of two magnets one is moved away from the saddle point, as it should be, the other to a worse fixed point."""
    from isinglass.inference.mean_field.naive import _Ascent

    p = ig.potentials_union([torus(4, 1.0), torus(4, 1.0, 0.4)])
    good = np.arange(64) < 32

    def move_away(self, leaving, found):
        self.q[good] = np.tile([0.1, 0.9], 16)
        self.q[~good] = np.tile([1.0, 0.0], 16)  # against the field: a fixed point of a lower bound
        leaving[:] = True

    best = ig.infer(p, "mf")
    monkeypatch.setattr(_Ascent, "_move_away", move_away)
    kept = ig.infer(p, "mf")
    assert_array_equal(kept.variables.flat[~good], best.variables.flat[~good])
    assert kept.log_z == pytest.approx(best.log_z, abs=1e-9)
