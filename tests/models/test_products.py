"""Products of features and parameters: right, and the same bits for any number of threads."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

import isinglass as ig
from isinglass.learning.training.choices import choices_of
from isinglass.models.checks import times

SHAPES = [(1, 1, 1), (5, 3, 2), (9, 4, 8), (13, 50, 10), (7, 2, 19), (1100, 6, 3), (0, 3, 2), (3, 0, 2), (3, 2, 0)]


def random(*shape, dtype=np.float64, seed=0):
    draw = np.random.default_rng([seed, *shape]).normal
    return draw(size=shape) + 1j * draw(size=shape) if dtype == np.complex128 else draw(size=shape)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_are_those_of_numpy(shape, dtype):
    m, n, c = shape
    features, weights, bars = random(m, n), random(n, c, dtype=dtype), random(m, c, dtype=dtype)
    assert_allclose(times(features, weights), features @ weights, rtol=1e-12, atol=1e-12)
    assert_allclose(times(features.T, bars), features.T @ bars, rtol=1e-12, atol=1e-12)
    assert_allclose(times(features[:, ::2], weights[::2]), features[:, ::2] @ weights[::2], rtol=1e-12, atol=1e-12)
    assert times(features, weights).flags.c_contiguous
    assert times(features.T, bars).dtype == dtype


def test_arrays_of_any_shape_order_and_kind():
    features, tables = random(6, 4), random(4, 2, 3)
    features.flags.writeable = tables.flags.writeable = False
    expected = np.tensordot(features, tables, axes=(1, 0))
    assert_allclose(times(features, tables), expected, rtol=1e-12)
    assert_allclose(times(features, np.asfortranarray(tables)), expected, rtol=1e-12)
    assert_allclose(times(np.asfortranarray(features), tables), expected, rtol=1e-12)
    assert_allclose(times(csr_array(features), tables), expected, rtol=1e-12)
    assert_allclose(times(features, np.arange(4)), features @ np.arange(4.0), rtol=1e-12)


def test_threads_change_no_bit_of_a_product():
    features, weights, bars = random(20_000, 60), random(60, 9), random(20_000, 9)
    with threadpool_limits(1):
        one = times(features, weights), times(features.T, bars)
    with threadpool_limits(4):
        four = times(features, weights), times(features.T, bars)
    assert one[0].tobytes() == four[0].tobytes()
    assert one[1].tobytes() == four[1].tobytes()


@pytest.mark.long
@pytest.mark.parametrize("inference", ["exact", "trw"])
def test_dense_features_give_the_same_bits_for_any_number_of_jobs(inference):
    rng = np.random.default_rng(0)
    ring = np.stack([np.arange(1000), np.roll(np.arange(1000), -1)], axis=1)
    X = [(rng.normal(size=(1000, 60)), ring) for _ in range(10)]
    Y = [rng.integers(0, 3, 1000) for _ in X]
    found = []
    for jobs in (1, 2):
        crf = ig.GraphCRF(inference=inference, iterations=None if inference == "exact" else 2, loss="ucl", n_jobs=jobs)
        objective = crf._problem(choices_of(crf), X, Y).objective()
        assert len(objective.parts) > 1
        value, gradient = objective(0.1 * np.random.default_rng(1).normal(size=objective.size))
        found.append((value, gradient.tobytes()))
    assert found[0] == found[1]
