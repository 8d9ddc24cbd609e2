"""The banded factorisation against SciPy's, and the limit on the threads of BLAS."""

from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import cholesky_banded, solveh_banded
from threadpoolctl import threadpool_info, threadpool_limits

import isinglass as ig
from isinglass.kernels.numba.arithmetic.powers import is_strange, raise_run
from isinglass.runtime.blas import one_blas_thread
from isinglass.runtime.compilation.jit import compiled
from isinglass.runtime.lapack import factorise_band, solve_band
from isinglass.testing import random_potentials


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize(("n", "width"), [(1, 0), (7, 2), (200, 40)])
def test_against_scipy(n, width):
    rng = np.random.default_rng(n)
    band = rng.normal(size=(n, width + 1))
    band[:, 0] = 4 * width + 1
    right = rng.normal(size=n)
    factor, x = band.copy(), right.copy()
    assert factorise_band(factor)
    solve_band(factor, x)
    for j in range(1, width + 1):
        band[n - j :, j] = factor[n - j :, j] = 0  # beyond the matrix
    assert_allclose(factor, cholesky_banded(band.T, lower=True).T, atol=1e-12)
    assert_allclose(x, solveh_banded(band.T, right, lower=True), rtol=1e-10)


def test_what_is_not_positive_definite():
    assert not factorise_band(np.array([[1.0, 2.0], [1.0, 0.0]]))


def test_the_limit_ends_with_its_last_user():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        assert blas_threads() == {1}
        first.__exit__(None, None, None)
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: factorise_band(np.ones((50, 1))), range(200)))
        assert blas_threads() == before


@compiled
def raised(x, c, out):
    return raise_run(x, c, out)


@compiled
def strange(x, c, out):
    for k in range(len(x)):
        out[k] = is_strange(x[k], c[k])


@pytest.mark.parametrize(("low", "high"), [(-12, 0), (-300, 0), (0, 300)])
def test_powers_are_right_to_the_last_place(low, high):
    rng = np.random.default_rng(0)
    x, c = 10 ** rng.uniform(low, high, 3001), rng.uniform(-1, 1, 3001)
    x[:500] = 1 - 10 ** rng.uniform(-16, -1, 500)
    out = np.empty(len(x))
    assert raised(x, c, out)
    with mpmath.workdps(40):
        truth = [mpmath.power(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(x, c, strict=True)]
        worst = max(abs(float(mpmath.mpf(mine) / exact - 1)) for mine, exact in zip(out, truth, strict=True))
    assert worst < 2.3e-16


def test_what_is_not_normal_is_told():
    x = np.array([0.5, 0.0, 5e-324, 1e-300, 1e300, 1e-200, 1.0, 2.3e-308])
    c = np.array([2.0, 0.5, 0.5, 1.1, -1.1, 0.5, 7.0, 0.5])
    found = np.zeros(len(x), bool)
    strange(x, c, found)
    assert_array_equal(found, [False, True, True, True, True, False, False, False])
    for k in range(len(x)):
        assert raised(x[k : k + 1], c[k : k + 1], np.empty(1)) == (not found[k])


def test_a_component_is_the_same_beside_one_with_zeros():
    rng = np.random.default_rng(1)
    graph = ig.grid_graph(3, 4, 2)
    plain, hard = random_potentials(graph, rng), random_potentials(graph, rng, 1.0, 0.3, np.zeros(12, int))
    algorithm = ig.TreeReweighted(iterations=7)
    alone = ig.infer(plain, algorithm)
    beside = ig.infer(ig.potentials_union([hard, plain]), algorithm)
    assert (beside.messages[: len(alone.messages)] == -np.inf).any()
    assert_allclose(beside.variables.flat[24:], alone.variables.flat, rtol=1e-12, atol=1e-12)
