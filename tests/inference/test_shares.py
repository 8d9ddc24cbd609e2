"""Threads that share one graph: the same bits for any number of them, also where a component is cut into blocks."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import isinglass as ig
from isinglass import segments
from isinglass.errors import no_convergence_warnings
from isinglass.inference.message_passing import shares
from isinglass.inference.message_passing.moves import planes, sheets
from isinglass.inference.message_passing.moves.lattices import lattice_of
from isinglass.inference.message_passing.moves.sheets import sheets_of
from isinglass.runtime.threads import team

THREADS = [2, 3, 16]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Let small graphs count as large."""
    monkeypatch.setattr(shares, "BLOCK", 60)
    monkeypatch.setattr(shares, "RANGE", 16)
    monkeypatch.setattr(planes, "EDGES", 8)
    monkeypatch.setattr(sheets, "LINE", 3)
    sheets._chunk.cache_clear()  # it knows the sizes of blocks
    yield
    sheets._chunk.cache_clear()


def grid(card=2, own=True, height=23, width=21, seed=0):
    """Return a regular grid, with one table for each edge, one for all (None: some edges share one)."""
    rng, graph = np.random.default_rng(seed), ig.grid_graph(height, width, card)
    unary, edges = graph.groups
    ids = rng.integers(0, 7, len(edges)) if own is None else np.arange(len(edges)) * own
    tables = [rng.normal(size=(len(unary), card)), 0.6 * rng.normal(size=(ids.max() + 1, card, card))]
    return ig.Potentials.from_groups(graph, tables, table_ids=[np.arange(len(unary)), ids])


def general(card=2, shared=False, triples=True, seed=0):
    """Return pairs, and triples, in any order."""
    rng, n = np.random.default_rng(seed), 150
    order, line = rng.permutation(n), np.arange(n - 1)
    near = order[np.stack([line, line + 1], axis=1)]  # connected
    far = rng.permuted(np.tile(np.arange(n), (60, 1)), axis=1)
    scopes = [np.arange(n)[:, None], np.concatenate([near, far[:, :2]])] + ([far[:30, 2:5]] if triples else [])
    graph = ig.FactorGraph.from_groups([card] * n, scopes)
    ids = [np.arange(n), np.arange(len(scopes[1])) % (5 if shared else n**2), *([np.arange(30)] if triples else [])]
    tables = [0.5 * rng.normal(size=(i.max() + 1, *[card] * s.shape[1])) for i, s in zip(ids, scopes, strict=True)]
    return ig.Potentials.from_groups(graph, tables, table_ids=ids)


def everything(p, make, threads, backward=True, tape=True, **options):
    """Return all numbers of an inference and of its reverse."""
    rng = np.random.default_rng(1)
    with no_convergence_warnings():
        result = ig.infer(p, make(n_jobs=threads, **options), tape=tape if backward else False)
    found = [result.component_log_z, result.variables.flat, *result.factors.groups, result.messages]
    found.append(np.array([result.info.residual, result.info.iterations]))
    if backward:
        factors = [rng.normal(size=p.graph.cards[list(scope)]) for scope in p.graph.scopes]
        for bars in ({"variables": rng.normal(size=result.variables.flat.shape)}, {"log_z": 1.0, "factors": factors}):
            gradients = result.backward(**bars)
            found += [*gradients.groups, gradients.initial_messages]
    return found


def check(p, make, **options):
    wanted = everything(p, make, 1, **options)
    for threads in THREADS:
        for one, two in zip(wanted, everything(p, make, threads, **options), strict=True):
            assert_array_equal(one, two, err_msg=f"{threads} threads")


@pytest.mark.long
@pytest.mark.parametrize("schedule", ["flooding", "grid"])
@pytest.mark.parametrize("own", [True, False, None])
@pytest.mark.parametrize("card", [2, 3])
def test_a_grid(card, own, schedule):
    p = grid(card, own)
    assert len(lattice_of(p.graph).row_blocks) > 4
    assert sheets_of(p.graph).chunks > 2
    check(p, ig.BeliefPropagation, iterations=5, schedule=schedule)
    check(p, ig.BeliefPropagation, iterations=5, schedule=schedule, tape="sqrt")


@pytest.mark.parametrize("schedule", ["flooding", "grid"])
def test_a_grid_until_convergence(schedule):
    check(grid(own=False), ig.BeliefPropagation, tol=1e-6, schedule=schedule)


@pytest.mark.parametrize("schedule", ["flooding", "grid"])
def test_iterations_of_a_large_grid_one_by_one(schedule, monkeypatch):
    monkeypatch.setattr(planes, "PIECE", 1)
    check(grid(), ig.BeliefPropagation, iterations=3, schedule=schedule)


@pytest.mark.long
@pytest.mark.parametrize("triples", [False, True])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("card", [2, 3])
def test_any_graph(card, shared, triples):
    p = general(card, shared, triples)
    assert sum(share.inner for share in shares.shares_of(p.graph)) > 4
    check(p, ig.BeliefPropagation, iterations=4, schedule="flooding")


@pytest.mark.long
@pytest.mark.parametrize("make", [ig.BeliefPropagation, ig.TreeReweighted])
def test_damping_and_powers(make):
    check(general(), make, tol=1e-7, damping=0.3, schedule="flooding")
    check(grid(own=False), make, iterations=4, damping=0.2, schedule="flooding")


def test_logarithms():
    p = general()
    low = ig.Potentials.from_groups(p.graph, [p.groups[0] * 900, *p.groups[1:]], table_ids=p.table_ids)
    check(low, ig.BeliefPropagation, iterations=4, schedule="flooding")


@pytest.mark.long
@pytest.mark.parametrize("schedule", ["flooding", "grid"])
def test_many_small_grids(schedule, monkeypatch):
    monkeypatch.setattr(shares, "BLOCK", 2**18)
    p = grid(own=False, height=4, width=5)
    batch = ig.Potentials.from_groups(
        p.graph.repeat(90), [np.random.default_rng(0).normal(size=(90 * 20, 2)), p.groups[1]]
    )
    assert len(shares.shares_of(batch.graph)) > 20
    check(batch, ig.BeliefPropagation, iterations=3, schedule=schedule)
    check(batch, ig.BeliefPropagation, tol=1e-5, schedule=schedule)


def test_the_values_are_those_without_blocks(monkeypatch):
    """Up to the rounding of sums over blocks."""
    cases = [
        (grid(own=False), "flooding"),
        (grid(own=False), "grid"),
        (grid(), "grid"),
        (general(shared=True), "flooding"),
    ]
    cut = [everything(p, ig.BeliefPropagation, 3, iterations=4, schedule=schedule) for p, schedule in cases]
    assert sheets_of(cases[1][0].graph).is_large
    monkeypatch.setattr(shares, "BLOCK", 2**18)
    sheets._chunk.cache_clear()
    for (p, schedule), found in zip(cases, cut, strict=True):
        fresh = ig.Potentials.from_groups(ig.FactorGraph.from_groups(
            p.graph.cards, [g.scopes for g in p.graph.groups]), p.groups, table_ids=p.table_ids)  # fmt: skip
        whole = everything(fresh, ig.BeliefPropagation, 1, iterations=4, schedule=schedule)
        assert schedule != "grid" or not sheets_of(fresh.graph).is_large
        for one, two in zip(whole, found, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("threads", [1, *THREADS])
def test_sums_and_minima_do_not_depend_on_the_ranges(threads):
    rng, spread = np.random.default_rng(0), team(threads)
    component = np.sort(rng.integers(0, 40, 5000)) * 2  # some components have no values
    values = rng.normal(size=5000) * 10.0 ** rng.integers(-9, 9, 5000)
    starts = np.flatnonzero(np.diff(component, prepend=-1))
    found = shares.component_sums(spread, component, starts, values, 81)
    assert_array_equal(found, segments.component_sums(component, starts, values, 81))
    assert shares.smallest(spread, values, 0.0) == values.min()
    assert shares.smallest(spread, values[:0], 0.5) == 0.5
    values[4321] = np.nan
    assert np.isnan(shares.smallest(spread, values, 0.0))
