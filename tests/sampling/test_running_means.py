"""Beliefs are means over all sweeps: they follow their definition, get better with work, and their errors cover."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isinglass as ig
from checks import each_equal, refuses
from isinglass.inference.sampling import means
from isinglass.inference.sampling.chains import Chains
from isinglass.inference.sampling.diagnostics import batch_errors
from isinglass.inference.sampling.estimate import trace_parts
from isinglass.inference.sampling.gibbs import GibbsSampler
from isinglass.inference.sampling.means import Recorder, RunningMeans, rows_of

pytestmark = pytest.mark.filterwarnings("ignore::isinglass.errors.ConvergenceWarning")


def grid(coupling=0.3, side=4, field=0.1):
    return ig.models.Ising(ig.grid_graph(side, side, 2)).potentials(coupling=coupling, field=field)


def of_factors(result):
    """Return the beliefs of all factors in one vector."""
    return np.concatenate([group.ravel() for group in result.factors.groups])


def models():
    """Return models with linear log-odds, without, and with both."""
    rng = np.random.default_rng(0)
    mixed = ig.FactorGraph([3, 1, 2, 2, 4], [(0, 1, 2), (1, 2), (2, 3), (3,), (), (3, 4), (0,)])
    pairs = ig.testing.random_potentials(ig.FactorGraph([2] * 4, [(0, 1), (2, 1), (0, 1), (3,), (2, 3), (3,)]), rng)
    walled = ig.Potentials(ig.FactorGraph([2, 2, 2], [(0,), (0, 1), (1, 2)]), [[0.0, -np.inf], np.eye(2), -np.eye(2)])
    soft = ig.testing.random_potentials(mixed, rng)
    return {
        "binary": pairs,
        "binary, observed": pairs.with_evidence({1: 0}),
        "all of a factor observed": pairs.with_evidence({0: 1, 1: 1, 3: 0}),
        "strong": ig.testing.random_potentials(ig.grid_graph(3, 3, 2), rng, 300.0),
        "a hard zero of one variable": walled,
        "mixed": soft,
        "mixed, observed": soft.with_evidence({0: 2, 2: 1}),
        "batch": ig.potentials_union([soft, pairs, walled]),
    }


@pytest.mark.long
@pytest.mark.parametrize("name", models())
@pytest.mark.parametrize("sweeps", [3, 33, 150, 700])
def test_the_mean_of_every_sweep(name, sweeps):
    """Beliefs are the means of the conditional probabilities that draws of every sweep give."""
    p = models()[name]
    r = ig.infer(p, "gibbs", sweeps=sweeps + 10, burn_in=10, thin=1, chains=5, random_state=0)
    variables, factors = np.zeros_like(r.variables.flat), np.zeros_like(of_factors(r))
    for part in trace_parts(GibbsSampler(p), r.traces.draws):
        variables[part.states] = part.of_variables.mean(axis=(1, 2))
        factors[part.entries] = part.of_factors.mean(axis=(1, 2))
    for group in p.graph.groups:
        if group.arity == 0:
            factors[ig.graph.layout.first_beliefs(p.graph)[group.factors]] = 1.0
    np.testing.assert_allclose(r.variables.flat, variables, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(of_factors(r), factors, rtol=1e-12, atol=1e-15)
    if name != "strong":  # elsewhere hard zeros and evidence alone are zero, and they are so exactly
        assert ((r.variables.flat == 0) == (variables == 0)).all()
    assert r.traces.means.sweeps == sweeps


@pytest.mark.long
@pytest.mark.parametrize("name", ["binary", "mixed", "batch"])
def test_what_changes_no_bit(name, monkeypatch):
    """Threads, how draws are kept, how many states wait, and the rest of a batch."""
    p = models()[name]

    def flat(result):
        stderr = [result.info.details[f"stderr_{of}"] for of in ("variables", "factors")]
        return [result.variables.flat, of_factors(result), *stderr]

    options = {"sweeps": 900, "chains": 4, "random_state": 3}
    one = flat(ig.infer(p, "gibbs", **options))
    for more in ({"n_jobs": 3}, {"thin": 7}):
        each_equal(one, flat(ig.infer(p, "gibbs", **options, **more)))
    monkeypatch.setattr(means, "BLOCK", 1)
    each_equal(one, flat(ig.infer(p, "gibbs", **options)))


def test_the_first_example_of_a_batch():
    parts = [models()[name] for name in ("mixed", "binary")]
    batch = ig.infer(ig.potentials_union(parts), "gibbs", sweeps=300, random_state=1)
    alone = ig.infer(parts[0], "gibbs", sweeps=300, random_state=1)
    n = len(alone.variables.flat)
    np.testing.assert_allclose(batch.variables.flat[:n], alone.variables.flat, rtol=1e-12, atol=1e-12)
    for result in (batch, alone):
        assert np.isfinite(result.info.details["stderr_variables"]).all()
    errors = [result.info.details["stderr_variables"][:n] for result in (batch, alone)]
    np.testing.assert_allclose(*errors, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("cuts", [(40, 60), (500, 1500), (1000, 7000), (33, 900, 31, 9000), (1, 1, 1, 100)])
def test_continued_runs_have_the_bits_of_one(cuts):
    p, total = grid(), sum(cuts)
    whole = ig.infer(p, "gibbs", sweeps=total, burn_in=0, thin=10**6, random_state=0)
    result = None
    for sweeps in cuts:
        result = ig.infer(p, "gibbs", sweeps=sweeps, burn_in=0, thin=10**6, random_state=0, init=result)
    np.testing.assert_array_equal(result.variables.flat, whole.variables.flat)
    np.testing.assert_array_equal(of_factors(result), of_factors(whole))
    found = result.traces.means
    assert found.sweeps == total
    assert len(found.batches) * found.length + (total % found.length) == total
    assert len(found.batches) < 2 * means.batches_of(8, len(found.total)) + 2
    if total >= 100:
        batches = np.sum(found.batches, axis=0) + found.current + (0 if found.short else found.cell)
        np.testing.assert_allclose(batches, found.total + found.cell, rtol=1e-12)
        ratio = result.info.details["stderr_variables"] / whole.info.details["stderr_variables"]
        assert (ratio > 0.4).all()
        assert (ratio < 2.5).all()


@settings(deadline=None)
@given(
    seed=st.integers(0, 1000), k=st.integers(4, 9), chains=st.integers(1, 4), a=st.sampled_from([-0.7, 0.0, 0.6, 0.99])
)
def test_errors_follow_the_formula(seed, k, chains, a):
    x = np.random.default_rng(seed).normal(size=(k, 2, chains))
    for t in range(1, k):
        x[t] = a * x[t - 1] + np.sqrt(1 - a * a) * x[t]
    found = batch_errors(x)
    for row in range(2):
        y = x[:, row] - x[:, row].mean()
        g = [(y[: k - t] * y[t:]).sum() / y.size for t in range(k)]
        total, least = -g[0], np.inf
        for t in range(0, k - 1, 2):
            least = min(least, g[t] + g[t + 1])
            if least <= 0:
                break
            total += 2 * least
        expected = max(total, g[0] / np.log10(y.size)) / (y.size - 1)
        np.testing.assert_allclose(found[row], np.sqrt(expected), rtol=1e-9)


@pytest.mark.parametrize("a", [0.0, 0.5, 0.9])
def test_errors_of_autoregressions(a):
    """Batches that depend on each other: the standard error of their mean is known in closed form."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 500, 8))
    for t in range(1, 64):
        x[t] = a * x[t - 1] + np.sqrt(1 - a * a) * x[t]
    lags = np.arange(1, 64)
    truth = np.sqrt((1 + 2 * ((1 - lags / 64) * a**lags).sum()) / 512)
    np.testing.assert_allclose(np.median(batch_errors(x)), truth, rtol=0.1)


def test_chains_apart_have_the_error_of_their_means():
    rng = np.random.default_rng(0)
    apart = rng.normal(size=(1, 200, 8)) + 0.01 * rng.normal(size=(16, 200, 8))
    truth = apart.mean(axis=0).std(axis=1) / np.sqrt(8)
    np.testing.assert_allclose(batch_errors(apart), truth, rtol=0.05)


OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in ("tree-gibbs", "swendsen-wang", "wolff", "tempering")]


@pytest.mark.long
@pytest.mark.parametrize("name", ["gibbs", *OTHERS])
def test_errors_fall_with_the_square_root_of_the_work(name):
    """Over 100 times the work: slope -.5 +- .1; and 2 standard errors cover as often as they should."""
    p = grid(0.25, side=3, field=0.2)
    truth = ig.infer(p, "exact")
    work, errors, covered = np.array([100, 1000, 10000]), [], []
    for sweeps in work:
        options = {"sweeps": int(sweeps), "burn_in": 20, "thin": int(sweeps) // 10}  # few draws to diagnose
        runs = [ig.infer(p, name, random_state=seed, **options) for seed in range(12 if sweeps > 5000 else 30)]
        gaps = np.array(
            [[*(r.variables.flat - truth.variables.flat), *(of_factors(r) - of_factors(truth))] for r in runs]
        )
        stderr = np.array([[*r.info.details["stderr_variables"], *r.info.details["stderr_factors"]] for r in runs])
        errors.append(np.sqrt((gaps**2).mean()))
        covered.append((np.abs(gaps) <= 2 * stderr).mean())
        assert 0.8 < np.sqrt((gaps**2).mean()) / np.sqrt((stderr**2).mean()) < 1.25
    slope = np.polyfit(np.log(work), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4, errors
    assert 0.9 < np.mean(covered) < 0.985, covered


@pytest.mark.long
def test_the_default_keeps_few_draws_but_uses_every_sweep():
    p = grid(0.2, side=12)
    short, long = (ig.infer(p, "gibbs", sweeps=sweeps, random_state=0) for sweeps in (3200, 51200))
    assert len(long.traces.draws) < 1000
    assert long.traces.means.sweeps == 38400
    truth = ig.infer(p, "exact").variables.flat
    before, after = (np.sqrt(((r.variables.flat - truth) ** 2).mean()) for r in (short, long))
    assert after < before / 2.5  # a quarter is expected
    assert long.info.residual < short.info.residual / 2.5
    assert long.info.converged


def test_few_sweeps_and_impossible_states():
    r = ig.infer(grid(), "gibbs", sweeps=3, burn_in=0, random_state=0)
    assert np.isinf(r.info.details["stderr_variables"]).all()
    assert np.isfinite(r.variables.flat).all()
    p = ig.Potentials(ig.FactorGraph([2, 3], [(0, 1)]), [np.where(np.eye(2, 3) > 0, 0.0, -np.inf)])
    rows, sampler, chains = rows_of(p), GibbsSampler(p), Chains.start(p, 4, 0)
    chains.states[:] = np.array([[0], [2]])
    recorder = Recorder(sampler, rows, RunningMeans.start(rows.number, 4, 10))
    refuses("a chain is in an impossible state", recorder.add, chains.states[None], error=ig.ImpossibleEvidenceError)
