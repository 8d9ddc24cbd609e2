"""Options of samplers, wrong input, threads, continued chains, draws."""

import pickle

import numpy as np
import pytest

import isinglass as ig
from checks import refuses
from isinglass.inference.sampling.algorithm import MonteCarlo
from isinglass.inference.sampling.chains import Chains
from isinglass.inference.sampling.gibbs import SCANS, GibbsSampler
from isinglass.inference.sampling.scores import Scores
from isinglass.inference.sampling.sites import site_model

NAMES = [name for name, cls in ig.inference.ALGORITHMS.items() if issubclass(cls, MonteCarlo)]
pytestmark = pytest.mark.filterwarnings("ignore::isinglass.errors.ConvergenceWarning")


def grid(coupling=0.3, side=4):
    return ig.models.Ising(ig.grid_graph(side, side, 2)).potentials(coupling=coupling, field=0.1)


def triple():
    return ig.Potentials(ig.FactorGraph([2, 2, 2], [(0, 1, 2)]), [np.arange(8.0).reshape(2, 2, 2) / 5])


def test_there_are_five_with_their_limits():
    assert NAMES == ["gibbs", "tree-gibbs", "swendsen-wang", "wolff", "tempering"]
    with pytest.raises(ig.InputError, match="init: expected a result of a sampler, got one of 'mf'"):
        ig.infer(grid(), "gibbs", init=ig.infer(grid(), "mf"))
    p = ig.Potentials(ig.FactorGraph([2], [(0,)]), [np.array([0.0, 1j])])
    refuses("real log tables", ig.infer, p, "gibbs")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chains": 0}, "chains: expected a whole number of at least 1, got 0"),
        ({"sweeps": 0}, "sweeps: expected a whole number of at least 1, got 0"),
        ({"burn_in": -1}, "burn_in: expected a whole number of at least 0, got -1"),
        ({"thin": 0}, "thin: expected a whole number of at least 1, got 0"),
        ({"n_jobs": 0}, "n_jobs: expected a whole number of at least 1"),
        ({"random_state": -1}, "random_state: expected a whole number"),
    ],
)
def test_wrong_options(name, options, message):
    refuses(message, ig.infer, grid(), name, **options)
    refuses(message, ig.sample, grid(), 2, name, **options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("gibbs", {"scan": "upwards"}, "scan: expected 'chromatic' or 'systematic' or 'random', got 'upwards'"),
        ("gibbs", {"burn_in": 2000}, "burn_in: expected fewer sweeps than the 2000 of a chain, got 2000; raise sweeps"),
        ("wolff", {"clusters": 0}, "clusters: expected a whole number of at least 1"),
        ("tempering", {"replicas": 0}, "replicas: expected a whole number of at least 1"),
        ("tempering", {"hottest": 0.0}, "hottest: expected an inverse temperature above 0"),
    ],
)
def test_wrong_options_of_one(name, options, message):
    refuses(message, ig.infer, grid(), name, **options)


@pytest.mark.parametrize("name", ["swendsen-wang", "wolff"])
@pytest.mark.parametrize(
    ("p", "message"),
    [
        (triple(), 'factors of at most two variables, for .*, got 3; use "gibbs"'),
        (
            ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.where(np.eye(2) > 0, 0.0, -np.inf)]),
            "no hard zeros in factors of two variables",
        ),
        (ig.Potentials(ig.FactorGraph([3, 3], [(0, 1)]), [-np.eye(3)]), "couplings J .* with J >= 0"),
        (ig.Potentials(ig.FactorGraph([3, 3], [(0, 1)]), [np.diag([1.0, 2, 3])]), "couplings J .* with J >= 0"),
        (ig.Potentials(ig.FactorGraph([2, 3], [(0, 1)]), [np.zeros((2, 3))]), "equal cardinalities in a pair"),
    ],
)
def test_models_that_clusters_do_not_serve(name, p, message):
    refuses(message, ig.infer, p, name)


@pytest.mark.parametrize("name", NAMES)
def test_impossible_evidence(name):
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1), (0,)]), [np.zeros((2, 2)), [0.0, -np.inf]])
    for call in (lambda: ig.infer(p, name, evidence={0: 1}), lambda: ig.sample(p, 2, name, evidence={0: 1})):
        refuses("has probability zero", call, error=ig.ImpossibleEvidenceError)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_threads_change_nothing(name):
    p = grid()
    one, three = (ig.infer(p, name, sweeps=50, random_state=0, n_jobs=t) for t in (1, 3))
    np.testing.assert_array_equal(one.traces.draws, three.traces.draws)
    np.testing.assert_array_equal(one.variables.flat, three.variables.flat)
    np.testing.assert_array_equal(
        ig.sample(p, 9, name, random_state=1), ig.sample(p, 9, name, random_state=1, n_jobs=2)
    )


@pytest.mark.parametrize("name", NAMES)
def test_chains_are_continued(name):
    """Two runs, the second from the first, have the draws of one."""
    p = grid()
    whole = ig.infer(p, name, sweeps=60, burn_in=20, thin=2, random_state=0)
    first = ig.infer(p, name, sweeps=40, burn_in=20, thin=2, random_state=0)
    second = ig.infer(p, name, sweeps=20, init=pickle.loads(pickle.dumps(first)))
    np.testing.assert_array_equal(second.traces.draws, whole.traces.draws)
    np.testing.assert_array_equal(second.variables.flat, whole.variables.flat)
    assert second.info.iterations == whole.info.iterations == 60
    again = ig.infer(p, name, sweeps=20, init=first)
    np.testing.assert_array_equal(again.traces.draws, second.traces.draws)  # the first result is not changed


def test_chains_go_on_with_other_potentials():
    first = ig.infer(grid(0.3), "gibbs", sweeps=40, random_state=0)
    moved = ig.infer(grid(0.3).with_evidence({0: 1}), "gibbs", sweeps=40, init=first)
    assert (moved.traces.draws[:, 0] == 1).all()
    refuses("a result on the same graph", ig.infer, grid(side=3), "gibbs", init=first)


def test_the_stream_of_a_chain_does_not_depend_on_the_others():
    p = grid()
    few, many = Chains.start(p, 3, 7), Chains.start(p, 9, 7)
    np.testing.assert_array_equal(few.keys[0], many.keys[0, :3])
    start = many.states[:, :3].copy()
    few = Chains(np.ascontiguousarray(start), few.keys, few.drawn)
    for chains in (few, many):
        GibbsSampler(p).advance(chains, 5)
    np.testing.assert_array_equal(few.states, many.states[:, :3])


@pytest.mark.parametrize("scan", ["chromatic", "systematic", "random"])
def test_held_variables_keep_the_states_of_each_chain(scan):
    p = grid()
    chains = Chains.start(p, 6, 0)
    before = chains.states.copy()
    GibbsSampler(p, scan, held=[0, 5]).advance(chains, 10)
    np.testing.assert_array_equal(chains.states[[0, 5]], before[[0, 5]])
    assert (chains.states != before).any()


def test_draws_come_in_turn_and_are_kept():
    p = grid()
    few, many = (ig.sample(p, n, "gibbs", chains=4, burn_in=10, thin=2, random_state=0) for n in (6, 12))
    np.testing.assert_array_equal(few, many[:6])
    assert ig.sample(p, 2, "gibbs", chains=4, random_state=0).shape == (2, 16)
    assert ig.sample(p, 2, "gibbs", burn_in=3000, random_state=0).shape == (2, 16)  # `sweeps` is of infer
    r = ig.infer(grid(), "gibbs", sweeps=40, chains=3, thin=3, burn_in=10, random_state=0)
    assert r.traces.draws.shape == (10, 16, 3)
    assert r.traces.states.shape == (3, 10, 16)
    assert "3 chains, 10 draws of 16 variables" in repr(r.traces)
    # More than 256 states need larger integers.
    p = ig.Potentials(ig.FactorGraph([300, 2], [(0, 1), (0,)]), [np.zeros((300, 2)), np.linspace(0, 3, 300)])
    x = ig.sample(p, 2000, "gibbs", random_state=0, thin=1)
    assert x[:, 0].max() > 256
    mean = ig.infer(p, "exact").variable(0) @ np.arange(300)
    assert abs(x[:, 0].mean() - mean) < 10


def test_starts_are_far_apart_and_possible():
    p = grid()
    x = Chains.start(p, 8, 0).states.astype(int)
    assert (x[:, 0] == 0).all()
    assert (x[:, 1] == 1).all()
    np.testing.assert_array_equal(x[:, 2], 1 - x[:, 3])
    differ = np.where(np.eye(3) > 0, -np.inf, 0.0)
    colouring = ig.Potentials(ig.grid_graph(4, 4, 3), [np.zeros(3)] * 16 + [differ] * 24)
    y = Chains.start(colouring, 8, 0).assignments
    assert (colouring.log_score(y) == 0).all()
    assert len({tuple(row) for row in y}) > 1


def test_starts_that_must_be_searched(monkeypatch):
    differ = np.where(np.eye(4) > 0, -np.inf, 0.0)
    p = ig.Potentials(ig.grid_graph(6, 6, 4), [np.zeros(4)] * 36 + [differ] * 60)
    monkeypatch.setattr("isinglass.inference.sampling.starts.CHEAP", 0)
    x = Chains.start(p, 3, 0).assignments
    assert (p.log_score(x) == 0).all()


def test_scores_by_component():
    rng = np.random.default_rng(0)
    parts = [ig.testing.random_potentials(ig.grid_graph(2, 2, 2 + k), rng) for k in range(3)]
    batch = ig.potentials_union(parts)
    x = rng.integers(0, batch.graph.cards, (5, batch.graph.n_variables))
    found = Scores(batch)(np.ascontiguousarray(x.T.astype(np.uint8)))
    expected = [p.log_score(x[:, 4 * k : 4 * k + 4]) for k, p in enumerate(parts)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_warning_says_what_was_found():
    with pytest.warns(
        ig.ConvergenceWarning, match="R-hat is .* effective sample size .*; raise sweeps, go on with init="
    ):
        ig.infer(grid(2.0), "gibbs", sweeps=40, random_state=0)
    wall = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.where(np.eye(2) > 0, 0.0, -np.inf)])
    with pytest.warns(ig.ConvergenceWarning, match="hard zeros may separate the assignments"):
        ig.infer(wall, "gibbs", random_state=0)
    with pytest.warns(ig.ConvergenceWarning, match="4 chains are needed for a verdict"):
        ig.infer(grid(), "gibbs", chains=2, random_state=0)


EMPTY = ig.Potentials(ig.FactorGraph([], []), [])
SMALL = ig.models.Ising(ig.grid_graph(2, 2, 2)).potentials(coupling=0.3, field=0.1)


@pytest.mark.parametrize("name", ["gibbs", "tree-gibbs", "swendsen-wang", "wolff", "tempering"])
@pytest.mark.parametrize("parts", [[EMPTY], [SMALL, EMPTY, SMALL], [SMALL, EMPTY]])
def test_examples_without_variables(name, parts):
    p = ig.potentials_union(parts)
    with ig.errors.no_convergence_warnings():
        r = ig.infer(p, name, sweeps=100, random_state=0)
    assert r.info.details["ergodic"].tolist() == [1.0] * len(parts)
    assert ig.sample(p, 3, name, random_state=0, burn_in=2).shape == (3, p.graph.n_variables)


@pytest.mark.parametrize("scan", SCANS)
def test_no_possible_state(scan):
    """Neighbours that differ leave none to a variable that must equal both."""
    equal = np.where(np.eye(3) > 0, 0.0, -np.inf)
    p = ig.Potentials(ig.FactorGraph([3, 3, 3], [(0, 1), (1, 2)]), [equal, equal])
    chains = Chains.at(p, np.array([[0, 0, 0], [0, 0, 1]]), 0)
    with pytest.raises(ig.ImpossibleEvidenceError):
        GibbsSampler(p, scan, held=[0, 2]).advance(chains, 20)


def test_which_log_odds_are_linear():
    """Those of binary variables whose factors are pairs with binary variables, without hard zeros."""
    wall = np.where(np.eye(2) > 0, 0.0, -np.inf)
    graph = ig.FactorGraph([2, 2, 3, 2, 2, 2, 2], [(0, 1), (1, 2), (3, 4), (5, 6), (5,), (6,)])
    tables = [np.eye(2), np.zeros((2, 3)), wall, np.eye(2), [0.0, -np.inf], [1.0, 0.0]]
    found = site_model(ig.Potentials(graph, tables))
    assert found.linear.tolist() == [True, False, False, False, False, False, True]
    assert found.bias[[0, 6]].tolist() == [-1.0, -2.0]
    assert found.slope[0] == 2.0
