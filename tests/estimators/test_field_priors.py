"""Priors of whole tables, and posteriors on graphs that are not chordal."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

import isinglass as ig
from isinglass.learning.markov.priors import Dirichlet, GroupLaplace, parameter_groups
from isinglass.learning.markov.priors.bayesian_fitting import BayesianFitting
from isinglass.learning.optimizers import Proximal
from isinglass.models import Ising, conjunction_model, table_model

PAIRS = ig.FactorGraph([2, 3, 2, 2], [(0,), (1,), (2,), (3,), *itertools.combinations(range(4), 2)])


def samples(n=600, seed=0):
    """Draw from a chain of four variables."""
    rng = np.random.default_rng(seed)
    chain = ig.FactorGraph([2, 3, 2, 2], [(0, 1), (1, 2), (2, 3)])
    p = ig.Potentials(chain, [1.5 * rng.normal(size=s) for s in ((2, 3), (3, 2), (2, 2))])
    return ig.sample(p, n, random_state=seed)


def edge_norms(mrf):
    groups = parameter_groups(mrf.model_)
    return np.sqrt(np.bincount(groups[groups >= 0], mrf.theta_[groups >= 0] ** 2))


@pytest.mark.long
def test_edges_that_are_not_there_are_exactly_zero():
    mrf = ig.MRF(PAIRS, prior=GroupLaplace(0.1), tol=1e-2, max_iter=3000).fit(samples(2000))
    assert mrf.converged_
    named = {PAIRS.scopes[f]: float(np.abs(mrf.potentials_.log_tables[f]).max()) for f in range(4, 10)}
    assert {e for e, size in named.items() if size > 0} == {(0, 1), (1, 2), (2, 3)}
    assert (edge_norms(mrf) > 0).sum() == 3


def test_the_group_lasso_is_at_its_minimum():
    """By the conditions of optimality, with the gradient of the likelihood by enumeration."""
    X = samples(300)
    mrf = ig.MRF(PAIRS, prior=GroupLaplace(0.2), tol=1e-8, max_iter=5000).fit(X)
    theta, groups = mrf.theta_, parameter_groups(mrf.model_)
    states = np.array(list(itertools.product(range(2), range(3), range(2), range(2))))
    p = np.exp(mrf.potentials_.log_score(states) - ig.infer(mrf.potentials_).log_z)
    slope = []
    for rows, weights in ((states, len(X) * p), (X, np.ones(len(X)))):
        counts = [np.zeros(PAIRS.cards[list(s)]) for s in PAIRS.scopes]
        for s, t in zip(PAIRS.scopes, counts, strict=True):
            np.add.at(t, tuple(rows[:, list(s)].T), weights)
        order = [f for g in PAIRS.groups for f in g.factors]
        slope.append(np.concatenate([counts[f].ravel() for f in order]))
    gradient = slope[0] - slope[1]
    assert_allclose(gradient[groups < 0], 0, atol=1e-3)
    for g in range(groups.max() + 1):
        mine, c = groups == g, np.sqrt((groups == g).sum()) / 0.2
        if np.any(theta[mine]):
            assert_allclose(gradient[mine], -c * theta[mine] / np.linalg.norm(theta[mine]), atol=1e-3)
        else:
            assert np.linalg.norm(gradient[mine]) <= c + 1e-6


def test_groups_of_parameters():
    assert parameter_groups(table_model(PAIRS, tied=True)).max() == 2  # tables of 2 x 3, 2 x 2 and 3 x 2
    ising = Ising(ig.grid_graph(2, 2, 2)).model()
    assert sorted(parameter_groups(ising)) == [-1] * 4 + [0, 1, 2, 3]
    assert_array_equal(parameter_groups(conjunction_model([2, 2], [{0: 1}, {0: 1, 1: 1}])), [0, 1])


def test_proximal_steps_never_rise_and_slopes_are_right():
    rng = np.random.default_rng(0)
    A, groups = rng.normal(size=(12, 9)), np.array([-1, 0, 0, 1, 1, 1, 2, 3, 3])
    y = A[:, [1, 2, 7]] @ [2.0, -1.0, 3.0] + 0.1 * rng.normal(size=12)

    def f(x):
        return ((A @ x - y) ** 2).sum() / 2, A.T @ (A @ x - y)

    values = []
    optimizer = Proximal(tol=1e-9, groups=groups, scale=0.7, max_iter=5000)
    found = optimizer.minimise(f, 0.1 * np.ones(9), callback=lambda p: values.append(p.value))
    assert found.converged
    assert (np.diff(values) <= 1e-10 * np.abs(values[1:])).all()
    x = rng.normal(size=9)
    norms = optimizer._norms(x)
    for g in range(4):
        step = np.where(groups == g, x, 0.0) * 1e-6 / norms[g]
        slope = (optimizer.penalty_at(x + step) - optimizer.penalty_at(x - step)) / 2e-6
        assert_allclose(slope, optimizer._slopes[g], rtol=1e-5)
    assert found.value == pytest.approx(f(found.x)[0] + optimizer.penalty_at(found.x))


def test_priors_of_groups_go_on_from_files_and_checkpoints(tmp_path):
    X = samples(200)
    whole = ig.MRF(PAIRS, prior=GroupLaplace(0.2), tol=1e-6).fit(X)
    part = ig.MRF(PAIRS, prior=GroupLaplace(0.2), tol=1e-6, max_iter=5, checkpoint=tmp_path / "run.npz")
    with pytest.warns(ig.ConvergenceWarning):
        part.fit(X)
    again = ig.MRF(PAIRS, prior=GroupLaplace(0.2), tol=1e-6, checkpoint=tmp_path / "run.npz").fit(X)
    assert_array_equal(again.theta_, whole.theta_)
    whole.save(tmp_path / "a.isg")
    assert ig.MRF.load(tmp_path / "a.isg").prior == GroupLaplace(0.2)


def test_priors_of_groups_are_refused_where_they_do_not_fit():
    X = samples(50)
    for options, name in [
        ({"method": "ipf", "prior": "group"}, "prior"),
        ({"method": "pcd", "prior": "group"}, "prior"),
        ({"prior": "group", "optimizer": "owlqn"}, "optimizer"),
        ({"prior": GroupLaplace(0)}, "prior.scale"),
        ({"prior": "group", "l2": 1.0}, "l2"),
    ]:
        with pytest.raises(ig.InputError) as told:
            ig.MRF(PAIRS, **options).fit(X)
        assert told.value.argument == name
    assert ig.MRF(PAIRS, method="pseudo", prior=GroupLaplace(0.05), max_iter=2000).fit(X).converged_


CHAIN = ig.FactorGraph([2, 3, 2], [(0, 1), (1, 2)])
TABLE = np.random.default_rng(3).integers(1, 12, (2, 3, 2))


@pytest.mark.long
def test_sampling_agrees_with_the_conjugate_posterior_on_chordal_graphs():
    mrf = ig.MRF(CHAIN, method="closed-form", prior=Dirichlet(3.0)).fit(counts=TABLE)
    exact = mrf.posterior()
    counts = {0: TABLE.sum(axis=2).astype(float), 1: TABLE.sum(axis=0).astype(float)}
    sampler = BayesianFitting(mrf.model_, counts, 3.0)
    traces = sampler.marginals(1000, random_state=1)
    found, known = sampler.intervals(0.9, 1000, random_state=1), exact.intervals(0.9)
    for scope in ((0, 1), (1, 2)):
        width = known[scope][1] - known[scope][0]
        assert (np.abs(found[scope] - known[scope]) < 0.07 * width).all()
        strength = exact.counts[exact.tree.cliques.index(scope)] + 3.0 / counts[0].size
        assert_allclose(traces[scope].mean(axis=(0, 1)), strength / strength.sum(), atol=0.004)


@pytest.mark.long
def test_posterior_means_of_marginals_are_known_on_any_graph():
    """Diaconis and Ylvisaker (1979): they are those of the samples and the virtual ones, together."""
    ring = ig.FactorGraph([2, 2, 2, 3], [(0, 1), (1, 2), (2, 3), (0, 3)])
    table = np.random.default_rng(0).integers(0, 6, (2, 2, 2, 3))
    posterior = ig.MRF(ring, method="ipf", prior=Dirichlet(2.0)).fit(counts=table).posterior()
    for scope, trace in posterior.marginals(1500, random_state=0).items():
        rest = tuple(i for i in range(4) if i not in scope)
        n = table.sum(axis=rest)
        n = n if scope == tuple(sorted(scope)) else n.T
        assert_allclose(trace.mean(axis=(0, 1)), (n + 2.0 / n.size) / (table.sum() + 2.0), atol=0.005)
    models = list(posterior.draws(3, random_state=0, burn_in=2))
    assert len(models) == 3
    assert not np.array_equal(models[0].groups[0], models[1].groups[0])


@pytest.mark.long
def test_sampling_agrees_with_importance_sampling_off_chordal_graphs():
    """All pairs of three binary variables, without the triple: six parameters."""
    table, total = np.array([[[9, 2], [3, 4]], [[1, 5], [2, 8]]]), 1.0
    graph = ig.FactorGraph([2, 2, 2], [(0, 1), (1, 2), (0, 2)])
    states = np.array(list(itertools.product((0, 1), repeat=3)))
    F = np.concatenate([states, states[:, [0, 0, 1]] * states[:, [1, 2, 2]]], axis=1).astype(float)
    weight, N = F.T @ (table.ravel() + total / 8), table.sum() + total

    def log_density(theta):
        return theta @ weight - N * logsumexp(theta @ F.T, axis=-1)

    mode = np.zeros(6)
    for _ in range(30):
        p = np.exp(F @ mode - logsumexp(F @ mode))
        information = N * (F.T @ (p[:, None] * F) - np.outer(F.T @ p, F.T @ p))
        mode = mode + np.linalg.solve(information, weight - N * F.T @ p)
    rng = np.random.default_rng(0)
    noise = rng.standard_t(6, (40_000, 6))
    L = np.linalg.cholesky(np.linalg.inv(information))
    theta = mode + noise @ L.T
    log_weight = log_density(theta) + 3.5 * np.log1p(noise**2 / 6).sum(axis=1)
    share = np.exp(log_weight - logsumexp(log_weight))
    assert 1 / (share**2).sum() > 5000
    mrf = ig.MRF(graph, method="ipf", prior=Dirichlet(total)).fit(counts=table)
    drawn = np.array([[*p.log_tables] for p in mrf.posterior().draws(6000, random_state=0)])  # (draws, 3, 2, 2)
    found = drawn[:, :, 1, 1] - drawn[:, :, 0, 1] - drawn[:, :, 1, 0] + drawn[:, :, 0, 0]
    for k, column in enumerate((3, 5, 4)):  # pairs (0, 1), (1, 2), (0, 2)
        mean = share @ theta[:, column]
        sd = np.sqrt(share @ (theta[:, column] - mean) ** 2)
        assert abs(found[:, k].mean() - mean) < 0.1 * sd
        assert found[:, k].std() == pytest.approx(sd, rel=0.06)


def test_a_weak_prior_on_large_tables_is_refused():
    large = ig.FactorGraph([6, 6, 6], [(0, 1), (1, 2), (0, 2)])
    table = np.zeros((6, 6, 6))
    table[0, 0, 0] = 5
    mrf = ig.MRF(large, method="ipf", prior=Dirichlet(1.0)).fit(counts=table)
    with pytest.raises(ig.InputError, match=r"prior.total: expected at least 1.8 virtual samples"):
        mrf.posterior()
    with pytest.warns(ig.ConvergenceWarning, match="R-hat"):
        ig.MRF(large, method="ipf", prior=Dirichlet(2.0)).fit(counts=table).posterior().intervals(draws=4, burn_in=0)


def test_posteriors_of_weak_priors_and_of_variables_of_one_state_are_finite():
    graph = ig.FactorGraph([2, 1, 3, 1], [(0, 2), (1, 3)])
    table = np.zeros((2, 1, 3, 1))
    table[0, 0, 0] = 4
    posterior = ig.MRF(graph, method="closed-form", prior=Dirichlet(1e-3)).fit(counts=table).posterior()
    assert_array_equal(posterior.intervals(0.9)[1, 3], np.ones((2, 1, 1)))
    for seed in range(20):
        drawn = posterior.draw(seed)
        assert all(np.isfinite(t).all() for t in drawn.log_tables)  # far below the least positive number, some of them
        assert ig.infer(drawn, "brute").log_z == pytest.approx(0, abs=1e-12)
