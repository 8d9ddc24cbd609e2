"""R-hat, effective sample sizes and standard errors (Vehtari et al. 2021), and what a run concludes from them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import rankdata

import isinglass as ig
from isinglass.inference.sampling.convergence import diagnostics
from isinglass.inference.sampling.convergence.diagnostics import diagnose, effective_size, split
from isinglass.inference.sampling.convergence.ergodicity import ergodic_components
from isinglass.inference.sampling.estimate import by_batches


def autoregressive(quantities, chains, draws, a, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(quantities, chains, draws))
    for t in range(1, draws):
        x[..., t] = a * x[..., t - 1] + np.sqrt(1 - a * a) * x[..., t]
    return x


def plainly(trace):
    """Compute the diagnostics of one quantity (chains, draws) by the formulas, one by one."""
    halves = split(trace[None])[0]
    n = halves.shape[1]

    def scores(x):
        return ndtri((rankdata(x).reshape(x.shape) - 0.375) / (x.size + 0.25))

    def r_hat(x):
        within, between = x.var(axis=1, ddof=1).mean(), n * x.mean(axis=1).var(ddof=1)
        return np.sqrt(((n - 1) / n * within + between / n) / within)

    def size(x):
        if np.ptp(x) == 0:
            return float(x.size)
        centred = x - x.mean(axis=1, keepdims=True)
        covariance = [(centred[:, : n - t] * centred[:, t:]).sum(axis=1).mean() / n for t in range(n)]
        within = x.var(axis=1, ddof=1).mean()
        total = (n - 1) / n * within + x.mean(axis=1).var(ddof=1)
        rho = [1.0] + [1 - (within - covariance[t]) / total for t in range(1, n)]
        tau, least = -1.0, np.inf
        for t in range(0, n - 1, 2):
            if rho[t] + rho[t + 1] <= 0:
                break
            least = min(least, rho[t] + rho[t + 1])
            tau += 2 * least
        return x.size / max(tau, 1 / np.log10(x.size))

    low, high = np.quantile(halves, [0.05, 0.95])
    tail = min(size((halves <= q).astype(float)) for q in (low, high))
    folded = np.abs(halves - np.median(halves))
    best = max(r_hat(scores(halves)), r_hat(scores(folded)))
    return best, size(scores(halves)), tail, halves.std(ddof=1) / np.sqrt(size(halves))


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 1000),
    chains=st.integers(2, 5),
    draws=st.integers(5, 60),
    a=st.sampled_from([-0.6, 0.0, 0.5, 0.95]),
    digits=st.sampled_from([0, 1, 12]),
)
def test_the_compiled_loop_follows_the_formulas(seed, chains, draws, a, digits):
    trace = autoregressive(3, chains, draws, a, seed).round(digits)
    found = diagnose(trace)
    for q in range(3):
        if np.ptp(split(trace)[q]) == 0:
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = plainly(trace[q])
        mine = (found.r_hat[q], found.ess_bulk[q], found.ess_tail[q], found.stderr[q])
        np.testing.assert_allclose(mine, np.where(np.isnan(expected), mine, expected), rtol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("a", [-0.5, 0.0, 0.5, 0.9])
def test_the_effective_size_of_an_autoregression(a):
    """Known in closed form: S (1 - a) / (1 + a)."""
    found = diagnose(autoregressive(40, 4, 4000, a))
    truth = 16000 * (1 - a) / (1 + a)
    np.testing.assert_allclose(np.median(found.ess_bulk), truth, rtol=0.1)
    np.testing.assert_allclose(np.median(found.stderr), 1 / np.sqrt(truth), rtol=0.05)
    np.testing.assert_allclose(np.median(by_batches(autoregressive(40, 4, 4000, a)).ess_bulk), truth, rtol=0.2)
    assert (found.r_hat < 1.02).all()


def test_long_correlations_by_fourier_transforms(monkeypatch):
    trace = autoregressive(5, 4, 3000, 0.999)
    here = diagnose(trace)
    np.testing.assert_allclose(here.ess_bulk, effective_size(diagnostics.normal_scores(split(trace))), rtol=1e-9)


def test_chains_that_disagree():
    x = autoregressive(2, 4, 400, 0.3)
    x[0] += 3 * np.arange(4)[:, None]  # of different means
    x[1] *= np.array([1, 1, 1, 8.0])[:, None]  # of different widths, which the means do not show
    assert (diagnose(x).r_hat > 1.1).all()
    trend = autoregressive(1, 4, 400, 0.3) + np.linspace(0, 4, 400)  # the halves of a chain disagree
    assert diagnose(trend).r_hat[0] > 1.1


def test_what_never_changes():
    same = diagnose(np.ones((1, 4, 50)))
    assert (same.r_hat[0], same.ess_bulk[0], same.ess_tail[0], same.stderr[0]) == (1.0, 200.0, 200.0, 0.0)
    frozen = diagnose(np.broadcast_to(np.arange(4.0)[None, :, None], (1, 4, 50)))
    assert frozen.r_hat[0] == np.inf
    assert frozen.ess_bulk[0] < 10
    short = diagnose(np.ones((2, 4, 3)))
    assert (short.r_hat == np.inf).all()
    assert (short.ess_bulk == 0).all()


def ferromagnet():
    return ig.models.Ising(ig.grid_graph(4, 4, 2)).potentials(coupling=1.0)


def two_modes():
    """Return a pattern and its mirror image, hidden among 12 variables, with a slight preference for the first."""
    s = np.random.default_rng(0).choice([-1, 1], 12)
    graph = ig.complete_graph(12, 2)
    pairs = graph.groups[1].scopes
    return ig.models.Ising(graph).potentials(coupling=0.25 * s[pairs[:, 0]] * s[pairs[:, 1]], field=0.02 * s)


def unequal_modes():
    """Return two modes, of which one has more than nine tenths of the probability."""
    return ig.models.Ising(ig.complete_graph(12, 2)).potentials(coupling=0.25, field=0.1)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isinglass.errors.ConvergenceWarning")
@pytest.mark.parametrize("trap", [ferromagnet, two_modes, unequal_modes])
def test_traps_are_seen(trap):
    p = trap()
    believed = [ig.infer(p, "gibbs", sweeps=200, random_state=seed).info.converged for seed in range(100)]
    assert sum(believed) <= 2


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isinglass.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", ["gibbs", "tree-gibbs", "metropolis", "tempering"])
def test_behind_a_wall_of_hard_zeros_never(name):
    equal = np.where(np.eye(2) > 0, 0.0, -np.inf)
    wall = ig.Potentials(ig.FactorGraph([2] * 4, [(0, 1), (1, 2), (2, 3), (0,)]), [equal] * 3 + [[0.0, 0.3]])
    results = [ig.infer(wall, name, sweeps=1000, random_state=seed) for seed in range(5)]
    assert not any(r.info.converged for r in results)
    assert not any(r.info.details["ergodic"].any() for r in results)


def test_a_model_that_mixes_well():
    p = ig.models.Ising(ig.grid_graph(5, 5, 2)).potentials(coupling=0.2, field=0.1)
    truth = ig.infer(p, "exact")
    for seed in range(5):
        r = ig.infer(p, "gibbs", sweeps=1000, random_state=seed)
        assert r.info.converged
        assert r.info.r_hat < 1.01
        assert r.info.ess >= 400
        errors = np.abs(r.variables.flat - truth.variables.flat)
        assert (errors <= 5 * r.info.details["stderr_variables"]).all()
        assert r.info.residual >= r.info.details["stderr_factors"].max()


def test_beliefs_of_zero_variance_are_defined():
    """Variables without neighbours, and observed ones: their conditional probabilities never change."""
    p = ig.Potentials(ig.FactorGraph([2, 3, 2], [(0,), (1,), (1, 2)]), [[0.0, 1.0], [0.0, 1.0, 2.0], np.zeros((3, 2))])
    r = ig.infer(p, "gibbs", random_state=0, sweeps=500, evidence={1: 2})
    assert r.info.converged
    np.testing.assert_allclose(r.variable(0), ig.infer(p, "exact").variable(0), atol=1e-12)
    assert (r.info.details["stderr_variables"] == 0).all()
    assert np.isfinite(r.info.details["rhat"]).all()


def test_where_all_assignments_can_be_reached():
    differ = np.where(np.eye(3) > 0, -np.inf, 0.0)
    ring = ig.FactorGraph([3] * 5, [(i, (i + 1) % 5) for i in range(5)])
    cases = {
        "no hard zeros": (ig.testing.random_potentials(ring, np.random.default_rng(0)), True),
        "a state is forbidden": (ig.Potentials(ig.FactorGraph([3], [(0,)]), [[0.0, -np.inf, 1.0]]), True),
        "four colours at a ring": (ig.Potentials(ig.FactorGraph([4] * 5, ring.scopes), [_differ(4)] * 5), True),
        "three colours at a triangle": (
            ig.Potentials(ig.complete_graph(3, 3), [np.zeros(3)] * 3 + [differ] * 3),
            False,
        ),
        "too many to search": (ig.Potentials(ig.chain_graph(20, 3), [np.zeros(3)] * 20 + [differ] * 19), False),
    }
    for name, (p, proved) in cases.items():
        assert ergodic_components(p).tolist() == [proved], name
    both = ig.potentials_union([cases["no hard zeros"][0], cases["three colours at a triangle"][0]])
    assert ergodic_components(both).tolist() == [True, False]


def _differ(k):
    return np.where(np.eye(k) > 0, -np.inf, 0.0)


@pytest.mark.filterwarnings("ignore::isinglass.errors.ConvergenceWarning")
def test_many_factors_by_batches(monkeypatch):
    """Where traces of factors are not ranked, their standard errors and R-hat are about the same."""
    p = ig.models.Ising(ig.grid_graph(4, 4, 2)).potentials(coupling=0.3)
    ranked = ig.infer(p, "gibbs", sweeps=2000, random_state=0).info
    monkeypatch.setattr("isinglass.inference.sampling.estimate.RANKED", 0)
    batched = ig.infer(p, "gibbs", sweeps=2000, random_state=0).info
    np.testing.assert_allclose(batched.details["rhat_factors"], ranked.details["rhat_factors"], atol=0.01)
    ratio = batched.details["stderr_factors"][32:] / ranked.details["stderr_factors"][32:]
    assert 0.8 < ratio.mean() < 1.2
    assert (ranked.details["ranked_factors"], batched.details["ranked_factors"]) == (1.0, 0.0)
    assert batched.r_hat is not None
    assert np.isfinite(batched.r_hat)


@pytest.mark.filterwarnings("ignore::isinglass.errors.ConvergenceWarning")
def test_three_chains_give_no_verdict():
    p = ig.models.Ising(ig.grid_graph(3, 3, 2)).potentials(coupling=0.1)
    assert not ig.infer(p, "gibbs", chains=3, sweeps=2000, random_state=0).info.converged
    assert ig.infer(p, "gibbs", chains=4, sweeps=2000, random_state=0).info.converged
