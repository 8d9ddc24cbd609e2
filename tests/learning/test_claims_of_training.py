"""What training claims holds where it ended: the objective, that it has converged, that there is a minimum."""

import itertools
import warnings

import numpy as np
import pytest

import isinglass as ig
from isinglass.learning.optimizers import OPTIMIZERS, CuttingPlane, make_optimizer
from isinglass.learning.optimizers.base import Counted
from isinglass.learning.optimizers.max_margin.gap import GapOptimizer

CRF = {"tol": 1e-3, "max_iter": 60, "state_features": "all"}
MARGIN = {"loss": "margin", "l2": 0.1}
RUNS = {
    **{name: {"l2": 0.1} for name in ("lbfgs", "owlqn", "steepest", "sgd", "adagrad", "adam", "smd")},
    **dict.fromkeys(("cutting-plane", "bcfw", "cccp", "pegasos"), MARGIN),
    "averaged-perceptron": {"loss": "perceptron", "l2": 0.0},
    "proximal": {},
    "fixed-point": {},
}
EDGES = [(i, i + 1) for i in range(5)]
GROW = "parameters still grow"


def labelled(seed, kind):
    """Examples of six tokens whose labels follow from features, or do so but for a quarter of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 6, 4))
    Y = np.argmax(X @ rng.normal(size=(4, 3)), axis=2)
    if kind != "separable":
        Y = np.where(rng.random(Y.shape) < 0.25, rng.integers(0, 3, Y.shape), Y)
    if kind == "rare":  # one feature is seen with one label alone; for all others there is a minimum
        X = np.concatenate([X, ((Y == 0) & (rng.random(Y.shape) < 0.3))[..., None]], axis=2)
    return X, Y


def fitted(kind, loss, seed, **options):
    X, Y = labelled(seed, kind)
    options = {"l2": 0.0, "max_iter": 3000, **options}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if loss == "chain":
            crf = ig.ChainCRF(**options).fit(list(X), Y.tolist())
        else:
            crf = ig.GraphCRF(loss=loss, inference="exact", **options).fit([(x, EDGES) for x in X], list(Y))
    assert any(GROW in str(one.message) for one in told) == (GROW in crf.message_)
    return crf


def problem(name, kind):
    """An estimator, its data, and its objective."""
    X, Y = labelled(0, kind)
    data = list(X), Y.tolist()
    if name in ("proximal", "fixed-point"):
        prior, method = ("group", "ml") if name == "proximal" else (None, "ipf")
        estimator, data = ig.MRF(ig.chain_graph(6, 3), prior=prior, method=method, tol=1e-5), (Y.reshape(-1, 6),)
    else:
        estimator = ig.ChainCRF(**{**CRF, "optimizer": name, **RUNS[name]})
    return estimator, data, estimator._problem(estimator._choices(), *data, None, None)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["separable", "mixed"])
@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
def test_what_is_reported_is_of_what_is_returned(name, kind):
    estimator, data, made = problem(name, kind)
    estimator.fit(*data)
    f, theta, optimizer = made.objective(), estimator.theta_, made.optimizer
    value, gradient = f(theta)
    assert estimator.objective_ == pytest.approx(value, rel=1e-12, abs=1e-12)
    if optimizer.minibatch:
        assert estimator.converged_ == (value == 0.0)
    elif estimator.converged_ and isinstance(optimizer, GapOptimizer):
        least = CuttingPlane(l2=0.1, tol=1e-9, max_iter=5000).minimise(f, theta).value
        assert value <= least * (1 + 2 * optimizer.tol)
    elif estimator.converged_:
        state = optimizer.state_type(name, theta, 0, 0, value + optimizer.penalty_at(theta), gradient, np.inf)
        assert not optimizer.is_steep(state)
        assert not optimizer.growing(Counted(f), state).any()


@pytest.mark.long
@pytest.mark.parametrize("loss", ["chain", "cl", "pseudo", "piecewise"])
@pytest.mark.parametrize("kind", ["separable", "rare", "mixed"])
def test_what_has_a_minimum_converges_and_nothing_else_does(kind, loss):
    for seed in range(20):
        tol = 10.0 ** -(2 + 2 * (seed % (3 if loss == "cl" else 4)))
        crf = fitted(kind, loss, seed, tol=tol)
        assert crf.converged_ == (kind == "mixed"), (seed, crf.message_)
        assert crf.converged_ == (GROW not in crf.message_)
        assert not crf.converged_ or np.abs(crf.theta_).max() < 10


def test_an_objective_that_ends_at_zero_has_no_minimum_there():
    """A step so long that nothing is left of a likelihood; at the zero of a hinge the gradient is exactly zero."""
    X, y = np.array([[-300.0], [-200.0], [100.0]]), np.array([[0], [0], [1]])
    for loss, converged in (("cl", False), ("margin", True)):
        options = {"loss": loss, "inference": "exact", "gradient": "envelope", "optimizer": "lbfgs", "l2": 0.0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ig.ConvergenceWarning)
            crf = ig.MultiLabelCRF(**options).fit(X, y)
        assert (crf.objective_ < 1e-15, crf.converged_) == (True, converged), (loss, crf.message_)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["separable", "mixed"])
def test_what_has_a_composite_maximum_converges_and_nothing_else_does(kind):
    """All assignments are seen, or all but those of a pair of states along an edge."""
    states = np.array(list(np.ndindex(3, 3, 3)))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = np.concatenate([states, states[rng.choice(27, 60, p=rng.dirichlet(np.ones(27)))]])
        edge, a, b = rng.integers(0, [2, 3, 3])
        X = X if kind == "mixed" else X[(X[:, edge] != a) | (X[:, edge + 1] != b)]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            tol = 10.0 ** -(2 + 2 * (seed % 4))
            mrf = ig.MRF(ig.chain_graph(3, 3), method="composite", tol=tol, max_iter=3000).fit(X)
        assert mrf.converged_ == (kind == "mixed"), (seed, mrf.message_)
        assert mrf.converged_ == (GROW not in mrf.message_) == (not told)
        assert not mrf.converged_ or np.abs(mrf.theta_).max() < 10


@pytest.mark.parametrize("optimizer", ["steepest", "owlqn"])
def test_every_optimizer_says_so(optimizer):
    options = {"l1": 0.0} if optimizer == "owlqn" else {}
    for kind in ("separable", "mixed"):
        crf = fitted(kind, "chain", 0, optimizer=make_optimizer(optimizer, tol=1e-2, max_iter=3000, **options))
        assert crf.converged_ == (kind == "mixed")


def test_the_message_names_the_parameter_and_the_remedy():
    crf = fitted("rare", "chain", 0, state_features="all")
    assert "attribute 4 for label 0" in crf.message_
    assert "the maximum may not exist" in crf.message_
    assert "use a penalty (l2)" in crf.message_
    assert fitted("rare", "chain", 0, l2=1e-4).converged_
    assert "node[4, 0]" in fitted("rare", "cl", 0).message_


@pytest.mark.parametrize("method", ["ml", "ipf", "scaling", "em", "pseudo", "composite", "mpf", "piecewise"])
def test_a_value_that_was_never_seen_with_another(method):
    """Of the slides' kind: the table of one edge has an empty cell, whose parameter has no finite maximum."""
    X = np.array(list(np.ndindex(2, 2, 2)) * 3)
    for rows, exists in ((X, True), (X[(X[:, 0] == 0) | (X[:, 1] == 0)], False)):
        mrf = ig.MRF(ig.chain_graph(3, 2), method=method, max_iter=2000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mrf.fit(np.concatenate([rows, rows[::2]]))
        if mrf.zeros_ is None:
            assert mrf.converged_ == exists, mrf.message_


@pytest.mark.long
def test_inference_that_jumps_between_fixed_points_is_named():
    rng = np.random.default_rng(0)
    pairs = list(itertools.combinations(range(8), 2))
    graph = ig.FactorGraph([2] * 8, [(i,) for i in range(8)] + pairs)
    tables = [rng.normal(size=2) for _ in range(8)] + [rng.normal(size=(2, 2)) for _ in pairs]
    X = ig.sample(ig.Potentials(graph, tables), 500, "exact", random_state=0)
    with pytest.warns(ig.ConvergenceWarning, match="inference 'bp' jumps .* use damping .*'trw' or 'convex'"):
        mrf = ig.MRF(graph, inference="bp").fit(X)
    assert "kinks" not in mrf.message_


@pytest.mark.parametrize("kind", ["chain", "graph"])
def test_minibatches_add_up_to_the_objective(kind):
    X, Y = labelled(0, "mixed")
    if kind == "chain":
        crf, data = ig.ChainCRF(l2=0.7), (list(X), Y.tolist())
    else:
        crf, data = ig.GraphCRF(l2=0.7, edge_l2=0.3), ([(x, EDGES) for x in X], list(Y))
    made = crf._problem(crf._choices(), *data, None, None)
    theta = np.random.default_rng(1).normal(size=made.size)
    parts = [made.part_objective(rows)(theta) for rows in (np.arange(5), np.arange(5, 12))]
    value, gradient = made.objective()(theta)
    assert sum(part[0] for part in parts) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(sum(part[1] for part in parts), gradient, rtol=1e-9, atol=1e-12)
