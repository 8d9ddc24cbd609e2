"""Learning by sampling: contrastive divergence, persistent chains, stochastic maximum likelihood."""

import numpy as np
import pytest
from scipy.optimize import root
from scipy.stats import f as f_distribution

import isinglass as ig
from checks import refuses
from isinglass.errors import no_convergence_warnings
from isinglass.graph.incidences import colours_of
from isinglass.learning import SampledLikelihood
from isinglass.learning.markov import (
    METHODS,
    ContrastiveDivergence,
    PersistentDivergence,
    Samples,
    StochasticLikelihood,
    make_method,
)
from isinglass.learning.markov.likelihood.maximum import counted
from isinglass.learning.optimizers import Sgd
from isinglass.learning.training import loop

GRAPH = ig.FactorGraph([2] * 4, [(0,), (1,), (2,), (3,), (0, 1), (1, 2), (2, 3), (3, 0)])
FAMILY = ig.models.Ising(GRAPH)
STATES = np.indices((2,) * 4).reshape(4, -1).T


def data():
    """Return 200 rows that no Ising model on the ring gives."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (200, 4))
    X[:, 1] = np.where(rng.random(200) < 0.5, X[:, 0], X[:, 1])
    X[:60, 3] = X[:60, 0] & X[:60, 1]
    return X


def fitted(method, X=None, steps=400, **options):
    with no_convergence_warnings():
        return ig.MRF(FAMILY, method=method, max_iter=steps, **options).fit(data() if X is None else X)


def same_mean(found, truth):
    """Return the p-value of Hotelling's test that the mean of vectors (runs, n) is `truth`."""
    runs, n = found.shape
    gap = found.mean(axis=0) - truth
    statistic = runs * gap @ np.linalg.solve(np.cov(found.T), gap)
    return f_distribution.sf(statistic * (runs - n) / (n * (runs - 1)), n, runs - n)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["pcd", "sml"])
def test_persistent_chains_find_maximum_likelihood(kind):
    truth = ig.MRF(FAMILY, tol=1e-9).fit(data()).theta_
    found = np.array([fitted(make_method(kind, random_state=seed)).theta_ for seed in range(16)])
    assert same_mean(found, truth) > 1e-4
    assert np.abs(found - truth).max() < 0.2
    assert same_mean(found, truth + 0.1) < 1e-4  # the test could fail


@pytest.mark.long
def test_contrastive_divergence_of_a_table_is_that_of_its_samples():
    """Independent variables: one sweep is a draw from the model, so that it is consistent."""
    graph, table = ig.FactorGraph([2, 2], [(0,), (1,)]), np.array([[5, 3], [2, 6]])
    with pytest.warns(ig.ConvergenceWarning):
        mrf = ig.MRF(graph, method="cd", max_iter=1000).fit(counts=table)
    for i in range(2):
        share = table.sum(axis=1 - i) / table.sum()
        np.testing.assert_allclose(ig.infer(mrf.potentials_).variable(i), share, atol=0.03)


@pytest.mark.long
def test_the_error_falls_with_more_steps():
    truth = ig.MRF(FAMILY, tol=1e-9).fit(data()).theta_

    def error(steps):
        found = [fitted(StochasticLikelihood(random_state=seed), steps=steps).theta_ for seed in range(4)]
        return np.sqrt(np.mean((np.array(found) - truth) ** 2))

    assert error(1600) < 0.7 * error(100)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pcd", "sml"])
def test_the_error_falls_as_one_over_the_root_of_the_work(kind):
    truth = ig.MRF(FAMILY, tol=1e-9).fit(data()).theta_
    work = np.array([100, 1000, 10000])
    errors = []
    for steps in work:
        found = [fitted(make_method(kind, random_state=seed), steps=int(steps)).theta_ for seed in range(6)]
        errors.append(np.sqrt(np.mean((np.array(found) - truth) ** 2)))
    slope = np.polyfit(np.log(work), np.log(errors), 1)[0]
    assert abs(slope + 0.5) < 0.1, errors


def sweep(potentials):
    """Return the transition matrix of a sweep of Gibbs sampling by colours, by enumeration."""
    p, total = np.exp(potentials.log_score(STATES)), np.eye(16)
    for i in np.argsort(colours_of(GRAPH), kind="stable"):
        one = np.zeros((16, 16))
        for row, x in enumerate(STATES):
            ends = [row ^ (int(x[i]) << (3 - i)) | a << (3 - i) for a in range(2)]
            one[row, ends] = p[ends] / p[ends].sum()
        total = total @ one
    return total


def expected_update(theta, X, k):
    """Return the mean gradient of CD-k, by enumeration."""
    model = FAMILY.model()
    potentials = model.potentials(theta)
    start = np.bincount(X @ [8, 4, 2, 1], minlength=16) / len(X)
    end = start @ np.linalg.matrix_power(sweep(potentials), k)
    return model.transpose(counted(potentials, Samples(STATES, end - start)))


@pytest.mark.long
@pytest.mark.parametrize("k", [1, 3])
def test_contrastive_divergence_finds_the_zero_of_its_expected_update(k):
    X = data()
    truth = ig.MRF(FAMILY, tol=1e-9).fit(X).theta_
    fixed = root(expected_update, truth, (X, k), tol=1e-12)
    assert fixed.success
    assert np.abs(expected_update(fixed.x, X, k)).max() < 1e-10
    steps = Sgd(0.5, 200, decay=0.01, averaging=True, burn_in=50, random_state=0)
    methods = [ContrastiveDivergence(k, random_state=seed) for seed in range(16)]
    found = np.array([fitted(method, optimizer=steps).theta_ for method in methods])
    assert same_mean(found, fixed.x) > 1e-4
    assert np.abs(expected_update(found.mean(axis=0), X, k)).max() < 0.01
    assert 1e-6 < np.abs(fixed.x - truth).max() < 0.2  # near maximum likelihood, but another point


def test_the_gradient_has_the_right_mean():
    """At any theta: with many chains that have forgotten their start, the difference of moments."""
    X, model = data(), FAMILY.model()
    theta = np.random.default_rng(1).normal(0, 0.4, model.size)
    objective, exact = (
        mrf._problem(mrf._choices(), X, None, None).objective()
        for mrf in (ig.MRF(FAMILY, PersistentDivergence(sweeps=50, chains=20000), l2=3.0), ig.MRF(FAMILY, l2=3.0))
    )
    value, slope = objective(theta)
    np.testing.assert_allclose(slope, exact(theta)[1] / len(X), atol=0.03)
    assert value == pytest.approx(objective.unpenalised(theta) + 3.0 * (theta**2).sum() / 200, abs=0.1)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["cd", "pcd", "sml"])
def test_missing_values(kind):
    X = data()
    X[np.random.default_rng(2).random(X.shape) < 0.15] = -1
    truth = ig.MRF(FAMILY, tol=1e-9).fit(X).theta_
    found = np.array([fitted(make_method(kind, sweeps=3, random_state=seed), X).theta_ for seed in range(4)])
    assert np.abs(found.mean(axis=0) - truth).max() < 0.1


def test_what_is_fitted_serves_as_any_other():
    mrf = fitted("pcd", steps=50)
    assert mrf.score(data()) < 0
    assert mrf.sample(3, random_state=0).shape == (3, 4)
    assert mrf.terms_ is None
    with pytest.warns(ig.ConvergenceWarning, match="ran 3 epochs; gradients by sampling have no test of convergence"):
        ig.MRF(FAMILY, method="sml", max_iter=3).fit(data())
    with pytest.raises(ig.InputError, match="tol: expected the default for method='pcd', which makes max_iter steps"):
        fitted("pcd", steps=40, optimizer="adam", tol=1e3)  # two estimates that are alike by chance say nothing
    one, two = (fitted("sml", steps=30, n_jobs=n).theta_ for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def incomplete():
    X = data()
    X[::7, 2] = -1
    return X


@pytest.mark.parametrize("method", ["cd", "sml"])
def test_a_stopped_run_goes_on_bit_for_bit(tmp_path, method, monkeypatch):
    monkeypatch.setattr(loop, "_PAUSE", 0.0)
    X, path, seen = incomplete(), tmp_path / "run.npz", []
    whole = fitted(method, X, 40)
    fitted(method, X, 40, checkpoint=path, callback=lambda p: p.iteration == 13)
    again = fitted(method, X, 40, checkpoint=path, callback=lambda p: seen.append(p.iteration))
    assert seen[0] == 14  # it did go on
    np.testing.assert_array_equal(again.theta_, whole.theta_)


def test_the_registry_has_all_three_with_their_facts():
    sampled = {name: cls for name, cls in METHODS.items() if cls.facts.sampled}
    assert set(sampled) == {"cd", "pcd", "sml"}
    assert all(issubclass(cls, SampledLikelihood) for cls in sampled.values())
    assert [name for name, cls in sampled.items() if not cls.facts.consistent] == ["cd"]
    assert make_method("sml", chains=7).persistent == 7
    assert make_method("cd").persistent is None


def test_a_hidden_variable_is_drawn_by_clamped_chains():
    """Two children of a hidden cause: without it they would be independent."""
    spins = np.array([[1.0, -1.0], [-1.0, 1.0]])
    star = ig.FactorGraph([2] * 3, [(0, 1), (0, 2)])
    X = ig.sample(ig.Potentials(star, [1.2 * spins] * 2), 400, random_state=0)
    X[:, 0] = -1
    with no_convergence_warnings():
        mrf = ig.MRF(star, StochasticLikelihood(), max_iter=300, l2=0.1).fit(X)
    assert mrf.score(X) > 2 * np.log(0.5) + 0.15
    assert ig.infer(mrf.potentials_).joint([1, 2])[0, 0] == pytest.approx(
        0.5 - (X[:, 1] != X[:, 2]).mean() / 2, abs=0.06
    )


def test_structural_zeros_are_never_drawn():
    table = np.array([[np.nan, 10, 20], [5, np.nan, 15], [8, 12, np.nan]])
    graph = ig.FactorGraph([3, 3], [(0,), (1,)])
    with no_convergence_warnings():
        mrf = ig.MRF(graph, "sml", max_iter=600).fit(counts=table)
    exact = ig.MRF(graph, tol=1e-8).fit(counts=table)
    found, truth = (ig.infer(one.potentials_).joint([0, 1]) for one in (mrf, exact))
    assert (np.diag(found) == 0).all()
    np.testing.assert_allclose(found, truth, atol=0.03)


def test_chains_of_another_kind_in_a_checkpoint_are_refused():
    mrf = ig.MRF(FAMILY, PersistentDivergence(chains=9))
    problem = mrf._problem(mrf._choices(), data(), None, None)
    problem.objective()(np.zeros(problem.size))
    kept = dict(problem.memory(1))
    assert set(kept) == {"free.states", "free.keys", "free.drawn"}
    problem.restore(1, kept)
    for wrong in ({}, {**kept, "free.states": kept["free.states"] + np.uint8(2)}, {**kept, "free.keys": np.zeros(3)}):
        refuses("checkpoint: expected chains of this problem", problem.restore, 1, wrong)
    refuses("after 5 evaluations", problem.memory, 5, error=RuntimeError)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "mcmc"}, "method: expected .*'pcd'"),
        ({"method": ContrastiveDivergence(sweeps=0)}, "method.sweeps: expected"),
        ({"method": StochasticLikelihood(chains=0)}, "method.chains: expected"),
        ({"method": "pcd", "prior": "laplace"}, "prior: expected no Laplace prior for method='pcd'"),
        ({"method": "sml", "prior": "dirichlet"}, "prior: expected no Dirichlet prior for method='sml'"),
        ({"method": "cd", "optimizer": "owlqn"}, "optimizer: expected one for gradients that are estimates.*'sgd'"),
        ({"method": "ml", "optimizer": "sgd"}, "optimizer: expected one for whole objectives"),
    ],
)
def test_wrong_input(options, message):
    refuses(message, ig.MRF(FAMILY, **options).fit, data())
