"""Exact inference: large buckets, hard cases, the worked example, samples and n-best lists."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import isinglass as ig
from checks import beliefs_close, refuses
from isinglass.testing import random_potentials

LARGE = [
    ig.complete_graph(13, 2),
    ig.lattice_graph((4, 4), 2, neighbours=8),
    ig.random_graph(9, 25, 4, random_state=3),
    ig.FactorGraph([2, 3, 4, 2, 3, 2, 2, 5, 3], [(a, b, c) for a in (0, 1, 2) for b in (3, 4, 5) for c in (6, 7, 8)]),
    ig.FactorGraph([2] * 14, [(*range(10),), (*range(4, 14),), *((i, (i + 5) % 14) for i in range(14))]),
]


@pytest.mark.long
@pytest.mark.parametrize("scale", [1.0, 50.0, 400.0])
@pytest.mark.parametrize("zeros", [0.0, 0.3])
@pytest.mark.parametrize("graph", LARGE, ids=str)
def test_buckets_larger_than_a_block(graph, zeros, scale):
    p = random_potentials(graph, np.random.default_rng(1), scale, zeros)
    mine, truth = ig.infer(p, "exact"), ig.infer(p, "brute")
    beliefs_close(mine, truth, atol=1e-9)
    assert_allclose(ig.map_assignment(p).score, ig.map_assignment(p, "brute").score, rtol=1e-12)
    joint = [graph.n_variables - 1, 0, 3]
    assert_allclose(mine.joint(joint), truth.joint(joint), atol=1e-9)


@pytest.mark.parametrize("graph", LARGE, ids=str)
def test_evidence_in_large_buckets(graph):
    rng = np.random.default_rng(2)
    witness = rng.integers(0, graph.cards)
    p = random_potentials(graph, rng, 2.0, 0.2, witness, {i: int(witness[i]) for i in (1, 4, 8)})
    mine, truth = ig.infer(p, "exact"), ig.infer(p, "brute")
    assert_allclose(mine.log_z, truth.log_z, rtol=1e-12)
    assert_allclose(mine.variables.flat, truth.variables.flat, atol=1e-10)


def test_worked_example_of_the_clique_tree():
    """Srihari's slides after Koller and Friedman (box 4.A): Z, clique beliefs and sepset belief."""
    p = ig.datasets.misconception()
    r = ig.infer(p, "exact")
    z = np.exp(r.log_z)
    assert_allclose(z, 7_201_840, rtol=1e-12)
    abd, bd, bcd = (r.joint(v) * z for v in ([0, 1, 3], [1, 3], [1, 2, 3]))
    assert_allclose(abd.ravel(), [600_000, 300_030, 5_000_500, 1_000, 200, 1_000_100, 100_010, 200_000], rtol=1e-10)
    assert_allclose(bd.ravel(), [600_200, 1_300_130, 5_100_510, 201_000], rtol=1e-10)
    assert_allclose(bcd.ravel(), [300_100, 1_300_000, 300_100, 130, 510, 100_500, 5_100_000, 100_500], rtol=1e-10)
    assert_allclose(abd[1, 0, 0] * bcd[0, 1, 0] / bd[0, 0], 100, rtol=1e-10)


def test_chain_of_a_hundred_thousand():
    """Against the product of transfer matrices: log Z = (n - 1) log(2 cosh J) + log 2 for an Ising chain."""
    n, coupling = 100_000, 0.7
    spin = np.array([-1.0, 1.0])
    table = coupling * np.outer(spin, spin)
    p = ig.Potentials.from_groups(ig.chain_graph(n, 2), [np.zeros((1, 2)), table[None]])
    r = ig.infer(p, "exact")
    assert_allclose(r.log_z, (n - 1) * np.log(2 * np.cosh(coupling)) + np.log(2), rtol=1e-12)
    assert_allclose(r.variables.flat, 0.5, atol=1e-12)
    assert_allclose(r.factor(2 * n - 2)[0, 0], 0.5 / (1 + np.exp(-2 * coupling)), rtol=1e-10)


def test_long_chain_with_extreme_potentials():
    """+-500 in the exponent on 2,000 variables, against a plain log-domain recursion."""
    rng = np.random.default_rng(4)
    n, k = 2000, 3
    unary, pair = rng.uniform(-500, 500, (n, k)), rng.uniform(-500, 500, (n - 1, k, k))
    forward = unary[0]
    for i in range(1, n):
        forward = np.logaddexp.reduce(forward[:, None] + pair[i - 1], axis=0) + unary[i]
    p = ig.Potentials.from_groups(ig.chain_graph(n, k), [unary, pair])
    r = ig.infer(p, "exact")
    assert_allclose(r.log_z, np.logaddexp.reduce(forward), rtol=1e-13)
    assert_allclose(r.variable(n - 1), np.exp(forward - np.logaddexp.reduce(forward)), atol=1e-9)
    assert np.isfinite(r.variables.flat).all()


def test_star_of_degree_ten_thousand():
    """The leaves are independent given the hub, so everything has a closed form."""
    rng = np.random.default_rng(5)
    n = 10_000
    leaf = rng.normal(0, 1, (n, 2, 2))
    g = ig.FactorGraph.from_groups([2] * (n + 1), [np.stack([np.zeros(n, int), np.arange(1, n + 1)], axis=1)])
    r = ig.infer(ig.Potentials.from_groups(g, [leaf]), "exact")
    given_hub = np.logaddexp.reduce(leaf, axis=2)
    score = given_hub.sum(axis=0)
    assert_allclose(r.log_z, np.logaddexp.reduce(score), rtol=1e-12)
    hub = np.exp(score - np.logaddexp.reduce(score))
    assert_allclose(r.variable(0), hub, atol=1e-9)
    assert_allclose(r.variable(17), hub @ np.exp(leaf[16] - given_hub[16][:, None]), atol=1e-9)


def test_ten_thousand_disconnected_parts():
    rng = np.random.default_rng(6)
    n = 10_000
    pair = rng.normal(0, 2, (n, 2, 3))
    g = ig.FactorGraph.from_groups([2, 3] * n, [np.arange(2 * n).reshape(n, 2)])
    r = ig.infer(ig.Potentials.from_groups(g, [pair]), "exact")
    log_z = np.logaddexp.reduce(pair.reshape(n, 6), axis=1)
    assert_allclose(r.log_z, log_z.sum(), rtol=1e-12)
    assert_allclose(r.factors.groups[0], np.exp(pair - log_z[:, None, None]), atol=1e-12)


def test_many_one_state_variables_pass_numpys_limit_of_axes():
    """A factor over 60 variables, 50 of them with one state; and 200 one-state variables."""
    g = ig.FactorGraph([2] * 10 + [1] * 250, [tuple(range(60)), *((i, 60 + i) for i in range(10))])
    table = np.random.default_rng(0).normal(size=(2,) * 10 + (1,) * 50)
    p = ig.Potentials(g, [table, *np.zeros((10, 2, 1))])
    r = ig.infer(p, "exact")
    assert_allclose(r.log_z, np.logaddexp.reduce(table.ravel()), rtol=1e-12)
    assert_allclose(r.variable(3), np.exp(table - r.log_z).sum(axis=tuple(i for i in range(60) if i != 3)), atol=1e-12)


def test_samples_follow_the_distribution():
    """Chi-squared against brute force, for linear values and for logarithms, with zeros and evidence."""
    for scale, seed in ((1.0, 0), (300.0, 1), (2.0, 2)):
        rng = np.random.default_rng(seed)
        g = ig.FactorGraph([2, 3, 2, 2], [(0, 1), (1, 2), (2, 3), (3, 0), (1,)])
        witness = rng.integers(0, g.cards)
        p = random_potentials(g, rng, scale if scale < 100 else 2.0, 0.2, witness, {2: int(witness[2])} if seed else {})
        if scale > 100:  # a far-off constant offset between states of a hidden copy forces logarithms
            g = ig.FactorGraph([*g.cards, 2], [*g.scopes, (4,), (4, 0)])
            p = ig.Potentials(g, [*p.log_tables, [900.0, 0.0], [[-900.0, -901.0], [0.0, 0.0]]], p.evidence)
        n = 40_000
        draws = ig.sample(p, n, "exact", random_state=seed)
        joint = ig.infer(p, "brute").joint(range(g.n_variables))
        counts = np.zeros(joint.shape)
        np.add.at(counts, tuple(draws.T), 1)
        assert counts[joint == 0].sum() == 0
        often = joint * n >= 5
        observed, expected = counts[often], joint[often] * n
        rest = n - expected.sum()
        if rest > 0:
            observed, expected = np.append(observed, counts[~often].sum()), np.append(expected, rest)
        assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_n_best_against_sorting():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = random_potentials(ig.random_graph(6, 8, 3, random_state=seed), rng, 1.0, 0.4 * (seed % 2))
        mine, truth = ig.n_best(p, 50), ig.n_best(p, 50, "brute")
        assert_allclose([m.score for m in mine], [m.score for m in truth], atol=1e-10)
        assert_array_equal([m.states for m in mine], [m.states for m in truth])  # no ties in random scores
    p = ig.Potentials.from_groups(ig.chain_graph(4, 2), [np.zeros((4, 2)), np.eye(2)[None]])
    found = ig.n_best(p, 100)
    assert len(found) == 16
    assert len({tuple(m.states) for m in found}) == 16
    assert_array_equal([m.score for m in found], sorted((m.score for m in found), reverse=True))
    assert [m.optimal for m in found].count(True) == 2
    n = 5000
    p = ig.Potentials.from_groups(ig.chain_graph(n, 3), [np.random.default_rng(0).normal(size=(n, 3)), np.eye(3)[None]])
    found = ig.n_best(p, 20)
    scores = [m.score for m in found]
    assert scores == sorted(scores, reverse=True)
    assert_allclose(scores[0], ig.map_assignment(p).score)
    assert len({tuple(m.states) for m in found}) == 20


@pytest.mark.long
def test_too_large_is_refused_at_once_with_the_bytes():
    p = ig.Potentials.from_groups(ig.grid_graph(40, 40, 2), [np.zeros((1, 2)), np.zeros((1, 2, 2))])
    with pytest.raises(ig.MemoryLimitError, match=r"width .* entries.*memory limit is 1 GB"):
        ig.infer(p, "exact", memory_limit="1GB")
    refuses("name an approximate algorithm", ig.infer, p, error=ig.MemoryLimitError, memory_limit="1GB")
    small = ig.Potentials.from_groups(ig.grid_graph(4, 4, 2), [np.zeros((1, 2)), np.zeros((1, 2, 2))])
    with pytest.raises(ig.MemoryLimitError):
        ig.infer(small, ig.Exact(memory_limit=100))


@pytest.mark.long
@pytest.mark.parametrize(
    ("graph", "scale"),
    [
        (ig.grid_graph(14, 14, 2), 1),
        (ig.FactorGraph([2] * 32, [(i, 16 + j) for i in range(16) for j in range(16)]), 1),
        (ig.FactorGraph([2] * 18, [tuple(range(18))]), 1),
        (ig.chain_graph(3000, 20), 1),
        (ig.chain_graph(20000, 2), 1),
        (ig.FactorGraph([2] * 5001, [(0, i) for i in range(1, 5001)]), 1),
        (ig.grid_graph(12, 12, 2), 1j),
    ],
    ids=str,
)
def test_what_is_taken_stays_within_what_was_announced(graph, scale):
    import tracemalloc

    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(len(g), *g.shape)) * (1e-20 * scale if scale == 1j else 1) for g in graph.groups]
    p = ig.Potentials.from_groups(graph, tables)
    ig.infer(ig.Potentials.from_groups(ig.chain_graph(2, 2), [np.zeros((2, 2)) * scale, np.zeros((1, 2, 2))]), "exact")
    announced = ig.Exact().cost(p).bytes
    ig.infer(p, "exact")  # compiles
    tracemalloc.start()
    ig.infer(p, "exact", memory_limit=announced)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < announced + 2e6


def test_a_hard_component_changes_no_bit_of_the_others():
    rng = np.random.default_rng(0)
    easy = [random_potentials(ig.grid_graph(3, 4, 2), rng) for _ in range(20)]
    hard = random_potentials(ig.grid_graph(3, 4, 2), rng, 500.0, 0.3)
    alone = [ig.infer(p, "exact") for p in easy]
    together = ig.infer(ig.potentials_union([*easy[:10], hard, *easy[10:]]), "exact")
    for c, r in zip([*range(10), *range(11, 21)], alone, strict=True):
        assert_allclose(together.component_log_z[c], r.log_z, rtol=1e-12, atol=1e-12)
        assert_allclose(together.variables.flat[24 * c : 24 * (c + 1)], r.variables.flat, rtol=1e-12, atol=1e-12)
    assert_allclose(together.component_log_z[10], ig.infer(hard, "brute").log_z, rtol=1e-12)


def test_progress_and_reference_values():
    seen = []
    p = random_potentials(ig.grid_graph(13, 13, 2), np.random.default_rng(0))
    ig.infer(p, "exact", progress=lambda stage, fraction: seen.append((stage, fraction)))
    assert seen[-1] == ("marginals", 1.0)
    assert ("summing out", 1.0) in seen
    from benchmarks.problems import problem

    known = {"ising15": 276.7220690028, "tree10000": 11582.3586196245, "chain10000_k5": 20843.2793985460}
    for name, log_z in known.items():
        assert_allclose(ig.infer(problem(name), "exact").log_z, log_z, rtol=1e-12)


def test_joint_across_components_when_one_needs_logarithms():
    a = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1), (0,)]), [[[0.0, 1.0], [2.0, 0.0]], [0.0, 0.5]])
    b = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1), (0,)]), [[[0.0, -900.0], [-900.0, -1.0]], [0.0, -0.3]])
    for batch in ([a, b], [b, a]):
        p = ig.potentials_union(batch)
        mine, truth = ig.infer(p, "exact"), ig.infer(p, "brute")
        for i in range(4):
            for j in range(4):
                if i != j:
                    assert_allclose(mine.joint([i, j]), truth.joint([i, j]), atol=1e-10)
    assert ig.infer(ig.potentials_union([])).joint([]) == 1


def test_n_best_is_sorted_by_the_scores_it_reports():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        g = ig.grid_graph(3, 3, 2)
        p = ig.Potentials(g, [rng.integers(-2, 3, size=tuple(g.cards[list(s)])) / 10 for s in g.scopes])
        for algorithm in ("exact", "brute"):
            found = ig.n_best(p, 40, algorithm)
            scores = np.array([m.score for m in found])
            assert (np.diff(scores) <= 0).all()
            assert_array_equal([m.optimal for m in found], scores >= scores[0] - 1e-9)
            assert {m.bound for m in found} == {scores[0]}


def test_n_best_with_one_variable_of_many_states_stays_small():
    import tracemalloc

    g = ig.FactorGraph([1500] + [2] * 20000, [(0,)])
    p = ig.Potentials(g, [np.random.default_rng(0).normal(size=1500)])
    ig.n_best(p, 2)
    tracemalloc.start()
    ig.n_best(p, 2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60e6


def test_odd_sizes(monkeypatch):
    p = random_potentials(ig.FactorGraph([1300, 3, 2], [(0, 1), (1, 2), (2, 0)]), np.random.default_rng(0))
    mine, truth = ig.infer(p, "exact"), ig.infer(p, "brute")
    assert_allclose(mine.log_z, truth.log_z, rtol=1e-12)
    assert_allclose(mine.variables.flat, truth.variables.flat, atol=1e-12)
    from isinglass.inference.junction_tree import algorithm as exact

    p = random_potentials(ig.grid_graph(3, 3, 2), np.random.default_rng(0))
    monkeypatch.setattr(exact, "DRAWS", 20)
    draws = ig.sample(p, 500, random_state=0)
    assert_allclose(draws.mean(axis=0), np.asarray(ig.infer(p).variables)[:, 1], atol=0.1)
    # A hundred tables whose products span e^-740: above the least double, far below what sums can hold.
    tables = [-7.4 * (1 - np.eye(100)[i]) for i in range(100)]
    p = ig.Potentials(ig.FactorGraph([100], [(0,)] * 100), tables)
    assert_allclose(ig.infer(p, "exact").log_z, ig.infer(p, "brute").log_z, rtol=1e-12)


def test_rounding_never_draws_an_impossible_state():
    """Zeros before, between and after the possible states, at the least and the largest uniform number."""
    from isinglass.kernels.numba.junction_tree.descent import pick

    rng = np.random.default_rng(0)
    for _ in range(2000):
        row = rng.random(7) * 10.0 ** rng.uniform(-280, 0) * (rng.random(7) < 0.5)
        row[rng.integers(7)] = rng.random() + 1e-3
        for uniform in (0.0, 1 - 2.0**-53):
            assert row[pick(row, 7, uniform)] > 0


def test_results_can_be_pickled():
    import pickle

    p = random_potentials(ig.grid_graph(2, 2, 2), np.random.default_rng(0))
    for name in ("exact", "brute", "bp"):
        r = ig.infer(p, name)
        copy = pickle.loads(pickle.dumps(r))
        assert copy.log_z == r.log_z
        assert_array_equal(copy.variables.flat, r.variables.flat)
    assert_array_equal(copy.messages, r.messages)


def test_a_longer_search_is_at_hand():
    """More restarts never cost more, and pay on some graphs; the answer stays the same."""
    quick, long = ig.Exact(restarts=0), ig.Exact(restarts=60)
    saved = []
    for seed in range(4):
        graph = ig.random_graph(60, 120, 2, random_state=seed)
        p = random_potentials(graph, np.random.default_rng(seed), 0.3)
        saved.append(quick.cost(p).steps / long.cost(p).steps)
        assert_allclose(ig.infer(p, long).log_z, ig.infer(p, quick).log_z, rtol=1e-11)
    assert min(saved) >= 1
    assert max(saved) > 1


@pytest.mark.long
def test_a_longer_search_before_refusing_is_announced(monkeypatch):
    graph = ig.random_graph(70, 140, 2, random_state=1)
    p = random_potentials(graph, np.random.default_rng(0), 0.3)
    first, long = (ig.Exact(restarts=r).cost(p).bytes for r in (None, "long"))
    assert long < first
    seen = []
    with pytest.warns(ig.SearchWarning, match="searching longer"):
        found = ig.infer(p, "exact", memory_limit=int(long), progress=lambda stage, _: seen.append(stage))
    assert "searching longer for an elimination order" in seen
    assert_allclose(found.log_z, ig.infer(p, "exact", memory_limit="1GB").log_z, rtol=1e-11)
    with pytest.raises(ig.MemoryLimitError):  # found once: no second search, and no second warning
        ig.infer(p, "exact", memory_limit=int(long) // 2)
    refuses("exact inference does not fit", ig.infer, p, error=ig.MemoryLimitError, memory_limit=int(long) // 2)


def test_a_given_order():
    p = random_potentials(ig.grid_graph(4, 5, 2), np.random.default_rng(0), 1.0, evidence={3: 1})
    truth = ig.infer(p, "brute")
    for order in (range(20), np.random.default_rng(1).permutation(20)):
        mine = ig.infer(p, ig.Exact(order=order))
        assert_allclose(mine.log_z, truth.log_z, rtol=1e-12)
        assert_allclose(mine.variables.flat, truth.variables.flat, atol=1e-10)
        assert_allclose(mine.joint([0, 19]), truth.joint([0, 19]), atol=1e-10)
    assert (
        ig.Exact(order=range(20)).cost(p).steps == ig.elimination_order(p.graph, clamped=[3], order=range(20)).entries
    )
    refuses("order", ig.infer, p, ig.Exact(order=range(19)))


def test_the_memory_of_a_graph_is_used_again_when_nobody_needs_it():
    rng, graph = np.random.default_rng(0), ig.grid_graph(4, 4, 2)
    unary, edges = graph.groups
    models = [
        ig.Potentials.from_groups(graph, [rng.normal(size=(len(unary), 2)), rng.normal(size=(len(edges), 2, 2))])
        for _ in range(3)
    ]
    results = [ig.infer(p, "exact") for p in models]
    (kept,) = [array for some in graph.cached("exact pool", dict).free.values() for array in some]
    for p, result in zip(models, results, strict=True):
        kept.fill(np.nan)  # no result looks at it
        again = ig.infer(p, "exact")
        np.testing.assert_array_equal(again.variables.flat, result.variables.flat)
        np.testing.assert_allclose(result.variables.flat, ig.infer(p, "brute").variables.flat, rtol=1e-9)
    (same,) = [array for some in graph.cached("exact pool", dict).free.values() for array in some]
    assert same is kept


LARGER = {"memory_limit": 1000}  # bytes


@pytest.mark.parametrize(
    ("work", "helps", "never"),
    [
        (lambda p: ig.infer(p, "exact", **LARGER), ["memory_limit", "restarts=1000"], ["order="]),
        (lambda p: ig.infer(p, "exact", restarts=1000, **LARGER), ["memory_limit"], ["restarts=1000"]),
        (lambda p: ig.infer(p, "exact", order=range(16), **LARGER), ["leave out order="], ["restarts=1000"]),
        (lambda p: ig.infer(p, "exact", beliefs=False, **LARGER), ["memory_limit"], ["log Z alone"]),
        (lambda p: ig.sample(p, 2, **LARGER), ["memory_limit"], ["log Z alone"]),
        (lambda p: ig.map_assignment(p, **LARGER), ["memory_limit", "trws"], ["log Z alone"]),
        (lambda p: ig.n_best(p, 2, **LARGER), ["memory_limit"], ["log Z alone"]),
    ],
)
def test_only_remedies_that_apply_are_named(work, helps, never):
    p = ig.models.Ising(ig.grid_graph(4, 4, 2)).potentials(coupling=0.3)
    with pytest.raises(ig.MemoryLimitError) as caught:
        work(p)
    assert "observe more variables" in str(caught.value)
    for text in helps:
        assert text in str(caught.value)
    for text in never:
        assert text not in str(caught.value)


@pytest.mark.long
def test_log_z_alone_is_advised_where_it_fits():
    p = ig.models.Ising(ig.grid_graph(13, 13, 2)).potentials(coupling=0.3)
    needed = [ig.Exact(beliefs=b).cost(p).bytes for b in (False, True)]
    limit = int(sum(needed) / 2)
    with pytest.warns(ig.SearchWarning), pytest.raises(ig.MemoryLimitError, match=r"log Z alone \(beliefs=False"):
        ig.infer(p, "exact", memory_limit=limit)
    assert ig.infer(p, "exact", memory_limit=limit, beliefs=False).log_z == ig.infer(p, "exact").log_z


@pytest.mark.parametrize("side", [70, 200])
def test_nobody_is_told_to_raise_the_limit_to_petabytes(side):
    p = ig.models.Ising(ig.grid_graph(side, side, 2)).potentials(coupling=0.3)
    for algorithm in (None, "exact"):
        with pytest.raises(ig.MemoryLimitError, match=f"width at least {side}") as caught:
            ig.infer(p, algorithm)
        for text in ("restarts", "memory_limit", "log Z alone"):
            assert text not in str(caught.value)
        assert "observe more variables" in str(caught.value)
