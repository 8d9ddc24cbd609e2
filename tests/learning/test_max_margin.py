"""Max-margin learning: optima, duality gaps and refusals, against a generic solver over all constraints."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import isinglass as ig
from isinglass.learning import Objective
from isinglass.learning.checkpoint import Journal, resume
from isinglass.learning.optimizers import AveragedPerceptron, BlockFrankWolfe, CuttingPlane, Pegasos
from isinglass.learning.optimizers.max_margin.simplex import maximise_on_simplex
from isinglass.models import graph_model
from isinglass.testing.solver_suite import checked

TRIANGLE = [(0, 1), (1, 2), (0, 2)]
L2 = 0.3


def data(seed=0, n=5):
    """Small graphs with noisy features."""
    rng = np.random.default_rng(seed)
    Y = [rng.integers(0, 2, 3) for _ in range(n)]
    return [(np.c_[2.0 * y - 1 + rng.normal(size=3), np.ones(3)], TRIANGLE) for y in Y], Y


def objective(seed=0, n=5, l2=L2, loss=None):
    X, Y = data(seed, n)
    loss = ig.losses.Margin("hamming", "brute") if loss is None else loss
    return Objective(graph_model(X, 2), np.concatenate(Y), loss, ig.Brute(), ig.gradients.rule("unrolled"), l2)


def optimum(seed=0, n=5):
    """Return the least objective: a quadratic program with a constraint for each labelling of each example."""
    cvxpy = pytest.importorskip("cvxpy")
    X, Y = data(seed, n)
    theta, slack = cvxpy.Variable(graph_model(X, 2).size), cvxpy.Variable(n)
    constraints = []
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        model = graph_model([x], 2)
        basis = [model.potentials(row) for row in np.eye(model.size)]

        def features(labels, basis=basis):
            return np.array([float(p.log_score(labels)) for p in basis])

        for other in product(range(2), repeat=3):
            cost = float((np.array(other) != y).sum())
            constraints.append(slack[i] >= cost + (features(other) - features(y)) @ theta)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(slack) + L2 * cvxpy.sum_squares(theta)), constraints)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(problem.value), np.array(theta.value)


@pytest.mark.parametrize("seed", range(3))
def test_cutting_planes_find_the_optimum_of_all_constraints(seed):
    f = objective(seed)
    least, theta = optimum(seed)
    found = CuttingPlane(l2=L2, tol=1e-8).minimise(f, np.zeros(f.size))
    assert found.converged
    assert_allclose(found.value, least, rtol=1e-6)
    assert_allclose(found.x, theta, atol=1e-3)
    assert found.state.dual <= least + 1e-7 <= found.value + 2e-7


def test_bounds_are_on_their_sides_at_every_step():
    f, seen = objective(), []
    least, _ = optimum()
    CuttingPlane(l2=L2, tol=1e-7).minimise(f, np.ones(f.size), callback=lambda p: seen.append(p.state) or False)
    duals, values = np.array([s.dual for s in seen]), np.array([s.value for s in seen])
    assert (np.diff(duals) >= 0).all()
    assert (np.diff(values) <= 0).all()
    assert (duals <= least + 1e-7).all()
    assert (values >= least - 1e-7).all()


def fitted(optimizer, seed=0, **options):
    X, Y = data(seed)
    return ig.GraphCRF(
        loss="margin",
        l2=L2,
        bias=False,
        optimizer=optimizer,
        inference="exact",
        iterations=None,
        decoder="map",
        **options,
    ).fit(X, Y)


@pytest.mark.long
@pytest.mark.parametrize("batch_size", [1, 3])
def test_frank_wolfe_finds_the_same_optimum(batch_size):
    crf = fitted(BlockFrankWolfe(tol=1e-3, max_iter=3000, batch_size=batch_size))
    least, _ = optimum()
    assert crf.converged_
    assert least - 1e-9 <= crf.objective_ <= least * (1 + 1.1e-3)


def chains(seed=0, n=12):
    rng = np.random.default_rng(seed)
    Y = [rng.integers(0, 3, rng.integers(1, 6)) for _ in range(n)]
    return [np.eye(3)[y] + rng.normal(size=(len(y), 3)) for y in Y], Y


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"boundary": True}, {"class_weight": [1.0, 2.0, 0.5]}])
def test_frank_wolfe_on_chains_agrees_with_cutting_planes(options):
    X, Y = chains()
    cost = np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 1.0], [0.5, 3.0, 0.0]])
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    found = []
    for optimizer in (BlockFrankWolfe(tol=1e-4, max_iter=5000), CuttingPlane(tol=1e-6)):
        crf = ig.ChainCRF(loss=ig.losses.Margin(cost), l2=0.2, state_features="all", optimizer=optimizer, **options)
        found.append(crf.fit(X, Y, sample_weight=weights))
        assert crf.converged_
    assert_allclose(found[0].objective_, found[1].objective_, rtol=1.1e-4)
    assert_allclose(found[0].theta_, found[1].theta_, atol=0.05)


def test_chain_planes_add_up_to_the_objective():
    X, Y = chains()
    crf = ig.ChainCRF(loss="margin", l2=0.0, boundary=True, l1=0.0)
    f = crf._problem(crf._choices(), X, Y, np.arange(12.0), None).objective()
    theta = np.random.default_rng(0).normal(size=f.size)
    value, gradient = f(theta)
    values, slopes = f.planes(theta, np.arange(f.n_examples))
    assert_allclose(values.sum(), value)
    assert_allclose(slopes.sum(axis=0), gradient, atol=1e-10)


def test_frank_wolfe_duals_never_fall_and_stay_below():
    X, Y = chains(3)
    seen = []
    options = {"loss": "margin", "l2": 0.2, "state_features": "all"}
    keep = lambda progress: seen.append(progress.state) or False  # noqa: E731
    ig.ChainCRF(optimizer=BlockFrankWolfe(tol=1e-4, max_iter=5000), callback=keep, **options).fit(X, Y)
    least = ig.ChainCRF(optimizer=CuttingPlane(tol=1e-8), **options).fit(X, Y).objective_
    duals = np.array([state.dual for state in seen])
    assert (np.diff(duals) >= 0).all()
    assert (duals <= least + 1e-9).all()
    assert all(state.value >= least - 1e-6 for state in seen)


def test_frank_wolfe_goes_on_from_its_file(tmp_path):
    X, Y = chains(4)
    options = {"loss": "margin", "l2": 0.2, "state_features": "all", "checkpoint": tmp_path / "run.npz"}
    whole = ig.ChainCRF(optimizer=BlockFrankWolfe(tol=1e-2), **{**options, "checkpoint": None}).fit(X, Y)
    with pytest.warns(ig.ConvergenceWarning, match="reached max_iter = 3"):
        ig.ChainCRF(optimizer=BlockFrankWolfe(tol=1e-2, max_iter=3), **options).fit(X, Y)
    rest = ig.ChainCRF(optimizer=BlockFrankWolfe(tol=1e-2), **options).fit(X, Y)
    assert rest.theta_.tobytes() == whole.theta_.tobytes()


def test_functions_without_planes_are_refused():
    with pytest.raises(ig.InputError, match="f: expected the objective of an estimator"):
        BlockFrankWolfe(l2=1.0).minimise(lambda x: (float(x @ x), 2 * x), np.zeros(2))
    crf = ig.ChainCRF()
    likelihood = crf._problem(crf._choices(), *chains(), None, None).objective()
    with pytest.raises(ig.InputError, match="where each sequence has a plane of its own"):
        likelihood.planes(np.zeros(likelihood.size), np.array([0]))


@pytest.mark.long
def test_pegasos_agrees():
    X, Y = data(n=5)
    crf = ig.GraphCRF(
        loss=ig.losses.Margin(), l2=L2, optimizer=Pegasos(epochs=400, batch_size=1, burn_in=200, random_state=0),
        inference="exact", iterations=None, decoder="map", bias=False,
    )  # fmt: skip
    with pytest.warns(ig.ConvergenceWarning, match="ran 400 epochs"):
        crf.fit(X, Y)
    least, _ = optimum()
    assert least - 1e-9 <= objective()(crf.theta_)[0] <= 1.1 * least  # its error falls as log(t) / t


def test_any_convex_loss_may_be_cut():
    f = objective(loss=ig.losses.Likelihood())
    found = CuttingPlane(l2=L2, tol=1e-8).minimise(f, np.zeros(f.size))
    smooth = ig.learning.optimizers.Lbfgs(tol=1e-9).minimise(f, np.zeros(f.size))
    assert_allclose(found.value, smooth.value, rtol=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_a_minimum_of_zero_is_found_and_proved(seed):
    f = objective(seed, loss=ig.losses.Perceptron("brute"))
    found = CuttingPlane(l2=L2).minimise(f, np.random.default_rng(seed).normal(size=f.size))
    assert found.converged
    assert (found.x == 0).all()
    assert found.value == found.state.dual == 0
    assert "gap, 0," in found.message


def test_a_run_goes_on_from_its_file(tmp_path):
    f, optimizer = objective(), CuttingPlane(l2=np.full(8, L2)[: objective().size], tol=1e-8)
    whole = optimizer.minimise(f, np.zeros(f.size))
    path = tmp_path / "run.npz"
    short = replace(optimizer, max_iter=4)
    short.minimise(f, np.zeros(f.size), callback=Journal(path, short))
    again, state = resume(path)
    assert_allclose(np.asarray(again.l2), np.asarray(optimizer.l2))
    rest = replace(again, max_iter=1000).minimise(f, state=state)
    assert rest.x.tobytes() == whole.x.tobytes()


@checked
@given(n=st.integers(1, 6), seed=st.integers(0, 9999), rank=st.integers(0, 4))
def test_the_program_on_the_simplex(n, seed, rank):
    rng = np.random.default_rng(seed)
    R, b = rng.normal(size=(rank, n)), rng.normal(size=n)
    G = R.T @ R
    alpha = maximise_on_simplex(G, b, rng.dirichlet(np.ones(n)))
    assert (alpha >= 0).all()
    assert_allclose(alpha.sum(), 1.0)
    slope = b - G @ alpha
    assert slope.max() <= slope @ alpha + 1e-7 * (1 + np.abs(slope).max())  # no entry has a larger slope


def test_estimators_end_by_the_gap():
    X, Y = data(n=8)
    crf = ig.GraphCRF(
        loss="margin", optimizer="cutting-plane", l2=0.1, tol=1e-3, inference="exact", iterations=None, decoder="map"
    ).fit(X, Y)
    assert crf.converged_
    assert "duality gap" in crf.message_
    chain = [(x[0]) for x in X]
    labels = [y.tolist() for y in Y]
    crf = ig.ChainCRF(loss="margin", optimizer="cutting-plane", l2=0.1, tol=1e-3, state_features="all").fit(
        chain, labels
    )
    assert crf.converged_


def test_estimators_with_solvers_are_saved(tmp_path):
    X, Y = chains()
    loss, optimizer = ig.losses.Margin(solver=ig.TRWS(max_iter=7)), BlockFrankWolfe(tol=0.1)
    crf = ig.ChainCRF(loss=loss, optimizer=optimizer, l2=0.2, state_features="all").fit(X, Y)
    crf.save(tmp_path / "crf.isg")
    again = ig.ChainCRF.load(tmp_path / "crf.isg")
    assert again.loss.solver == ig.TRWS(max_iter=7)
    assert again.optimizer.tol == 0.1
    assert crf.predict(X) == again.predict(X)


def test_the_averaged_perceptron_separates():
    rng = np.random.default_rng(0)
    Y = [rng.integers(0, 3, 6) for _ in range(20)]
    X = [np.eye(3)[y] + 0.1 * rng.normal(size=(6, 3)) for y in Y]
    optimizer = AveragedPerceptron(epochs=10, random_state=0)
    with pytest.warns(ig.ConvergenceWarning, match="ran 10 epochs"):
        crf = ig.ChainCRF(loss="perceptron", optimizer=optimizer, l2=0.0, state_features="all").fit(X, Y)
    assert crf.score(X, Y) == 1.0


def test_wrong_choices():
    X, Y = data()

    def refused(match, labels=Y, **options):
        with pytest.raises(ig.InputError, match=match):
            ig.GraphCRF(inference="exact", iterations=None, **options).fit(X, labels)

    refused("loss: expected a convex one .* for optimizer 'cutting-plane', got 'ucl'", optimizer="cutting-plane")
    hidden = [np.array([0, -1, 1]), *Y[1:]]
    refused("Y: expected labels that are all observed", hidden, optimizer="cutting-plane", loss="margin")
    refused("l2: expected a positive penalty", optimizer="cutting-plane", loss="margin", l2=0.0)
    refused("l2: expected a positive penalty", optimizer="pegasos", loss="margin", l2=0.0)
