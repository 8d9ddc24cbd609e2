"""Terms: tables against plain loops, transposes against dot products, sparse against dense."""

from itertools import product

import numpy as np
import pytest
from models_helpers import complex_normal
from scipy import sparse

import isinglass as ig
from isinglass.models import CallableTerm, CliqueTerm, EdgeTerm, IndicatorTerm, NodeTerm, SharedTerm
from isinglass.models.checks import times
from isinglass.models.placement import SliceMap, SparseMap, place, selection


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


@pytest.mark.parametrize(("rows", "columns"), [(70_001, 5), (5, 70_001), (3, 4), (5000, 70)])
def test_products_in_pieces(rows, columns):
    rng = np.random.default_rng(0)
    matrix, array = rng.standard_normal((rows, columns)), complex_normal(rng, (columns, 2, 2))
    expected = np.tensordot(matrix, array, 1)
    np.testing.assert_allclose(times(matrix, array), expected, atol=1e-9)
    np.testing.assert_allclose(times(matrix, array.real), expected.real, atol=1e-9)


def test_features_are_copied():
    features = np.ones((2, 2))
    rows = sparse.csr_array(features)
    plain, thin = NodeTerm("node", features, 2), NodeTerm("node", rows, 2)
    features[:], rows.data[:] = 5, 5
    for term in (plain, thin):
        assert term.tables(np.ones((2, 2))).tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_kinds_go_by_arity():
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


def test_tables_are_numbered_term_by_term():
    shared, own = np.array([1, 1, 0, 1]), np.array([-1, 0, 0, -1])
    table_ids, n, chosen = place([shared, own], [2, 1], 4)
    assert table_ids.tolist() == [2, 1, 0, 2]
    assert n == 3
    assert [c.tolist() for c in chosen] == [[0, 1, 1], [0, 0, -1]]
    halves = np.array([0, -1, 1, -1, 2]), np.array([-1, 0, -1, 1, -1])
    table_ids, n, chosen = place(halves, [3, 2], 5)
    assert table_ids.tolist() == [0, 3, 1, 4, 2]
    assert [selection(c, m).of_group for c, m in zip(chosen, (3, 2), strict=True)] == [slice(0, 3), slice(3, 5)]


def test_selections_by_slices_and_by_a_matrix():
    rng = np.random.default_rng(0)
    for chosen, kind in (
        ([0, 1, 2], SliceMap),
        ([-1, 1, 2], SliceMap),
        ([1, 1, 0], SparseMap),
        ([-1, -1], SliceMap),
        ([], SliceMap),
    ):
        found = selection(np.array(chosen, int), 3)
        assert isinstance(found, kind)
        tables, bars = complex_normal(rng, (3, 2)), complex_normal(rng, (len(chosen), 2))
        total, expected = np.zeros((len(chosen), 2), complex), np.zeros((3, 2), complex)
        found.add(tables, total)
        for u, t in enumerate(chosen):
            np.testing.assert_allclose(total[u], tables[t] if t >= 0 else 0)
            if t >= 0:
                expected[t] += bars[u]
        np.testing.assert_allclose(found.collect(bars), expected)
