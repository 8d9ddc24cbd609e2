"""Certificates of models with very large numbers: penalties, constants, and sums that float64 cannot resolve."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import isinglass as ig
from checks import refuses
from isinglass.inference.assignment import COARSEST, is_wide
from isinglass.inference.map.search import Search
from isinglass.inference.map.solver import SOLVERS

PROVING = [name for name, cls in SOLVERS.items() if cls.facts.bound and cls.facts.accepts == "any"]
TRIANGLE = ig.FactorGraph([2, 2, 2], [(0, 1), (1, 2), (0, 2), (0,), (1,), (2,)])


def penalised(side, penalty, seed):
    """Return a grid in which state 0 left of or above state 2 costs a penalty."""
    graph, rng = ig.grid_graph(side, side, 3), np.random.default_rng(seed)
    unary, pairs = rng.normal(size=(side * side, 3)), rng.normal(size=(len(graph.groups[1]), 3, 3))
    pairs[:, 0, 2] -= penalty
    return ig.Potentials.from_groups(graph, [unary, pairs])


def exact_scores(p):
    """Return the score of every assignment as a fraction; those with hard zeros are left out."""
    scores = {}
    for x in product(*map(range, p.graph.cards)):
        terms = [float(t[tuple(x[i] for i in scope)]) for t, scope in zip(p.log_tables, p.graph.scopes, strict=True)]
        if np.isfinite(terms).all():
            scores[x] = sum(map(Fraction, terms), Fraction(0))
    return scores


def check(p, name):
    """Compare a certificate with exact arithmetic; return whether optimality is claimed."""
    scores, found = exact_scores(p), ig.map_assignment(p, name)
    best = max(scores.values())
    assert found.bound >= found.score
    assert best - Fraction(found.bound) <= 1e-9 + 1e-15 * abs(best)
    if found.optimal:
        assert best - scores[tuple(found.states.tolist())] <= COARSEST
    return found.optimal


@pytest.mark.long
@pytest.mark.parametrize("name", PROVING)
@pytest.mark.parametrize("penalty", [1e4, 1e6, 0.9e8])
def test_penalties_do_not_pass_for_rounding(name, penalty):
    for seed in range(3):
        p, forbidden = penalised(6, penalty, seed), penalised(6, np.inf, seed)
        found, truth = ig.map_assignment(p, name), ig.map_assignment(forbidden, "exact")
        assert found.bound >= truth.score - 1e-9
        assert found.score == pytest.approx(p.log_score(found.states), abs=1e-9)
        if found.optimal or SOLVERS[name].facts.proves == "always":
            assert found.optimal
            assert found.score == pytest.approx(truth.score, abs=1e-9)


@pytest.mark.long
def test_auto_on_a_large_grid_with_penalties():
    p = penalised(30, 0.9e8, 0)
    found, other = ig.map_assignment(p, "auto", seconds=2), ig.map_assignment(p, "ils", seconds=2, random_state=0)
    assert found.bound > other.score - 1e-6
    assert found.bound < found.score + 20
    assert found.score > other.score - 1e-6 or not found.optimal


@pytest.mark.long
@pytest.mark.parametrize("name", [*PROVING, "qpbo"])
@pytest.mark.parametrize("constant", [1e6, 0.9e8, -0.9e8])
def test_constants_decide_nothing(name, constant):
    rng = np.random.default_rng(0)
    for _ in range(6):
        tables = [rng.normal(size=[2] * len(scope)) + constant for scope in TRIANGLE.scopes]
        assert check(ig.Potentials(TRIANGLE, tables), name)


@pytest.mark.parametrize("name", [*PROVING, "qpbo", "graph-cut"])
def test_constants_that_cancel(name):
    """The rounding of a sum is that of its terms, however small the sum is."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        c = 10 ** rng.uniform(6, 7.9)
        assert check(ig.Potentials(ig.FactorGraph([2], [(), (0,)]), [rng.normal() - c, rng.normal(size=2) + c]), name)


@pytest.mark.parametrize("name", ["exact", "brute", *PROVING, "qpbo", "graph-cut"])
def test_no_constant_hides_the_difference_of_two_scores(name):
    for constant in (1e3, 1e7, 1e10, 1e14):
        p = ig.Potentials(ig.FactorGraph([2, 2], [(0,), (1,), ()]), [[0.0, 0.009], [0.0, 0.5], constant])
        found = ig.n_best(p, 3, name) if name in ("exact", "brute") else [ig.map_assignment(p, name)]
        assert [m.optimal for m in found] == [True, False, False][: len(found)]
        assert [m.states.tolist() for m in found] == [[1, 1], [0, 1], [1, 0]][: len(found)]


@pytest.mark.parametrize("size", [1e2, 1e6, 1e10])
def test_large_numbers_that_cancel_leave_no_false_claim(size):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        off, tables = size * rng.normal(size=(2, 1)), [rng.normal(size=[2] * len(s)) for s in TRIANGLE.scopes]
        tables[0], tables[3] = tables[0] + off, tables[3] - off[:, 0]
        p = ig.Potentials(TRIANGLE, tables)
        assert all(check(p, name) or size > 1e8 for name in ("exact", "brute"))
        for name in PROVING if size < 1e8 else []:
            check(p, name)


@pytest.mark.parametrize("name", ["auto", "trws", "ilp"])
def test_bounds_count_the_rounding_of_sums_and_of_removed_constants(name):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        size = 10.0 ** rng.uniform(6, 9)
        constants = [rng.normal(size=[2] * len(s)) + size * rng.normal() for s in TRIANGLE.scopes]
        penalties = [t - 0.09 * size * (rng.random(t.shape) < 0.6) for t in rng.normal(size=(3, 2, 2))]
        for p in (ig.Potentials(TRIANGLE, constants), ig.Potentials(TRIANGLE, [*penalties, *rng.normal(size=(3, 2))])):
            assert Fraction(ig.map_assignment(p, name).bound) >= max(exact_scores(p).values())


def test_a_cut_of_tables_with_constants():
    rng = np.random.default_rng(1)
    for _ in range(10):
        pairs = [rng.random() * np.eye(2) + 1e7 for _ in range(3)]
        p = ig.Potentials(TRIANGLE, [*pairs, *(rng.normal(size=2) + 1e7 for _ in range(3))])
        assert check(p, "auto")
        assert check(p, "graph-cut")
    almost = np.array([[0.0, 0.3], [0.3, 0.1]]) + 1e7  # not submodular
    refuses("submodular", ig.map_assignment, ig.Potentials(TRIANGLE, [almost] * 3 + [np.zeros(2)] * 3), "graph-cut")


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "size"), [*((name, 0.9e8) for name in [*PROVING, "qpbo"]), ("exact", 1e13), ("brute", 1e13)]
)
def test_sums_that_float64_cannot_resolve_are_not_called_optimal(name, size):
    rng = np.random.default_rng(2)
    apart = size * np.array([[-1.0, 0.0], [0.0, -1.0]])  # one of the three is always violated
    claims = 0
    for _ in range(6):
        tables = [rng.normal(size=(2, 2)) + apart for _ in range(3)] + [rng.normal(size=2) for _ in range(3)]
        claims += check(ig.Potentials(TRIANGLE, tables), name)
    assert claims == 0 or size < 1e12


@pytest.mark.long
@pytest.mark.parametrize("seed", range(60))
def test_claims_of_random_wide_models(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    cards = rng.integers(2, 4, n)
    pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.7]
    scopes = [(), *((i,) for i in range(n)), *pairs]
    size, kind = 10.0 ** rng.uniform(3, 7.5), seed % 4
    tables = []
    for scope in scopes:
        t = rng.normal(size=cards[list(scope)])
        large = [rng.random(t.shape) < 0.3, -(rng.random(t.shape) < 0.6).astype(float), rng.integers(-2, 3, t.shape), t]
        tables.append(t + size * large[kind])
    p = ig.Potentials(ig.FactorGraph(cards, scopes), tables)
    for name in PROVING:
        check(p, name)


def test_branch_and_bound_leaves_out_what_no_optimum_has():
    p = penalised(6, 1e7, 0)
    search, best = Search(p), ig.map_assignment(p, "exact")
    assert is_wide(search.narrowed()[0])
    search.offer(ig.map_assignment(p, "icm").states)
    small, top = search.narrowed()
    assert not is_wide(small)
    assert top + float(small.log_score(best.states)) == pytest.approx(best.score, abs=1e-9)


@pytest.mark.parametrize("name", [*PROVING, "qpbo"])
def test_numbers_too_large_for_a_proof_are_refused(name):
    tables = [np.array([[0.0, -1e9], [-1e9, 0.0]])] * 3 + [np.zeros(2)] * 3
    p = ig.Potentials(TRIANGLE, tables)
    refuses(r"at most 1e\+08 .* factor 0 \(variables 0, 1\); write -inf", ig.map_assignment, p, name)
    assert ig.map_assignment(p, "icm").score == 0
    forbidden = ig.Potentials(TRIANGLE, [np.where(t < 0, -np.inf, t) for t in tables])
    assert ig.map_assignment(forbidden, name).bound == pytest.approx(0, abs=1e-9)


def test_undecided_and_unused_states():
    p = ig.Potentials(ig.FactorGraph([3], [(0,)]), [[2.0, 1.0, -1e9]])
    search = Search(p)
    assert search.used > 1e9
    search.offer(np.array([1]))
    assert search.used == 4.0
    search.tighten(2.0)
    assert not search.closed
    tables = [np.array([[0.0, 1.0], [1.0, 0.0]]) + 1e6] * 3 + [np.zeros(2)] * 3
    found = ig.map_assignment(ig.Potentials(TRIANGLE, tables), "qpbo", complete=None)
    assert (found.states == -1).all()
    assert np.isnan(found.score)


@pytest.mark.parametrize("name", ["qpbo", "graph-cut"])
def test_submodular_penalties(name):
    rng = np.random.default_rng(3)
    graph = ig.grid_graph(5, 5, 2)
    for penalty in (1e6, 0.9e8, np.inf):
        hit = (rng.random((len(graph.groups[1]), 1, 1)) < 0.5) & (np.eye(2) == 0)
        apart = np.where(hit, -penalty, 0.0)
        p = ig.Potentials.from_groups(graph, [rng.normal(size=(25, 2)), apart])
        found, truth = ig.map_assignment(p, name), ig.map_assignment(p, "exact")
        assert found.optimal or penalty < np.inf
        assert found.score == pytest.approx(truth.score, abs=1e-9)
        assert truth.score - 1e-9 <= found.bound <= truth.score + 1e-4
    steep = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1), (0,)]), [[[-3e4, -2e4], [-2e4, 0.0]], [0.0, 1.0]])
    assert ig.map_assignment(steep, name).states.tolist() == [1, 1]


def test_a_moderate_grid_is_still_proved():
    rng = np.random.default_rng(0)
    graph = ig.grid_graph(100, 100, 2)
    strength = 100 * rng.random((len(graph.groups[1]), 1, 1))
    p = ig.Potentials.from_groups(graph, [100 * rng.normal(size=(10000, 2)), strength * np.eye(2)])
    for name in ("graph-cut", "auto", "trws", "qpbo"):
        found = ig.map_assignment(p, name, seconds=60)
        assert found.optimal, name


@pytest.mark.parametrize("name", PROVING)
@pytest.mark.parametrize("size", [1.0, 1e7])
def test_groups_without_factors(name, size):
    graph = ig.FactorGraph.from_groups([2, 2], [np.zeros((0, 1), np.int64), [[0, 1]], np.zeros((0, 2), np.int64)])
    p = ig.Potentials.from_groups(
        graph, [np.zeros((0, 2)), size * np.array([[[0.0, 1.0], [3.0, 2.0]]]), np.zeros((0, 2, 2))]
    )
    found = ig.map_assignment(p, name)
    assert found.states.tolist() == [1, 0]
    assert found.optimal
