"""Max-margin learning: optima, duality gaps, completions and refusals, against a program of all constraints."""

from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import isinglass as ig
from checks import refuses
from isinglass.inference.chain.counts import CountedPaths
from isinglass.learning import Objective
from isinglass.learning.checkpoint import Journal, resume
from isinglass.learning.optimizers import (
    AveragedPerceptron,
    BlockFrankWolfe,
    Cccp,
    CuttingPlane,
    Lbfgs,
    Pegasos,
)
from isinglass.learning.optimizers.max_margin.simplex import maximise_on_simplex
from isinglass.losses.hinge import violations
from isinglass.models import graph_model
from isinglass.testing.solver_suite import checked

TRIANGLE = [(0, 1), (1, 2), (0, 2)]
L2 = 0.3


def data(seed=0, n=5, hidden=0.0):
    """Small graphs with noisy features."""
    rng = np.random.default_rng(seed)
    Y = [rng.integers(0, 2, 3) for _ in range(n)]
    X = [(np.c_[2.0 * y - 1 + rng.normal(size=3), np.ones(3)], TRIANGLE) for y in Y]
    return X, [np.where(rng.random(3) < hidden, -1, y) for y in Y]


def chains(seed=0, n=12, hidden=0.0, states=3):
    rng = np.random.default_rng(seed)
    Y = [rng.integers(0, states, rng.integers(1, 6)) for _ in range(n)]
    X = [np.eye(states)[y] + rng.normal(size=(len(y), states)) for y in Y]
    return X, [np.where(rng.random(len(y)) < hidden, -1, y) for y in Y]


def optimum(X, Y, constraint=lambda cost, d: cost + d, n_states=2):
    """Return the least objective, and where: a quadratic program with a constraint for each labelling of each example.

    `constraint(cost, difference)` is what a slack must be at least.
    """
    cvxpy = pytest.importorskip("cvxpy")
    theta, slack = cvxpy.Variable(graph_model(X, n_states).size), cvxpy.Variable(len(X))
    constraints = []
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        model = graph_model([x], n_states)
        basis = [model.potentials(row) for row in np.eye(model.size)]

        def features(labels, basis=basis):
            return np.array([float(p.log_score(labels)) for p in basis])

        for other in product(range(n_states), repeat=len(y)):
            cost = float((np.array(other) != y).sum())
            constraints.append(slack[i] >= constraint(cost, (features(other) - features(y)) @ theta))
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(slack) + L2 * cvxpy.sum_squares(theta)), constraints)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(problem.value), np.array(theta.value)


def fitted(X, Y, optimizer, loss="margin", **options):
    crf = ig.GraphCRF(
        loss=loss, l2=L2, optimizer=optimizer, inference="exact", iterations=None, decoder="map", bias=False, **options
    )  # fmt: skip
    return crf.fit(X, Y)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "optimizer"),
    [
        ("margin", CuttingPlane(tol=1e-8)),
        ("margin", BlockFrankWolfe(tol=5e-2)),
        ("slack", CuttingPlane(tol=1e-8)),
    ],
)
def test_optima_are_those_of_all_constraints(name, optimizer):
    X, Y = data()
    rescaled = {"margin": lambda cost, d: cost + d, "slack": lambda cost, d: cost * (1 + d)}[name]
    least, _ = optimum(X, Y, rescaled)
    crf = fitted(X, Y, optimizer, name)
    assert crf.converged_
    assert least * (1 - 1e-6) <= crf.objective_ <= least / (1 - max(optimizer.tol, 1e-6))
    assert "no proof" not in crf.message_


def test_the_gap_of_an_inexact_solver_is_called_no_proof():
    X, Y = data()
    assert "no proof" in fitted(X, Y, CuttingPlane(tol=1e-3), ig.losses.Margin(solver="icm")).message_
    assert "no proof" in fitted(X, Y, BlockFrankWolfe(tol=1e-2), ig.losses.Margin(solver="icm")).message_
    relaxed = fitted(X, Y, CuttingPlane(tol=1e-6), ig.losses.Margin(relaxed=True))
    assert "no proof" not in relaxed.message_
    assert relaxed.objective_ >= optimum(X, Y)[0] - 1e-6
    bp = ig.GraphCRF(loss="cl", l2=L2, optimizer=CuttingPlane(tol=1e-2), inference="bp", iterations=4).fit(X, Y)
    assert "no proof" in bp.message_


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "inner"),
    [
        ("margin", "cutting-plane"),
        ("margin", "bcfw"),
        ("slack", "cutting-plane"),
        ("perceptron", "cutting-plane"),
    ],
)
def test_cccp_decreases_at_every_step(name, inner):
    X, Y = data(2, n=6, hidden=0.35)
    values = []
    keep = lambda progress: values.append(progress.value) or False  # noqa: E731
    start = {"warm_start": True} if name == "perceptron" else {}
    tol = 0.1 if inner == "bcfw" else 1e-3  # its gap falls slowly on graphs
    nothing = pytest.warns(ig.ConvergenceWarning, match="nothing was learned")
    with nothing if name == "perceptron" else nullcontext():
        crf = fitted(X, Y, Cccp(tol=tol, inner=inner), name, callback=keep, **start)
    assert crf.converged_
    assert "with these completions" in crf.message_
    assert (np.diff(values) <= 0).all()
    f = crf._problem(crf._choices(), X, Y).objective()
    assert_allclose(f(crf.theta_)[0], crf.objective_)
    if name != "perceptron":
        assert crf.objective_ < f(np.zeros(f.size))[0]
        assert (f.completed(crf.theta_)(crf.theta_)[0] - crf.objective_) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("edges", "cost"), [([], "hamming"), (TRIANGLE, [[0.0, 3.0], [0.0, 0.0]])])
@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
def test_frank_wolfe_looks_at_few_labellings_without_a_search(edges, cost, monkeypatch):
    """One search for all examples at each pass, and the steps are those of a search for each example."""
    rng = np.random.default_rng(0)
    X = [(rng.normal(size=(n, 2)), [e for e in edges if max(e) < n]) for n in (1, 2, 3, 3) * 3]
    Y, weights = [rng.integers(0, 2, len(x)) for x, _ in X], rng.uniform(0.5, 2.0, len(X))
    found, searches, search = [], [], violations.map_assignment
    monkeypatch.setattr(violations, "map_assignment", lambda *given: searches.append(0) or search(*given))
    for solver in ("exact", "brute"):
        searches.clear()
        crf = ig.GraphCRF(loss=ig.losses.Margin(cost, solver), l2=L2, optimizer=BlockFrankWolfe(tol=0, max_iter=5))
        crf.fit(X, Y, sample_weight=weights)
        found.append((crf, len(searches)))
    (fast, few), (slow, many) = found
    assert few <= 7 < 60 <= many
    assert_allclose(fast.theta_, slow.theta_, rtol=1e-9, atol=1e-12)
    assert fast.message_ == slow.message_


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"boundary": True}])
@pytest.mark.parametrize("inner", ["cutting-plane", "bcfw"])
def test_cccp_on_chains(options, inner):
    X, Y = chains(1, hidden=0.3)
    values = []
    crf = ig.ChainCRF(
        loss="margin", l2=0.2, state_features="all", optimizer=Cccp(tol=1e-3, inner=inner),
        callback=lambda progress: values.append(progress.value) or False, **options,
    ).fit(X, Y)  # fmt: skip
    assert crf.converged_
    assert (np.diff(values) <= 0).all()
    rough = ig.ChainCRF(loss="margin", l2=0.2, state_features="all", optimizer=Lbfgs(max_iter=40), **options)
    with pytest.warns(ig.ConvergenceWarning):
        rough.fit(X, Y)
    assert crf.objective_ <= 1.1 * rough.objective_


def test_cccp_without_hidden_labels_is_the_convex_optimum():
    X, Y = chains(2)
    options = {"loss": "margin", "l2": 0.2, "state_features": "all"}
    latent = ig.ChainCRF(optimizer=Cccp(tol=1e-6), **options).fit(X, Y)
    plain = ig.ChainCRF(optimizer=CuttingPlane(tol=1e-6), **options).fit(X, Y)
    assert_allclose(latent.objective_, plain.objective_, rtol=2e-6)


@pytest.mark.long
def test_cccp_goes_on_from_its_file(tmp_path):
    X, Y = chains(3, hidden=0.3)
    options = {"loss": "margin", "l2": 0.2, "state_features": "all", "checkpoint": tmp_path / "run.npz"}
    whole = ig.ChainCRF(optimizer=Cccp(tol=1e-5), **{**options, "checkpoint": None}).fit(X, Y)
    with pytest.warns(ig.ConvergenceWarning, match="reached max_iter = 1"):
        ig.ChainCRF(optimizer=Cccp(tol=1e-5, max_iter=1), **options).fit(X, Y)
    rest = ig.ChainCRF(optimizer=Cccp(tol=1e-5), **options).fit(X, Y)
    assert rest.theta_.tobytes() == whole.theta_.tobytes()


def test_cccp_is_interrupted_between_completions():
    X, Y = chains(3, hidden=0.3)
    calls = []

    def stop(progress):
        calls.append(progress.value)
        raise KeyboardInterrupt

    crf = ig.ChainCRF(loss="margin", l2=0.2, state_features="all", optimizer=Cccp(tol=1e-6), callback=stop)
    with pytest.warns(ig.ConvergenceWarning, match="interrupted"):
        crf.fit(X, Y)
    assert crf.objective_ == calls[0]


def graph_value(X, Y, theta, loss, weights):
    model = graph_model([(x, [(i, i + 1) for i in range(len(x) - 1)]) for x in X], X[0].shape[1])
    found = loss.evaluate(ig.losses.LossProblem(model.potentials(theta), np.concatenate(Y), weights), None)
    return found.value.sum(), model.transpose(found.groups)


@pytest.mark.parametrize(
    ("loss", "states"),
    [(ig.losses.Slack(), 3), (ig.losses.Slack([1.0, 2.5, 0.5], n_best=9999), 3), (ig.losses.Margin("f1"), 2)],
)
@pytest.mark.parametrize("hidden", [0.0, 0.4])
def test_chains_and_graphs_agree(loss, states, hidden):
    for seed in range(3):
        X, Y = chains(seed, n=6, hidden=hidden, states=states)
        weights = np.random.default_rng(seed).uniform(0.5, 2.0, len(X))
        crf = ig.ChainCRF(loss=loss, l2=0.0, state_features="all", bias=False, boundary=False)
        f = crf._problem(crf._choices(), X, [y.tolist() for y in Y], weights, None).objective()
        theta = np.random.default_rng(seed).normal(size=f.size)
        value, gradient = f(theta)
        expected, slope = graph_value(X, Y, theta, loss, np.repeat(weights, [len(y) for y in Y]))
        assert_allclose(value, expected, rtol=1e-9)
        assert_allclose(gradient, slope, atol=1e-8)
        values, slopes = f.planes(theta, np.arange(len(X)))
        assert_allclose([values.sum(), *slopes.sum(axis=0)], [value, *gradient], atol=1e-8)
        assert f.converged_share == 1.0


@pytest.mark.parametrize("loss", [ig.losses.Slack(), ig.losses.Margin(), ig.losses.Margin("f1")])
def test_right_labels_that_are_forbidden_are_refused(loss):
    X = [np.eye(2)[[0, 1, 1]], np.eye(2)[[1, 1, 1]]]
    crf = ig.ChainCRF(loss=loss, l2=0.2, optimizer="cutting-plane", forbidden=[(0, 1)])
    refuses("at token 1 of sequence 0", crf.fit, X, [[0, 1, 1], [1, 1, 1]], error=ig.errors.ImpossibleLabelError)
    weights = np.array([0.0, 1.0])  # an example without weight does not count
    assert crf.fit(X, [[0, 1, 1], [1, 1, 1]], sample_weight=weights).converged_
    assert np.isfinite(crf.theta_).all()


def test_a_short_list_of_best_labellings_is_no_proof():
    X, Y = chains(5, n=30)
    X = [np.zeros_like(x) for x in X]
    crf = ig.ChainCRF(loss=ig.losses.Slack(np.array([[0, 1.1, 2], [1, 0, 0.3], [2.7, 1, 0]]), n_best=1), l2=1.0)
    f = crf._problem(crf._choices(), X, Y, None, None).objective()
    shares = []
    for seed in range(20):
        f(np.random.default_rng(seed).normal(size=f.size))
        shares.append(f.converged_share)
    assert min(shares) < 1.0
    assert not f.proved


@pytest.mark.parametrize("seed", range(3))
def test_counted_paths_are_those_of_an_enumeration(seed):
    rng = np.random.default_rng(seed)
    scores, table, steps = rng.normal(size=(4, 3)), rng.normal(size=(3, 3)), rng.integers(0, 3, (4, 3))
    found = CountedPaths(scores, table, steps, 9)
    best = np.full(9, -np.inf)
    for path in product(range(3), repeat=4):
        score = sum(scores[t, z] for t, z in enumerate(path)) + sum(table[a, b] for a, b in pairwise(path))
        count = sum(steps[t, z] for t, z in enumerate(path))
        best[count] = max(best[count], score)
    assert_allclose(found.heights, best)
    for c in np.flatnonzero(best > -np.inf):
        path = found.path(int(c))
        assert sum(steps[t, z] for t, z in enumerate(path)) == c


def test_f1_training_raises_the_score_of_rare_labels():
    rng = np.random.default_rng(0)
    Y = [(rng.random(8) < 0.2).astype(int) for _ in range(40)]
    X = [np.c_[y + 0.8 * rng.normal(size=8), np.ones(8)] for y in Y]
    crf = ig.ChainCRF(loss=ig.losses.Margin("f1"), l2=0.05, state_features="all", optimizer="cutting-plane", tol=1e-2)
    predicted = np.concatenate(crf.fit(X, Y).predict(X))
    truth = np.concatenate(Y)
    tp = int((predicted & truth).sum())
    assert 2 * tp / (predicted.sum() + truth.sum()) > 0.5


def test_wrong_choices_for_chains():
    X, Y = chains(0, hidden=0.3)

    def refused(match, **options):
        refuses(match, ig.ChainCRF(**{"l2": 0.2, **options}).fit, X, Y)

    refused("loss: expected a hinge .* for optimizer 'cccp', got 'cl'; use 'lbfgs'", loss="cl", optimizer="cccp")
    refused("Y: expected labels that are all observed.*use 'cccp'", loss="margin", optimizer="bcfw")
    refused("inner: expected one of", loss="margin", optimizer=Cccp(inner="lbfgs"))
    refused("l2: expected a positive penalty", loss="margin", optimizer="cccp", l2=0.0)
    refused("two labels", loss=ig.losses.Margin("f1"))
    X, Y = chains(0, states=2)
    refused("class_weight: expected None", loss=ig.losses.Margin("f1"), class_weight=[1.0, 2.0])
    refuses("which can complete hidden labels", Cccp(l2=1.0).minimise, lambda x: (float(x @ x), 2 * x), np.zeros(2))


def objective(seed=0, n=5, l2=L2, loss=None):
    X, Y = data(seed, n)
    loss = ig.losses.Margin("hamming", "brute") if loss is None else loss
    return Objective(graph_model(X, 2), np.concatenate(Y), loss, ig.Brute(), ig.gradients.rule("unrolled"), l2)


@pytest.mark.parametrize("seed", range(3))
def test_cutting_planes_find_the_optimum_of_all_constraints(seed):
    f = objective(seed)
    least, theta = optimum(*data(seed))
    found = CuttingPlane(l2=L2, tol=1e-8).minimise(f, np.zeros(f.size))
    assert found.converged
    assert_allclose(found.value, least, rtol=1e-6)
    assert_allclose(found.x, theta, atol=1e-3)
    assert found.state.dual <= least + 1e-7 <= found.value + 2e-7


def test_bounds_are_on_their_sides_at_every_step():
    f, seen = objective(), []
    least, _ = optimum(*data())
    CuttingPlane(l2=L2, tol=1e-7).minimise(f, np.ones(f.size), callback=lambda p: seen.append(p.state) or False)
    duals, values = np.array([s.dual for s in seen]), np.array([s.value for s in seen])
    assert (np.diff(duals) >= 0).all()
    assert (np.diff(values) <= 0).all()
    assert (duals <= least + 1e-7).all()
    assert (values >= least - 1e-7).all()


@pytest.mark.long
@pytest.mark.parametrize("batch_size", [1, 3])
def test_frank_wolfe_finds_the_same_optimum(batch_size):
    crf = fitted(*data(), BlockFrankWolfe(tol=1e-3, max_iter=3000, batch_size=batch_size))
    least, _ = optimum(*data())
    assert crf.converged_
    assert least - 1e-9 <= crf.objective_ <= least * (1 + 1.1e-3)


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
    refuses("where each sequence has a plane of its own", likelihood.planes, np.zeros(likelihood.size), np.array([0]))


@pytest.mark.long
def test_pegasos_agrees():
    X, Y = data(n=5)
    crf = ig.GraphCRF(
        loss=ig.losses.Margin(), l2=L2, optimizer=Pegasos(epochs=400, batch_size=1, burn_in=200, random_state=0),
        inference="exact", iterations=None, decoder="map", bias=False,
    )  # fmt: skip
    with pytest.warns(ig.ConvergenceWarning, match="ran 400 epochs"):
        crf.fit(X, Y)
    least, _ = optimum(*data())
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


def test_the_averaged_perceptron_separates():
    rng = np.random.default_rng(0)
    Y = [rng.integers(0, 3, 6) for _ in range(20)]
    X = [np.eye(3)[y] + 0.1 * rng.normal(size=(6, 3)) for y in Y]
    optimizer = AveragedPerceptron(epochs=10, random_state=0)
    crf = ig.ChainCRF(loss="perceptron", optimizer=optimizer, l2=0.0, state_features="all").fit(X, Y)
    assert crf.score(X, Y) == 1.0
    assert (crf.converged_, crf.objective_, crf.message_) == (True, 0.0, "the function is at its lower bound, 0")


def test_wrong_choices():
    X, Y = data()

    def refused(match, labels=Y, **options):
        refuses(match, ig.GraphCRF(inference="exact", iterations=None, **options).fit, X, labels)

    refused("loss: expected a convex one .* for optimizer 'cutting-plane', got 'ucl'", optimizer="cutting-plane")
    hidden = [np.array([0, -1, 1]), *Y[1:]]
    refused("Y: expected labels that are all observed", hidden, optimizer="cutting-plane", loss="margin")
    refused("l2: expected a positive penalty", optimizer="cutting-plane", loss="margin", l2=0.0)
    refused("l2: expected a positive penalty", optimizer="pegasos", loss="margin", l2=0.0)
