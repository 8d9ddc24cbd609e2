"""Gaussian fields in information form, against dense linear algebra."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csc_array, csr_matrix
from scipy.stats import multivariate_normal

import isinglass as ig
from checks import refuses
from isinglass.inference.gaussian import SparseFactor
from isinglass.inference.gaussian.factor import fill_order


def random_precision(n, density, rng):
    """Return a sparse positive definite matrix, with entries of either sign."""
    upper = np.triu(rng.random((n, n)) < density, 1) * rng.normal(size=(n, n))
    J = upper + upper.T
    return J + np.diag(np.abs(J).sum(axis=0) + rng.uniform(0.1, 2.0, n))


def grid_precision(side, own):
    graph = ig.grid_graph(side, side, 2)
    pairs = np.array([s for s in graph.scopes if len(s) == 2])
    n = side * side
    off = coo_array((-np.ones(len(pairs)), tuple(pairs.T)), (n, n))
    return csc_array(off + off.T + coo_array((np.full(n, own), (np.arange(n),) * 2), (n, n)))


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 14), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_everything_agrees_with_dense_matrices(n, density, seed):
    rng = np.random.default_rng(seed)
    J, h = random_precision(n, density, rng), rng.normal(size=n)
    field, S = ig.GaussianField(csc_array(J), h), np.linalg.inv(J)
    normal = multivariate_normal(S @ h, S)
    assert_allclose(field.mean, S @ h, atol=1e-10)
    assert_allclose(field.log_determinant, np.linalg.slogdet(J)[1], atol=1e-10)
    assert_allclose(field.variances(), np.diag(S), rtol=1e-10)
    assert_allclose(field.covariances().toarray(), np.where(J != 0, S, 0), atol=1e-10)
    X = rng.normal(size=(3, n))
    assert_allclose(field.log_density(X), np.atleast_1d(normal.logpdf(X.squeeze() if n > 1 else X)), rtol=1e-9)
    assert_allclose(field.log_density(X), X @ h - np.einsum("ai,ij,aj->a", X, J, X) / 2 - field.log_z, rtol=1e-9)
    some = rng.permutation(n)[: rng.integers(1, n + 1)].tolist()
    assert_allclose(field.covariance(some), S[np.ix_(some, some)], atol=1e-10)
    part = field.marginal(some)
    assert_array_equal(part.variables, some)
    assert_allclose(part.mean, (S @ h)[some], atol=1e-10)
    assert_allclose(np.linalg.inv(part.precision.toarray()), S[np.ix_(some, some)], atol=1e-8)


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 10), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_conditioning_is_the_schur_complement_of_the_covariance(n, density, seed):
    rng = np.random.default_rng(seed)
    J, h = random_precision(n, density, rng), rng.normal(size=n)
    S = np.linalg.inv(J)
    seen = rng.permutation(n)[: rng.integers(1, n)]
    rest = np.setdiff1d(np.arange(n), seen)
    x = rng.normal(size=len(seen))
    field = ig.GaussianField(J, h).condition(dict(zip(seen.tolist(), x.tolist(), strict=True)))
    gain = S[np.ix_(rest, seen)] @ np.linalg.inv(S[np.ix_(seen, seen)])
    assert_allclose(field.mean, (S @ h)[rest] + gain @ (x - (S @ h)[seen]), atol=1e-8)
    assert_allclose(
        np.linalg.inv(field.precision.toarray()), S[np.ix_(rest, rest)] - gain @ S[np.ix_(seen, rest)], atol=1e-8
    )
    assert_array_equal(field.variables, rest)
    row = np.full((1, n), np.nan)
    row[0, seen] = x
    filled = ig.GaussianField(J, h).impute(row)
    assert_allclose(filled[0, rest], field.mean, atol=1e-8)
    assert_array_equal(filled[0, seen], x)


def test_partial_correlations_are_those_of_residuals():
    rng = np.random.default_rng(0)
    J = random_precision(5, 0.6, rng)
    S, found = np.linalg.inv(J), ig.GaussianField(J).partial_correlations().toarray()
    for i, j in ig.GaussianField(J).edges():
        rest = np.setdiff1d(np.arange(5), [i, j])
        given = S[np.ix_([i, j], [i, j])] - S[np.ix_([i, j], rest)] @ np.linalg.solve(
            S[np.ix_(rest, rest)], S[np.ix_(rest, [i, j])]
        )
        assert_allclose(found[i, j], given[0, 1] / np.sqrt(given[0, 0] * given[1, 1]), rtol=1e-10)
    assert_array_equal(np.diag(found), 1)
    assert_array_equal(found != 0, J != 0)


@pytest.mark.long
def test_samples_have_the_moments_of_the_field():
    rng = np.random.default_rng(1)
    J = random_precision(4, 0.7, rng)
    field = ig.GaussianField(J, mean=[1.0, -2.0, 0.0, 5.0])
    X = field.sample(200_000, random_state=2)
    S = np.linalg.inv(J)
    error = np.sqrt((np.outer(np.diag(S), np.diag(S)) + S**2) / len(X))
    assert (np.abs(np.cov(X.T) - S) < 4.5 * error).all()
    assert (np.abs(X.mean(axis=0) - field.mean) < 4.5 * np.sqrt(np.diag(S) / len(X))).all()
    assert_array_equal(field.sample(3, random_state=7), field.sample(3, random_state=7))
    assert field.sample(0).shape == (0, 4)


@pytest.mark.long
def test_a_large_grid_takes_seconds():
    """Log determinant, marginal variances and a sample of 300 x 300 variables: at most 5 s on one core."""
    ig.GaussianField(np.eye(2)).sample(1)
    ig.GaussianField(np.eye(2)).variances()
    J = grid_precision(300, 4.1)
    began = time.process_time()
    field = ig.GaussianField(J)
    log_det, variances, x = field.log_determinant, field.variances(), field.sample(1, random_state=0)
    seconds = time.process_time() - began
    assert seconds < 5
    line = 2 * np.cos(np.pi * np.arange(1, 301) / 301)  # eigenvalues of a path
    eigenvalues = 4.1 - line[:, None] - line
    assert_allclose(log_det, np.log(eigenvalues).sum(), rtol=1e-12)
    vectors = np.sqrt(2 / 301) * np.sin(np.pi * np.outer(np.arange(1, 301), np.arange(1, 301)) / 301)
    assert_allclose(variances.reshape(300, 300), vectors**2 @ (1 / eigenvalues) @ (vectors**2).T, rtol=1e-10)
    assert abs(float((x**2).mean()) / variances.mean() - 1) < 0.1


def test_orders_of_elimination_are_permutations():
    order = fill_order(grid_precision(12, 4.0))
    assert_array_equal(np.sort(order), np.arange(144))
    star = np.eye(50)
    star[0] = star[:, 0] = 0.1
    star[0, 0] = 1
    assert len(SparseFactor(csc_array(star)).lower) == 49  # no fill


@pytest.mark.parametrize(
    ("J", "message"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "precision: expected a positive definite matrix, got a conditional precision of -3"),
        ([[1.0, 1.0], [1.0, 1.0]], "positive definite"),
        ([[1.0, 0.0], [0.0, -1.0]], "-1 on the diagonal at 1"),
        ([[0.0]], "0 on the diagonal at 0"),
        ([[1.0, 0.5], [0.2, 1.0]], "symmetric"),
        ([[1.0, np.nan], [np.nan, 1.0]], "finite"),
        ([[1.0, 0.0]], "square"),
        (np.zeros((0, 0)), "square"),
        ([["a"]], "square matrix of finite numbers"),
        (csr_matrix(np.array([[1 + 1j]])), "complex"),
    ],
)
def test_a_matrix_that_is_no_precision_is_refused(J, message):
    refuses(message, ig.GaussianField, J)


def test_an_intrinsic_field_is_refused_at_any_size():
    """The Laplacian of a grid is singular: rounding must not make it look positive definite."""
    for side in (2, 7, 40):
        J = grid_precision(side, 0.0)
        refuses("positive definite", ig.GaussianField, J - csc_array(np.diag(np.asarray(J.sum(axis=0)).ravel())))


def test_wrong_questions_are_named():
    field = ig.GaussianField(np.eye(2))
    for call, name in [
        (lambda: field.condition({0: 1.0, 1: 1.0}), "given"),
        (lambda: field.condition({2: 1.0}), "given"),
        (lambda: field.condition([0]), "given"),
        (lambda: field.condition({0: np.nan}), "given"),
        (lambda: field.marginal([0, 0]), "variables"),
        (lambda: field.log_density([[1.0, np.nan]]), "X"),
        (lambda: field.log_density([1.0, 2.0]), "X"),
        (lambda: field.impute([[np.inf, 1.0]]), "X"),
        (lambda: field.sample(-1), "n"),
        (lambda: ig.GaussianField(np.eye(2), [1.0]), "potential"),
        (lambda: ig.GaussianField(np.eye(2), [1.0, 1.0], mean=[1.0, 1.0]), "mean"),
        (lambda: ig.GaussianField(np.eye(2), mean=["a", "b"]), "mean"),
    ]:
        with pytest.raises(ig.InputError) as told:
            call()
        assert told.value.argument == name
