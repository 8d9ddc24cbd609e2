"""Markov random fields: maximum likelihood and pseudolikelihood against enumeration, differences and closed forms."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import isinglass as ig
from isinglass.estimators import load, notes_of
from isinglass.gradients import rule
from isinglass.inference.algorithm import make as make_algorithm
from isinglass.io import read_arrays, write_arrays
from isinglass.learning.markov import METHODS, Samples, Task, make_method
from isinglass.learning.markov.priors import GroupLaplace
from isinglass.learning.optimizers import OwlQn
from isinglass.models import CliqueTerm, IndicatorTerm, Model, table_model
from isinglass.testing import random_potentials

RING = ig.FactorGraph([2, 3, 2, 2], [(0, 1), (1, 2), (2, 3), (3, 0), (1,), (0, 2, 3)])


def data(graph, n=300, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    X = ig.sample(random_potentials(graph, rng), n, random_state=seed)
    X[rng.random(X.shape) < missing] = -1
    return X


def enumerated(p, X):
    """Return log p of each row by brute force, missing values summed out."""
    states = np.array(list(np.ndindex(*p.graph.cards)))
    scores = np.array([p.log_score(s) for s in states])
    log_z = np.logaddexp.reduce(scores)
    agree = [((row < 0) | (states == row)).all(axis=1) for row in X]
    return np.array([np.logaddexp.reduce(scores[mask]) for mask in agree]) - log_z


@pytest.mark.long
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("inference", ["exact", "brute"])
def test_log_likelihood_is_that_of_enumeration(missing, inference):
    X = data(RING, 40, missing=missing)
    mrf = ig.MRF(RING, inference=inference, l2=0.1).fit(X)
    assert_allclose(mrf.score_samples(X), enumerated(mrf.potentials_, X), atol=1e-10)
    weights = np.arange(40.0)
    assert mrf.log_likelihood(X, weights) == pytest.approx(weights @ enumerated(mrf.potentials_, X))
    assert mrf.score(X) == pytest.approx(enumerated(mrf.potentials_, X).mean())


def test_maximum_likelihood_matches_the_moments():
    X = data(RING, 2000)
    mrf = ig.MRF(RING, tol=1e-9).fit(X)
    r = ig.infer(mrf.potentials_, "exact")
    for a, scope in enumerate(RING.scopes):
        seen = np.zeros([RING.cards[i] for i in scope])
        np.add.at(seen, tuple(X[:, i] for i in scope), 1 / len(X))
        assert_allclose(r.factor(a), seen, atol=1e-5)


def test_the_share_that_converged_is_a_float_without_inference():
    mrf = ig.MRF(RING, method="pseudo", l2=0.1).fit(data(RING, 40))
    assert {(type(e.converged_share), e.converged_share) for e in mrf.history_} == {(float, 1.0)}


def test_a_tree_has_a_closed_form():
    graph = ig.chain_graph(4, 3)
    X = data(graph, 500, 3)
    mrf = ig.MRF(graph, tol=1e-9).fit(X)
    pair = np.zeros((3, 3, 3))
    for t in range(3):
        np.add.at(pair[t], (X[:, t], X[:, t + 1]), 1 / len(X))
    best = sum((pair[t] * np.log(pair[t], where=pair[t] > 0, out=np.zeros((3, 3)))).sum() for t in range(3))
    inner = [np.bincount(X[:, t], minlength=3) / len(X) for t in (1, 2)]
    best -= sum((p * np.log(p, where=p > 0, out=np.zeros(3))).sum() for p in inner)
    assert mrf.score(X) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(
    ("method", "inference", "gradient"),
    [
        ("ml", "exact", "envelope"),
        ("ml", "exact", "perturbation"),
        ("ml", ig.BeliefPropagation(iterations=3, schedule="sequential"), "unrolled"),
        ("ml", ig.BeliefPropagation(tol=1e-13), "envelope"),
        ("ml", ig.TreeReweighted(tol=1e-13, max_iter=3000), "envelope"),
        ("pseudo", "exact", "envelope"),
    ],
)
def test_gradients(method, inference, gradient, missing):
    graph = ig.FactorGraph([2, 3, 2, 2], [(0, 1), (1, 2), (2, 3), (3, 0), (1,)])
    X = data(graph, 30, missing=missing)
    rng = np.random.default_rng(5)
    model, algorithm = table_model(graph), make_algorithm(inference, {})
    samples = Samples.of(X, rng.random(30))
    f = make_method(method).objective(Task(model, samples, algorithm, rule(gradient), 0.1))
    theta = 0.5 * rng.normal(size=model.size)
    slope = f(theta)[1]
    for _ in range(4):
        way = rng.normal(size=model.size)
        difference = (f(theta + 1e-5 * way)[0] - f(theta - 1e-5 * way)[0]) / 2e-5
        assert slope @ way == pytest.approx(difference, rel=2e-6, abs=1e-6)


def test_weights_are_counts():
    X = data(RING, 50, missing=0.1)
    counts = np.random.default_rng(0).integers(0, 4, 50)
    weighted = ig.MRF(RING, l2=0.01).fit(X, sample_weight=counts)
    repeated = ig.MRF(RING, l2=0.01).fit(np.repeat(X, counts, axis=0))
    assert_allclose(weighted.theta_, repeated.theta_, atol=1e-10)


def test_pseudolikelihood_finds_the_truth_with_many_samples():
    p = random_potentials(RING, np.random.default_rng(1))
    X = ig.sample(p, 20000, random_state=1)
    truth = ig.infer(p).variables.flat
    found = ig.MRF(RING, "pseudo", l2=1e-6).fit(X)
    assert_allclose(ig.infer(found.potentials_).variables.flat, truth, atol=0.02)


@pytest.mark.parametrize("graph", [RING, ig.FactorGraph([3] * 6, [(i, j) for i in range(6) for j in range(i)])])
def test_pseudolikelihood_uses_values_whose_neighbours_are_observed(graph):
    X = data(graph, 60, missing=0.1)
    with pytest.warns(UserWarning, match="the pseudolikelihood leaves out"):
        mrf = ig.MRF(graph, "pseudo", l2=0.1).fit(X, sample_weight=np.r_[np.ones(50), np.zeros(10)])
    expected, used = 0.1 * (mrf.theta_**2).sum(), 0
    for row in X[:50]:
        for i in np.flatnonzero(row >= 0).tolist():
            if all(row[j] >= 0 for scope in graph.scopes if i in scope for j in scope):
                given = {j: int(x) for j, x in enumerate(row) if x >= 0 and j != i}
                expected -= np.log(ig.infer(mrf.potentials_, "brute", evidence=given).variable(i)[row[i]])
                used += 1
    assert mrf.objective_ == pytest.approx(expected, rel=1e-10)
    observed = (X[:50] >= 0).sum()
    assert 0 < used < observed
    assert mrf.terms_[:3] == (observed, observed - used, 50)
    assert ig.MRF(graph, l2=0.1).fit(X).terms_ is None


def test_pseudolikelihood_says_what_it_does_not_use():
    """A hub with 20 leaves: where the hub is missing, no leaf has a term; where a leaf is, the hub has none."""
    graph = ig.FactorGraph([2] * 21, [(0, i) for i in range(1, 21)])
    X = np.zeros((40, 21), int)
    X[::2, :] = 1
    X[:3, :15] = -1  # the hub and 14 leaves
    X[3, 5] = -1
    mrf = ig.MRF(graph, "pseudo", l2=1.0)
    with pytest.warns(
        UserWarning, match=r"leaves out 19 of 794 observed values: .* nothing is used of 3 of 40 samples"
    ):
        mrf.fit(X)
    assert mrf.terms_ == (794, 19, 40, 3)
    with pytest.raises(ig.InputError, match="fewer missing values for method='pseudo', got 18 observed values, none"):
        mrf.fit(X[:3])


def test_pseudolikelihood_with_missing_values_finds_the_truth():
    p = random_potentials(RING, np.random.default_rng(1))
    X = ig.sample(p, 30000, random_state=1)
    X[np.random.default_rng(2).random(X.shape) < 0.25] = -1
    with pytest.warns(UserWarning, match="leaves out"):
        found = ig.MRF(RING, "pseudo", l2=1e-6).fit(X)
    assert_allclose(ig.infer(found.potentials_).variables.flat, ig.infer(p).variables.flat, atol=0.03)


def test_a_surrogate_likelihood_with_bp_matches_the_moments_by_beliefs():
    graph = ig.grid_graph(3, 3, 2)
    X = data(graph, 1000, 2)
    mrf = ig.MRF(graph, inference="bp", l2=1e-6, tol=1e-6).fit(X)
    beliefs = np.asarray(ig.infer(mrf.potentials_, "bp").variables)[:, 1]
    assert_allclose(beliefs, X.mean(axis=0), atol=1e-3)


def test_log_linear_models_have_their_own_parameters():
    graph = ig.grid_graph(3, 3, 2)
    spins = np.array([-1.0, 1.0])
    one = CliqueTerm("field", np.ones((1, 1)), (2,), table_ids=np.zeros(9, int))
    pair = IndicatorTerm("coupling", np.outer(spins, spins).reshape(-1, 1), (2, 2), table_ids=np.zeros(12, int))
    model = Model(graph, [[one], [pair]])
    truth = ig.models.Ising(graph).potentials(coupling=0.4, field=0.1)
    X = ig.sample(truth, 20000, random_state=0)
    mrf = ig.MRF(model).fit(X)
    assert mrf.parameters_["coupling"] == pytest.approx(0.4, abs=0.02)
    assert np.ptp(mrf.parameters_["field"]) / 2 == pytest.approx(0.1, abs=0.02)
    tied = ig.MRF(graph, tied=True, l2=1e-8).fit(X)
    assert tied.parameters_["edge"].shape == (2, 2)
    table = tied.parameters_["edge"]
    assert (table[0, 0] + table[1, 1] - table[0, 1] - table[1, 0]) / 4 == pytest.approx(0.4, abs=0.02)


def test_it_is_a_citizen_of_scikit_learn():
    X = data(RING, 60)
    mrf = ig.MRF(RING, l2=0.1)
    assert clone(mrf).get_params()["l2"] == 0.1
    assert len(cross_val_score(mrf, X, cv=3)) == 3
    search = GridSearchCV(mrf, {"l2": [0.01, 1.0], "method": ["ml", "pseudo"]}, cv=2).fit(X)
    assert set(search.best_params_) == {"l2", "method"}
    again = clone(mrf).set_params(warm_start=True).fit(X)
    n_iter = again.n_iter_
    assert again.fit(X).n_iter_ < n_iter


def test_any_number_of_threads_gives_the_same_bits(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    graph = ig.grid_graph(4, 4, 2)
    X = data(graph, 60, missing=0.1)
    options = {"inference": "bp", "iterations": 5, "gradient": "unrolled", "l2": 0.1, "max_iter": 5}
    with pytest.warns(ig.ConvergenceWarning, match="raise max_iter"):
        one, two, many = (ig.MRF(graph, n_jobs=n, **options).fit(X) for n in (None, 2, -1))
    assert one.theta_.tobytes() == two.theta_.tobytes() == many.theta_.tobytes()
    assert_array_equal(one.score_samples(X), many.score_samples(X))
    for wrong in (0, -2, 1.5, "all", True):
        with pytest.raises(ig.InputError, match=r"n_jobs: expected .*or -1 for all processors"):
            ig.MRF(graph, n_jobs=wrong).fit(X)


@pytest.mark.parametrize(
    "options", [{}, {"method": "pseudo"}, {"tied": True, "inference": ig.BeliefPropagation(tol=1e-9)}]
)
@pytest.mark.filterwarnings("ignore:the pseudolikelihood leaves out")
def test_a_loaded_estimator_is_the_one_that_was_saved(options, tmp_path):
    X = data(RING, 60, missing=0.1)
    mrf = ig.MRF(RING, l2=0.1, **options).fit(X)
    mrf.save(tmp_path / "a.isg", notes={"from": "samples"})
    again = ig.MRF.load(tmp_path / "a.isg")
    assert isinstance(load(tmp_path / "a.isg"), ig.MRF)
    assert notes_of(tmp_path / "a.isg") == {"from": "samples"}
    assert [list(s) for s in again.graph.scopes] == [list(s) for s in RING.scopes]
    assert again.theta_.tobytes() == mrf.theta_.tobytes()
    assert again.history_ == mrf.history_
    assert again.terms_ == mrf.terms_
    assert_array_equal(again.score_samples(X), mrf.score_samples(X))
    assert_array_equal(again.sample(5, random_state=0), mrf.sample(5, random_state=0))
    assert again.set_params(warm_start=True).fit(X).n_iter_ <= mrf.n_iter_


FORGED = {
    "no graph": lambda m, a: a.pop("cards"),
    "odd scopes": lambda m, a: a.update(scopes=a["scopes"] + 9),
    "odd starts": lambda m, a: a.update({"scope-starts": a["scope-starts"][::-1].copy()}),
    "a graph as a parameter": lambda m, a: m["parameters"].update(graph=1),
    "another method": lambda m, a: m["parameters"].update(method="ifp"),
    "short theta": lambda m, a: a.update(theta=np.zeros(3)),
    "odd terms": lambda m, a: m.update(terms=[1, "2"]),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_files_are_refused(name, tmp_path):
    path = tmp_path / "a.isg"
    ig.MRF(RING, l2=0.1).fit(data(RING, 20)).save(path)
    file = read_arrays(path)
    metadata, arrays = dict(file.metadata), dict(file.arrays)
    FORGED[name](metadata, arrays)
    write_arrays(path, arrays, schema="mrf", metadata=metadata)
    with pytest.raises(ig.FileFormatError):
        ig.MRF.load(path)


def test_a_model_is_not_saved(tmp_path):
    mrf = ig.MRF(table_model(RING), l2=0.1).fit(data(RING, 20))
    with pytest.raises(ig.InputError, match="graph: expected a FactorGraph, which a safe file can hold"):
        mrf.save(tmp_path / "a.isg")


def test_training_goes_on_from_a_checkpoint(tmp_path):
    X = data(RING, 60)
    whole = ig.MRF(RING, l2=0.01).fit(X)
    half = {"l2": 0.01, "checkpoint": tmp_path / "run.npz"}
    ig.MRF(RING, callback=lambda p: p.iteration == 3, **half).fit(X)
    again = ig.MRF(RING, **half).fit(X)
    assert again.theta_.tobytes() == whole.theta_.tobytes()
    assert again.history_ == whole.history_
    assert [epoch.iteration for epoch in whole.history_] == list(range(1, whole.n_iter_ + 1))
    assert all(epoch.converged for epoch in whole.history_)
    for other, samples in ((ig.MRF(RING, **{**half, "l2": 0.02}), X), (ig.MRF(RING, **half), X[:-1])):
        with pytest.raises(ig.InputError, match="checkpoint: expected a checkpoint of this problem"):
            other.fit(samples)


def test_samples_and_progress():
    X = data(RING, 200)
    seen = []
    mrf = ig.MRF(RING, l2=0.1, callback=lambda progress: seen.append(progress.value) or len(seen) == 3).fit(X)
    assert len(seen) == len(mrf.history_) == mrf.n_iter_ == 3
    drawn = mrf.sample(5000, random_state=0)
    assert_array_equal(drawn, mrf.sample(5000, random_state=0))
    assert_allclose(np.bincount(drawn[:, 1], minlength=3) / 5000, ig.infer(mrf.potentials_).variable(1), atol=0.03)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ig.MRF(RING, max_iter=1).fit(X)
    assert any("raise max_iter" in str(w.message) for w in told)


@pytest.mark.parametrize(
    ("options", "X", "words"),
    [
        ({}, [[0, 0, 0]], "4 variables"),
        ({}, np.zeros((0, 4), int), "at least one sample"),
        ({}, [[0.5, 0, 0, 0]], "whole numbers, or nan where a value is missing"),
        ({}, [[float("inf"), 0, 0, 0]], "whole numbers, or nan"),
        ({}, [[0, 3, 0, 0]], "states from 0 to 2"),
        ({}, [[0, -2, 0, 0]], "states from 0 to 2"),
        ({}, [[-1, 1, 1, -1]], "X: expected labels 0, 1"),
        ({}, [[-1, -1, -1, -1]], "at least one observed value"),
        ({"method": "ifp"}, [[0, 0, 0, 0]], "method: expected one of .*did you mean 'ipf'"),
        ({"inference": "exatc"}, [[0, 0, 0, 0]], "inference"),
        ({"gradient": "perturbation", "inference": "bp", "iterations": 2}, [[0, 0, 0, 0]], "gradient"),
        ({"gradient": "unroled"}, [[0, 0, 0, 0]], "unrolled"),
        ({"optimizer": "adam"}, [[0, 0, 0, 0]], "optimizer: expected one for whole objectives"),
        ({"l2": -1}, [[0, 0, 0, 0]], "l2"),
        ({"tied": 2}, [[0, 0, 0, 0]], "tied"),
        ({"iterations": 0, "inference": "bp"}, [[0, 0, 0, 0]], "iterations"),
        ({"graph": "ring"}, [[0, 0, 0, 0]], "graph: expected a FactorGraph, or a Model"),
    ],
)
def test_wrong_input(options, X, words):
    with pytest.raises(ig.InputError, match=words):
        ig.MRF(**{"graph": RING, **options}).fit(X)


OPTIONS = {
    "inference": "bp", "iterations": 2, "gradient": "unrolled", "optimizer": "steepest", "l2": 0.5, "tied": True,
    "tol": 3.0, "max_iter": 2, "loss": "ucl", "edges": [("a", "b")], "stages": [{"l2": 0.5}, {}],
}  # fmt: skip
EXACT = {  # what makes no difference where inference is exact, and the update makes one step
    *((name, "gradient") for name in ("ml", "em", "ipf", "scaling", "closed-form", "composite", "outputs")),
    *((name, "tol") for name in ("closed-form", "importance", "camel", "pmm")),
    *((name, "inference") for name in ("closed-form", "outputs")),
    *((name, "max_iter") for name in ("closed-form", "importance", "camel", "pmm")),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
@pytest.mark.parametrize("method", [*METHODS, "outputs"])
def test_an_option_changes_the_fit_or_is_refused(method):
    """Also each prior, weights and counts; `EXACT` lists what may change nothing."""
    scopes = [(0,), (0, 1), (1, 2), (2, 3), *([(3, 0)] if method != "closed-form" else [])]
    graph = ig.FactorGraph([3, 2, 2, 2], scopes)
    X = data(graph, 100)
    table = np.ones((3, 2, 2, 2))
    np.add.at(table, tuple(X.T), 1.0)
    mask = {"outputs": [True, True, False, False]} if method == "outputs" else {}

    def fitted(data=X, weights=None, **options):
        base = {} if method == "outputs" else {"method": method}
        mrf = ig.MRF(graph, **base, **{"max_iter": 10, **options})
        return mrf.fit(**data) if isinstance(data, dict) else mrf.fit(data, None, weights, **mask)

    def differs(**options):
        try:
            other = fitted(**options)
        except ig.InputError:
            return True
        one = [*plain.theta_, plain.log_likelihood(X)]
        two = [*other.theta_, other.log_likelihood(X)]
        return len(one) != len(two) or not np.allclose(one, two, rtol=1e-6, atol=1e-9)

    plain = fitted()
    assert all(differs(prior=prior) for prior in ("gaussian", "laplace", "group", "dirichlet"))
    assert differs(weights=np.arange(100.0))
    assert differs(data={"counts": table, **mask})
    same = {name for name, value in OPTIONS.items() if not differs(**{name: value})}
    assert {(method, name) for name in same} <= EXACT


@pytest.mark.parametrize(
    ("options", "fit", "words"),
    [
        ({"prior": "group"}, {"outputs": [True, False]}, "prior: expected 'gaussian' or 'laplace'"),
        ({"prior": "laplace", "optimizer": OwlQn(l1=3.0)}, {}, "prior: .* an l1 of its own"),
        ({"stages": [{"tied": True}]}, {"outputs": [True, False]}, r"stages\[0\].*'tied'"),
        ({"graph": table_model(ig.chain_graph(2, 2)), "tied": True}, {}, "tied: expected False for a model"),
        ({"method": "pseudo", "gradient": "unrolled"}, {}, "gradient: .* differentiates no inference"),
        ({"method": "cd", "tol": 1e-2}, {}, "tol: .* makes max_iter steps"),
        ({}, {"counts": [[1, 2], [3, 4]], "outputs": [True, False]}, "counts: expected None"),
    ],
)
def test_what_would_not_be_looked_at_is_refused(options, fit, words):
    with pytest.raises(ig.InputError, match=words):
        ig.MRF(**{"graph": ig.chain_graph(2, 2), **options}).fit([[0, 1], [1, 1]], **fit)


@pytest.mark.parametrize("method", ["ml", "pseudo", "ipf", "group"])
def test_tolerances_are_relative_to_small_weights(method):
    found = []
    for weight in (1.0, 1e-6):
        options = {"prior": GroupLaplace(1 / weight)} if method == "group" else {"method": method}
        mrf = ig.MRF(RING, **options, max_iter=2000).fit(data(RING, 60), sample_weight=np.full(60, weight))
        found.append(ig.infer(mrf.potentials_).factors.flat)
    assert_allclose(found[1], found[0], atol=1e-4)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
@pytest.mark.parametrize(
    "options",
    [*({"method": name} for name in ("pseudo", "composite", "piecewise", "mpf")), {"inference": "bp"}, {"loss": "cl"}],
)
def test_other_methods_say_that_parameters_grow_where_a_pair_of_states_is_never_seen(options):
    """Where each cell is seen there is a maximum; for any tolerance."""
    graph = ig.FactorGraph([3, 2, 2, 3], [(0,), (1,), (0, 1), (1, 2), (2, 3), (3, 0)])
    cells, fit = np.array(list(np.ndindex(3, 2, 2, 3))), {"outputs": [True, False, True, False]}
    for seed in range(4 if "inference" in options else 20):
        rng = np.random.default_rng(seed)
        weights, tol = rng.integers(1, 9, len(cells)).astype(float), 10.0 ** -(2 + 2 * (seed % 4))
        for exists in (True, False):
            weights[(cells[:, 0] == rng.integers(3)) & (cells[:, 1] == 0)] *= exists
            mrf = ig.MRF(graph, **options, max_iter=3000, tol=tol)
            mrf.fit(cells, sample_weight=weights, **(fit if "loss" in options else {}))
            assert mrf.converged_ == exists == ("parameters still grow" not in mrf.message_), (seed, mrf.message_)


def test_masked_values_are_missing():
    rng = np.random.default_rng(0)
    X = rng.integers(0, RING.cards, (50, 4))
    hidden = rng.random(X.shape) < 0.2
    masked, filled = np.ma.array(X.astype(np.uint8), mask=hidden), np.where(hidden, -1, X)
    one, two = (ig.MRF(RING, l2=0.1).fit(samples) for samples in (masked, filled))
    assert one.theta_.tobytes() == two.theta_.tobytes()
    assert_array_equal(one.score_samples(masked), two.score_samples(filled))


def test_one_beside_missing_values_may_be_scored():
    """A sample of ones with missing values is no pair of spins."""
    X = np.random.default_rng(0).integers(0, RING.cards, (50, 4))
    mrf = ig.MRF(RING, l2=0.1).fit(X)
    found = mrf.score_samples([[1, -1, -1, 1]])[0]
    joint = ig.infer(mrf.potentials_).joint([0, 3])
    assert_allclose(found, np.log(joint[1, 1]), rtol=1e-10)


def test_an_interrupted_fit_says_so_and_nothing_else():
    def interrupt(progress):
        if progress.iteration == 2:
            raise KeyboardInterrupt

    X = np.random.default_rng(0).integers(0, RING.cards, (50, 4))
    with pytest.warns(ig.ConvergenceWarning) as told:
        mrf = ig.MRF(RING, l2=0.1, tol=1e-12, callback=interrupt).fit(X)
    assert mrf.message_ == "interrupted"
    text = "training was interrupted after 2 iterations; the best parameters so far are kept"
    assert [str(one.message) for one in told] == [text]


def test_wrong_weights_and_calls():
    with pytest.raises(ig.InputError, match="sample_weight"):
        ig.MRF(RING).fit([[0, 0, 0, 0]], sample_weight=[1, 2])
    with pytest.raises(ValueError, match="not fitted"):
        ig.MRF(RING).sample(1)
    fitted = ig.MRF(RING, l2=0.1, warm_start=True).fit([[0, 0, 0, 0], [1, 1, 1, 1]])
    with pytest.raises(ig.InputError, match="warm_start"):
        fitted.set_params(graph=ig.chain_graph(4, 2)).fit([[0, 0, 0, 0], [1, 1, 1, 1]])


@pytest.mark.filterwarnings(
    "ignore:the pseudolikelihood leaves out", "ignore:training stopped .* parameters still grow"
)
@pytest.mark.parametrize("method", ["ml", "em", "pseudo"])
def test_missing_values_by_nan_are_no_spins(method):
    """Only state 1 is ever seen, and NaN is no -1 that the user wrote."""
    X = np.where(np.random.default_rng(0).random((40, 3)) < 0.3, np.nan, 1.0)
    mrf = ig.MRF(ig.chain_graph(3, 2), method=method, l2=0.1 if method != "em" else 0.0).fit(X)
    assert ig.infer(mrf.potentials_).variable(0)[1] > 0.8
    with pytest.raises(ig.InputError, match="labels -1 and 1 only"):
        ig.MRF(ig.chain_graph(3, 2), method=method).fit(np.where(np.isnan(X), -1, 1).astype(int))


def test_weights_that_are_all_zero_are_named():
    mrf = ig.MRF(ig.chain_graph(2, 2), l2=1.0).fit([[0, 1], [1, 1]])
    for call in (mrf.fit, mrf.score):
        with pytest.raises(ig.InputError, match="sample_weight: expected at least one weight above zero"):
            call([[0, 1], [1, 1]], sample_weight=[0, 0])


@pytest.mark.parametrize("method", ["cd", "pcd", "sml", "ipf", "em", "pmm"])
def test_a_graph_without_factors_is_refused(method):
    with pytest.raises(ig.InputError, match="graph"):
        ig.MRF(ig.FactorGraph([2, 2], []), method=method).fit([[0, 1], [1, 1]])
