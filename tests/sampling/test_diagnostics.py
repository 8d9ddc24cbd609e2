"""R-hat, effective sample sizes and standard errors, and what a run concludes from them."""

import warnings

import numpy as np
import pytest

import isinglass as ig
from isinglass.inference.sampling.diagnostics import diagnose, ergodic_components
from isinglass.inference.sampling.estimate import overlooked
from isinglass.inference.sampling.gibbs import GibbsSampler


def autoregressive(quantities, chains, draws, a, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(quantities, chains, draws))
    for t in range(1, draws):
        x[..., t] = a * x[..., t - 1] + np.sqrt(1 - a * a) * x[..., t]
    return x


@pytest.mark.long
@pytest.mark.parametrize("a", [-0.5, 0.0, 0.5, 0.9])
def test_the_effective_size_of_an_autoregression(a):
    """Known in closed form: S (1 - a) / (1 + a)."""
    found = diagnose(autoregressive(40, 4, 4000, a))
    truth = 16000 * (1 - a) / (1 + a)
    np.testing.assert_allclose(np.median(found.ess), truth, rtol=0.1)
    np.testing.assert_allclose(np.median(found.stderr), 1 / np.sqrt(truth), rtol=0.05)
    assert (found.r_hat < 1.02).all()


def test_chains_that_disagree_or_never_change():
    apart = diagnose(autoregressive(1, 4, 400, 0.3) + 3 * np.arange(4)[:, None])
    assert apart.r_hat[0] > 1.1
    assert apart.ess[0] < 10
    trend = autoregressive(1, 4, 400, 0.3) + np.linspace(0, 4, 400)  # the halves of a chain disagree
    assert diagnose(trend).r_hat[0] > 1.1
    same = diagnose(np.full((1, 4, 50), 0.7))
    assert (same.r_hat[0], same.ess[0], same.stderr[0]) == (1.0, 200.0, 0.0)
    frozen = diagnose(np.broadcast_to(np.arange(4.0)[None, :, None], (1, 4, 50)))
    assert frozen.r_hat[0] == np.inf
    assert frozen.ess[0] < 10
    short = diagnose(np.ones((2, 4, 3)))
    assert (short.r_hat == np.inf).all()
    assert (short.ess == 0).all()


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
@pytest.mark.parametrize("name", ["gibbs", "tree-gibbs", "tempering"])
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


def test_peaks_and_zero_variance():
    # Variables without neighbours, and observed ones: their conditional probabilities never change.
    p = ig.Potentials(ig.FactorGraph([2, 3, 2], [(0,), (1,), (1, 2)]), [[0.0, 1.0], [0.0, 1.0, 2.0], np.zeros((3, 2))])
    r = ig.infer(p, "gibbs", random_state=0, sweeps=500, evidence={1: 2})
    assert r.info.converged
    np.testing.assert_allclose(r.variable(0), ig.infer(p, "exact").variable(0), atol=1e-12)
    assert (r.info.details["stderr_variables"] == 0).all()
    assert np.isfinite(r.info.details["rhat"]).all()
    # Chains that stand still at the only assignment of mass are right.
    p = ig.Potentials(ig.FactorGraph([2] * 3, [(0, 1), (1, 2)]), [[[40.0, 0.0], [0.0, 0.0]]] * 2)
    r = ig.infer(p, "gibbs", random_state=0)
    assert r.info.converged
    np.testing.assert_allclose(r.variables.flat, ig.infer(p).variables.flat, atol=1e-9)


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


def test_states_that_were_never_or_always_drawn():
    """Their standard errors are of the order of one over the effective draws; hard zeros and evidence are certain."""
    tables = [[0.0, 1.0], [[80.0, 0.0], [0.0, 0.0]], [[0.0, -np.inf], [-np.inf, 0.0]]]
    p = ig.Potentials(ig.FactorGraph([2, 2, 2, 2], [(3,), (0, 1), (1, 2)]), tables).with_evidence({3: 0, 2: 0})
    with ig.errors.no_convergence_warnings():
        r = ig.infer(p, "gibbs", sweeps=1000, random_state=0)
    stderr = np.asarray(r.info.details["stderr_variables"]).reshape(4, 2)
    assert r.variable(0)[0] > 1 - 1e-9
    assert (stderr[0] >= 1 / 6000).all()
    assert (stderr[0] <= 1 / 400).all()
    assert not stderr[1:].any()
    assert np.asarray(r.info.details["stderr_factors"]).max() <= 1 / 400


@pytest.mark.long
def test_no_claim_where_a_mode_was_missed():
    """Six spins with couplings of -4 and 4: Gibbs sampling never leaves a mode, and R-hat sees those of the starts."""
    rng, graph = np.random.default_rng(0), ig.FactorGraph([2] * 6, [*((i,) for i in range(6)), *_ring(6)])
    for seed in range(30):
        p = ig.models.Ising(graph).potentials(coupling=rng.choice([-4.0, 4.0], 6), field=rng.normal(size=6))
        with ig.errors.no_convergence_warnings():
            r = ig.infer(p, "gibbs", random_state=seed)
        gap = np.abs(r.variables.flat - ig.infer(p).variables.flat) - 1e-9
        margin = 4 * np.asarray(r.info.details["stderr_variables"]) + 4 / np.asarray(r.info.details["ess"])
        assert not r.info.converged or (gap <= margin).all(), seed


def _ring(n):
    return [(i, (i + 1) % n) for i in range(n)]


def test_what_the_short_chains_find_is_said():
    tables = [[0.0, 0.0], [0.0, 0.0], [[0.0, -np.inf], [-9.0, 0.1]]]
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0,), (1,), (0, 1)]), tables)
    sampler = GibbsSampler(p)
    states = np.array([[0, 1], [0, 1]], np.uint8).repeat(64, axis=1)
    beliefs, n = np.array([1.0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0]), np.full(12, 1e4)
    assert overlooked(sampler, states, beliefs, n).tolist() == [True]
    assert overlooked(sampler, states[:, :64], beliefs, n).tolist() == [False]
    assert overlooked(sampler, states, beliefs, np.full(12, 1.0)).tolist() == [False]  # a single draw says nothing


def test_converged_is_no_proof_and_says_so():
    p = ig.models.Ising(ig.grid_graph(3, 3, 2)).potentials(coupling=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the note is no warning
        r = ig.infer(p, "gibbs", random_state=0)
    assert r.info.converged
    assert "no proof" in r.info.note
    assert "no proof" in r.info._repr_html_()


@pytest.mark.filterwarnings("ignore::isinglass.errors.ConvergenceWarning")
def test_three_chains_give_no_verdict():
    p = ig.models.Ising(ig.grid_graph(3, 3, 2)).potentials(coupling=0.1)
    assert not ig.infer(p, "gibbs", chains=3, sweeps=2000, random_state=0).info.converged
    assert ig.infer(p, "gibbs", chains=4, sweeps=2000, random_state=0).info.converged
