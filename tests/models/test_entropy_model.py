"""Entropy weights as parameters: positive, differentiable through the minimum, fitted by GridCRF."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV

import isinglass as ig
from checks import refuses, richardson
from isinglass import losses
from isinglass.gradients import rule
from isinglass.learning import Objective
from isinglass.models import EntropyModel, graph_model, grid_model

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(3, 3, 4, 2))
LABELS = RNG.integers(0, 2, (3, 3, 4))
GRAPHS = [(RNG.normal(size=(3, 2)), [(0, 1), (1, 2), (0, 2)]) for _ in range(2)]


MODELS = {
    "configuration": EntropyModel(grid_model(IMAGES, 2)),
    "clique": EntropyModel(graph_model(GRAPHS, 3), 0.1, 0.5, per="clique"),
    "features": EntropyModel(
        graph_model(GRAPHS, 2), variable_features=RNG.normal(size=(6, 2)), factor_features={1: RNG.normal(size=(6, 3))}
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("loss", ["cl", "ucl", "ccl", "uquad", "cquad"])
@pytest.mark.parametrize("name", MODELS)
def test_gradients_by_all_parameters(name, loss):
    model, rng = MODELS[name], np.random.default_rng(1)
    labels = rng.integers(0, 2, model.graph.n_variables)
    labels[::4] = -1
    objective = Objective(model, labels, losses.make(loss), ig.ConvexFreeEnergy(tol=1e-12), rule("implicit"), l2=0.1)
    theta = 0.3 * rng.normal(size=model.size)
    value, gradient = objective(theta)
    assert_allclose(objective.losses(theta).sum() + 0.1 * theta @ theta, value, rtol=1e-9)
    for _ in range(3):
        direction = rng.normal(size=model.size)
        found = richardson(lambda s, v=direction: objective(theta + s * v)[0])
        assert_allclose(gradient @ direction, found, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("per", ["configuration", "clique"])
def test_graphs_without_edges(per):
    rng = np.random.default_rng(0)
    model = EntropyModel(graph_model([(rng.normal(size=(3, 2)), np.zeros((0, 2), int))], 2), 1.0, per=per)
    labels, theta = np.array([0, 1, 1]), 0.3 * rng.normal(size=model.size)
    objective = Objective(model, labels, losses.make("ucl"), ig.ConvexFreeEnergy(tol=1e-12), rule("implicit"))
    direction = rng.normal(size=model.size)
    found = richardson(lambda s, v=direction: objective(theta + s * v)[0])
    assert_allclose(objective(theta)[1] @ direction, found, rtol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_weights_are_positive_and_begin_with_the_given_entropy(name):
    model = MODELS[name]
    by_state, groups = model.weights(np.zeros(model.size))
    assert_allclose(by_state, model.base[0])
    assert_allclose(groups[1], model.base[1])
    by_state, groups = model.weights(np.random.default_rng(0).normal(0, 5, model.size))
    assert min(by_state.min(), groups[1].min()) > 0
    assert by_state.shape == (int(model.graph.cards.sum()),)


def test_a_copy_and_what_is_refused():
    again = pickle.loads(pickle.dumps(MODELS["features"]))
    assert again.parameters == MODELS["features"].parameters
    assert list(again.parameters)[-2:] == ["entropy/variables", "entropy/factors/1"]
    plain = graph_model(GRAPHS, 2)
    refuses("per: expected", EntropyModel, plain, per="label")
    refuses("positive weights", EntropyModel, plain, variables=0.0)
    refuses("features of 'entropy/variables'", EntropyModel, plain, variable_features=np.ones((2, 2)))
    labels, theta = np.zeros(6, int), np.zeros(EntropyModel(plain).size)
    make = losses.make("ucl")
    with pytest.raises(ig.InputError, match="inference: expected 'convex'"):
        Objective(EntropyModel(plain), labels, make, ig.BeliefPropagation(), rule("implicit"))(theta)
    with pytest.raises(ig.InputError, match="gradient: expected 'implicit'"):
        Objective(EntropyModel(plain), labels, make, ig.ConvexFreeEnergy(), rule("perturbation"))(theta)


def noisy(seed, n=6):
    rng = np.random.default_rng(seed)
    y = np.zeros((n, 6, 6), int)
    y[:, :, 3:] = 1
    return (2.0 * y - 1 + 1.5 * rng.normal(size=y.shape))[..., None], y


def test_fitting_the_entropy_lowers_the_objective(tmp_path):
    X, Y = noisy(0)
    fixed = ig.GridCRF(inference="convex", gradient="implicit", entropy="A", bias=True, l2=1.0, tol=0.01).fit(X, Y)
    crf = ig.GridCRF(inference="convex", gradient="implicit", entropy="fit", bias=True, l2=1.0, tol=0.01).fit(X, Y)
    assert crf.objective_ < fixed.objective_
    assert crf.parameters_["entropy/variables"].shape == (1, 2)
    assert crf.score(*noisy(1)) > 0.8
    crf.save(tmp_path / "crf.isg")
    loaded = ig.GridCRF.load(tmp_path / "crf.isg")
    assert_allclose(loaded.predict_marginals(X), crf.predict_marginals(X), atol=1e-12)


@pytest.mark.long
def test_grid_search_and_objections():
    X, Y = noisy(0)
    crf = ig.GridCRF(inference="convex", gradient="implicit", entropy="fit", bias=True, tol=0.1)
    search = GridSearchCV(crf, {"l2": [0.1, 1.0], "entropy": ["A", "fit"]}, cv=2).fit(X, Y)
    assert search.best_score_ > 0.7
    refuses("entropy: expected None unless inference is 'convex'", ig.GridCRF(entropy="fit").fit, X, Y)
    with pytest.raises(ig.InputError, match="gradient: expected 'implicit'"):
        ig.GridCRF(inference="convex", gradient="perturbation", entropy="fit").fit(X, Y)
    refuses("entropy: expected one of 'A'", ig.GridCRF(inference="convex", gradient="implicit", entropy="D").fit, X, Y)
    refuses(r"through its minimum; use .*'implicit'", ig.GridCRF(inference="convex").fit, X, Y)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isinglass.errors.ConvergenceWarning")
def test_a_weak_penalty_of_the_entropy():
    """A trial step makes weights so small that a belief underflows; the line search steps back."""
    crf = ig.GridCRF(inference="convex", gradient="implicit", entropy="fit", bias=True, l2=0.01, max_iter=80)
    crf.fit(*noisy(0))
    values = [epoch.value for epoch in crf.history_]
    assert values == sorted(values, reverse=True)
    assert crf.score(*noisy(0)) > 0.8
