"""Mean field on trees: which links it keeps, its bound, its independence of the batch, and its derivatives."""

import numpy as np
import pytest
from benchmarks.problems import problem
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from checks import each_close, quiet, refuses
from isinglass.graph.forests.clusters import tree_clusters
from isinglass.graph.message_graph import edges_of
from isinglass.inference.mean_field.naive import _possible
from isinglass.testing import random_potentials


def crosses(graph, clusters):
    """Chosen links lie inside a cluster, all others between pairwise different ones; colours differ beside a link."""
    colour = np.empty(graph.n_variables, int)
    for k, one in enumerate(clusters.classes):
        colour[one.variables] = k
        assert one.graph.is_forest
    for f, a in enumerate(edges_of(graph).link_factor):
        scope = list(graph.scopes[a])
        met = len(set(clusters.cluster[scope].tolist()))
        assert met == (1 if clusters.chosen[f] else len(scope))
        if not clusters.chosen[f]:
            assert len(set(colour[scope].tolist())) == len(scope)
    return True


def test_trees_of_grids_and_parallel_links():
    graph = ig.grid_graph(5, 7, 2)
    clusters = tree_clusters(graph)
    assert_array_equal(clusters.cluster.reshape(5, 7), np.repeat(np.arange(5)[:, None], 7, axis=1))
    assert clusters.chosen.sum() == 5 * 6
    assert len(clusters.classes) == 2
    assert crosses(graph, clusters)
    graph = ig.FactorGraph([2] * 4, [(0, 1), (1, 0), (1, 2), (0, 1, 3), (2, 3)])
    assert tree_clusters(graph).chosen.tolist() == [False, False, True, False, False]


def test_choices_are_admissible():
    rng = np.random.default_rng(0)
    for seed in range(60):
        n = int(rng.integers(2, 9))
        scopes = [rng.permutation(n)[: rng.integers(1, min(n, 4) + 1)].tolist() for _ in range(rng.integers(1, 12))]
        graph = ig.FactorGraph(rng.integers(2, 4, n), scopes)
        clusters = tree_clusters(graph)
        assert crosses(graph, clusters)
        assert clusters.chosen.all() == graph.is_forest, seed


def test_given_forest():
    p = random_potentials(ig.grid_graph(3, 3, 2), np.random.default_rng(0))
    graph = p.graph
    columns = [a for a in range(graph.n_factors) if len(graph.scopes[a]) == 2 and abs(np.diff(graph.scopes[a])) == 3]
    clusters = tree_clusters(graph, columns)
    assert_array_equal(clusters.cluster.reshape(3, 3), [[0, 1, 2]] * 3)
    turned = quiet(p, ig.StructuredMeanField(forest=columns))
    assert turned.log_z <= ig.infer(p, "exact").log_z
    naive, none = quiet(p, ig.MeanField(tol=1e-12)), quiet(p, ig.StructuredMeanField(forest=[], tol=1e-12))
    assert_allclose(none.log_z, naive.log_z, rtol=1e-10)  # without links it is the naive one, in another order
    refuses("forest: expected factors of two or more variables", tree_clusters, graph, [0])
    with pytest.raises(
        ig.InputError, match="forest: expected every other factor to have its variables in different trees"
    ):
        tree_clusters(graph, [9, 10, 11, 12, columns[0]])
    cycle = ig.FactorGraph([2] * 3, [(0, 1), (1, 2), (2, 0)])
    refuses("factor 2, which closes one", tree_clusters, cycle, [0, 1, 2])


@pytest.mark.long
@pytest.mark.parametrize("kind", [ig.MeanField, ig.StructuredMeanField])
@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_climbs_and_stays_below(zeros, kind):
    rng = np.random.default_rng(0)
    for seed in range(20):
        p = random_potentials(ig.random_graph(6, 10, 3, random_state=seed), rng, 1.5, zeros)
        exact = ig.infer(p, "brute").log_z
        bounds = [quiet(p, kind(iterations=t)).log_z for t in range(6)]
        assert np.isfinite(bounds[1:]).all()
        assert (np.diff(bounds) >= -1e-10).all()
        assert bounds[-1] <= exact + 1e-10


def test_each_tree_by_itself_climbs():
    """With more variables in a link, and the bound after every colour, by lists of trees of growing length."""
    rng = np.random.default_rng(3)
    scopes = [(0, 1), (2, 3), (4, 5), (0, 2, 4), (1, 3), (3, 5), (1, 4), (0,), (5,)]
    p = random_potentials(ig.FactorGraph([2, 3, 2, 2, 3, 2], scopes), rng, 2.0)
    assert len(tree_clusters(p.graph).classes) == 3
    bounds = [quiet(p, ig.StructuredMeanField(iterations=t)).log_z for t in range(12)]
    assert (np.diff(bounds) >= -1e-12).all()
    r = quiet(p, ig.StructuredMeanField(tol=1e-12))
    assert r.info.converged
    assert_allclose(r.log_z, np.max(bounds), atol=1e-6)


def test_forests_take_one_iteration():
    p = random_potentials(ig.tree_graph(12, 3, random_state=0), np.random.default_rng(0), 2.0, 0.4)
    assert (ig.infer(p, "smf").info.iterations, ig.infer(p, "smf").info.bound) == (1, "exact")


def test_before_the_first_sweep_and_at_convergence():
    # Before the first iteration the bound may be -inf, which is one; afterwards it is finite.
    p = random_potentials(ig.chain_graph(5, 2), np.random.default_rng(0), 1.0, 0.4)
    assert quiet(p, ig.StructuredMeanField(iterations=0)).info.bound == "lower"
    assert np.isfinite(quiet(p, ig.StructuredMeanField(iterations=1)).log_z)
    p = random_potentials(ig.grid_graph(2, 2, 2), np.random.default_rng(0))
    for name in ("mf", "smf"):
        r = quiet(p, name, evidence={1: 1}, iterations=0)
        assert np.isfinite(r.log_z)
        assert_array_equal(r.variable(1), [0, 1])
    p = random_potentials(ig.grid_graph(4, 4, 2), np.random.default_rng(1), 0.5)
    r = ig.infer(p, ig.StructuredMeanField(tol=1e-13), tape=True)
    each_close(r.backward(log_z=1.0).log_tables, r.factors, atol=1e-9)
    p = problem("ising15")
    naive, rows, exact = (ig.infer(p, name).log_z for name in ("mf", "smf", "exact"))
    assert naive < rows < exact


def test_derivatives_of_a_batch_whose_components_stop_at_different_times():
    rng = np.random.default_rng(2)
    batch = [random_potentials(ig.grid_graph(3, 3, 2), rng, scale) for scale in (0.1, 1.0)]
    algorithm = ig.StructuredMeanField(tol=1e-4)
    bars = [[rng.normal(size=k) for k in p.graph.cards] for p in batch]
    both = quiet(ig.potentials_union(batch), algorithm, tape=True).backward([1.0, 2.0], bars[0] + bars[1])
    alone = [
        quiet(p, algorithm, tape=True).backward(c + 1.0, bar)
        for c, (p, bar) in enumerate(zip(batch, bars, strict=True))
    ]
    for mine, one, two in zip(both.groups, alone[0].groups, alone[1].groups, strict=True):
        assert_allclose(mine, np.concatenate([one, two]), rtol=1e-12, atol=1e-14)


def test_shared_tables_and_a_tape_used_twice():
    graph = ig.grid_graph(3, 3, 2)
    p = ig.Potentials.from_groups(graph, [np.array([[0.0, 0.3]]), 0.4 * np.eye(2)[None]])
    apart = ig.Potentials(graph, list(p.log_tables))
    r = quiet(p, "smf", tape=True)
    shared, again = r.backward(log_z=1.0), r.backward(log_z=1.0)
    own = quiet(apart, "smf", tape=True).backward(log_z=1.0)
    for a, b, c in zip(shared.groups, own.groups, again.groups, strict=True):
        assert_allclose(a[0], b.sum(axis=0), rtol=1e-10)
        assert_array_equal(a, c)


def test_start_from_an_earlier_result():
    p = random_potentials(ig.grid_graph(4, 4, 2), np.random.default_rng(1), 0.5)
    first = ig.infer(p, "smf")
    again = ig.infer(p, "smf", init=first)
    assert again.info.iterations <= 2
    assert_allclose(again.log_z, first.log_z, rtol=1e-10)
    for name in ("mf", "smf"):
        with pytest.raises(ig.InputError, match="init: expected a result on this graph"):
            ig.infer(p, name, init=ig.infer(random_potentials(ig.chain_graph(3, 2), np.random.default_rng(0))))


def test_hard_zeros_start_from_the_same_assignment_alone_and_beside_others():
    """Max-product finds an assignment of one component and none of another: exact inference is for the latter only."""
    rng, found = np.random.default_rng(0), {}
    while len(found) < 2:
        graph = ig.FactorGraph([3, 2, 2], [(1, 0, 2), (0, 1), (2, 0), (1, 2)])
        p = random_potentials(graph, rng, 1.0, 0.45, rng.integers(0, 2, 3))
        states = ig.BeliefPropagation(schedule="sequential", damping=0.1, max_iter=50).maximise(p)[0].states
        possible = p.log_score(states) > -np.inf
        if not possible or not np.array_equal(states, ig.map_assignment(p).states):
            found[possible] = p
    together = _possible(ig.potentials_union(list(found.values()))).reshape(2, 3)
    for states, p in zip(together, found.values(), strict=True):
        assert p.log_score(states) > -np.inf
        assert_array_equal(states, _possible(p))
