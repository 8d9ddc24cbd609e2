"""Terms: tables against plain loops, transposes against dot products, sparse against dense."""

from itertools import product

import numpy as np
import pytest
from models_helpers import complex_normal
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

import isinglass as ig
from isinglass.learning.training.choices import choices_of
from isinglass.models import CallableTerm, CliqueTerm, EdgeTerm, IndicatorTerm, NodeTerm, SharedTerm
from isinglass.models.checks import times


def terms(rng):
    features, pairs = rng.standard_normal((5, 3)), rng.standard_normal((4, 2))
    indicators = sparse.random_array((3 * 6, 7), density=0.3, rng=rng)
    mixing = rng.standard_normal((2, 3, 4))
    return [
        NodeTerm("node", features, 3),
        NodeTerm("node", sparse.csr_array(features), 3),
        EdgeTerm("edge", pairs, 2),
        EdgeTerm("edge", pairs, (2, 3)),
        EdgeTerm("edge", sparse.coo_matrix(pairs), (2, 3)),
        CliqueTerm("triple", features, (2, 3, 2)),
        CliqueTerm("constant", features, ()),
        SharedTerm("edge", (2, 3)),
        SharedTerm("edge", (2, 3), n_tables=4),
        IndicatorTerm("pairs", indicators, (2, 3)),
        CallableTerm(
            "own",
            (4,),
            (3,),
            2,
            lambda w: np.einsum("txp,p->tx", mixing, w),
            lambda bars: np.einsum("txp,tx->p", mixing, bars),
        ),
        NodeTerm("node", np.zeros((0, 3)), 2),
        NodeTerm("node", sparse.csr_array((0, 3)), 2),
        NodeTerm("node", np.zeros((4, 0)), 2),
    ]


@pytest.mark.parametrize("i", range(14))
@pytest.mark.parametrize("kind", ["real", "complex"])
def test_the_transpose_is_the_adjoint(i, kind):
    rng = np.random.default_rng(i)
    term = terms(rng)[i]
    draw = rng.standard_normal if kind == "real" else lambda shape: complex_normal(rng, shape)
    weights, bars = np.asarray(draw(term.shape)), np.asarray(draw(term.tables_shape))
    tables, back = term.tables(weights), term.transpose(bars)
    assert tables.shape == term.tables_shape
    assert back.shape == term.shape
    assert tables.dtype == back.dtype == weights.dtype
    np.testing.assert_allclose((tables * bars).sum(), (weights * back).sum(), rtol=1e-12, atol=1e-12)
    term.check()


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_matrix, sparse.coo_array, np.asfortranarray])
def test_features_against_a_loop(make):
    rng = np.random.default_rng(0)
    features = rng.standard_normal((4, 3)) * (rng.random((4, 3)) < 0.6)
    cards = 2, 3, 2
    term = CliqueTerm("c", make(features), cards)
    weights = rng.standard_normal((3, *cards))
    found = term.tables(weights)
    for t in range(4):
        for x in product(*map(range, cards)):
            total = 0.0
            for j in range(3):
                total += features[t, j] * weights[(j, *x)]
            assert found[(t, *x)] == pytest.approx(total, abs=1e-14)


def test_indicators_against_a_loop():
    rng = np.random.default_rng(1)
    cards, n_tables, p = (2, 3), 4, 5
    hits = [(t, x, int(rng.integers(p))) for t in range(n_tables) for x in product(range(2), range(3))]
    rows = [t * 6 + int(np.ravel_multi_index(x, cards)) for t, x, _ in hits]
    matrix = sparse.csr_array((np.ones(len(hits)), (rows, [j for _, _, j in hits])), shape=(24, p))
    weights = rng.standard_normal(p)
    found = IndicatorTerm("i", matrix, cards).tables(weights)
    for t, x, j in hits:
        assert found[(t, *x)] == weights[j]


def test_features_and_kinds():
    features = np.ones((2, 2))
    rows = sparse.csr_array(features)
    plain, thin = NodeTerm("node", features, 2), NodeTerm("node", rows, 2)
    features[:], rows.data[:] = 5, 5
    for term in (plain, thin):
        assert term.tables(np.ones((2, 2))).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert [SharedTerm("x", (2,) * r).kind for r in range(4)] == ["clique", "node", "edge", "clique"]


def test_hard_zeros_by_a_callable_without_parameters():
    mask = np.log([[1.0, 0.0], [1.0, 1.0]], where=[[True, False], [True, True]], out=np.full((2, 2), -np.inf))[None]
    term = CallableTerm("forbidden", (0,), (2, 2), 1, lambda w: mask, lambda bars: np.zeros(0))
    model = ig.models.Model(ig.FactorGraph([2, 2], [(0, 1)]), [[SharedTerm("edge", (2, 2)), term]])
    p = model.potentials(np.arange(4.0))
    assert p.log_tables[0].tolist() == [[0.0, -np.inf], [2.0, 3.0]]
    assert model.transpose([np.ones((1, 2, 2))]).tolist() == [1.0] * 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: NodeTerm("", [[1.0]], 2), "name: expected a name for the parameters"),
        (lambda: NodeTerm("node", [[1.0, np.nan]], 2), r"features: expected finite .* nan at index \(0, 1\)"),
        (lambda: NodeTerm("node", sparse.csr_array([[0, 0], [0, np.inf]]), 2), r"features: .* inf at index \(1, 1\)"),
        (lambda: NodeTerm("node", [1.0, 2.0], 2), r"features: expected an array \(rows, features\), got shape \(2,\)"),
        (lambda: NodeTerm("node", [[1.0], [2.0, 3.0]], 2), "features: .* values that do not form an array"),
        (lambda: NodeTerm("node", [["a"]], 2), "features: expected finite real numbers, got dtype <U1"),
        (lambda: NodeTerm("node", sparse.csr_array([[1j]]), 2), "features: .* got dtype complex128"),
        (lambda: NodeTerm("node", [[1.0]], 0), r"n_states\[0\]: expected a whole number of at least 1, got 0"),
        (lambda: EdgeTerm("edge", [[1.0]], (2, 2, 2)), "n_states: expected one number, or a pair"),
        (lambda: SharedTerm("edge", 2), "cards: expected the numbers of states"),
        (lambda: SharedTerm("edge", (2, 2), table_ids=[0, 1]), r"table_ids: expected numbers from -1 .* got 0 to 1"),
        (lambda: IndicatorTerm("i", np.ones((5, 1)), (2, 2)), "features: expected 4 rows for each table"),
        (lambda: CallableTerm("c", (1,), (2,), 1, 3, len), "function: expected a function, got int"),
        (
            lambda: CallableTerm("c", (1,), (2,), 1, lambda w: np.zeros((2, 1)), lambda b: b),
            r"function: expected an array of shape \(1, 2\) from it, got shape \(2, 1\)",
        ),
        (
            lambda: CallableTerm("c", (2,), (2,), 1, lambda w: w[None], lambda b: 2 * b[0]),
            "transpose: expected the transpose of tables",
        ),
        (
            lambda: CallableTerm("c", (2,), (2,), 1, lambda w: w[None] ** 2, lambda b: b[0]),
            "tables must be linear",
        ),
    ],
)
def test_wrong_terms_are_answered_kindly(call, message):
    with pytest.raises(ig.InputError, match=message):
        call()


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
