"""A mode that no draw met: chains and weights that look well must not count as converged."""

import numpy as np
import pytest

import isinglass as ig
from isinglass.inference.sampling.convergence.modes import local_maxima, missed_modes, seen_mass

pytestmark = pytest.mark.filterwarnings("ignore::isinglass.errors.ConvergenceWarning")
HIGH = (1, 0, 1, 1)


def needle(height=300.0):
    """Return a model whose variables, each by itself, lead away from its only assignment of mass."""
    table = np.zeros([2] * 4)
    table[HIGH] = height
    graph = ig.FactorGraph([2] * 4, [(i,) for i in range(4)] + [tuple(range(4))])
    return ig.Potentials(graph, [[10.0, 0.0] if state else [0.0, 10.0] for state in HIGH] + [table])


@pytest.mark.parametrize("name", ["gibbs", "metropolis"])
def test_chains_that_missed_it_have_not_converged(name):
    p = needle()
    found = [ig.infer(p, name, sweeps=1200, random_state=seed) for seed in range(8)]
    assert not any(r.info.converged for r in found)
    alike = [r for r in found if np.nanmax(r.info.details["rhat"]) < 1.01]
    assert alike  # all other diagnostics are content
    assert all(r.info.details["missed_mode"][0] == 1 for r in alike)
    with pytest.warns(ig.ConvergenceWarning, match="keep to a few assignments, but local searches find others"):
        ig.infer(p, name, sweeps=1200, random_state=0)


def test_one_peak_is_no_reason_for_doubt():
    """Chains that stand still at the only assignment of mass are right."""
    p = ig.Potentials(ig.FactorGraph([2] * 3, [(0, 1), (1, 2)]), [[[40.0, 0.0], [0.0, 0.0]]] * 2)
    r = ig.infer(p, "gibbs", random_state=0)
    assert r.info.converged
    np.testing.assert_allclose(r.variables.flat, ig.infer(p).variables.flat, atol=1e-9)


def test_weights_that_missed_it_have_not_converged():
    p = needle(60.0)
    found = [ig.infer(p, "importance", proposal="mf", samples=200, random_state=seed) for seed in range(8)]
    truth = ig.infer(p).log_z
    wrong = [r for r in found if abs(r.log_z - truth) > 3 * r.info.stderr]
    assert wrong
    assert all(not r.info.converged and r.info.details["missed_mode"][0] == 1 for r in wrong)
    with pytest.warns(ig.ConvergenceWarning, match="local searches find more mass"):
        ig.infer(p, "importance", proposal="mf", samples=200, random_state=int(np.argmax([r in wrong for r in found])))


def test_seen_mass_is_a_lower_bound_and_can_be_all():
    p = ig.testing.random_potentials(ig.grid_graph(2, 3, 2), np.random.default_rng(0), 2.0)
    every = np.array(np.unravel_index(np.arange(64), [2] * 6), np.uint8)
    truth = ig.infer(p).log_z
    np.testing.assert_allclose(seen_mass(p, every), truth)
    np.testing.assert_allclose(seen_mass(p, np.repeat(every, 3, axis=1)), truth)  # each counts once
    assert seen_mass(p, every[:, :5]) < truth
    both = ig.potentials_union([p, p])
    np.testing.assert_allclose(seen_mass(both, np.concatenate([every, every[:, ::-1]])), [truth, truth])


def test_local_maxima_cannot_be_improved_by_one_variable():
    p = ig.testing.random_potentials(ig.grid_graph(3, 3, 3), np.random.default_rng(1), 2.0)
    for x in local_maxima(p).T.astype(np.int64):
        for i in range(9):
            for state in range(3):
                y = x.copy()
                y[i] = state
                assert p.log_score(y) <= p.log_score(x) + 1e-12


def test_many_different_draws_are_no_verdict():
    p = ig.models.Ising(ig.grid_graph(10, 10, 2)).potentials(coupling=0.2, field=0.4)
    draws = np.random.default_rng(0).integers(0, 2, (100, 100, 8)).astype(np.uint8)
    assert not missed_modes(p, draws).any()
