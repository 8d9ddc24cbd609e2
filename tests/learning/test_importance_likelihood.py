"""Maximum likelihood by importance sampling: against exact likelihoods."""

import re

import numpy as np
import pytest

import isinglass as ig
from isinglass.errors import ConvergenceWarning, InputError, no_convergence_warnings
from isinglass.inference.importance.sampling import ImportanceSampling
from isinglass.learning.markov import ImportanceLikelihood
from isinglass.learning.markov.likelihood.importance import ImportanceObjective

GRAPH = ig.FactorGraph([2] * 4, [(0,), (1,), (2,), (3,), (0, 1), (1, 2), (2, 3), (3, 0)])
FAMILY = ig.models.Ising(GRAPH)


def data():
    """Return 200 rows that no Ising model on the ring gives."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (200, 4))
    X[:, 1] = np.where(rng.random(200) < 0.7, X[:, 0], X[:, 1])
    X[:60, 3] = X[:60, 0] & X[:60, 1]
    return X


def fitted(method="importance", graph=FAMILY, X=None, **options):
    return ig.MRF(graph, method=method, **options).fit(data() if X is None else X)


def objective(l2=0.0, graph=FAMILY, X=None, tied=False, **options):
    mrf = ig.MRF(graph, ImportanceLikelihood(**options), l2=l2, tied=tied)
    return mrf._problem(mrf._choices(), data() if X is None else X, None, None).objective()


def test_the_gradient_is_that_of_the_value():
    f, rng = objective(l2=2.0), np.random.default_rng(1)
    f(np.zeros(f.size))
    theta = rng.normal(0, 0.3, f.size)
    slope = f.at(f._now, theta)[1]
    steps = 1e-5 * np.eye(f.size)
    found = [(f.at(f._now, theta + e)[0] - f.at(f._now, theta - e)[0]) / 2e-5 for e in steps]
    np.testing.assert_allclose(slope, found, rtol=1e-6, atol=1e-6)


def test_value_and_gradient_are_near_those_of_the_likelihood():
    f = objective(samples=20_000)
    mrf = ig.MRF(FAMILY)
    exact = mrf._problem(mrf._choices(), data(), None, None).objective()
    f(np.zeros(f.size))
    theta = np.random.default_rng(2).normal(0, 0.1, f.size)
    (value, slope), (truth, gradient) = f(theta), exact(theta)
    found = f.weigh(f._now, theta)[0]
    assert abs(value - truth) < 4 * 200 * found.stderr < 0.02 * abs(truth)
    np.testing.assert_allclose(slope, gradient, atol=0.04 * 200)


def test_weights_far_from_the_reference_are_useless_and_say_so():
    family, X = ig.models.Ising(ig.grid_graph(6, 6, 2)), np.random.default_rng(0).integers(0, 2, (50, 36))
    f = objective(graph=family, X=X, tied=True)
    reference = f.reference(np.zeros(f.size))
    pair = next(e for e in np.eye(f.size) if f.potentials(e).groups[-1].any())
    near, far = 0.05 * pair, 0.8 * pair
    found, weights = f.weigh(reference, near)
    assert abs(weights.sum() - 1) < 1e-12
    assert abs(found.value - ig.infer(f.potentials(near)).log_z) < 4 * found.stderr
    lost, _ = f.weigh(reference, far)
    assert lost.ess < 50 < found.ess
    assert lost.value < ig.infer(f.potentials(far)).log_z - 1  # what they say is wrong, and they say that it is


@pytest.mark.long
def test_weights_that_say_nothing_are_told():
    p = ig.models.Ising(ig.grid_graph(10, 10, 2)).potentials(coupling=0.4)
    X = ig.sample(p, 100, random_state=0)
    with pytest.warns(ConvergenceWarning) as told:
        fitted(ImportanceLikelihood(samples=60), ig.models.Ising(p.graph), X, tied=True, max_iter=30)
    assert any(re.search("effective size of the weights is .* of 60 .*; raise samples", str(w.message)) for w in told)


@pytest.mark.long
def test_training_finds_maximum_likelihood_within_its_standard_errors():
    truth = fitted("ml", tol=1e-9)
    scores = []
    for seed in range(20):
        mrf = fitted(ImportanceLikelihood(samples=400, random_state=seed))
        assert mrf.converged_
        assert mrf.report_["ess"] >= 100
        scores.append((mrf.theta_ - truth.theta_) / mrf.report_["stderr"])
        assert abs(mrf.objective_ - truth.objective_) < 30
    mean_square = np.mean(np.square(scores))  # one, if errors are as large as they say
    assert 0.5 < mean_square < 2
    assert np.abs(np.mean(scores, axis=0)).max() < 4 / np.sqrt(20)


@pytest.mark.long
def test_the_reference_moves_along_with_strong_couplings():
    p = ig.models.Ising(ig.grid_graph(4, 4, 2)).potentials(coupling=0.35, field=0.1)
    X = ig.sample(p, 1000, random_state=0)
    options = {"graph": ig.models.Ising(p.graph), "X": X, "tied": True}
    truth, mrf = fitted("ml", **options), fitted(ImportanceLikelihood(samples=40_000), **options)
    assert mrf.report_["resampled"] > 0
    assert mrf.converged_
    assert (np.abs(mrf.theta_ - truth.theta_) < 4 * mrf.report_["stderr"]).all()
    assert abs(mrf.report_["log_z"] - ig.infer(mrf.potentials_).log_z) < 0.3
    values = [epoch.value for epoch in mrf.history_]
    assert values[-1] < values[0]


def test_more_error_from_sampling_than_from_the_data_is_no_convergence():
    """A Sherrington-Kirkpatrick model, with fewer draws than data."""
    graph, rng = ig.complete_graph(10, 2), np.random.default_rng(0)
    p = ig.models.Ising(graph).potentials(coupling=0.5 * rng.normal(size=45) / np.sqrt(10))
    options = {"graph": ig.models.Ising(graph), "X": ig.sample(p, 2000, random_state=0)}
    with pytest.warns(ConvergenceWarning, match="sampling leaves .* times the statistical error .*; raise samples"):
        mrf = fitted(ImportanceLikelihood(samples=500), **options)
    assert not mrf.converged_
    assert np.sqrt(np.mean(mrf.report_["stderr"] ** 2)) > 1 / np.sqrt(2000)
    assert fitted(ImportanceLikelihood(samples=8000), **options).converged_


def test_few_evaluations_where_the_data_are_unlike_all_samples(monkeypatch):
    """There the objective for given samples has no minimum; a step goes no further than their weights serve."""
    plain, calls = ImportanceObjective.at, []
    monkeypatch.setattr(ImportanceObjective, "at", lambda self, *given: calls.append(given) or plain(self, *given))
    p = ig.models.Ising(ig.grid_graph(5, 5, 2)).potentials(coupling=0.5, field=0.2)
    X = ig.sample(p, 200, random_state=0)
    mrf = fitted(ImportanceLikelihood(samples=1000), ig.models.Ising(p.graph), X, tied=True)
    assert mrf.converged_
    assert len(calls) < 20 * (mrf.report_["resampled"] + 2)


@pytest.mark.long
def test_tables_penalties_and_weights():
    X = data()
    options = {"graph": ig.chain_graph(4, 2), "l2": 5.0, "X": X}
    truth, mrf = fitted("ml", **options), fitted(ImportanceLikelihood(samples=4000), **options)
    one, two = (ig.infer(each.potentials_).variables for each in (truth, mrf))
    assert np.abs(np.asarray(one) - np.asarray(two)).max() < 0.05
    doubled = ig.MRF(ig.chain_graph(4, 2), "importance", l2=10.0).fit(X, sample_weight=np.full(len(X), 2.0))
    single = ig.MRF(ig.chain_graph(4, 2), "importance", l2=5.0).fit(X)
    np.testing.assert_allclose(doubled.theta_, single.theta_, atol=1e-4)


@pytest.mark.long
def test_training_goes_on_from_a_checkpoint_bit_for_bit(tmp_path):
    p = ig.models.Ising(ig.grid_graph(3, 3, 2)).potentials(coupling=0.5)
    options = {"graph": ig.models.Ising(p.graph), "X": ig.sample(p, 300, random_state=0), "l2": 0.1}
    whole, file = fitted(**options), tmp_path / "run.npz"
    assert whole.n_iter_ > 2
    for stop in (1, 2, 10**9):
        mrf = fitted(**options, checkpoint=file, callback=lambda q, stop=stop: q.iteration >= stop)
    assert mrf.theta_.tobytes() == whole.theta_.tobytes()
    assert mrf.report_["log_z"] == whole.report_["log_z"]
    assert fitted(**options, n_jobs=3).theta_.tobytes() == whole.theta_.tobytes()


def test_ctrl_c_inside_a_step_loses_nothing(tmp_path, monkeypatch):
    p = ig.models.Ising(ig.grid_graph(3, 3, 2)).potentials(coupling=0.5)
    options = {"graph": ig.models.Ising(p.graph), "X": ig.sample(p, 300, random_state=0), "l2": 0.1}
    whole, file, calls, weigh = fitted(**options), tmp_path / "run.npz", [], ImportanceSampling.weigh

    def interrupted(self, *arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return weigh(self, *arguments)

    with monkeypatch.context() as patch, no_convergence_warnings():
        patch.setattr(ImportanceSampling, "weigh", interrupted)
        assert fitted(**options, checkpoint=file).message_ == "interrupted"
    assert fitted(**options, checkpoint=file).theta_.tobytes() == whole.theta_.tobytes()


def test_one_step_is_not_enough():
    with pytest.warns(ConvergenceWarning, match="max_iter = 1"):
        mrf = fitted(max_iter=1, X=np.repeat([[0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 1]], [40, 40, 1], axis=0))
    assert not mrf.converged_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": ImportanceLikelihood(samples=10)}, "method.samples"),
        ({"method": ImportanceLikelihood(random_state=-1)}, "method.random_state"),
        ({"prior": "dirichlet"}, "prior"),
        ({"optimizer": "sgd"}, "optimizer"),
        ({"X": [[0, 1, -1, 0], [1, 1, 0, 1]]}, "X: expected no missing values"),
    ],
)
def test_wrong_input_is_named(options, message):
    with pytest.raises(InputError, match=message):
        fitted(**options)


def test_equal_parts_of_a_graph_are_drawn_independently():
    X = (np.random.default_rng(0).random((60, 4)) < 0.4).astype(int)
    options = {"graph": ig.disjoint_union([ig.chain_graph(2, 2)] * 2), "X": X, "l2": 0.5}
    truth, mrf = fitted("ml", **options), fitted(ImportanceLikelihood(samples=4000), **options)
    assert np.abs(mrf.theta_ - truth.theta_).max() < 0.1
    assert abs(mrf.report_["log_z"] - ig.infer(mrf.potentials_).log_z) < 0.1


@pytest.mark.parametrize("counts", [[[3, np.nan], [np.nan, 1]], [[3, 2, np.nan], [1, 1, 4]]])
def test_hard_zeros(counts):
    shape = np.shape(counts)
    mrf = ig.MRF(ig.FactorGraph(list(shape), [(0, 1)]), "importance", l2=0.1).fit(counts=counts)
    assert abs(mrf.report_["log_z"] - ig.infer(mrf.potentials_).log_z) < 0.2
