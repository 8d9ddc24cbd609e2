"""Threads: the same bits for any number of them."""

import inspect

import numpy as np
import pytest
from estimator_helpers import KINDS, graph, graphs, grid, images
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from checks import each_close, each_equal, refuses
from isinglass import estimators
from isinglass.errors import no_convergence_warnings
from isinglass.estimators import predicting
from isinglass.learning.optimizers import Adam
from isinglass.learning.total import blocks
from isinglass.learning.training import problem
from isinglass.learning.training.choices import choices_of
from isinglass.validation import jobs_of

CHOICES = {
    "ucl": {},
    "cl": {"loss": "cl"},
    "pseudo": {"loss": "pseudo"},
    "cquad": {"loss": "cquad", "iterations": None},
    "mf": {"inference": "mf", "loss": "uquad"},
    "exact": {"inference": "exact", "iterations": None, "gradient": "perturbation"},
    "own": {"own_parameters": True},
}


@pytest.fixture
def _small_blocks(monkeypatch):
    monkeypatch.setattr(problem, "blocks", lambda sizes: blocks(sizes, 13))


def fitted(make, X, Y, **options):
    return make(callback=lambda p: p.iteration == 8, **options).fit(X, Y, sample_weight=np.arange(1, len(Y) + 1))


@pytest.mark.long
@pytest.mark.usefixtures("_small_blocks")
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bits_for_any_number(kind, choice):
    make, data = KINDS[kind]
    X, Y = data(7)
    one, two, many = (fitted(make, X, Y, n_jobs=n, **CHOICES[choice]) for n in (None, 2, 5))
    assert one.theta_.tobytes() == two.theta_.tobytes() == many.theta_.tobytes()
    assert one.history_ == two.history_ == many.history_
    for a, b, c in zip(*(crf.predict_marginals(X) for crf in (one, two, many)), strict=True):
        assert_array_equal(a, b)
        assert_array_equal(a, c)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_add_up_to_the_whole(kind, monkeypatch):
    make, data = KINDS[kind]
    X, Y = data(7)
    crf = make(n_jobs=2)
    whole = crf._problem(choices_of(crf), X, Y).objective()
    monkeypatch.setattr(problem, "blocks", lambda sizes: blocks(sizes, 13))
    parts = crf._problem(choices_of(crf), X, Y).objective()
    assert len(whole.parts) == 1
    assert len(parts.parts) > 3
    theta = np.random.default_rng(0).normal(size=whole.size)
    each_close(whole(theta), parts(theta), rtol=1e-12, atol=1e-12)
    assert_allclose(whole.unpenalised(theta), parts.unpenalised(theta), rtol=1e-12)


@pytest.mark.usefixtures("_small_blocks")
def test_options_for_single_factors_are_not_split():
    X, Y = images(3)
    weights = np.full(3 * (12 + 17), 0.6)
    crf = grid(inference=ig.TreeReweighted(weights=weights, schedule="flooding"))
    assert len(crf._problem(choices_of(crf), X, Y).objective().parts) == 1
    assert crf.fit(X, Y).score(X, Y) > 0.9


def test_blocks_of_a_minibatch_are_its_examples(monkeypatch):
    X, Y = images(7)
    crf = grid(class_weight=[1.0, 3.0])
    made = crf._problem(choices_of(crf), X, Y, np.arange(1.0, 8.0))
    rows = np.array([1, 3, 4, 6])
    whole = made.part_objective(rows)
    monkeypatch.setattr(problem, "blocks", lambda sizes: blocks(sizes, 13))
    parts = made.part_objective(rows)
    assert (len(whole.parts), len(parts.parts)) == (1, 4)
    theta = np.random.default_rng(0).normal(size=whole.size)
    each_close(whole(theta), parts(theta), rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("_small_blocks")
def test_minibatches_are_split_too():
    X, Y = images(6)
    adam = Adam(epochs=2, batch_size=4, random_state=0)
    with pytest.warns(ig.ConvergenceWarning, match="epochs"):
        one = grid(optimizer=adam).fit(X, Y)
    with pytest.warns(ig.ConvergenceWarning, match="epochs"):
        two = grid(optimizer=adam, n_jobs=2).fit(X, Y)
    assert one.theta_.tobytes() == two.theta_.tobytes()


@pytest.mark.usefixtures("_small_blocks")
def test_the_share_that_converged():
    X, Y = images(3)
    X[2] *= 5
    inference = ig.BeliefPropagation(tol=0.01, iterations=2)
    crf = grid(inference=inference, iterations=None, callback=lambda p: p.iteration == 3).fit(X, Y)
    alone = [crf.infer(X[i : i + 1]).info.converged for i in range(3)]
    assert sum(alone) == 2
    assert crf.history_[-1].converged_share == pytest.approx(2 / 3)
    assert not crf.history_[-1].converged
    assert grid(inference="bp", iterations=None).fit(X, Y).history_[-1].converged


@pytest.mark.parametrize("entropy", ["B", "fit"])
def test_convex_energies_predict_block_by_block_what_they_predict_at_once(entropy, monkeypatch):
    X, Y = images(5)
    crf = ig.GridCRF("convex", gradient="implicit", loss="uquad", entropy=entropy, max_iter=3, n_jobs=2)
    with pytest.warns(ig.ConvergenceWarning):
        crf.fit(X, Y)
    whole = crf.infer(X)
    monkeypatch.setattr(predicting, "blocks", lambda sizes, most=0: blocks(sizes, 2 * int(sizes[0])))
    parts = crf.infer(X)
    assert_allclose(parts.variables.flat, whole.variables.flat, atol=1e-12)
    each_close(parts.factors.groups, whole.factors.groups, atol=1e-12)
    assert_allclose(parts.component_log_z, whole.component_log_z, rtol=1e-12)
    assert parts.info.converged
    assert (parts.info.bound, parts.info.converged_share) == (whole.info.bound, 1.0)
    assert_array_equal(crf.predict(X), np.asarray(whole.variables).argmax(axis=1).reshape(Y.shape))


def sequences(n):
    rng = np.random.default_rng(0)
    Y = [[int(k) for k in rng.integers(0, 2, 3)] for _ in range(n)]
    return [[[f"w={k}", f"n={rng.integers(3)}"] for k in y] for y in Y], Y


def label_sets(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, (X @ rng.normal(size=(2, 3)) > 0).astype(int)


ESTIMATORS = {
    "GridCRF": (grid, images),
    "GraphCRF": (graph, graphs),
    "ChainCRF": (ig.ChainCRF, sequences),
    "HMM": (ig.HMM, sequences),
    "MEMM": (ig.MEMM, sequences),
    "MultiLabelCRF": (ig.MultiLabelCRF, label_sets),
}


def test_all_estimators_with_threads_are_named():
    found = [cls for cls in estimators.ESTIMATORS.values() if "n_jobs" in inspect.signature(cls).parameters]
    assert {cls.__name__ for cls in found} == {*ESTIMATORS, "MRF"}  # of which test_mrf.py has tests


@pytest.mark.parametrize("name", ESTIMATORS)
def test_minus_one_is_all_processors(name, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    make, data = ESTIMATORS[name]
    X, Y = data(4)
    for jobs in (-1, np.int64(-1)):
        assert jobs_of(jobs) == 3
        crf = make(n_jobs=jobs).fit(X, Y)
        assert len(crf.predict(X)) == len(X)
    alone = make(n_jobs=1).fit(X, Y)
    each_equal(alone.predict(X), crf.predict(X))
    assert alone.theta_.tobytes() == crf.theta_.tobytes()
    for wrong in (0, -2, 1.5, "all", True):
        refuses(r"n_jobs: expected .*or -1 for all processors", make(n_jobs=wrong).fit, X, Y)


def test_predictions_are_the_same_in_any_blocks_to_the_bit_by_any_threads(monkeypatch):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 5, 6, 2)), rng.integers(0, 2, (30, 5, 6))
    with no_convergence_warnings():
        crf = ig.GridCRF(iterations=3, max_iter=2).fit(X, Y)
    whole = crf.predict_marginals(X)
    monkeypatch.setattr(predicting, "FEWEST", 100)
    one, *others = [crf.set_params(n_jobs=jobs).predict_marginals(X) for jobs in (1, 2, 3, 16)]
    assert_allclose(one, whole, rtol=1e-12, atol=1e-12)
    assert all(np.array_equal(other, one) for other in others)


def sweeping(Y, features=3, **options):
    """A fitted field by sweeps, and images."""
    X = np.random.default_rng(1).normal(size=(*Y.shape, features))
    crf = ig.GridCRF("bp", iterations=3, max_iter=2, **options)
    with no_convergence_warnings():
        return crf.fit(X, Y), X


@pytest.mark.parametrize(
    ("states", "options"),
    [(2, {}), (3, {"bias": True}), (2, {"edges": "shared", "bias": True}), (4, {"l2": 0.1})],
)
def test_copies_have_the_beliefs_of_one_inference(states, options, monkeypatch):
    Y = np.random.default_rng(0).integers(0, states, (30, 9, 8))
    crf, X = sweeping(Y, **options)
    whole = np.asarray(crf.infer(X).variables)
    monkeypatch.setattr(predicting, "FEWEST", 500)
    monkeypatch.setattr(predicting, "_inferred", None)  # nobody calls it
    one = crf.set_params(n_jobs=1).predict_marginals(X)
    assert_allclose(one, whole.reshape(*Y.shape, states), rtol=1e-12, atol=1e-12)
    for jobs in (1, 2, 3, 16):
        crf.set_params(n_jobs=jobs)
        assert np.array_equal(crf.predict_marginals(X), one)
        found = crf.predict(X)
        assert found.dtype == np.int64
        assert np.array_equal(found, whole.argmax(axis=1).reshape(Y.shape))
    assert np.array_equal(crf.predict(np.asfortranarray(X)), found)
    assert np.array_equal(crf.predict(X[::2]), found[::2])


def test_images_that_underflow_are_inferred_in_other_ways(monkeypatch):
    Y = np.random.default_rng(0).integers(0, 2, (12, 9, 8))
    crf, X = sweeping(Y)
    X[5, 2, 3], X[6, 1] = 1e6, -3e6
    whole = np.asarray(crf.infer(X).variables)
    monkeypatch.setattr(predicting, "FEWEST", 150)  # two images
    calls = []
    inferred = predicting._inferred
    monkeypatch.setattr(predicting, "_inferred", lambda *some: calls.append(1) or inferred(*some))
    assert_allclose(crf.predict_marginals(X), whole.reshape(*Y.shape, 2), rtol=1e-12, atol=1e-12)
    assert len(calls) == 2


def test_a_derived_decoder_is_asked():
    class Other(ig.decoding.MPM):
        def __call__(self, given, outputs=None):
            return 1 - super().__call__(given, outputs)

    Y = np.random.default_rng(0).integers(0, 2, (6, 9, 8))
    crf, X = sweeping(Y)
    plain = crf.predict(X)
    assert np.array_equal(crf.set_params(decoder=Other()).predict(X), 1 - plain)
