"""Tree-reweighting: the bound on many models, and weights by Frank-Wolfe steps."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from isinglass.graph.forests.appearance import appearance_probabilities
from isinglass.inference.message_passing.algorithms import reweighting
from isinglass.testing import random_potentials


def quiet(p, algorithm, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ig.ConvergenceWarning)
        return ig.infer(p, algorithm, **options)


def random_model(seed):
    """Three to six variables of one to three states; pairs, in half of the models also triples; some hard zeros."""
    rng = np.random.default_rng([seed, 2005])
    n = int(rng.integers(3, 7))
    arities = rng.choice(
        [2, 3] if seed % 2 else [2], int(rng.integers(1, 2 * n + 1)), p=[0.7, 0.3] if seed % 2 else [1]
    )
    scopes = [tuple(rng.choice(n, size, replace=False).tolist()) for size in arities]
    graph = ig.FactorGraph(rng.integers(1, 4, n), [*scopes, *((i,) for i in range(n))])
    return random_potentials(graph, rng, float(rng.choice([0.3, 1.0, 3.0])), float(rng.choice([0.0, 0.0, 0.2])))


def ising(size, scale, seed):
    graph, rng, spin = ig.grid_graph(size, size, 2), np.random.default_rng(seed), np.array([-1.0, 1.0])
    field, coupling = (rng.normal(0, s, len(g)) for s, g in zip((1.0, scale), graph.groups, strict=True))
    return ig.Potentials.from_groups(graph, [field[:, None] * spin, coupling[:, None, None] * np.outer(spin, spin)])


def slack(truth):
    return 1e-9 * max(1.0, abs(truth))


@pytest.mark.parametrize("block", range(5))
def test_the_bound_on_500_models(block):
    """Never below log Z where it has converged, which is nearly everywhere."""
    converged = 0
    for seed in range(100 * block, 100 * (block + 1)):
        p = random_model(seed)
        r, truth = quiet(p, ig.TreeReweighted(max_iter=3000, tol=1e-10)), ig.infer(p, "brute").log_z
        if r.info.bound:
            converged += 1
            assert r.info.converged
            assert r.log_z >= truth - slack(truth)
    assert converged >= 95


@pytest.mark.parametrize("block", range(3))
def test_optimised_weights_on_60_models(block):
    """Between log Z and the bound of uniform spanning trees; no step raises it; weights are probabilities."""
    improved = 0
    for seed in range(block, 60, 3):
        p = random_model(seed)
        uniform = ig.TreeReweighted(max_iter=100, tol=1e-9, weight_steps=4)
        found, start = uniform.optimise(p), quiet(p, uniform)
        best = quiet(p, uniform, weights="optimised")
        assert (np.diff(found.bounds, axis=0)[np.isfinite(found.bounds[1:])] <= 0).all()
        assert (found.weights > 0).all()
        assert (found.weights <= 1).all()
        if best.info.bound:
            truth = ig.infer(p, "brute").log_z
            assert best.log_z >= truth - slack(truth)
        if best.info.bound and start.info.bound:
            assert best.log_z <= start.log_z + slack(start.log_z)
            improved += best.log_z < start.log_z - 1e-4
    assert improved >= 5


def test_a_grid_gains_much_and_never_rises():
    p = ising(7, 1.0, 0)
    found, truth = ig.TreeReweighted().optimise(p), ig.infer(p, "exact").log_z
    assert (np.diff(found.bounds[:, 0]) < 0).all()
    assert found.bounds[-1, 0] >= truth
    assert found.bounds[-1, 0] - truth < 0.6 * (found.bounds[0, 0] - truth)
    links = found.weights[49:]
    assert_allclose(links.sum(), 48)
    assert (links > 0).all()


def test_the_gap_is_a_certificate():
    """No later bound is lower than an earlier one less its gap."""
    p = ising(4, 1.0, 3)
    short, long = (ig.TreeReweighted(weight_steps=s, weight_tol=0.0).optimise(p) for s in (3, 60))
    assert long.bounds[-1, 0] >= short.bounds[-1, 0] - short.gap[0] - 1e-9
    assert long.gap[0] < 0.2 * short.gap[0]


def test_the_slope_by_the_weights_is_minus_the_information():
    """Against central differences along a random direction."""
    p = random_potentials(ig.FactorGraph([2, 3, 2, 2], [(0, 1), (1, 2, 3), (3, 0), (0, 2)]), np.random.default_rng(2))
    rho, way = appearance_probabilities(p.graph), np.random.default_rng(0).normal(size=4)

    def run(weights):
        return ig.infer(p, ig.TreeReweighted(weights=weights, tol=1e-12))

    edges = reweighting.edges_of(p.graph)
    beliefs = np.concatenate([g.ravel() for g in run(0.8 * rho).factors.groups])
    slope = -reweighting._information(p.graph, edges, beliefs) @ way
    differences = (run(0.8 * rho + 1e-4 * way).log_z - run(0.8 * rho - 1e-4 * way).log_z) / 2e-4
    assert_allclose(slope, differences, rtol=1e-6)


def test_the_search_stops_at_its_gap():
    p = ising(5, 0.3, 1)
    found = ig.TreeReweighted(weight_steps=200, weight_tol=0.05).optimise(p)
    assert found.gap[0] <= 0.05
    assert len(found.bounds) < 100
    assert len(ig.TreeReweighted(weight_steps=0).optimise(p).bounds) == 1


def test_components_search_by_themselves():
    """The same bits alone as beside others that take more, fewer or no steps, or do not converge."""
    rng = np.random.default_rng(5)
    parts = [
        ising(4, 1.0, 0),
        random_potentials(ig.chain_graph(5, 3), rng),
        ising(3, 0.05, 1),
        random_potentials(ig.complete_graph(6, 2), rng, 6.0),
        random_potentials(ig.FactorGraph([2, 3, 2, 2], [(0, 1), (1, 2, 3), (3, 0), (0, 2)]), rng),
        random_potentials(ig.grid_graph(3, 3, 2), rng, 300.0, 0.3),
    ]
    algorithm = ig.TreeReweighted(max_iter=30, weight_steps=6, weight_tol=1e-2)
    together = algorithm.optimise(ig.potentials_union(parts))
    inferred = quiet(ig.potentials_union(parts), algorithm, weights="optimised")
    first = 0
    for c, p in enumerate(parts):
        alone = algorithm.optimise(p)
        steps = len(alone.bounds)
        assert_array_equal(together.weights[first : first + p.graph.n_factors], alone.weights)
        assert_array_equal(together.bounds[:steps, c], alone.bounds[:, 0])
        assert (together.bounds[steps:, c] == alone.bounds[-1, 0]).all()
        assert together.gap[c] == alone.gap[0]
        assert inferred.component_log_z[c] == quiet(p, algorithm, weights="optimised").log_z
        first += p.graph.n_factors


def test_optimised_is_as_if_the_weights_were_given():
    p = ising(4, 1.0, 0)
    algorithm = ig.TreeReweighted(weight_steps=4)
    weights = algorithm.optimise(p).weights
    given, found = ig.infer(p, algorithm, weights=weights), ig.infer(p, algorithm, weights="optimised")
    assert found.info.bound == "upper"
    assert found.info.iterations < given.info.iterations  # from the messages of the search
    assert_allclose(found.log_z, given.log_z, rtol=1e-12)
    assert_allclose(found.variables.flat, given.variables.flat, atol=1e-7)
    for options in ({"iterations": 5}, {"tape": True}, {"init": given}):
        one, two = quiet(p, algorithm, weights=weights, **options), quiet(p, algorithm, weights="optimised", **options)
        assert one.log_z == two.log_z
        assert_array_equal(one.variables.flat, two.variables.flat)
    assert (
        ig.map_assignment(p, algorithm, weights="optimised").score
        == ig.map_assignment(p, algorithm, weights=weights).score
    )
    further = ig.TreeReweighted(weights=weights, weight_steps=4).optimise(p)
    assert further.bounds[-1, 0] < given.log_z


def test_gradients_take_the_weights_as_constants():
    """The tape agrees with a complex step, which moves no weight, and is that of given weights."""
    p = ising(3, 1.0, 0)
    algorithm = ig.TreeReweighted(weight_steps=3, iterations=7, weights="optimised")
    rng = np.random.default_rng(0)
    bars, ways = [rng.normal(size=2) for _ in range(9)], [rng.normal(size=t.shape) for t in p.log_tables]
    gradients = ig.infer(p, algorithm, tape=True).backward(0.7, bars)
    moved = ig.Potentials(p.graph, [t + 1e-20j * w for t, w in zip(p.log_tables, ways, strict=True)])
    r = ig.infer(moved, algorithm)
    expected = (0.7 * r.log_z + sum(b @ x for b, x in zip(bars, r.variables, strict=True))).imag / 1e-20
    along = sum((g * w).sum() for g, w in zip(gradients.log_tables, ways, strict=True))
    assert_allclose(along, expected, rtol=1e-9)


def test_a_start_that_does_not_converge_ends_the_search():
    p = random_potentials(ig.complete_graph(8, 2), np.random.default_rng(1), 30.0)
    algorithm = ig.TreeReweighted(max_iter=1)
    found, r = algorithm.optimise(p), quiet(p, algorithm, weights="optimised")
    assert found.gap[0] == np.inf
    assert_array_equal(found.bounds, [[np.inf]])
    assert_array_equal(found.weights[8:], appearance_probabilities(p.graph))
    assert not r.info.converged
    assert r.info.bound is None


@pytest.mark.parametrize("scale", [10.0, 100.0, 300.0])
def test_no_bound_is_claimed_that_does_not_hold(scale):
    """At such scales messages can stand still far from a fixed point (seed 4, scale 300: 20 nats below log Z)."""
    graph = ig.FactorGraph([2, 3, 2, 2, 3], [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3, 4), (2,)])
    for seed in range(12):
        p = random_potentials(graph, np.random.default_rng(seed), scale, 0.3 * (seed % 2))
        truth = ig.infer(p, "brute").log_z
        for weights in (None, "optimised"):
            r = quiet(p, ig.TreeReweighted(weights=weights, weight_steps=3, damping=0.5))
            if r.info.bound:
                assert r.log_z >= truth - slack(truth)


@pytest.mark.parametrize("iterations", [0, 1, 2, 10])
def test_the_certificate_holds_for_any_messages(iterations):
    too_low = 0
    for seed in range(100):
        p = random_model(seed)
        rho = appearance_probabilities(p.graph)
        r = ig.infer(p, ig.TreeReweighted(iterations=iterations))
        beliefs = np.concatenate([np.zeros(0), *(g.ravel() for g in r.factors.groups)])
        above = reweighting.log_z_above(p.graph, rho, r.variables.flat, beliefs)[0]
        truth = ig.infer(p, "brute").log_z
        assert r.log_z + above >= truth - slack(truth)
        too_low += r.log_z < truth - 1e-3
    assert too_low > 0 or iterations > 0  # log_z itself is no bound then


def test_forests_need_no_search():
    p = random_potentials(ig.tree_graph(8, 3, random_state=0), np.random.default_rng(0))
    r = ig.infer(p, "trw", weights="optimised")
    assert r.info.bound == "exact"
    assert_allclose(r.log_z, ig.infer(p, "exact").log_z, rtol=1e-9)
    found = ig.TreeReweighted().optimise(p)
    assert_array_equal(found.weights, 1)
    assert found.gap[0] == 0
    empty = ig.Potentials(ig.FactorGraph([2], [(0,)]), [[0.0, 1.0]])
    assert_allclose(ig.infer(empty, "trw", weights="optimised").log_z, np.logaddexp(0, 1))


def test_progress_is_told():
    heard = []
    ig.infer(ising(3, 1.0, 0), "trw", weights="optimised", weight_steps=2, progress=lambda *stage: heard.append(stage))
    assert [f for text, f in heard if text.startswith("weights")] == [0.5, 1.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "best"}, "weights: expected None, 'optimised' or probabilities"),
        ({"weights": "optimised", "weight_steps": -1}, "weight_steps: expected a whole number"),
        ({"weights": "optimised", "weight_tol": -1.0}, "weight_tol: expected a number"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ig.InputError, match=message):
        ig.infer(ising(3, 1.0, 0), "trw", **options)
