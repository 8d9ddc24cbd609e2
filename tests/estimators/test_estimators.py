"""GridCRF and GraphCRF: what fit learns, and what predictions look like."""

import numpy as np
import pytest
from estimator_helpers import KINDS, graph, graphs, grid, images
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError

import isinglass as ig
from checks import refuses
from isinglass.learning.optimizers import Adam, Lbfgs, OwlQn

pytestmark = pytest.mark.parametrize("kind", KINDS)
TIGHT = {"tol": 1e-8, "optimizer": Lbfgs(tol=1e-8, ftol=0.0)}


def flat(parts):
    return np.concatenate([np.ravel(part) for part in parts])


def repeated(X, Y, times):
    if isinstance(X, np.ndarray):
        return np.repeat(X, times, 0), np.repeat(Y, times, 0)
    pairs = [(x, y) for x, y, k in zip(X, Y, times, strict=True) for _ in range(k)]
    return [x for x, _ in pairs], [y for _, y in pairs]


def test_predictions_have_the_shape_of_the_labels(kind):
    make, data = KINDS[kind]
    X, Y = data()
    crf = make().fit(X, Y)
    for marginals, labels, truth in zip(crf.predict_marginals(X), crf.predict(X), Y, strict=True):
        assert marginals.shape == (*truth.shape, 2)
        assert_allclose(marginals.sum(-1), 1)
        assert_array_equal(marginals.argmax(-1), labels)
    right = np.mean(flat(crf.predict(X)) == flat(Y))
    assert crf.score(X, Y) == pytest.approx(right)
    assert right > 0.9
    assert crf.converged_
    assert crf.n_iter_ == len(crf.history_) == crf.history_[-1].iteration
    assert crf.history_[-1].value == pytest.approx(crf.objective_)
    assert crf.history_[-1].inference_iterations == 2
    assert crf.n_states_ == 2
    assert crf.n_features_in_ == 2
    assert_array_equal(flat(crf.parameters_.values()), crf.theta_)
    assert crf.infer(X).info.algorithm == "bp"


def test_the_objective_is_a_sum_with_l2(kind):
    make, data = KINDS[kind]
    X, Y = data()
    crf = make(**TIGHT).fit(X, Y)
    beliefs = np.concatenate([b.reshape(-1, 2) for b in crf.predict_marginals(X)])
    loss = -np.log(beliefs[np.arange(len(beliefs)), flat(Y)]).sum()
    assert_allclose(crf.objective_, loss + 0.3 * (crf.theta_**2).sum(), rtol=1e-10)


def test_edges_have_their_own_penalty(kind):
    make, data = KINDS[kind]
    crf = make(edge_l2=1e4).fit(*data())
    edges = [name for name in crf.parameters_ if name.startswith("edge")]
    assert max(abs(crf.parameters_[name]).max() for name in edges) < 1e-2
    assert abs(crf.parameters_["node"]).max() > 0.1


@pytest.mark.long
@pytest.mark.parametrize("loss", ["ucl", "cl", "pseudo", "cquad"])
def test_integer_weights_equal_repeated_examples(kind, loss):
    make, data = KINDS[kind]
    X, Y = data(3)
    weighted = make(loss=loss, **TIGHT).fit(X, Y, sample_weight=[2, 0, 1])
    again = make(loss=loss, **TIGHT).fit(*repeated(X, Y, [2, 0, 1]))
    assert_allclose(weighted.theta_, again.theta_, atol=1e-6)
    assert_allclose(weighted.objective_, again.objective_)
    assert weighted.score(X, Y, [2, 0, 1]) == pytest.approx(again.score(*repeated(X, Y, [2, 0, 1])))


@pytest.mark.long
def test_class_weights(kind):
    make, data = KINDS[kind]
    X, Y = data(3)
    plain = make(**TIGHT).fit(X, Y)
    assert_allclose(make(class_weight=[1, 1], **TIGHT).fit(X, Y).theta_, plain.theta_, atol=1e-6)
    heavy = make(class_weight={1: 50}, **TIGHT).fit(X, Y)
    assert_allclose(make(class_weight=[1, 50], **TIGHT).fit(X, Y).theta_, heavy.theta_)
    share = np.mean(np.concatenate([b.reshape(-1, 2) for b in plain.predict_marginals(X)])[:, 1])
    assert np.mean(np.concatenate([b.reshape(-1, 2) for b in heavy.predict_marginals(X)])[:, 1]) > share
    counts = np.bincount(flat(Y))
    balanced = counts.sum() / (2 * counts)
    one, two = (make(class_weight=w, **TIGHT).fit(X, Y) for w in ("balanced", balanced))
    assert_allclose(one.theta_, two.theta_)


@pytest.mark.parametrize("loss", ["ucl", "ccl", "cl"])
def test_labels_that_were_not_observed(kind, loss):
    make, data = KINDS[kind]
    X, Y = data()
    hidden = [np.array(y) for y in Y]
    for y in hidden:
        y.reshape(-1)[::3] = -1
    crf = make(loss=loss).fit(X, np.array(hidden) if kind == "grid" else hidden)
    assert crf.score(X, Y) > 0.8
    seen = flat(hidden) >= 0
    assert crf.score(X, hidden) == pytest.approx(np.mean((flat(crf.predict(X)) == flat(Y))[seen]))


def test_more_states_than_labels(kind):
    make, data = KINDS[kind]
    X, Y = data()
    crf = make(n_states=3).fit(X, Y)
    assert crf.predict_marginals(X)[0].shape[-1] == 3
    assert crf.parameters_["node"].shape[1] == 3
    assert crf.score(X, Y) > 0.9


def test_warm_start_goes_on_from_the_last_fit(kind):
    make, data = KINDS[kind]
    X, Y = data()
    crf = make(warm_start=True, **TIGHT).fit(X, Y)
    first, theta = crf.n_iter_, crf.theta_
    assert crf.fit(X, Y).n_iter_ == 0 < first
    assert_array_equal(crf.theta_, theta)
    assert crf.history_ == []
    refuses(r"warm_start: .*use warm_start=False", crf.set_params(n_states=3).fit, X, Y)


def test_callback_and_verbose(kind, capsys):
    make, data = KINDS[kind]
    crf = make(callback=lambda progress: progress.iteration == 2, verbose=True).fit(*data())
    assert crf.message_ == "stopped by the callback"
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["1", "2"]


def test_training_that_does_not_converge_warns(kind):
    make, data = KINDS[kind]
    with pytest.warns(ig.ConvergenceWarning, match="max_iter"):
        crf = make(max_iter=1).fit(*data())
    assert not crf.converged_
    assert crf.n_iter_ == 1


def test_ctrl_c_keeps_the_best_parameters(kind):
    make, data = KINDS[kind]
    X, Y = data()

    def interrupt(progress):
        if progress.iteration == 3:
            raise KeyboardInterrupt

    crf = make(callback=interrupt)
    with pytest.warns(ig.ConvergenceWarning, match="interrupted after 3 iterations; the best parameters"):
        crf.fit(X, Y)
    assert crf.objective_ == crf.history_[2].value
    assert crf.score(X, Y) > 0.5


@pytest.mark.long
def test_minibatches_reach_the_same_place(kind):
    make, data = KINDS[kind]
    X, Y = data()
    whole = make(l2=1.0, **TIGHT).fit(X, Y)
    adam = Adam(learning_rate=0.05, epochs=60, batch_size=2, schedule="inverse", decay=0.1, tol=1e-6, random_state=0)
    with pytest.warns(ig.ConvergenceWarning, match="epochs"):
        crf = make(l2=1.0, optimizer=adam).fit(X, Y)
    assert_allclose(crf.theta_, whole.theta_, atol=0.1)
    with pytest.warns(ig.ConvergenceWarning, match="proves no minimum"):
        one = make(optimizer="sgd", max_iter=200, tol=0.1).fit(X, Y)
    assert one.score(X, Y) > 0.8


def test_l1_makes_parameters_zero(kind):
    make, data = KINDS[kind]
    crf = make(optimizer=OwlQn(l1=3.0)).fit(*data())
    assert 0 < (crf.theta_ == 0).sum() < len(crf.theta_)


@pytest.mark.long
def test_other_decoders_and_inferences(kind):
    make, data = KINDS[kind]
    X, Y = data()
    for options in (
        {"decoder": "map"},
        {"inference": "mf", "iterations": 3},
        {"inference": "trw"},
        {"inference": "exact", "iterations": None, "loss": "cl", "gradient": "envelope"},
        {
            "inference": ig.BeliefPropagation(schedule="sequential", tol=1e-10),
            "iterations": None,
            "gradient": "perturbation",
        },
    ):
        assert make(**options).fit(X, Y).score(X, Y) > 0.8


def test_not_fitted(kind):
    make, data = KINDS[kind]
    X, Y = data()
    for call in (lambda c: c.predict(X), lambda c: c.predict_marginals(X), lambda c: c.score(X, Y)):
        refuses("call fit first", call, make(), error=NotFittedError)


def test_edges_and_features(kind):
    if kind == "grid":
        X, Y = images(states=3)
        assert set(grid(edges="shared").fit(X, Y).parameters_) == {"node", "edge"}
        assert grid().fit(X, Y).parameters_["edge/vertical"].shape == (3, 3)
    else:
        X, Y = graphs(edge_features=True)
        crf = graph(edge_bias=True).fit(X, Y)
        assert crf.parameters_["edge"].shape == (3, 2, 2)
        thin = graph(edge_bias=True).fit([(sparse.csr_array(x), e, sparse.csr_array(z)) for x, e, z in X], Y)
        assert_allclose(thin.theta_, crf.theta_, atol=1e-4)
