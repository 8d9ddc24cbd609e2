"""Annealed importance sampling, importance sampling and bridge sampling, against enumeration."""

import numpy as np
import pytest
from scipy.special import logsumexp

import isinglass as ig
from isinglass.errors import no_convergence_warnings
from isinglass.inference.importance.pareto import pareto_k
from isinglass.inference.importance.path import Path
from isinglass.inference.importance.reference import Reference
from isinglass.inference.importance.weighted import LogZ
from isinglass.inference.importance.weights import bridge, log_mean
from isinglass.inference.sampling.chains import state_type
from isinglass.inference.sampling.gibbs import GibbsSampler

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


def enumerated(p):
    """Return all assignments that agree with the evidence, (assignments, variables)."""
    states = np.indices(tuple(p.graph.cards)).reshape(p.graph.n_variables, -1).T
    for i, state in p.evidence.items():
        states = states[states[:, i] == state]
    return states


def transition(sampler, states):
    """Return the transition matrix of one sweep, from the conditional probabilities that the sampler computes."""
    number = {tuple(x): row for row, x in enumerate(states.tolist())}
    possible = sampler.potentials.log_score(states) > -np.inf
    total = np.eye(len(states))
    first = np.concatenate([[0], np.cumsum(sampler.graph.cards)])
    for i in sampler.order.astype(int):
        one = np.eye(len(states))
        turned = states[possible].T.astype(state_type(sampler.graph))
        p = sampler.conditionals(np.ascontiguousarray(turned))[first[i] : first[i + 1]]
        for column, row in enumerate(np.flatnonzero(possible)):
            one[row] = 0.0
            for a in range(sampler.graph.cards[i]):
                one[row, number[(*states[row, :i].tolist(), a, *states[row, i + 1 :].tolist())]] = p[a, column]
        total = total @ one
    return total


def expected_weight(p, start, temperatures, reverse=False):
    """Return the logarithm of E[w] by enumeration of all paths: forward, or of the inverse weights in reverse."""
    path, states = Path.of(p, Reference.of(p, start)), enumerated(p)
    b = np.linspace(0.0, 1.0, temperatures + 1)
    kept = p.log_score(states) > -np.inf if reverse else path.reference.potentials.log_score(states) > -np.inf
    ratio = np.zeros(len(states))
    ratio[kept] = path.log_ratio(states[kept].T.astype(state_type(p.graph)))[0]
    begin = p if reverse else path.reference.potentials
    log_p = begin.log_score(states)
    mass = np.exp(log_p - logsumexp(log_p))
    for t in range(temperatures, 0, -1) if reverse else range(1, temperatures + 1):
        step = (b[t - 1] - b[t]) if reverse else (b[t] - b[t - 1])
        with np.errstate(invalid="ignore"):
            mass = np.where(mass > 0, mass * np.exp(step * ratio), 0.0)
        now = t - 1 if reverse else t
        if 0 < now < temperatures:
            mass = mass @ transition(GibbsSampler(path.at(b[now]), backwards=reverse), states)
    if not reverse:
        return np.log(mass.sum()) + path.reference.log_z[0]
    log_q = path.reference.potentials.log_score(states)
    return logsumexp(log_q[kept]) - np.log(mass.sum())  # log Z_q times the share of q on what the model allows


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("name", list(MODELS))
def test_the_expected_weight_is_z(name, start):
    p = MODELS[name]
    truth = ig.infer(p, "brute").log_z
    assert abs(expected_weight(p, start, 4) - truth) < 1e-10
    assert abs(expected_weight(p, start, 4, reverse=True) - truth) < 1e-10


def test_a_sweep_backwards_is_the_reversal_of_a_sweep():
    for p in MODELS.values():
        states = enumerated(p)
        ahead, back = (transition(GibbsSampler(p, backwards=b), states) for b in (False, True))
        log_p = p.log_score(states)
        pi = np.exp(log_p - logsumexp(log_p))
        np.testing.assert_allclose(pi[:, None] * ahead, (pi[:, None] * back).T, atol=1e-15)


@pytest.mark.parametrize("start", STARTS)
def test_reference_distributions_are_positive_where_the_model_is(start):
    for p in MODELS.values():
        q = Reference.of(p, start)
        states = enumerated(p)
        log_q = q.potentials.log_score(states)
        assert (log_q[p.log_score(states) > -np.inf] > -np.inf).all()
        assert abs(logsumexp(log_q) - q.log_z[0]) < 1e-12
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
        {"algorithm": "ais", "temperatures": 20, "direction": "both"},
        {"algorithm": "importance"},
    ],
)
def test_coverage_of_many_runs(options):
    assert 0.90 <= covered(1000, **options) <= 0.98


def test_forward_and_reverse_bracket_log_z():
    p = ig.models.Ising(ig.grid_graph(6, 6, 2)).potentials(coupling=0.5, field=0.05)
    truth, gaps = ig.infer(p).log_z, []
    for temperatures in (4, 40):
        with no_convergence_warnings():
            r = ig.infer(p, "ais", temperatures=temperatures, direction="both", random_state=0)
        d = r.info.details
        assert d["log_z_forward"][0] - 3 * d["stderr_forward"][0] <= truth
        assert truth <= d["log_z_reverse"][0] + 3 * d["stderr_reverse"][0]
        assert d["log_weights"].mean() < truth < -d["log_weights_reverse"].mean()
        gaps.append(-d["log_weights_reverse"].mean() - d["log_weights"].mean())
        assert abs(r.log_z - truth) < 4 * r.info.stderr
    assert gaps[1] < gaps[0] / 4
    data = ig.sample(p, 300, random_state=1)
    r = ig.infer(p, "ais", direction="reverse", data=data, random_state=0)
    assert abs(r.log_z - truth) < 4 * r.info.stderr
    np.testing.assert_allclose(r.variables.flat, ig.infer(p).variables.flat, atol=6 * r.info.residual)


@pytest.mark.long
def test_in_reverse_with_hard_zeros():
    """What q holds of possible assignments is counted; without that the mean would be too large."""
    p = MODELS["hard zeros"]
    truth = ig.infer(p).log_z
    found = [ig.infer(p, "ais", direction="reverse", random_state=seed, temperatures=20) for seed in range(40)]
    values, errors = np.array([[r.log_z, r.info.stderr] for r in found]).T
    assert abs(values.mean() - truth) < 5 * errors.mean() / np.sqrt(40)
    assert 0.7 < values.std() / errors.mean() < 1.4


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
        with pytest.warns(ig.ConvergenceWarning, match="the weights are degenerate: effective size .* Pareto shape"):
            r = ig.infer(p, random_state=0, **options)
        assert not r.info.converged
    forbidden = np.where(np.eye(6) > 0, 0.0, -np.inf)
    q = ig.Potentials(ig.FactorGraph([6] * 8, [(i, (i + 1) % 8) for i in range(8)]), [forbidden] * 8)
    with pytest.warns(ig.ConvergenceWarning, match="effective size 0.0"):
        r = ig.infer(q, "ais", random_state=0)
    assert r.log_z == -np.inf
    assert np.isfinite(r.variables.flat).all()
    assert abs(ig.infer(q, "ais", start="tree", random_state=0).log_z - np.log(6)) < 1e-12


def test_a_small_model_has_few_different_weights_and_no_tail():
    """A fit to a few different values says nothing, where even the largest of them is an ordinary weight."""
    p = ig.testing.random_potentials(ig.grid_graph(2, 3, 3), np.random.default_rng(0), 0.5)
    r = ig.infer(p, "importance", random_state=0)
    assert r.info.converged
    assert r.info.details["ess_weights"][0] > 3000
    heavy = np.random.default_rng(0).pareto(1.25, 4000)  # shape 0.8
    found = LogZ.mean(np.log(heavy)[None])
    assert found.pareto_k[0] > 0.7
    assert not found.reliable[0]


def test_pareto_shapes():
    rng = np.random.default_rng(0)
    for k in (0.1, 0.4, 0.8, 1.2):
        found = [pareto_k(-k * np.log(rng.random(4000))) for _ in range(20)]
        assert abs(np.mean(found) - k) < 0.06
    assert pareto_k(np.zeros(100)) == -np.inf
    assert pareto_k(np.full(100, -np.inf)) == np.inf
    assert pareto_k(np.zeros(4)) == np.inf
    assert pareto_k(rng.random(1000) * 1e-3 + 700) < 0.2


def test_bridge_sampling():
    """Of e^4 N(1, 1) and N(0, 1), with other numbers of draws: right, with the standard error that it reports."""
    rng, found = np.random.default_rng(0), []
    for _ in range(300):
        x, y = rng.normal(0, 1, 50), rng.normal(1, 1, 150)
        found.append(bridge(4 + x - 0.5, -4 - y + 0.5))
    values, errors = np.array(found).T
    assert abs(values.mean() - 4) < 4 * values.std() / np.sqrt(300) + 0.01
    assert 0.85 < values.std() / errors.mean() < 1.15
    worse = [log_mean(3.5 + rng.normal(0, 1, 200)).value for _ in range(300)]
    assert values.std() < np.std(worse)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chains": 1}, "chains: expected a whole number of at least 2"),
        ({"temperatures": 0}, "temperatures: expected a whole number of at least 1"),
        ({"sweeps": -1}, "sweeps: expected"),
        ({"start": "gibbs"}, "start: expected an algorithm whose beliefs are marginals.*use 'mf'"),
        ({"start": "max"}, "start: expected 'uniform', 'tree' or an algorithm"),
        ({"direction": "back"}, "direction: expected 'forward' or 'reverse' or 'both'"),
        ({"data": np.zeros((3, 4), int)}, "data: expected none in direction 'forward'"),
        ({"data": np.zeros(4, int), "direction": "both"}, "data: expected at least two assignments"),
        ({"n_jobs": 0}, "n_jobs: expected"),
    ],
)
def test_wrong_input(options, message):
    with pytest.raises(ig.InputError, match=message):
        ig.infer(MODELS["ring"], "ais", **options)


def test_data_of_probability_zero_is_refused():
    p = ig.Potentials(ig.FactorGraph([2], [(0,)]), [[0.0, -np.inf]])
    with pytest.raises(ig.InputError, match="samples of the model, got one of probability zero"):
        ig.infer(p, "ais", direction="reverse", data=[[0], [1]])


@pytest.mark.parametrize("name", ["ais", "importance"])
def test_examples_without_variables_have_log_z_zero(name):
    empty = ig.Potentials(ig.FactorGraph([], []), [])
    one = ig.models.Ising(ig.grid_graph(2, 2, 2)).potentials(coupling=0.3, field=0.1)
    assert ig.infer(empty, name, random_state=0).log_z == 0
    found = ig.infer(ig.potentials_union([one, empty]), name, random_state=0)
    assert found.component_log_z[1] == 0
    assert found.info.converged


def test_errors_of_equal_examples_are_added_up():
    """Equal examples draw equal numbers, so that the error of their sum is no smaller by the root of their number."""
    one = ig.models.Ising(ig.grid_graph(2, 2, 2)).potentials(coupling=0.3, field=0.1)
    other = ig.models.Ising(ig.grid_graph(2, 2, 2)).potentials(coupling=0.2)
    single, different = (ig.infer(p, "ais", random_state=0) for p in (one, other))
    equal = ig.infer(ig.potentials_union([one] * 9), "ais", random_state=0)
    assert equal.log_z == pytest.approx(9 * single.log_z)
    assert equal.info.stderr == pytest.approx(9 * single.info.stderr)
    mixed = ig.infer(ig.potentials_union([one, other]), "ais", random_state=0)
    assert mixed.info.stderr == pytest.approx(np.hypot(single.info.stderr, different.info.stderr))
