"""Entropy weights as a parameter of estimators: named, given as tables, fitted, released from any of them."""

import pickle

import numpy as np
import pytest
from estimator_helpers import KINDS, graph, graphs, grid, images
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import isinglass as ig
from checks import refuses
from isinglass.io.arrays import read_arrays, write_arrays
from isinglass.models import EntropyModel, graph_model, grid_model

CONVEX = {"inference": "convex", "iterations": None, "gradient": "implicit", "tol": 0.01}
TABLES = {"variables": [0.3, 0.6], "factors": [[0.5, 0.9], [0.2, 0.7]]}
both = pytest.mark.parametrize("kind", KINDS)
pytestmark = pytest.mark.filterwarnings("ignore:.*training stopped after")


def plain_model(kind, X):
    return grid_model(X, 2, bias=True) if kind == "grid" else graph_model(X, 2)


def flat(values):
    return np.concatenate([v.reshape(-1, 2) for v in values])


@pytest.mark.long
@pytest.mark.parametrize("entropy", ["A", "B", "C", TABLES, {"variables": 0.2}])
@both
def test_predictions_are_those_of_the_weights(kind, entropy):
    make, data = KINDS[kind]
    X, Y = data()
    crf = make(**CONVEX, entropy=entropy).fit(X, Y)
    model = plain_model(kind, X)
    first = {"A": 0.01, "B": 0.1, "C": 1.0}.get(entropy) if isinstance(entropy, str) else entropy["variables"]
    variables = np.tile(np.full(2, first), model.graph.n_variables)
    pairs = np.full((2, 2), entropy.get("factors", 1.0) if isinstance(entropy, dict) else 1.0)
    weights = ig.EntropyWeights(variables, [np.ones(1), np.broadcast_to(pairs, (len(model.graph.groups[1]), 2, 2))])
    expected = ig.infer(model.potentials(crf.theta_), ig.ConvexFreeEnergy(weights=weights))
    assert_allclose(flat(crf.predict_marginals(X)), np.asarray(expected.variables), atol=1e-9)
    assert_array_equal(crf.entropy_["variables"], np.full(2, first))
    assert_array_equal(crf.entropy_["factors"], pairs)
    by_inference = make(**{**CONVEX, "inference": ig.ConvexFreeEnergy(weights=entropy)}).fit(X, Y)
    assert by_inference.theta_.tobytes() == crf.theta_.tobytes()


def test_bethe_is_exact_on_trees():
    rng = np.random.default_rng(0)
    Y = [rng.integers(0, 2, 5) for _ in range(4)]
    X = [(np.c_[y + rng.normal(size=5), np.ones(5)], [(0, 1), (1, 2), (1, 3), (3, 4)]) for y in Y]
    crf = graph(**CONVEX, entropy="bethe").fit(X, Y)
    exact = graph(iterations=None, inference="exact", gradient="perturbation", tol=0.01).fit(X, Y)
    assert_allclose(crf.theta_, exact.theta_, atol=1e-6)
    assert crf.entropy_ is None
    assert exact.entropy_ is None
    with pytest.raises(ig.InputError, match=r"stages\[1\]\.entropy: expected 'A', 'B', 'C' or a mapping .*'bethe'"):
        graph(**CONVEX, stages=[{"entropy": "bethe"}, {"entropy": "fit"}]).fit(X, Y)


@both
def test_fitted_weights_are_positive_and_reported(kind):
    make, data = KINDS[kind]
    X, Y = data()
    crf = make(**CONVEX, entropy="fit").fit(X, Y)
    fixed = make(**CONVEX, entropy="A").fit(X, Y)
    assert crf.objective_ < fixed.objective_
    assert {name: array.shape for name, array in crf.entropy_.items()} == {"variables": (2,), "factors": (2, 2)}
    assert min(array.min() for array in crf.entropy_.values()) > 0
    assert_allclose(crf.entropy_["variables"], 0.01 * np.exp(crf.parameters_["entropy/variables"][0]))
    assert abs(crf.entropy_["factors"] - 1).max() > 1e-3
    again = make(**CONVEX, entropy=crf.entropy_)
    again.theta_, again.n_states_, again.n_features_in_ = crf.theta_[:-6], 2, crf.n_features_in_
    assert_allclose(flat(again.predict_marginals(X)), flat(crf.predict_marginals(X)), atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("entropy", ["B", TABLES])
@both
def test_released_from_the_stage_before(kind, entropy):
    make, data = KINDS[kind]
    X, Y = data()
    staged = make(**CONVEX, stages=[{"entropy": entropy}, {"entropy": "fit"}]).fit(X, Y)
    fixed = make(**CONVEX, entropy=entropy).fit(X, Y)
    first = next(epoch for epoch in staged.history_ if epoch.stage == 1)
    assert first.value < fixed.objective_  # its first step goes down from there
    for options in (
        {"inference": ig.ConvexFreeEnergy(weights=entropy), "entropy": "fit"},
        {"stages": [{"entropy": entropy, "max_iter": 1}, {}], "entropy": "fit"},
    ):
        crf = make(**{**CONVEX, "tol": 1e-5, "l2": 1.0, **options}).fit(X, Y)
        value = make(**{**CONVEX, "tol": 1e-5, "l2": 1.0}, stages=[{"entropy": entropy}, {"entropy": "fit"}]).fit(X, Y)
        assert_allclose(crf.objective_, value.objective_, rtol=1e-7)  # the same function is minimised
        for name in ("variables", "factors"):
            assert_allclose(crf.entropy_[name], value.entropy_[name], rtol=1e-3)


@both
def test_a_strong_penalty_keeps_the_entropy_that_was_there(kind):
    make, data = KINDS[kind]
    crf = make(**CONVEX, l2=1e5, stages=[{"entropy": TABLES}, {"loss": "uquad"}], entropy="fit").fit(*data())
    assert_allclose(crf.entropy_["variables"], TABLES["variables"], rtol=1e-3)
    assert_allclose(crf.entropy_["factors"], TABLES["factors"], rtol=1e-3)


@both
def test_a_warm_start_carries_weights_over_by_value(kind):
    make, data = KINDS[kind]
    X, Y = data()
    crf = make(**CONVEX, entropy=TABLES, warm_start=True).fit(X, Y)
    loss = crf.objective_ - 0.3 * (crf.theta_**2).sum()
    seen = []
    crf.set_params(entropy="fit", max_iter=1, callback=lambda p: seen.append(p.value)).fit(X, Y)
    logs = np.log(np.array(TABLES["variables"]) / 0.01), np.log(TABLES["factors"])
    start = loss + 0.3 * (crf_theta_squares(crf, make, X, Y) + sum((log**2).sum() for log in logs))
    assert seen[0] < start
    before = crf.entropy_
    crf.set_params(inference=ig.ConvexFreeEnergy(weights="C"), l2=0.0, tol=1e9, callback=None).fit(X, Y)
    assert crf.n_iter_ == 0
    for name in ("variables", "factors"):
        assert_allclose(crf.entropy_[name], before[name], rtol=1e-12)


def crf_theta_squares(crf, make, X, Y):
    fixed = make(**CONVEX, entropy=TABLES).fit(X, Y)
    return (fixed.theta_**2).sum()


WRONG = {
    "name": ("D", r"entropy: expected one of 'A', .*'bethe', 'fit', a mapping of tables, or None, got 'D'"),
    "list": ([0.1, 1.0], r"entropy: expected one of 'A'"),
    "key": ({"nodes": 1.0}, r"entropy: expected a mapping of 'variables' and 'factors', got 'nodes'"),
    "text": ({"variables": "many"}, r"entropy\.variables: expected numbers"),
    "infinite": ({"factors": np.inf}, r"entropy\.factors: expected finite numbers"),
    "negative": ({"factors": [[1.0, 1.0], [1.0, -1.0]]}, r"entropy: expected .* positive numbers for factors"),
    "states": ({"variables": [1.0, 1.0, 1.0]}, r"entropy\.variables: expected weights of 2 states, got 3"),
    "shape": ({"factors": [1.0, 2.0]}, r"entropy\.factors: expected a number or shape \(2, 2\), got shape \(2,\)"),
}


@pytest.mark.parametrize("name", WRONG)
@both
def test_wrong_entropies(kind, name):
    make, data = KINDS[kind]
    entropy, words = WRONG[name]
    seen = []
    refuses(words, make(**CONVEX, entropy=entropy, callback=seen.append).fit, *data())
    assert not seen


@both
def test_what_cannot_be_fitted(kind):
    make, data = KINDS[kind]
    refuses("entropy: expected None unless inference is 'convex'", make(entropy=TABLES).fit, *data())
    refuses("gradient: expected 'implicit'", make(**{**CONVEX, "gradient": "perturbation"}, entropy="fit").fit, *data())
    single = ig.ConvexFreeEnergy(weights=ig.EntropyWeights(np.ones(48)))
    with pytest.raises(ig.InputError, match="entropy: expected the same for all variables and factors"):
        make(**{**CONVEX, "inference": single}, entropy="fit").fit(*data())
    negative = {"variables": -0.01}
    with pytest.raises(ig.InputError, match=r"stages\[1\]\.entropy: expected one of positive weights before 'fit'"):
        make(**CONVEX, stages=[{"entropy": negative}, {"entropy": "fit"}]).fit(*data())
    crf = make(**CONVEX, entropy=negative, warm_start=True).fit(*data())
    with pytest.raises(ig.InputError, match=r"warm_start: entropy_\['variables'\]: expected positive weights"):
        crf.set_params(entropy="fit").fit(*data())


@both
def test_scikit_learn_files_and_pickles(kind, tmp_path):
    make, data = KINDS[kind]
    X, Y = data()
    crf = make(**CONVEX, stages=[{"entropy": TABLES}, {"entropy": "fit"}]).fit(X, Y)
    assert clone(crf).fit(X, Y).theta_.tobytes() == crf.theta_.tobytes()
    crf.save(tmp_path / "a")
    for again in (type(crf).load(tmp_path / "a"), pickle.loads(pickle.dumps(crf))):
        for name, array in crf.entropy_.items():
            assert_array_equal(again.entropy_[name], array)
        assert_array_equal(flat(again.predict_marginals(X)), flat(crf.predict_marginals(X)))
    file = read_arrays(tmp_path / "a")
    shapes = {name.replace("entropy", "entrance"): shape for name, shape in file.metadata["shapes"].items()}
    metadata = {**file.metadata, "shapes": shapes}
    write_arrays(tmp_path / "a", file.arrays, schema=file.schema, version=2, metadata=metadata)
    refuses("parameters of the entropy", type(crf).load, tmp_path / "a", error=ig.FileFormatError)


@pytest.mark.long
@both
def test_grid_search(kind):
    make, data = KINDS[kind]
    crf = make(**CONVEX, entropy="fit")
    grid_of = {"l2": [0.3, 3.0], "entropy": ["A", "fit", TABLES]}
    search = GridSearchCV(crf, grid_of, cv=2, error_score="raise").fit(*data(4))
    assert search.best_score_ > 0.7
    assert min(array.min() for array in search.best_estimator_.entropy_.values()) > 0


def test_minibatches_checkpoints_and_graphs_without_edges(tmp_path):
    X, Y = graphs()
    whole, path = graph(**CONVEX, entropy="fit").fit(X, Y), tmp_path / "a"
    graph(**CONVEX, entropy="fit", checkpoint=path, callback=lambda p: p.iteration == 2).fit(X, Y)
    assert graph(**CONVEX, entropy="fit", checkpoint=path).fit(X, Y).theta_.tobytes() == whole.theta_.tobytes()
    other = {**CONVEX, "inference": ig.ConvexFreeEnergy(weights="B")}
    refuses("a checkpoint of this problem", graph(**other, entropy="fit", checkpoint=path).fit, X, Y)
    assert whole.predict([(X[0][0][:1], np.zeros((0, 2), int))])[0].shape == (1,)
    adam = ig.learning.optimizers.Adam(epochs=3, batch_size=2, random_state=0)
    crf = grid(**CONVEX, entropy="fit", optimizer=adam).fit(*images())
    assert abs(crf.parameters_["entropy/factors/1"]).max() > 1e-4


def test_the_model_and_its_inverse():
    model = EntropyModel(graph_model(graphs()[0], 2), **{k: np.array(v) for k, v in TABLES.items()})
    by_state, groups = model.weights(np.zeros(model.size))
    assert_array_equal(by_state[:2], TABLES["variables"])
    assert_array_equal(groups[1][0], TABLES["factors"])
    wanted = {"variables": np.array([0.2, 2.0]), "factors": np.array([[1.0, 2.0], [3.0, 4.0]])}
    named = {**model.split(np.zeros(model.size)), **model.parameters_of(**wanted)}
    by_state, groups = model.weights(model.join(named))
    assert_allclose(by_state[:2], wanted["variables"])
    assert_allclose(groups[1][0], wanted["factors"])
    assert pickle.loads(pickle.dumps(model)).base[0].tolist() == TABLES["variables"]
    with pytest.raises(ig.InputError, match=r"variables: expected a number or shape \(2,\), got shape \(3,\)"):
        EntropyModel(model.plain, variables=np.ones(3))
    with pytest.raises(ig.InputError, match=r"factors: expected a number, got shape \(2, 2\)"):
        EntropyModel(model.plain, factors=np.ones((2, 2)), per="clique")
