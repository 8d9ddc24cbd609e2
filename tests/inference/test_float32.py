"""Messages in float32: against float64 and enumeration, within what rounding allows; hard zeros, batches, refusals.

UNIT is the rounding of a float32. A message of k states is computed with at most k + 6 roundings (its tables and
potentials count, too), which change its logarithm by an oscillation of 2 (k + 6) UNIT; an update sums the changes of
three messages and widens none. So flooding T times from equal messages differs by e_T <= 3 e_{T-1} + 2 (k + 6) UNIT,
and no probability by more than tanh(4 e_T / 4) < e_T = (k + 6) (3^T - 1) UNIT.
"""

import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from isinglass.graph.message_graph import pool_of
from isinglass.inference.message_passing import shares
from isinglass.inference.message_passing.algorithms.narrow import UNIT, least_tol
from isinglass.inference.message_passing.moves import planes, sheets
from isinglass.kernels.backend import using
from isinglass.kernels.numba.backend import NUMBA
from isinglass.learning.training import fingerprint
from isinglass.testing.strategies import tried

SCHEDULES = ["flooding", "grid"]


def grid(height=4, width=5, card=2, own=True, scale=0.6, seed=0):
    """Return a random grid, with one table for each edge, or one for all."""
    rng, graph = np.random.default_rng(seed), ig.grid_graph(height, width, card)
    unary, edges = graph.groups
    ids = np.arange(len(edges)) * own
    tables = [rng.normal(size=(len(unary), card)), scale * rng.normal(size=(ids.max() + 1, card, card))]
    return ig.Potentials.from_groups(graph, tables, table_ids=[np.arange(len(unary)), ids])


def with_zero(p):
    """Return a model with one hard zero in a table of an edge."""
    groups = [tables.copy() for tables in p.groups]
    groups[1][0].flat[0] = -np.inf
    return ig.Potentials.from_groups(p.graph, groups, p.table_ids)


def both(p, tape=False, **options):
    """Infer with float64 and with float32."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ig.ConvergenceWarning)
        return [ig.infer(p, ig.BeliefPropagation(dtype=d, **options), tape=tape) for d in ("float64", "float32")]


def bars_of(p, seed=1):
    rng = np.random.default_rng(seed)
    return {
        "log_z": rng.normal(size=p.graph.n_components),
        "variables": rng.normal(size=p.graph.cards.sum()),
        "factors": [rng.normal(size=p.graph.cards[list(scope)]) for scope in p.graph.scopes],
    }


def numbers(result, **bars):
    """Return all numbers of an inference and of its reverse."""
    found = [result.component_log_z, result.variables.flat, *result.factors.groups, result.messages]
    gradients = result.backward(**bars)
    return [*found, *gradients.groups, gradients.initial_messages]


def off(gradients, wanted):
    """Return the largest difference of derivatives, relative to the largest of them."""
    one, two = (np.concatenate([group.ravel() for group in g.groups]) for g in (gradients, wanted))
    return np.abs(one - two).max() / np.abs(two).max()


@tried(60)
@given(
    height=st.integers(2, 5),
    width=st.integers(2, 5),
    card=st.integers(2, 4),
    own=st.booleans(),
    scale=st.sampled_from([0.3, 2.0, 8.0, 30.0]),
    seed=st.integers(0, 2**20),
    iterations=st.integers(1, 4),
)
def test_flooding_is_that_of_float64_within_rounding(height, width, card, own, scale, seed, iterations):
    p = grid(height, width, card, own, scale, seed)
    wide, narrow = both(p, iterations=iterations, schedule="flooding")
    assert_allclose(narrow.variables.flat, wide.variables.flat, rtol=0, atol=(card + 6) * (3**iterations - 1) * UNIT)
    if narrow.info.details["float32"] == 0:
        assert_array_equal(narrow.variables.flat, wide.variables.flat)
        assert narrow.log_z == wide.log_z


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("card", [2, 3])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("options", [{"iterations": 3}, {}], ids=["three iterations", "to convergence"])
def test_beliefs_and_gradients(schedule, card, own, options):
    p = grid(6, 7, card, own)
    wide, narrow = both(p, tape=True, schedule=schedule, **options)
    assert narrow.info.details["float32"] == 1
    assert narrow.info.converged == wide.info.converged
    assert_allclose(narrow.variables.flat, wide.variables.flat, atol=1e-5, rtol=0)
    for one, two in zip(narrow.factors.groups, wide.factors.groups, strict=True):
        assert_allclose(one, two, atol=2e-5, rtol=0)
    assert abs(narrow.log_z - wide.log_z) < 1e-6
    for bars in ({"log_z": 1.0}, {"variables": bars_of(p)["variables"]}, bars_of(p)):
        gradients = narrow.backward(**bars)
        assert off(gradients, wide.backward(**bars)) < 1e-4
        assert all(group.dtype == np.float64 for group in gradients.groups)
    assert narrow.variables.flat.dtype == narrow.messages.dtype == np.float64


def test_the_gradient_is_that_of_a_float64_run():
    p = grid(3, 3)
    bars = bars_of(p)["variables"]
    _, narrow = both(p, tape=True, iterations=4, schedule="flooding")
    found = narrow.backward(variables=bars).groups[1]
    for entry in [(0, 0, 0), (5, 1, 0), (11, 1, 1)]:
        values = []
        for step in (1e-5, -1e-5):
            groups = [tables.copy() for tables in p.groups]
            groups[1][entry] += step
            moved, _ = both(ig.Potentials.from_groups(p.graph, groups), iterations=4, schedule="flooding")
            values.append(moved.variables.flat @ bars)
        assert found[entry] == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-4, abs=1e-6)


@tried(40)
@given(
    scale=st.sampled_from([0.5, 5.0, 20.0, 60.0, 500.0]),
    zeros=st.integers(0, 3),
    card=st.integers(2, 3),
    schedule=st.sampled_from(SCHEDULES),
    seed=st.integers(0, 2**20),
)
def test_tables_that_factorise_are_exact(scale, zeros, card, schedule, seed):
    """Tables a(x) b(y) make variables independent, so that belief propagation is exact, whatever their size."""
    rng = np.random.default_rng(seed)
    graph = ig.grid_graph(2, 3, card)
    one, two = scale * rng.normal(size=(2, 7, card))
    one.flat[rng.choice(one.size, zeros, replace=False)] = -np.inf
    unary = rng.normal(size=(6, card))
    p = ig.Potentials.from_groups(graph, [unary, one[:, :, None] + two[:, None]])
    try:
        truth = ig.infer(p, "brute")
    except ig.ImpossibleEvidenceError:
        return
    _, narrow = both(p, schedule=schedule)
    assert narrow.info.converged
    assert_allclose(narrow.variables.flat, truth.variables.flat, rtol=0, atol=4 * least_tol(graph))
    assert narrow.log_z == pytest.approx(truth.log_z, rel=1e-6, abs=1e-6)
    impossible = truth.variables.flat == 0
    if zeros:
        assert narrow.info.details["float32"] == 0
        assert_array_equal(narrow.variables.flat[impossible], 0.0)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_hard_zeros_and_evidence_are_those_of_float64(schedule):
    p = grid()
    observed = ig.Potentials.from_groups(p.graph, p.groups, p.table_ids, {3: 1})
    for model in (with_zero(p), observed):
        found = [numbers(r, **bars_of(p)) for r in both(model, tape=True, schedule=schedule, tol=1e-5)]
        for one, two in zip(*found, strict=True):
            assert_array_equal(one, two)


MEMBERS = {
    "plain": grid(),
    "strong": grid(scale=3.0, seed=1),
    "one table": grid(own=False, seed=2),
    "hard zero": with_zero(grid(seed=3)),
    "beyond float32": grid(scale=40.0, seed=4),
    "beyond float64": grid(scale=500.0, seed=5),
}


@pytest.mark.parametrize("tape", [True, "sqrt"])
@pytest.mark.parametrize("options", [{"iterations": 5}, {"max_iter": 6, "tol": 1e-3}], ids=str)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_batch_and_threads_do_not_change_a_bit(schedule, options, tape):
    algorithm = ig.BeliefPropagation(schedule=schedule, dtype="float32", **options)
    members = list(MEMBERS.values())
    whole, each = ig.potentials_union(members), [bars_of(p, seed) for seed, p in enumerate(members)]
    bars = {
        "log_z": np.concatenate([b["log_z"] for b in each]),
        "variables": np.concatenate([b["variables"] for b in each]),
        "factors": [f for b in each for f in b["factors"]],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ig.ConvergenceWarning)
        together = [ig.infer(whole, algorithm, tape=tape, n_jobs=n) for n in (1, 3)]
        alone = [ig.infer(p, algorithm, tape=tape) for p in members]
    assert 0 < together[0].info.details["float32"] < 1
    for result in together:
        assert_array_equal(result.component_log_z, [r.log_z for r in alone])
        assert_array_equal(result.variables.flat, np.concatenate([r.variables.flat for r in alone]))
        assert_array_equal(result.messages, np.concatenate([r.messages for r in alone]))
    if schedule == "grid":  # there the loop of the reverse depends on all tables of a batch, with float64, too
        return
    tables = [table for r, b in zip(alone, each, strict=True) for table in r.backward(**b).log_tables]
    for result in together:
        for one, two in zip(result.backward(**bars).log_tables, tables, strict=True):
            assert_array_equal(one, two)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_gradients_of_a_batch_of_images(schedule):
    members = [grid(scale=scale, seed=seed) for seed, scale in enumerate((0.3, 1.0, 2.0))]
    algorithm = ig.BeliefPropagation(schedule=schedule, dtype="float32", iterations=5)
    bars = [bars_of(p)["variables"] for p in members]
    tables = [
        table
        for p, bar in zip(members, bars, strict=True)
        for table in ig.infer(p, algorithm, tape=True).backward(variables=bar).log_tables
    ]
    for n in (1, 3):
        found = ig.infer(ig.potentials_union(members), algorithm, tape="sqrt", n_jobs=n)
        for one, two in zip(found.backward(variables=np.concatenate(bars)).log_tables, tables, strict=True):
            assert_array_equal(one, two)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_blocks_of_a_large_grid(monkeypatch, schedule, own):
    monkeypatch.setattr(shares, "BLOCK", 60)
    monkeypatch.setattr(shares, "RANGE", 16)
    monkeypatch.setattr(planes, "EDGES", 8)
    monkeypatch.setattr(sheets, "LINE", 3)
    sheets._chunk.cache_clear()  # it knows the sizes of blocks
    p = grid(19, 17, own=own)
    assert sheets.sheets_of(p.graph).is_large
    algorithm = ig.BeliefPropagation(iterations=3, schedule=schedule, dtype="float32")
    found = [numbers(ig.infer(p, algorithm, tape=True, n_jobs=n), **bars_of(p)) for n in (1, 2, 3)]
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert_array_equal(one, two)
    wide = ig.infer(p, replace(algorithm, dtype="float64"), tape=True)
    assert_allclose(found[0][1], wide.variables.flat, atol=1e-5)


def test_tapes_take_half_of_the_memory():
    half = ig.BeliefPropagation(iterations=40, dtype="float32").tape_bytes(ig.grid_graph(9, 9, 2))
    assert half == ig.BeliefPropagation(iterations=40).tape_bytes(ig.grid_graph(9, 9, 2)) / 2
    for tape, iterations in ((True, 60), ("sqrt", 150)):
        one, two = (_bytes(tape, iterations, dtype) for dtype in ("float64", "float32"))
        assert 0.45 * one < two < 0.55 * one


def _bytes(tape, iterations, dtype):
    """Return how much more memory a result with a tape has."""
    algorithm, sizes = ig.BeliefPropagation(iterations=iterations, dtype=dtype), []
    for kept in (False, tape):
        ig.infer(grid(60, 60), algorithm, tape=kept)  # compiles
        p = grid(60, 60)
        tracemalloc.start()
        result = ig.infer(p, algorithm, tape=kept)
        result.messages, result.log_z  # noqa: B018 - nothing is left in planes, to be computed later
        pool_of(p.graph).free.clear()
        sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        del result
    return sizes[1] - sizes[0]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_converged_means(schedule):
    p = grid(8, 8, 3)
    r = ig.infer(p, ig.BeliefPropagation(schedule=schedule, dtype="float32", tol=1e-12))
    assert r.info.converged
    assert r.info.residual <= r.info.details["tol"] == least_tol(p.graph)
    assert r.info.bound is None
    again = ig.infer(p, ig.BeliefPropagation(schedule=schedule, iterations=1, tol=1.0), init=r)
    assert again.info.residual <= 2 * r.info.details["tol"]  # by the arithmetic of float64
    assert np.abs(again.variables.flat - r.variables.flat).max() <= 4 * r.info.details["tol"]
    loose = ig.infer(p, ig.BeliefPropagation(schedule=schedule, dtype="float32", tol=1e-2))
    assert loose.info.details["tol"] == 1e-2
    assert loose.info.iterations < r.info.iterations


@pytest.mark.parametrize("card", [2, 3, 7])
def test_the_least_tolerance_is_reached(card):
    for seed in range(4):
        for scale in (0.1, 0.5, 1.0, 2.0):
            wide, narrow = both(grid(9, 9, card, scale=scale, seed=seed), max_iter=400)
            assert narrow.info.converged or not wide.info.converged


def test_a_start_and_potentials_for_each_iteration():
    p = grid()
    q = ig.Potentials.from_groups(p.graph, grid(seed=9).groups)
    first = ig.infer(q, "bp")
    for schedule in SCHEDULES:
        wide, narrow = (
            ig.infer([p, q], ig.BeliefPropagation(iterations=2, schedule=schedule, dtype=d), tape=True, init=first)
            for d in ("float64", "float32")
        )
        assert_allclose(narrow.variables.flat, wide.variables.flat, atol=1e-5)
        gradients = [r.backward(variables=bars_of(p)["variables"]) for r in (narrow, wide)]
        assert off(*gradients) < 1e-4


def test_other_uses():
    p = grid()
    narrow = ig.BeliefPropagation(dtype="float32")
    one, two = ig.map_assignment(p, narrow), ig.map_assignment(p, ig.BeliefPropagation())
    assert_array_equal(one.states, two.states)
    assert ig.infer(p, narrow, check_stability=True).info.stable
    bars = bars_of(p)["variables"]
    wide, found = (r.backward(variables=bars) for r in both(p, tape=True, iterations=3))
    assert_allclose(found.counting_numbers, wide.counting_numbers, atol=1e-4 * np.abs(wide.counting_numbers).max())


@pytest.mark.parametrize(
    ("inference", "options"),
    [
        ({"iterations": 4, "schedule": "flooding"}, {"loss": "ucl", "tol": 1e-3}),
        ({"iterations": 3, "schedule": "grid"}, {"loss": "ucl", "tol": 1e-3}),
        ({"schedule": "grid"}, {"loss": "cl", "gradient": "envelope"}),
        ({"schedule": "flooding"}, {"loss": "ucl", "gradient": "implicit", "tol": 0.05}),
    ],
)
def test_an_estimator_learns_the_same(inference, options):
    rng = np.random.default_rng(0)
    Y = (rng.normal(size=(2, 5, 6)).cumsum(axis=2) > 0).astype(int)
    X = np.stack([Y + rng.normal(size=Y.shape), np.ones(Y.shape)], axis=-1)
    fitted = [
        ig.GridCRF(inference=ig.BeliefPropagation(dtype=d, **inference), **options).fit(X, Y)
        for d in ("float64", "float32")
    ]
    wide, narrow = (crf.predict_marginals(X) for crf in fitted)
    assert_allclose(narrow, wide, atol=1e-3)
    assert_array_equal(fitted[0].predict(X), fitted[1].predict(X))


def chain():
    return ig.Potentials(ig.chain_graph(4, 2), [np.zeros(2)] * 4 + [np.eye(2)] * 3)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (grid, {"dtype": "float16"}, "dtype: expected 'float64' or 'float32', got 'float16'"),
        (grid, {"dtype": np.int64}, "dtype: expected 'float64' or 'float32', got 'int64'"),
        (chain, {}, "'float64' for graphs other than regular grids of one size, got 'float32'; float32 serves"),
        (lambda: ig.potentials_union([grid(), grid(3, 3)]), {}, "graphs other than regular grids of one size"),
        (grid, {"damping": 0.2}, "dtype: expected 'float64' for damping, got 'float32'"),
        (grid, {"schedule": "sequential"}, "'float64' for schedules other than 'flooding' and 'grid'"),
        (grid, {"schedule": "random"}, "schedules other than"),
        (grid, {"schedule": "residual"}, "schedules other than"),
    ],
)
def test_what_is_refused(model, options, message):
    with pytest.raises(ig.InputError) as error:
        ig.infer(model(), "bp", **{"dtype": "float32"} | options)
    assert message in str(error.value)


def test_complex_potentials_and_other_kernels_are_refused():
    p = grid()
    direction = [np.ones_like(table) for table in p.log_tables]
    with pytest.raises(ig.InputError, match="'float64' for complex potentials"):
        ig.hessian_vector_product(p, ig.BeliefPropagation(dtype="float32", iterations=2), direction, log_z=1.0)

    class Plain(type(NUMBA)):
        grids = None

    with using(Plain()), pytest.raises(ig.InputError, match="'float64' for kernels without loops for grids"):
        ig.infer(p, "bp", dtype="float32")


def test_only_belief_propagation_has_the_option():
    for name in ("trw", "fbp", "max-product"):
        with pytest.raises(ig.InputError, match="dtype"):
            ig.infer(grid(), name, dtype="float32")


@pytest.mark.parametrize("wide", [False, True])
def test_the_dtype_may_be_numpys(wide):
    name = "float64" if wide else "float32"
    given = [getattr(np, name), np.dtype(name), name]
    made = [ig.BeliefPropagation(iterations=3, dtype=dtype) for dtype in given]
    assert made[0] == made[1] == made[2]
    assert len({fingerprint(one) for one in made}) == 1
    assert fingerprint(ig.BeliefPropagation(iterations=3)) == fingerprint(made[0]) or not wide
    beliefs = [ig.infer(grid(), one).variables.flat for one in made]
    assert_array_equal(beliefs[0], beliefs[2])
    assert_array_equal(beliefs[1], ig.infer(grid(), "bp", iterations=3, dtype=given[0]).variables.flat)


@pytest.mark.parametrize("dtype", [np.float16, np.int64, float, None, 3, "half"])
def test_other_dtypes_are_refused(dtype):
    with pytest.raises(ig.InputError, match="dtype: expected 'float64' or 'float32'"):
        ig.infer(grid(), "bp", dtype=dtype)
