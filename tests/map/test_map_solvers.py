"""What each MAP solver promises beyond its certificate, and what it refuses."""

import builtins
import os
import signal
import subprocess
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

import isinglass as ig
from checks import refuses
from isinglass.inference.brute import Brute
from isinglass.inference.map import auto
from isinglass.inference.map.cuts import binary
from isinglass.inference.map.reduction import reduced
from isinglass.inference.map.search import Search
from isinglass.testing.solver_suite import checked
from isinglass.testing.strategies import factor_graphs, potentials, random_potentials

BINARY = factor_graphs(max_card=2, max_arity=2)


def grid(side, states, seed, coupling=1.0):
    """Return a Potts model with couplings of both signs."""
    rng = np.random.default_rng(seed)
    graph = ig.grid_graph(side, side, states)
    pairs = rng.normal(0, coupling, len(graph.groups[1]))[:, None, None] * np.eye(states)
    return ig.Potentials.from_groups(graph, [rng.normal(size=(side * side, states)), pairs])


@checked
@given(p=potentials())
def test_a_reduced_model_has_the_same_scores(p):
    small = reduced(p)
    rng = np.random.default_rng(0)
    x = rng.integers(0, small.potentials.graph.cards)
    assert_allclose(p.log_score(small.lift(x)), small.potentials.log_score(x), atol=1e-10)
    assert_array_equal(small.restrict(small.lift(x)), x)
    assert not small.potentials.evidence
    assert ig.map_assignment(small.potentials, "brute").score == pytest.approx(Brute().maximise(p)[0].score, abs=1e-9)
    assert (small.potentials.graph.cards > 1).all()


@checked
@given(p=potentials(BINARY))
def test_some_optimum_has_all_persistent_labels(p):
    found = ig.map_assignment(p, "qpbo", complete=None)
    known = {i: int(s) for i, s in enumerate(found.states) if s >= 0}
    best = Brute().maximise(p)[0].score
    assert Brute().maximise(p.with_evidence(known))[0].score == pytest.approx(best, abs=1e-9)
    assert np.isnan(found.score) == (found.states < 0).any()


@checked
@given(p=potentials(BINARY, zeros=False))
def test_qpbo_and_lp_have_the_same_bound(p):
    roof, program = (ig.map_assignment(p, name) for name in (ig.QPBO(complete=None), "lp"))
    assert roof.bound == pytest.approx(program.bound, abs=1e-7)


@checked
@given(p=potentials())
def test_trws_bounds_never_rise(p):
    bounds = np.array(ig.map_assignment(p, ig.TRWS(every=1, tol=0.0, max_iter=60)).info.bounds)
    assert (np.diff(bounds) <= 1e-9 * (1 + np.abs(bounds[1:]))).all()


@checked
@given(p=potentials(factor_graphs(forest=True)))
def test_trws_is_exact_on_trees(p):
    merged = ig.map_assignment(p, "trws")
    assert merged.bound == pytest.approx(Brute().maximise(p)[0].score, abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_relaxations_agree_on_a_grid(seed):
    bounds = {name: ig.map_assignment(grid(7, 3, seed), name).bound for name in ("lp", "trws")}
    assert bounds["lp"] <= bounds["trws"] + 1e-6


@pytest.mark.parametrize("name", ["ilp", "toulbar2", "auto"])
@pytest.mark.parametrize("seed", range(2))
def test_exact_solvers_prove_what_junction_trees_find(name, seed):
    p = grid(8, 3, seed)
    found, truth = ig.map_assignment(p, name), ig.map_assignment(p, "exact")
    assert found.optimal
    assert found.score == pytest.approx(truth.score, abs=1e-9)


def test_graph_cut_equals_exact_inference_on_an_attractive_grid():
    p = grid(10, 2, 0)
    attractive = ig.Potentials.from_groups(p.graph, [p.groups[0], np.abs(p.groups[1])])
    found = ig.map_assignment(attractive, "graph-cut")
    assert found.optimal
    assert found.score == pytest.approx(ig.map_assignment(attractive, "exact").score, abs=1e-9)


@pytest.mark.parametrize("piece", [1, 10**7])
def test_flows_equal_those_of_scipy(monkeypatch, piece):
    """Integer capacities, ties, parallel arcs and infinite ones; the cut is the smallest that reaches the sink."""
    monkeypatch.setattr(binary, "PIECE", piece)
    search, rng = Search(grid(2, 2, 0)), np.random.default_rng(piece)
    for k in range(100):
        n, most = int(rng.integers(2, 30)), int(rng.choice([1, 3, 10**6]))
        tails = rng.integers(0, n, 3 * n)
        heads = (tails + rng.integers(1, n, 3 * n)) % n
        capacities, unary = rng.integers(0, most, 3 * n) + 0.0, rng.integers(-most, most + 1, n) + 0.0
        capacities[: k % 4] = np.inf
        flows, level, finished = binary._maximum_flow(tails, heads, capacities, unary, search)
        assert finished
        assert ((flows >= 0) & (flows <= capacities)).all()
        large = csr_array((n + 2, n + 2), dtype=np.int64)
        finite = np.where(capacities < np.inf, capacities, 1e8)
        for size, a, b in ((finite, tails, heads), (unary, n, range(n)), (-unary, range(n), n + 1)):
            places = np.broadcast_arrays(a, b)
            large = large + csr_array((np.maximum(size, 0).astype(np.int64), places), shape=large.shape)
        found = maximum_flow(csr_array(large.astype(np.int32)), n, n + 1)
        rest = large - found.flow
        cut = breadth_first_order(csr_array((rest > 0).T.astype(int)), n + 1, return_predecessors=False)
        assert_array_equal(np.flatnonzero(level < 0), np.sort(cut[cut < n]))
        left = unary + np.bincount(heads, flows, n) - np.bincount(tails, flows, n)
        assert np.minimum(left, 0).sum() == found.flow_value + np.minimum(unary, 0).sum()


def test_flows_end_soon_whatever_the_capacities_are():
    """A chain of which a long part is cut off, and capacities down to the smallest number."""
    n, search = 20_000, Search(grid(2, 2, 0))
    ends, rng = np.zeros(n), np.random.default_rng(0)
    ends[[0, -1]] = 5.0, -5.0
    signs, size = rng.choice([-1.0, 1.0], n), 10.0 ** rng.uniform(-320, 3, 2 * n)
    for capacities, unary in ((np.full(n - 1, 3.0), ends), (size[: n - 1], signs * size[n:])):
        flows, level, _ = binary._maximum_flow(np.arange(n - 1), np.arange(1, n), capacities, unary, search)
        left, x = unary + np.append(0.0, flows) - np.append(flows, 0.0), level < 0
        assert unary[x].sum() + capacities[~x[:-1] & x[1:]].sum() == pytest.approx(np.minimum(left, 0.0).sum(), 1e-12)


@pytest.mark.parametrize("name", ["graph-cut", "qpbo", "auto"])
def test_cuts_without_time_have_a_true_bound(monkeypatch, name):
    monkeypatch.setattr(binary, "PIECE", 500)
    p = grid(20, 2, 0)
    p = ig.Potentials.from_groups(p.graph, [p.groups[0], np.abs(p.groups[1])])
    best, found = ig.map_assignment(p, "exact").score, ig.map_assignment(p, name, seconds=0.0)
    assert found.info.stopped == "seconds"
    assert not found.optimal
    assert best - 100 < found.score < best < found.bound < best + 300


@pytest.mark.parametrize("name", ["expansion", "ils"])
def test_moves_improve_on_single_variables(name):
    p = grid(20, 4, 1)
    assert ig.map_assignment(p, name).score > ig.map_assignment(p, "icm").score + 1


def frustrated(graph, seed):
    """Return an Ising model whose couplings are 1 or -1."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (len(graph.groups[1]), 1, 1))
    unary = 0.1 * np.random.default_rng(seed).normal(size=(graph.n_variables, 2))
    return ig.Potentials.from_groups(graph, [unary, signs * (2 * np.eye(2) - 1)])


def test_auto_does_not_end_below_annealing_on_a_frustrated_torus(monkeypatch):
    monkeypatch.setattr(auto, "BRANCHED", 0)
    p = frustrated(ig.lattice_graph((16, 16), 2, periodic=True), 0)
    found = ig.map_assignment(p, "auto", seconds=30)
    assert found.score >= ig.map_assignment(p, "annealing").score - 1e-9


@pytest.mark.parametrize("name", ["bp", "trw", "max-product", "fbp"])
def test_decoded_messages_are_local_maxima_and_not_worse_than_icm(name):
    for seed in range(4):
        p = frustrated(ig.grid_graph(8, 8, 2), seed)
        found = ig.map_assignment(p, name, evidence={3: 1})
        assert found.states[3] == 1
        again = ig.map_assignment(p, ig.ICM(start=found.states), evidence={3: 1})
        assert found.score == pytest.approx(p.log_score(found.states), abs=1e-9)
        assert found.score >= max(again.score, ig.map_assignment(p, "icm", evidence={3: 1}).score) - 1e-9


@checked
@given(p=potentials(factor_graphs(max_arity=2)), seed=st.integers(0, 99))
def test_moves_never_lower_the_score_of_their_start(p, seed):
    start = Brute().sample(p, 1, np.random.default_rng(seed))[0]
    for solver in (ig.Expansion(start=start), ig.ICM(start=start), ig.ICM("trees", start=start)):
        assert ig.map_assignment(p, solver).score >= p.log_score(start) - 1e-9


def test_small_models():
    p = random_potentials(ig.chain_graph(30, 3), np.random.default_rng(0))
    found = ig.map_assignment(p, ig.ICM(blocks="trees"))
    assert found.score == pytest.approx(ig.map_assignment(p, "exact").score, abs=1e-9)
    apart = ig.Potentials(TRIANGLE, [np.eye(2), -np.eye(2), np.eye(2)])
    assert ig.map_assignment(apart, "graph-cut", evidence={1: 0}).optimal
    p = ig.Potentials(ig.FactorGraph([3], [(0,)]), [[0.0, 2.0, 1.0]])
    search = Search(p)
    assert [search.offer(np.array([k])) for k in (0, 1, 2)] == [True, True, False]
    search.tighten(3.0)
    search.tighten(5.0)
    assert (search.score, search.bound, search.closed) == (2.0, 3.0, False)


@pytest.mark.long
def test_a_time_limit_is_kept():
    p = grid(40, 5, 0)
    ig.map_assignment(p, "ils", seconds=0.01)  # compiles
    begin = time.monotonic()
    found = ig.map_assignment(p, ig.IteratedLocalSearch(max_iter=10**6, patience=10**6, seconds=0.3))
    assert found.info.stopped == "seconds"
    assert time.monotonic() - begin < 5


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_toulbar2_leaves_no_timer_and_no_handler():
    handler = signal.getsignal(signal.SIGINT)
    assert ig.map_assignment(grid(3, 2, 0), "toulbar2", seconds=50).optimal
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGINT) is handler
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.long
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_toulbar2_hears_ctrl_c():
    pytest.importorskip("pytoulbar2")
    hard = grid(30, 5, 0)
    signals = f"for k in 1 2 3 4 5 6 7 8; do sleep 2; kill -INT {os.getpid()}; done"
    sender = subprocess.Popen(["sh", "-c", signals])
    try:
        with pytest.warns(ig.ConvergenceWarning, match="interrupted"):
            found = ig.map_assignment(hard, "toulbar2", seconds=60)
    finally:
        sender.kill()
        sender.wait()
    assert found.info.stopped == "interrupted"
    assert found.bound >= found.score
    assert not found.optimal


@pytest.mark.long
def test_toulbar2_keeps_its_limit_and_forgets_runs_that_were_stopped():
    hard = grid(12, 3, 0)
    before = ig.map_assignment(hard, "toulbar2")
    begin = time.process_time()
    stopped = ig.map_assignment(grid(120, 2, 0), "toulbar2", seconds=0.1)  # while it prepares the model
    assert time.process_time() - begin < 10
    assert stopped.info.stopped == "seconds"
    after = ig.map_assignment(hard, "toulbar2")
    assert after.optimal
    assert (after.score, after.bound) == (before.score, before.bound)


TRIANGLE = ig.FactorGraph([2, 2, 2], [(0, 1), (1, 2), (0, 2)])


def refused(p, solver, match, error=ig.InputError):
    refuses(match, ig.map_assignment, p, solver, error=error)


def test_what_solvers_refuse():
    apart = ig.Potentials(TRIANGLE, [np.eye(2), -np.eye(2), np.eye(2)])
    refused(apart, "graph-cut", r"submodular log tables.* in factor 1 \(variables 1, 2\); use \"qpbo\"")
    three = ig.Potentials(ig.FactorGraph([3, 3], [(0, 1)]), [np.zeros((3, 3))])
    refused(three, "qpbo", r"variables of 2 states.* variable 0 with 3")
    triple = ig.Potentials(ig.FactorGraph([2, 2, 2], [(0, 1, 2)]), [np.zeros((2, 2, 2))])
    for name in ("graph-cut", "qpbo", "expansion"):
        refused(triple, name, r"at most two variables.*factor 0 \(variables 0, 1, 2\)")
    table = -np.array([[0.0, 5.0, 1.0], [5.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    far = ig.Potentials(ig.FactorGraph([3, 3], [(0, 1)]), [table])
    refused(far, ig.Expansion(moves="exact"), r"energies that are a metric.*factor 0")
    assert ig.map_assignment(far, "expansion").score == 0


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("icm", {"blocks": "cliques"}, "blocks"),
        ("annealing", {"cold": 9.0}, "cold: expected a temperature"),
        ("trws", {"max_iter": 0}, "max_iter"),
        ("ils", {"seconds": -1.0}, "seconds"),
        ("expansion", {"moves": "some"}, "moves"),
        ("icm", {"start": [0, 5, 0]}, "start"),
        ("trws", {"iterations": 3}, "iterations: expected an option of 'trws'"),
        ("trw-s", {}, "did you mean 'trws'"),
    ],
)
def test_wrong_options(name, options, match):
    p = ig.Potentials(TRIANGLE, [np.eye(2)] * 3)
    refuses(match, ig.map_assignment, p, name, **options)


def test_missing_packages(monkeypatch):
    real = builtins.__import__

    def without(wanted, *args, **options):
        if wanted == "pytoulbar2":
            raise ImportError(wanted)
        return real(wanted, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    p = ig.Potentials(TRIANGLE, [np.eye(2)] * 3)
    refuses("needs pytoulbar2.*pip install", ig.map_assignment, p, "toulbar2", error=ig.MissingDependencyError)


def test_no_possible_assignment_is_found():
    clash = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    p = ig.Potentials(TRIANGLE, [clash, clash, clash[:, ::-1]])  # equal, equal, different
    with pytest.warns(ig.ConvergenceWarning, match="no assignment was found"):
        found = ig.map_assignment(p, "icm")
    assert found.score == -np.inf
    assert not found.optimal
    refused(p, "ilp", "probability zero", ig.ImpossibleEvidenceError)


@pytest.mark.long
def test_auto_does_not_search_long_for_an_order_that_it_will_not_take():
    begin = time.monotonic()
    found = ig.map_assignment(grid(20, 3, 0), "auto", seconds=0.5)  # a SearchWarning would be an error here
    assert "junction tree" not in found.info.did
    assert time.monotonic() - begin < 10
