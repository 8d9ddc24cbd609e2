"""Parameters of their own for each iteration (Domke 2009, section 5.4)."""

import numpy as np
import pytest
from estimator_helpers import KINDS
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from checks import refuses
from isinglass.learning.training.choices import algorithm_of, choices_of
from isinglass.learning.training.stages import start_of
from isinglass.models import graph_model, grid_model

pytestmark = pytest.mark.parametrize("kind", KINDS)
OWN = {"iterations": 3, "own_parameters": True}


def model_of(kind, X):
    return grid_model(X, 2, bias=True) if kind == "grid" else graph_model(X, 2)


def test_predictions_are_those_of_the_list(kind):
    make, data = KINDS[kind]
    X, Y = data()
    crf = make(**OWN).fit(X, Y)
    model = model_of(kind, X)
    assert len(crf.theta_) == 3 * model.size
    assert crf.parameters_["node"].shape == (3, *model.parameters["node"])
    stages = [model.join({name: array[t] for name, array in crf.parameters_.items()}) for t in range(3)]
    assert_array_equal(np.concatenate(stages), crf.theta_)
    assert abs(stages[0] - stages[2]).max() > 1e-3
    result = ig.infer([model.potentials(theta) for theta in stages], algorithm_of(crf))
    found = np.concatenate([b.reshape(-1, 2) for b in crf.predict_marginals(X)])
    assert_array_equal(found, np.array(result.variables))
    assert_array_equal(np.concatenate([np.ravel(y) for y in crf.predict(X)]), found.argmax(1))


@pytest.mark.parametrize("loss", ["ucl", "cquad", "scclass"])
def test_gradient_against_differences(kind, loss):
    make, data = KINDS[kind]
    crf = make(loss=loss, edge_l2=0.7, **OWN)
    f = crf._problem(choices_of(crf), *data()).objective()
    rng = np.random.default_rng(0)
    theta = 0.5 * rng.normal(size=f.size)
    _, gradient = f(theta)
    for _ in range(3):
        v = rng.normal(size=f.size)
        coarse, fine = ((f(theta + s * v)[0] - f(theta - s * v)[0]) / (2 * s) for s in (2e-4, 1e-4))
        assert_allclose(gradient @ v, (4 * fine - coarse) / 3, rtol=1e-6)


def test_a_warm_start_repeats_the_shared_parameters(kind):
    make, data = KINDS[kind]
    X, Y = data()
    shared = make(iterations=3, warm_start=True).fit(X, Y)
    theta, loss = shared.theta_, shared.objective_ - 0.3 * (shared.theta_**2).sum()
    begun = []
    shared.set_params(own_parameters=True, callback=lambda p: begun.append(p.value)).fit(X, Y)
    at_start = loss + 3 * 0.3 * (theta**2).sum()
    assert begun[0] < at_start  # the first step goes down from there
    assert shared.objective_ < at_start
    crf = make(warm_start=True, max_iter=1, **OWN)
    crf.theta_ = theta
    problem = crf._problem(choices_of(crf), X, Y)
    assert_array_equal(start_of(problem, crf._warm_start(problem), 0), np.tile(theta, 3))
    with pytest.raises(ig.InputError, match="warm_start: expected the same shapes of parameters as before"):
        shared.set_params(own_parameters=False, callback=None).fit(X, Y)


def test_one_iteration_is_the_shared_problem(kind):
    make, data = KINDS[kind]
    X, Y = data()
    one, shared = make(iterations=1, own_parameters=True).fit(X, Y), make(iterations=1).fit(X, Y)
    assert_array_equal(one.theta_, shared.theta_)
    assert_array_equal(one.parameters_["node"][0], shared.parameters_["node"])
    assert_array_equal(one.predict(X)[0], shared.predict(X)[0])


def test_penalties_and_other_numbers_of_iterations(kind):
    make, data = KINDS[kind]
    crf = make(l1=1.0, **OWN).fit(*data())
    assert 0 < (crf.theta_ == 0).sum() < len(crf.theta_)
    make, data = KINDS[kind]
    X, Y = data()
    crf = make(max_iter=300, **OWN).fit(X, Y).set_params(iterations=4)
    refuses("iterations: expected 3, as many as have parameters, got 4", crf.predict, X)


def test_files_and_checkpoints(kind, tmp_path):
    make, data = KINDS[kind]
    X, Y = data()
    crf = make(**OWN).fit(X, Y)
    crf.save(tmp_path / "a")
    again = type(crf).load(tmp_path / "a")
    assert again.get_params() == crf.get_params()
    for name, array in crf.parameters_.items():
        assert_array_equal(again.parameters_[name], array)
    assert_array_equal(again.predict_marginals(X)[0], crf.predict_marginals(X)[0])
    make(checkpoint=tmp_path / "b", callback=lambda p: p.iteration == 3, **OWN).fit(X, Y)
    assert make(checkpoint=tmp_path / "b", **OWN).fit(X, Y).theta_.tobytes() == crf.theta_.tobytes()
    refuses("checkpoint", make(iterations=3, checkpoint=tmp_path / "b").fit, X, Y)
