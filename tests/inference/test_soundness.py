"""Random trees and loops, tables of up to hundreds of nats: nothing that is flagged as converged or bounded is wrong.

``python tests/inference/test_soundness.py FIRST LAST`` checks the models of these seeds and prints what is wrong.
"""

import sys

import numpy as np
import pytest

import isinglass as ig
from isinglass.errors import no_convergence_warnings
from isinglass.testing.suite import max_marginals

OFF = 1e-4  # that a belief of a run flagged as converged may be off its fixed point
SCHEDULES = ("auto", "flooding", "sequential", "residual", "tree")
DAMPINGS = (0.0, 0.3, 0.5, 0.9)


def random_graph(rng):
    """Draw a tree, a loop or a tree with some more factors, of up to seven variables."""
    n = int(rng.integers(2, 8))
    cards = rng.integers(2, 4, n).tolist()
    scopes = [(int(rng.integers(0, i)), i) for i in range(1, n)]
    kind = rng.integers(3)
    if kind == 1 and n > 2:
        scopes = [(i, (i + 1) % n) for i in range(n)]
    if kind == 2 and n > 2:
        for _ in range(int(rng.integers(1, 4))):
            arity = int(rng.integers(2, min(n, 3) + 1))
            scopes.append(tuple(rng.choice(n, arity, replace=False).tolist()))
    scopes += [(int(i),) for i in np.flatnonzero(rng.random(n) < 0.5)]
    return ig.FactorGraph(cards, scopes)


def random_model(rng):
    """Draw potentials N(0, s²), s up to 300; some with hard zeros, some with evidence; None if nothing is possible."""
    graph, scale = random_graph(rng), 10 ** rng.uniform(-1, np.log10(300))
    zeros = rng.choice([0.0, 0.0, 0.15, 0.4])
    tables = []
    for scope in graph.scopes:
        table = rng.normal(0, scale, graph.cards[list(scope)])
        table[rng.random(table.shape) < zeros] = -np.inf
        tables.append(table)
    seen = np.flatnonzero(rng.random(graph.n_variables) < 0.1 * (rng.random() < 0.5))
    potentials = ig.Potentials(graph, tables, {int(i): int(rng.integers(graph.cards[i])) for i in seen})
    try:
        return potentials, ig.infer(potentials, "brute")
    except ig.ImpossibleEvidenceError:
        return None


def random_algorithm(rng, forest):
    schedule, damping = rng.choice(SCHEDULES if forest else SCHEDULES[:-1]), float(rng.choice(DAMPINGS))
    options = {"schedule": str(schedule), "damping": damping}
    kinds = [
        ig.BeliefPropagation(**options),
        ig.BeliefPropagation(**options),
        ig.TreeReweighted(**options),
        ig.FractionalBeliefPropagation(counting_numbers=0.7, **options),
        ig.MaxProduct(**options),
        ig.MeanField(),
        ig.StructuredMeanField(),
        ig.ConvexFreeEnergy(),
    ]
    return kinds[rng.integers(len(kinds))]


def continued(p, algorithm, result):
    """Go on from a result, to tolerances that are much smaller; a minimum is found again, if rounding lets it.

    Ties of max-product can make a fixed point unstable: a run that has come a hundred times closer to it than was asked
    leaves it again by rounding (seeds 2007753 and 2014868). So each tolerance has its result, and the second is found
    only if it is asked for.
    """
    if isinstance(algorithm, ig.ConvexFreeEnergy):
        again = ig.infer(p, ig.ConvexFreeEnergy(tol=1e-12))
        yield again if again.info.converged else ig.infer(p, ig.ConvexFreeEnergy())
        return
    closer = ig.infer(p, algorithm, init=result, tol=1e-10, max_iter=3000)
    if closer.info.converged:
        yield closer
    yield ig.infer(p, algorithm, init=closer, tol=1e-14, max_iter=3000)


def wrong(seed):
    """Return what is wrong with one run on one random model, or None."""
    rng = np.random.default_rng(seed)
    drawn = random_model(rng)
    if drawn is None:
        return None
    p, truth = drawn
    algorithm = random_algorithm(rng, p.graph.is_forest)
    start = None
    with no_convergence_warnings():
        if rng.random() < 0.2 and not isinstance(algorithm, ig.MeanField | ig.StructuredMeanField):
            start = other_start(p, algorithm, rng)
        result = ig.infer(p, algorithm, init=start)
        return fault(p, truth, algorithm, result)


def other_start(p, algorithm, rng):
    """Return a result of the same graph with other evidence or other tables."""
    free = [i for i in range(p.graph.n_variables) if i not in p.evidence]
    try:
        if free and rng.random() < 0.5:
            i = int(rng.choice(free))
            return ig.infer(p, algorithm, evidence={i: int(rng.integers(p.graph.cards[i]))})
        tables = [rng.normal(0, 30, t.shape) for t in p.log_tables]
        return ig.infer(ig.Potentials(p.graph, tables), algorithm)
    except ig.ImpossibleEvidenceError:
        return None


def fault(p, truth, algorithm, result):
    info, slack = result.info, 1e-6 * max(1.0, abs(truth.log_z))
    if info.bound in ("exact", "upper") and result.log_z < truth.log_z - slack:
        return f"{algorithm} {info}: log_z = {result.log_z}, truth {truth.log_z}"
    if info.bound in ("exact", "lower") and result.log_z > truth.log_z + slack:
        return f"{algorithm} {info}: log_z = {result.log_z}, truth {truth.log_z}"
    if not info.converged:
        return None
    exact = p.graph.is_forest and algorithm.facts.exact == "forests"
    if exact:
        targets = [truth.variables.flat]
    elif p.graph.is_forest and isinstance(algorithm, ig.MaxProduct):
        targets = [max_marginals(p)]
    else:
        targets = (again.variables.flat for again in continued(p, algorithm, result))
    off = np.inf
    for target in targets:
        off = min(off, np.abs(target - result.variables.flat).max(initial=0.0))
        if off <= OFF:
            break
    if info.bound == "exact":
        off = max(off, np.abs(truth.variables.flat - result.variables.flat).max(initial=0.0))
    return f"{algorithm} {info}: a belief is off by {off:.2g}" if not off <= OFF else None


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 1200, 100))
def test_no_wrong_answer_is_flagged_as_right(first):
    found = {seed: wrong(seed) for seed in range(first, first + 100)}
    assert not {seed: fault for seed, fault in found.items() if fault}


@pytest.mark.parametrize("seed", [2007753, 2014868])
def test_fixed_points_of_max_product_with_ties(seed):
    """They are found to 1e-10, and left again when a run goes on to 1e-14."""
    assert wrong(seed) is None


if __name__ == "__main__":
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        if found := wrong(seed):
            print(seed, found, flush=True)


@pytest.mark.parametrize("algorithm", ["exact", "brute"])
@pytest.mark.parametrize("size", [1e9, 1e11, 1e12])
def test_beliefs_sum_to_one_where_log_z_is_very_large(algorithm, size):
    rng = np.random.default_rng(0)
    for graph in [ig.FactorGraph([2, 2], [(0,), (1,)]), *[ig.grid_graph(3, 3, 3)] * 10]:
        shapes = [graph.cards[list(scope)] for scope in graph.scopes]
        tables = [rng.normal(size=shape) + size * rng.integers(-2, 3, shape) * 1.1234567 for shape in shapes]
        found = ig.infer(ig.Potentials(graph, tables), algorithm)
        sums = [found.variable(i).sum() for i in range(graph.n_variables)]
        sums += [found.factor(a).sum() for a in range(graph.n_factors)]
        np.testing.assert_allclose(sums, 1, rtol=0, atol=4e-12)


def test_a_very_large_constant_leaves_beliefs_alone():
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0,), (1,)]), [[0, 0.3], [-1.1234567e12] * 2])
    for algorithm in ("brute", "exact"):
        assert ig.infer(p, algorithm).variable(1).tolist() == [0.5, 0.5]
