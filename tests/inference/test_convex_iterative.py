"""Conjugate gradients in the place of factors: the same beliefs and derivatives, and failures that show."""

import sys
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_matrix, tril

import isinglass as ig
from checks import each_close, refuses
from isinglass.gradients import rule
from isinglass.inference.free_energy import layout as convex_layout
from isinglass.inference.free_energy.linear import iterative as convex_iterative
from isinglass.inference.free_energy.linear import system as convex_system
from isinglass.inference.free_energy.linear.iterative import IterativeFactor
from isinglass.inference.free_energy.linear.system import Pattern
from isinglass.inference.free_energy.problem import Problem
from isinglass.losses import LossValue
from isinglass.testing import random_potentials
from isinglass.testing.suite import random_cotangents

MIXED = ig.FactorGraph([2, 3, 4, 2, 3], [(0, 1), (1, 2), (2, 3), (3, 0), (1,), (4, 1), (0, 2, 3)])
SYSTEMS = ["iterative", "multigrid"]


@pytest.fixture(params=SYSTEMS)
def system(request):
    if request.param == "multigrid":
        pytest.importorskip("pyamg", reason="multigrid needs PyAMG (extra amg)")
    return request.param


def factor_of(matrix, system="iterative", sure=True):
    """Return a factor that has taken a dense matrix, and whether it is found positive definite."""
    lower = tril(csr_matrix(matrix)).tocsr()
    lower.sort_indices()
    n = len(matrix)
    places = lower.indptr.astype(np.int64), lower.indices.astype(np.int64)
    empty = np.zeros(0, np.int64)
    factor = IterativeFactor(Pattern(np.arange(n), empty, empty, lower.nnz, 0, -1, places, system), matrix.dtype, sure)
    return factor, factor.factorise(lower.data)


def laplacian(side, ground=0.1):
    """Return the Laplacian of a grid, with something added to the diagonal."""
    path = np.diag(np.full(side, 2.0)) - np.eye(side, k=1) - np.eye(side, k=-1)
    return np.kron(path, np.eye(side)) + np.kron(np.eye(side), path) + ground * np.eye(side * side)


def problem(name):
    rng = np.random.default_rng(len(name))
    if name == "sharp":
        return random_potentials(ig.grid_graph(16, 15, 2), rng, 6.0)
    if name == "coupled":
        tables = [rng.normal(0, 0.1, (240, 2)), 4 * np.eye(2)[None]]
        return ig.Potentials.from_groups(ig.grid_graph(16, 15, 2), tables)
    if name == "three states":
        return random_potentials(ig.grid_graph(8, 9, 3), rng)
    return random_potentials(MIXED, rng).repeat(3)


@pytest.mark.long
@pytest.mark.parametrize("weights", ["A", "C"])
@pytest.mark.parametrize("name", ["sharp", "coupled", "three states", "mixed and repeated"])
def test_the_same_beliefs_and_derivatives(name, weights, system):
    p = problem(name)
    one, two = (ig.infer(p, ig.ConvexFreeEnergy(weights, system=s), tape=True) for s in ("factorised", system))
    assert two.info.converged
    assert_allclose(two.component_log_z, one.component_log_z, rtol=1e-12)
    assert_allclose(two.variables.flat, one.variables.flat, rtol=0, atol=1e-9)
    log_z, variables, factors = random_cotangents(one, 1)
    a, b = (r.backward(log_z, variables, factors) for r in (one, two))
    for mine, true in zip((*b.groups, b.weights.variables, *b.weights.groups),
                          (*a.groups, a.weights.variables, *a.weights.groups), strict=True):  # fmt: skip
        assert_allclose(mine, true, rtol=1e-8, atol=1e-8 * max(1.0, np.abs(true).max()))


def test_complex_systems(system):
    """The derivative by perturbation, one inference on complex potentials, is the implicit one."""
    p = problem("three states")

    def loss(result):
        log_z, variables, factors = random_cotangents(result, 2)
        return LossValue(log_z * result.component_log_z, log_z, variables, factors)

    algorithm = ig.ConvexFreeEnergy("B", tol=1e-12, system=system)
    mine = rule("perturbation").evaluate(p, algorithm, loss)
    true = rule("implicit").evaluate(p, ig.ConvexFreeEnergy("B", tol=1e-12, system="factorised"), loss)
    each_close(mine.groups, true.groups, rtol=1e-8, atol=1e-8)


def test_solutions_are_those_of_dense_systems(system):
    matrix, right = laplacian(9), np.random.default_rng(0).normal(size=81)
    factor, positive = factor_of(matrix, system)
    assert positive
    x = right.copy()
    assert factor.solve(x) <= 1e-12
    assert factor.iterations < 25
    assert_allclose(matrix @ x, right, atol=1e-11)
    x = right * 0
    assert factor.solve(x) == 0
    assert not x.any()


def test_small_and_large_imaginary_parts():
    rng = np.random.default_rng(1)
    real, other = laplacian(5), rng.normal(size=(25, 25)) * (laplacian(5) != 0)
    for size in (1e-20, 1e-3):
        matrix = real + 1j * size * (other + other.T)
        right = rng.normal(size=25) + 1j * size * rng.normal(size=25)
        factor, positive = factor_of(matrix)
        x = right.copy()
        assert positive
        assert factor.solve(x) <= 1e-9
        truth = np.linalg.solve(matrix, right)
        assert_allclose(x.real, truth.real, rtol=1e-8)
        assert_allclose(x.imag, truth.imag, rtol=1e-7, atol=1e-9 * np.abs(truth.imag).max())


def test_what_is_not_positive_definite_is_found(system):
    """A negative eigenvalue behind a positive diagonal: by a system of its own, or on the way."""
    bad = laplacian(6, -0.5)
    least = np.linalg.eigvalsh(bad)[0]
    assert least < 0
    assert bad.diagonal().min() > 0
    assert not factor_of(bad, system, sure=False)[1]
    assert factor_of(bad - 1.001 * least * np.eye(36), system, sure=False)[1]
    factor, positive = factor_of(bad, system)
    if positive:
        assert factor.solve(np.random.default_rng(0).normal(size=36)) == np.inf
    assert not factor_of(-np.eye(3), system)[1]
    assert not factor_of(np.full((2, 2), np.nan), system)[1]


def test_what_is_not_convex_is_refused(system):
    p = random_potentials(ig.complete_graph(5, 2), np.random.default_rng(0))
    with pytest.raises(ig.InputError, match=r"weights: expected ones for which .* convex"):
        ig.infer(p, "convex", weights=ig.EntropyWeights(-5.0), system=system)
    tree = random_potentials(ig.FactorGraph([2, 3, 2, 4], [(0, 1), (1, 2), (1, 3)]), np.random.default_rng(1))
    r = ig.infer(tree, "convex", weights="bethe", system=system)
    assert r.info.bound == "exact"
    assert_allclose(r.variables.flat, ig.infer(tree, "exact").variables.flat, atol=1e-9)


def test_a_system_that_is_not_solved_is_reported(monkeypatch, system):
    p = problem("coupled")
    result = ig.infer(p, ig.ConvexFreeEnergy(system=system), tape=True)
    monkeypatch.setattr(convex_iterative, "MOST", 1)
    with pytest.warns(ig.ConvergenceWarning, match="convex stopped after .* with residual inf"):
        assert not ig.infer(p, ig.ConvexFreeEnergy(system=system)).info.converged
    with pytest.warns(ig.ConvergenceWarning, match="solved only to a relative residual of"):
        result.backward(variables=np.arange(480.0))


def test_large_factors_are_replaced(monkeypatch):
    """By default, from a size on; not where factors are asked for, and not where hard zeros tie variables."""
    weights = ig.EntropyWeights()

    def kinds(p, system):
        patterns = Problem.of(p, *weights.on(p.graph), system).shape.layout.patterns
        return [pattern.preconditioner for pattern in patterns]

    def grid():
        return random_potentials(ig.grid_graph(9, 9, 2), np.random.default_rng(0))

    monkeypatch.setattr(convex_layout, "pattern_of", lambda local, key, *how: local.pattern(*how))  # keep none
    truth = ig.infer(grid(), "convex")
    assert kinds(grid(), "auto") == [""]
    equal = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[0.0, -np.inf], [-np.inf, 0.0]]])
    assert kinds(equal, "iterative") == [""]
    monkeypatch.setattr(convex_system, "LARGEST", 1000)
    assert kinds(grid(), "auto") == ["iterative"]
    assert kinds(grid(), "factorised") == [""]
    assert_allclose(ig.infer(grid(), "convex").variables.flat, truth.variables.flat, atol=1e-9)
    monkeypatch.setattr(convex_system, "LARGEST", 2**28)
    monkeypatch.setattr(convex_system, "SEARCH", 10)
    p = grid()
    assert kinds(p, "auto") == [""]
    assert Problem.of(p, *weights.on(p.graph)).shape.layout.patterns[0].bandwidth == 9


def test_multigrid_is_reproducible():
    pytest.importorskip("pyamg", reason="multigrid needs PyAMG (extra amg)")
    before = np.random.get_state()[1].copy()
    p = problem("coupled")
    one, two = (ig.infer(p, ig.ConvexFreeEnergy(system="multigrid")).variables.flat for _ in range(2))
    assert (one == two).all()
    assert (np.random.get_state()[1] == before).all()


def test_without_pyamg(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyamg", None)
    with pytest.raises(ig.MissingDependencyError, match=r"needs PyAMG: pip install isinglass\[amg\]"):
        ig.infer(problem("three states"), "convex", system="multigrid")
    refuses("system: expected 'auto' or 'factorised'", ig.infer, problem("three states"), "convex", system="lu")


def test_very_small_beliefs():
    """Beliefs down to 1e-40: a step need not be exact to lead to the same minimum."""
    rng = np.random.default_rng(0)
    p = random_potentials(ig.grid_graph(10, 10, 2), rng, 12.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, two = (ig.infer(p, ig.ConvexFreeEnergy(system=s)) for s in ("factorised", "iterative"))
    assert one.factors.groups[1].min() < 1e-30
    assert_allclose(two.variables.flat, one.variables.flat, rtol=0, atol=1e-9)
