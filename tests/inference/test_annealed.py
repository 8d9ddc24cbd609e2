"""Annealed importance sampling and importance sampling, against enumeration."""

import numpy as np
import pytest
from scipy.special import logsumexp

import isinglass as ig
from isinglass.errors import no_convergence_warnings
from isinglass.inference.importance.path import Path
from isinglass.inference.importance.reference import Reference
from isinglass.inference.importance.weighted import LogZ, log_mean
from isinglass.inference.sampling.chains import state_type
from transition_oracle import Joint, of_sampler

STARTS = ("uniform", "tree", "mf", "bp")


def models():
    """Return tiny models: a loop, mixed states with a triple, evidence, hard zeros inside and off a tree."""
    rng = np.random.default_rng(3)
    ring = ig.testing.random_potentials(ig.FactorGraph([2] * 4, [(0, 1), (1, 2), (2, 3), (3, 0), (0,)]), rng, 1.5)
    mixed = ig.FactorGraph([2, 3, 2, 2], [(0, 1, 2), (1, 2), (2, 3), (3, 0), (1,)])
    soft = ig.testing.random_potentials(mixed, rng, 1.0)
    hard = ig.testing.random_potentials(mixed, rng, 1.0, 0.25)
    return {"ring": ring, "mixed": soft, "evidence": soft.with_evidence({1: 2}), "hard zeros": hard}


MODELS = models()


def expected_weight(p, start, temperatures):
    """Return the logarithm of E[w] by enumeration of all paths."""
    path, states = Path.of(p, Reference.of(p, start)), Joint(p).states
    ratio = path.log_ratio(states.T.astype(state_type(p.graph)))[0]
    b, log_z = np.linspace(0.0, 1.0, temperatures + 1), path.reference.log_z[0]
    mass = np.exp(path.reference.potentials.log_score(states) - log_z)
    for t in range(1, temperatures + 1):
        mass = mass * np.exp((b[t] - b[t - 1]) * ratio)
        if t < temperatures:
            mass = mass @ of_sampler(Joint(path.at(b[t])), None, "gibbs chromatic")
    return np.log(mass.sum()) + log_z


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("name", list(MODELS))
def test_the_expected_weight_is_z(name, start):
    p = MODELS[name]
    truth = ig.infer(p, "brute").log_z
    assert abs(expected_weight(p, start, 4) - truth) < 1e-10


@pytest.mark.parametrize("start", STARTS)
def test_reference_distributions_are_positive_where_the_model_is(start):
    for p in MODELS.values():
        q = Reference.of(p, start)
        assert (q.potentials.log_score(Joint(p).states) > -np.inf).all()
        assert abs(logsumexp(q.potentials.log_score(Joint(q.potentials).states)) - q.log_z[0]) < 1e-12
        draws = q.draw(20, [np.random.default_rng(0)])
        assert (q.potentials.log_score(draws) > -np.inf).all()


def test_on_a_tree_one_weight_is_exact():
    p = ig.testing.random_potentials(ig.chain_graph(6, 3), np.random.default_rng(0), 2.0)
    for start in ("tree", "exact"):
        r = ig.infer(p, "importance", samples=60, proposal=start, random_state=0)
        assert abs(r.log_z - ig.infer(p).log_z) < (1e-10 if start == "tree" else 0.01)


def covered(runs, **options):
    """Return how often two standard errors cover the truth."""
    p = ig.models.Ising(ig.grid_graph(4, 4, 2)).potentials(coupling=0.25, field=0.1)
    truth = ig.infer(p).log_z
    with no_convergence_warnings():
        found = [ig.infer(p, random_state=seed, **options) for seed in range(runs)]
    z = np.array([(r.log_z - truth) / r.info.stderr for r in found])
    return (np.abs(z) < 2).mean()


@pytest.mark.long
@pytest.mark.parametrize("options", [{"algorithm": "ais", "temperatures": 30}, {"algorithm": "importance"}])
def test_two_standard_errors_cover_log_z(options):
    assert 0.88 <= covered(100, **options) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"algorithm": "ais", "temperatures": 50},
        {"algorithm": "ais", "temperatures": 20, "start": "tree"},
        {"algorithm": "importance"},
    ],
)
def test_coverage_of_many_runs(options):
    assert 0.90 <= covered(1000, **options) <= 0.98


def test_a_better_start_gives_smaller_errors():
    p = ig.models.Ising(ig.grid_graph(8, 8, 2)).potentials(coupling=0.3, field=0.3)
    error = {start: ig.infer(p, "ais", start=start, random_state=0).info.stderr for start in STARTS}
    assert error["bp"] < error["tree"] < error["uniform"]
    assert error["mf"] < error["uniform"]


def test_threads_change_nothing():
    p = MODELS["mixed"]
    one, two = (ig.infer(p, "ais", random_state=0, n_jobs=t, temperatures=5) for t in (1, 2))
    assert one.log_z == two.log_z
    np.testing.assert_array_equal(one.variables.flat, two.variables.flat)


def test_degenerate_weights_are_told():
    p = ig.models.Ising(ig.grid_graph(10, 10, 2)).potentials(coupling=0.6)
    for options in ({"algorithm": "importance", "proposal": "uniform"}, {"algorithm": "ais", "temperatures": 1}):
        with pytest.warns(ig.ConvergenceWarning, match="the weights are degenerate: effective size .* of .*needed: 50"):
            r = ig.infer(p, random_state=0, **options)
        assert not r.info.converged
    forbidden = np.where(np.eye(6) > 0, 0.0, -np.inf)
    q = ig.Potentials(ig.FactorGraph([6] * 8, [(i, (i + 1) % 8) for i in range(8)]), [forbidden] * 8)
    with pytest.warns(ig.ConvergenceWarning, match="effective size 0.0"):
        r = ig.infer(q, "ais", random_state=0)
    assert r.log_z == -np.inf
    assert np.isfinite(r.variables.flat).all()
    assert abs(ig.infer(q, "ais", start="tree", random_state=0).log_z - np.log(6)) < 1e-12


@pytest.mark.parametrize("proposal", ["bp", "mf"])
def test_a_proposal_in_one_of_two_modes_is_noticed(proposal):
    """Its weights are all alike, and log Z is off by 100 of their standard errors."""
    p = ig.models.Ising(ig.grid_graph(3, 4, 2)).potentials(coupling=2.0, field=0.01)
    with pytest.warns(ig.ConvergenceWarning, match="the weights are degenerate"):
        r = ig.infer(p, "importance", proposal=proposal, random_state=0)
    assert not r.info.converged
    assert abs(r.log_z - ig.infer(p).log_z) < 4 * r.info.stderr


@pytest.mark.parametrize(
    "options", [{"algorithm": "ais", "start": "mf"}, {"algorithm": "importance", "proposal": "mf"}]
)
def test_equal_weights_leave_an_error_of_one_draw(options):
    """Mean field of two modes, of which one has 1 %: what no draw has seen may be as much as one of them."""
    p = ig.models.Ising(ig.complete_graph(6, 2)).potentials(coupling=4.0, field=0.4)
    truth = ig.infer(p)
    for seed in range(5):
        with no_convergence_warnings():
            r = ig.infer(p, random_state=seed, **options)
        draws = len(r.info.details["log_weights"][0])
        assert r.info.stderr >= 1 / draws
        assert abs(r.log_z - truth.log_z) < 4 * r.info.stderr or not r.info.converged
        assert (np.asarray(r.info.details["stderr_variables"]) >= 1 / draws).all()


def test_mean_field_is_a_product_beside_uniform_draws():
    path = Reference.of(MODELS["ring"], "mf")
    assert not any(len(group) and group.arity > 1 for group in path.potentials.graph.groups)
    p = ig.models.Ising(ig.complete_graph(6, 2)).potentials(coupling=0.8)
    r = ig.infer(p, "importance", proposal="mf", random_state=0)
    assert r.info.converged
    assert abs(r.log_z - ig.infer(p).log_z) < 4 * r.info.stderr < 1


def test_small_sets_of_weights():
    found = LogZ.mean(np.log(np.random.default_rng(0).pareto(3.0, (2, 4000))))
    assert found.reliable.all()
    one = np.full((1, 4000), -np.inf)
    one[0, 7] = 2.0
    assert log_mean(one[0]).ess == 1
    assert not LogZ.mean(one).reliable[0]
    r = ig.infer(MODELS["ring"], "importance", random_state=0)
    assert r.info.converged
    assert "no proof" in r.info.note


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chains": 1}, "chains: expected a whole number of at least 2"),
        ({"temperatures": 0}, "temperatures: expected a whole number of at least 1"),
        ({"sweeps": -1}, "sweeps: expected"),
        ({"start": "gibbs"}, "start: expected an algorithm whose beliefs are marginals.*use 'mf'"),
        ({"start": "max"}, "start: expected 'uniform', 'tree' or an algorithm"),
        ({"n_jobs": 0}, "n_jobs: expected"),
    ],
)
def test_wrong_input(options, message):
    with pytest.raises(ig.InputError, match=message):
        ig.infer(MODELS["ring"], "ais", **options)


@pytest.mark.parametrize("name", ["ais", "importance"])
def test_examples_without_variables_have_log_z_zero(name):
    empty = ig.Potentials(ig.FactorGraph([], []), [])
    one = ig.models.Ising(ig.grid_graph(2, 2, 2)).potentials(coupling=0.3, field=0.1)
    assert ig.infer(empty, name, random_state=0).log_z == 0
    found = ig.infer(ig.potentials_union([one, empty]), name, random_state=0)
    assert found.component_log_z[1] == 0
    assert found.info.converged


def test_examples_draw_independent_numbers():
    """So the standard error of the sum of nine equal examples is about three times that of one."""
    one = ig.models.Ising(ig.grid_graph(2, 2, 2)).potentials(coupling=0.3, field=0.1)
    single, nine = (ig.infer(p, "ais", random_state=0) for p in (one, ig.potentials_union([one] * 9)))
    assert nine.component_log_z[0] == pytest.approx(single.log_z, rel=1e-12)
    assert len(np.unique(nine.component_log_z)) == 9
    errors = nine.info.details["stderr_log_z"]
    assert nine.info.stderr == pytest.approx(np.linalg.norm(errors))
    assert abs(nine.log_z - 9 * ig.infer(one, "exact").log_z) < 5 * nine.info.stderr
