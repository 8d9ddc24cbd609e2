"""The banded factorisation against SciPy's, and the limit on the threads of BLAS."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import cholesky_banded, solveh_banded
from threadpoolctl import threadpool_info, threadpool_limits

from isinglass.runtime.blas import one_blas_thread
from isinglass.runtime.lapack import factorise_band, solve_band


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
