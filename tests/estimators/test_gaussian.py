"""Gaussian Markov random fields and chain graphs, fitted to samples."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.covariance import graphical_lasso

import isinglass as ig
from checks import refuses
from isinglass.learning.gaussian import Moments, Regressions, chain_graph, process, regressions

# Hastie, Tibshirani and Friedman (2009), figure 17.4: a ring of four variables
RING = [(0, 1), (1, 2), (2, 3), (0, 3)]
S4 = np.array([[10.0, 1, 5, 4], [1, 10, 2, 6], [5, 2, 10, 3], [4, 6, 3, 10]])

# Mardia, Kent and Bibby (1979): marks of 88 students in mechanics, vectors, algebra, analysis, statistics
MARKS = np.array(
    [
        [305.7680, 127.2226, 101.5794, 106.2727, 117.4049],
        [127.2226, 172.8422, 85.1573, 94.6729, 99.0120],
        [101.5794, 85.1573, 112.8860, 112.1134, 121.8706],
        [106.2727, 94.6729, 112.1134, 220.3804, 155.5355],
        [117.4049, 99.0120, 121.8706, 155.5355, 297.7554],
    ]
)
BUTTERFLY = [(0, 1), (0, 2), (1, 2), (2, 3), (2, 4), (3, 4)]


def random_graph(n, rng):
    return np.argwhere(np.triu(rng.random((n, n)) < 0.5, 1))


def pattern(edges, n):
    mask = np.eye(n, dtype=bool)
    for a, b in edges:
        mask[a, b] = mask[b, a] = True
    return mask


def test_the_ring_of_the_elements_of_statistical_learning():
    mrf = ig.GaussianMRF(RING).fit(covariance=S4, n_samples=100)
    K = mrf.precision_.toarray()
    W = np.linalg.inv(K)
    assert_allclose([W[0, 2], W[1, 3]], [1.31, 0.87], atol=0.005)  # as printed
    assert_allclose(W[pattern(RING, 4)], S4[pattern(RING, 4)], rtol=1e-7)


def test_the_butterfly_of_the_mathematics_marks():
    """Whittaker (1990) and Edwards (2000): deviance 0.8957 on 4 degrees of freedom."""
    fitted = [
        ig.GaussianMRF(BUTTERFLY, m).fit(covariance=MARKS * 87 / 88, n_samples=88) for m in ("ipf", "closed-form")
    ]
    for mrf in fitted:
        assert round(mrf.deviance(), 4) == 0.8957
        assert mrf.degrees_of_freedom() == 4
    assert fitted[0].n_iter_ == 1  # chordal
    assert_allclose(fitted[0].precision_.toarray(), fitted[1].precision_.toarray(), rtol=1e-9, atol=1e-12)


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 7), st.integers(0, 2**32 - 1))
def test_proportional_fitting_matches_moments_on_edges_and_has_zeros_elsewhere(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, n)) @ rng.normal(size=(n, n))
    edges = random_graph(n, rng)
    mrf = ig.GaussianMRF(edges).fit(X)
    K, S, mask = mrf.precision_.toarray(), Moments.of(X).covariance, pattern(edges, n)
    scale = np.sqrt(np.outer(np.diag(S), np.diag(S)))
    assert_allclose((np.linalg.inv(K) / scale)[mask], (S / scale)[mask], atol=1e-6)
    assert_array_equal(K[~mask], 0)
    assert mrf.converged_
    assert mrf.deviance() >= -1e-6
    assert_allclose(mrf.log_likelihood(), mrf.log_likelihood(X), rtol=1e-9)
    saturated = ig.GaussianMRF().fit(X)
    assert_allclose(2 * (saturated.log_likelihood() - mrf.log_likelihood()), mrf.deviance(), atol=1e-6)
    assert_allclose(saturated.precision_.toarray() * scale, np.linalg.inv(S) * scale, rtol=1e-4)
    if ig.is_chordal(ig.graph.pairwise_graph(n, edges, 2)):
        assert mrf.n_iter_ <= 2
        other = ig.GaussianMRF(edges, "closed-form").fit(X)
        assert_allclose(other.precision_.toarray() * scale, K * scale, rtol=1e-5, atol=1e-6)


def test_the_graphical_lasso_is_covariance_selection_on_its_support():
    """Its covariance is that of the samples, moved by alpha on edges; so both must agree on moved moments."""
    rng = np.random.default_rng(0)
    S = Moments.of(rng.normal(size=(40, 6)) @ rng.normal(size=(6, 6))).covariance
    S /= np.sqrt(np.outer(np.diag(S), np.diag(S)))
    lasso = ig.GaussianMRF(method="lasso", alpha=0.15, tol=1e-9).fit(covariance=S, n_samples=40)
    K = lasso.precision_.toarray()
    assert 3 < len(lasso.edges_) < 15
    moved = S + 0.15 * np.sign(K) * ~np.eye(6, dtype=bool)
    again = ig.GaussianMRF(lasso.edges_).fit(covariance=np.where(K != 0, moved, np.linalg.inv(K)), n_samples=40)
    assert_allclose(again.precision_.toarray(), K, atol=1e-5)
    assert_allclose(graphical_lasso(S, 0.15, tol=1e-9, enet_tol=1e-13)[1], K, atol=1e-6)
    apart = []
    for alpha in (1e-3, 1e-5):  # the smaller the penalty, the nearer to the inverse
        least = ig.GaussianMRF(method="lasso", alpha=alpha, tol=1e-6).fit(covariance=S, n_samples=40)
        apart.append(np.abs(least.precision_.toarray() - np.linalg.inv(S)).max())
    assert apart[1] < 0.1 * apart[0]


@pytest.mark.long
@settings(deadline=None, max_examples=15)
@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_covariance_graphs_are_stationary_points_of_the_likelihood(n, seed):
    rng = np.random.default_rng(seed)
    X, edges = rng.normal(size=(80, n)) @ (np.eye(n) + 0.3 * rng.normal(size=(n, n))), random_graph(n, rng)
    mrf = ig.GaussianMRF(edges, "covariance", tol=1e-10, max_iter=100_000).fit(X)
    K, S, mask = mrf.precision_.toarray(), Moments.of(X).covariance, pattern(edges, n)
    W = np.linalg.inv(K)
    assert_allclose(W[~mask], 0, atol=1e-10)
    slope = K @ S @ K - K  # of the log-likelihood by the covariance, twice
    assert_allclose(slope[mask], 0, atol=1e-6 * np.abs(K).max())
    start = ig.GaussianField(np.diag(1 / np.diag(S)), mean=X.mean(axis=0))
    assert mrf.log_likelihood(X) >= start.log_density(X).sum() - 1e-8


def test_directed_and_undirected_graphs():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4))
    undirected = ig.GaussianMRF([(0, 1), (1, 2), (2, 3)]).fit(X)
    for parents in ([(), (0,), (1,), (2,)], [(1,), (2,), (3,), ()]):  # both say what the chain says
        directed = ig.GaussianMRF(parents, "directed").fit(X)
        assert_allclose(directed.log_likelihood(), undirected.log_likelihood(), rtol=1e-9)
        assert directed.degrees_of_freedom() == undirected.degrees_of_freedom() == 3
    collider = ig.GaussianMRF([(), (), (0, 1), ()], "directed").fit(X)
    assert [0, 1] in collider.field_.edges().tolist()  # the moral graph
    assert_allclose(np.linalg.inv(collider.precision_.toarray())[0, 1], 0, atol=1e-12)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_regressions_and_fields_are_two_forms_of_one_distribution(n, seed):
    rng = np.random.default_rng(seed)
    W = np.tril(rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.5), -1)
    model = Regressions(W, rng.uniform(0.5, 2, n), rng.normal(size=n))
    field = model.field()
    A = np.linalg.inv(np.eye(n) - W)
    assert_allclose(field.covariance(range(n)), A @ np.diag(model.variances) @ A.T, atol=1e-8)
    back = Regressions.of(field)
    assert_allclose(back.weights, W, atol=1e-8)
    assert_allclose(back.variances, model.variances, rtol=1e-8)
    order = rng.permutation(n)
    other = Regressions.of(field, order.tolist())
    assert_allclose(other.field().precision.toarray(), field.precision.toarray(), atol=1e-8)
    rank = np.argsort(order)
    assert (rank[np.nonzero(other.weights)[0]] > rank[np.nonzero(other.weights)[1]]).all()
    again = regressions(field.covariance(range(n)), field.mean, [tuple(range(t)) for t in range(n)])
    assert_allclose(again.weights, W, atol=1e-6)


A1 = np.array([[3, 0, 1, 0, 0], [0, 3, 0, -1, 0], [2, 1, 3, 0, 0], [0, 0, 0, -2.5, 1], [0, 0, 1, 0, 2]]) / 5
A2 = np.array([[0, 0, -1 / 5, 0, 0], [0] * 5, [0] * 5, [0, 0, 1 / 5, 0, 1 / 3], [0, 0, 0, 0, -1 / 5]])
NOISE = np.array([[1, 1 / 2, 1 / 3], [1 / 2, 1, -1 / 3], [1 / 3, -1 / 3, 1]])


def murphy():
    """Return the process of Murphy (2012), equations 19.30 and 19.31: coefficients and precision."""
    S = np.eye(5)
    S[:3, :3] = NOISE
    K = np.linalg.inv(S)
    return np.stack([A1, A2]), np.where(np.abs(K) < 1e-12, 0, K)


def test_the_chain_graph_of_murphy():
    A, K = murphy()
    assert_allclose(K[:3, :3], [[2.13, -1.47, -1.2], [-1.47, 2.13, 1.2], [-1.2, 1.2, 1.8]], atol=0.005)
    graph = chain_graph(A, K)
    assert graph.edges == [(0, 1), (0, 2), (1, 2)]
    assert (1, 2, 0) in graph.arrows  # figure 19.10: variable 2, one step back, points at variable 0
    assert (2, 4, 3) in graph.arrows
    assert len(graph.arrows) == np.count_nonzero(A)


def test_a_process_is_a_field():
    A, K = murphy()
    past, steps = np.random.default_rng(0).normal(size=(2, 5)), 4
    field = process(A, np.arange(5.0), K, past, steps)
    S, X = np.linalg.inv(K), field.sample(1, random_state=0)
    rows = np.concatenate([past, X.reshape(steps, 5)])
    each = 0.0
    for t in range(2, 2 + steps):
        far = rows[t] - np.arange(5.0) - A[0] @ rows[t - 1] - A[1] @ rows[t - 2]
        each += -(far @ K @ far + np.linalg.slogdet(S)[1] + 5 * np.log(2 * np.pi)) / 2
    assert_allclose(field.log_density(X), each, rtol=1e-10)
    assert_allclose(process(A, np.zeros(5), K, past, 1).mean, A[0] @ past[1] + A[1] @ past[0])


def test_fitting_finds_the_process_again():
    A, K = murphy()
    Y = process(A, np.ones(5), K, np.zeros((2, 5)), 4000).sample(1, random_state=0).reshape(-1, 5)
    free = ig.VectorAutoregression(2).fit(Y)
    known = ig.VectorAutoregression(2, A != 0, [(0, 1), (0, 2), (1, 2)]).fit(Y)
    assert_allclose(known.coefficients_, A, atol=0.06)
    assert_allclose(known.noise_.precision.toarray(), K, atol=0.15)
    assert known.chain_graph() == chain_graph(A, K)
    assert np.abs(known.coefficients_ - A).max() < np.abs(free.coefficients_ - A).max()
    gain = 2 * (free.log_likelihood_ - known.log_likelihood_)
    dropped = (A == 0).sum() + 7
    assert 0 < gain < dropped + 4 * np.sqrt(2 * dropped)  # a chi-squared variable
    assert_allclose(free.score(Y) * (len(Y) - 2), free.log_likelihood_, rtol=1e-9)
    assert_allclose(known.score(Y) * (len(Y) - 2), known.log_likelihood_, rtol=1e-9)
    Z = np.concatenate([np.ones((3998, 1)), Y[1:-1], Y[:-2]], axis=1)
    ols = np.linalg.lstsq(Z, Y[2:], rcond=None)[0].T
    assert_allclose(np.concatenate([free.constant_[:, None], *free.coefficients_], axis=1), ols, atol=1e-9)
    assert known.forecast(Y, 3).shape == (3, 5)
    assert known.sample(Y, 2, random_state=0).shape == (2, 5)


def test_arrows_that_are_not_free_have_a_likelihood_at_its_maximum():
    """No small change of a free coefficient raises it: regressions that only seem unrelated."""
    A, K = murphy()
    Y = process(A, np.ones(5), K, np.zeros((2, 5)), 300).sample(1, random_state=1).reshape(-1, 5)
    model = ig.VectorAutoregression(2, A != 0, tol=1e-13).fit(Y)
    best = model.score(Y)
    for k, i, j in np.argwhere(A != 0)[::3]:
        for step in (-1e-3, 1e-3):
            moved = clone(model).fit(Y)
            moved.coefficients_ = model.coefficients_.copy()
            moved.coefficients_[k, i, j] += step
            assert moved.score(Y) < best + 1e-12


def test_weights_are_repetitions_and_several_series_are_joined():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(30, 3)), rng.integers(0, 4, 30)
    one = ig.GaussianMRF([(0, 1)]).fit(X, sample_weight=w)
    two = ig.GaussianMRF([(0, 1)]).fit(np.repeat(X, w, axis=0))
    assert_allclose(one.precision_.toarray(), two.precision_.toarray(), rtol=1e-9)
    assert_allclose(one.bic(), two.bic())
    assert ig.VectorAutoregression(1).fit([X[:15], X[15:]]).coefficients_.shape == (1, 3, 3)


OPTIONS = (
    {},
    {"graph": RING},
    {"graph": [(), (0,), (0,), (1, 2)], "method": "directed"},
    {"method": "lasso", "alpha": 0.2},
    {"graph": RING, "method": "covariance"},
)


@pytest.mark.parametrize("options", OPTIONS)
def test_files_and_copies(options, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 4))
    mrf = ig.GaussianMRF(**options).fit(X)
    mrf.save(tmp_path / "a.isg")
    back = ig.estimators.load(tmp_path / "a.isg")
    for other in (back, pickle.loads(pickle.dumps(mrf)), clone(mrf).fit(X)):
        assert_array_equal(other.precision_.toarray(), mrf.precision_.toarray())
        assert_array_equal(other.score_samples(X), mrf.score_samples(X))
        assert_array_equal(other.edges_, mrf.edges_)
    assert_allclose(clone(back).fit(X).log_likelihood(), mrf.log_likelihood())
    refuses("from a file", back.deviance)


def test_a_closed_form_that_rounding_spoils_is_told():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(50, 2))
    X = np.c_[A, A.sum(axis=1) + 1e-7 * rng.normal(size=50)]
    with pytest.warns(ig.ConvergenceWarning, match="by rounding"):
        fitted = ig.GaussianMRF([(0, 1), (0, 2), (1, 2)], method="closed-form", tol=1e-8).fit(X)
    assert not fitted.converged_


@pytest.mark.long
@pytest.mark.parametrize("parents", [1, 3, 6])
def test_a_variable_that_its_parents_determine_is_refused(parents):
    rng = np.random.default_rng(0)
    for _ in range(100):
        A = np.round(rng.normal(size=(40, parents)) * 10)
        X = np.c_[A, A @ rng.integers(-3, 4, parents) + 5 * A[:, 0]]
        if np.ptp(X[:, -1]) == 0:
            continue
        with pytest.raises(ig.InputError, match="which its parents determine"):
            ig.GaussianMRF([()] * parents + [tuple(range(parents))], method="directed").fit(X)
        X[:, -1] += 1e-3 * rng.normal(size=40)
        assert ig.GaussianMRF([()] * parents + [tuple(range(parents))], method="directed").fit(X).converged_


def test_units_of_variables_do_not_make_a_covariance_singular():
    X = np.random.default_rng(0).normal(size=(50, 3))
    units = np.array([1e-8, 1.0, 1e8])
    one, two = (ig.GaussianMRF([(0, 1), (1, 2)], method="covariance").fit(Z) for Z in (X, X * units))
    assert_allclose(two.precision_.toarray() * np.outer(units, units), one.precision_.toarray(), rtol=1e-6, atol=1e-9)


def test_samples_that_do_not_determine_a_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4, 6))
    refuses("determine each clique", ig.GaussianMRF().fit, X)
    chain = ig.GaussianMRF([(i, i + 1) for i in range(5)]).fit(X)  # pairs are determined by three samples
    assert chain.converged_
    refuses("samples that determine the model of all edges", chain.deviance)
    # Three samples determine each pair of a ring of four, but no positive definite matrix matches all of them.
    X = np.random.default_rng(0).normal(size=(3, 4))
    with pytest.warns(ig.ConvergenceWarning, match="too few samples"):
        mrf = ig.GaussianMRF(RING, max_iter=30).fit(X)
    assert not mrf.converged_


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda X: ig.GaussianMRF().fit(np.where(X > 1, np.nan, X)), "X"),
        (lambda X: ig.GaussianMRF().fit(np.array([["a", "b"]])), "X"),
        (lambda X: ig.GaussianMRF().fit(np.column_stack([X, np.ones(len(X))])), "X"),
        (lambda X: ig.GaussianMRF(method="lasso").fit(np.column_stack([X, np.full(len(X), 0.1)])), "X"),
        (lambda X: ig.GaussianMRF().fit(X[:, 0]), "X"),
        (lambda X: ig.GaussianMRF().fit(), "X"),
        (lambda X: ig.GaussianMRF().fit(X[:0]), "X"),
        (lambda X: ig.GaussianMRF([(0, 9)]).fit(X), "graph"),
        (lambda X: ig.GaussianMRF([(0, 1, 2)]).fit(X), "graph"),
        (lambda X: ig.GaussianMRF(ig.chain_graph(9, 2)).fit(X), "graph"),
        (lambda X: ig.GaussianMRF(RING, "closed-form").fit(X), "graph"),
        (lambda X: ig.GaussianMRF(RING, "lasso").fit(X), "graph"),
        (lambda X: ig.GaussianMRF(method="directed").fit(X), "graph"),
        (lambda X: ig.GaussianMRF([(1,), (0,), (), ()], "directed").fit(X), "dag"),
        (lambda X: ig.GaussianMRF([(), (0,)], "directed").fit(X), "dag"),
        (lambda X: ig.GaussianMRF(method="lass").fit(X), "method"),
        (lambda X: ig.GaussianMRF(method="lasso", alpha=-1).fit(X), "alpha"),
        *((lambda X, m=m: ig.GaussianMRF(RING, m, alpha=0.3).fit(X), "alpha") for m in ("ipf", "covariance")),
        (lambda X: ig.GaussianMRF(tol=0).fit(X), "tol"),
        (lambda X: ig.GaussianMRF(max_iter=0).fit(X), "max_iter"),
        (lambda X: ig.GaussianMRF().fit(X, sample_weight=np.zeros(len(X))), "sample_weight"),
        (lambda X: ig.GaussianMRF().fit(X, covariance=S4, n_samples=3), "X"),
        (lambda X: ig.GaussianMRF().fit(covariance=-S4, n_samples=3), "covariance"),
        (lambda X: ig.GaussianMRF().fit(covariance=[[1.0, 2.0], [2.0, 1.0]], n_samples=3), "covariance"),
        (lambda X: ig.GaussianMRF().fit(covariance=S4[:2], n_samples=3), "covariance"),
        (lambda X: ig.GaussianMRF().fit(covariance=S4, n_samples=0), "n_samples"),
        (lambda X: ig.GaussianMRF().fit(X, n_samples=3), "n_samples"),
        (lambda X: ig.VectorAutoregression(40).fit(X), "X"),
        (lambda X: ig.VectorAutoregression(0).fit(X), "lags"),
        (lambda X: ig.VectorAutoregression(1, np.ones((1, 2, 2), bool)).fit(X), "arrows"),
        (lambda X: ig.VectorAutoregression(1, np.ones((1, 4, 4))).fit(X), "arrows"),
        (lambda X: ig.VectorAutoregression(2).fit(X).forecast(X[:1], 2), "past"),
    ],
)
def test_wrong_input_is_named(call, name):
    with pytest.raises(ig.InputError) as told:
        call(np.random.default_rng(0).normal(size=(30, 4)))
    assert told.value.argument.startswith(name)


def test_odd_input_is_answered_rightly_or_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    assert ig.GaussianMRF([(0, 1), (1, 0), (0, 1), (2, 2)]).fit(X).edges_.tolist() == [[0, 1]]  # twice, and a loop
    plain = ig.GaussianMRF([(0, 1), (1, 2)]).fit(X)
    for moved in (X * [1e8, 1e-8, 1, 1e3], X + 1e6):  # the deviance has no units
        assert ig.GaussianMRF([(0, 1), (1, 2)]).fit(moved).deviance() == pytest.approx(plain.deviance(), rel=1e-5)
    twice = np.column_stack([X, X[:, 0]])
    for graph, method in (([(0, 4)], "ipf"), ([(0, 1)], "covariance"), ([(), (), (), (), (0,)], "directed")):
        with pytest.raises(ig.InputError) as told:
            ig.GaussianMRF(graph, method).fit(twice)
        assert told.value.argument == "X"
    apart = ig.GaussianMRF([(0, 1)]).fit(twice)
    for call, name in [
        (apart.deviance, "X"),
        (lambda: plain.score(X[:0]), "X"),
        (lambda: plain.score(X, sample_weight=np.zeros(50)), "sample_weight"),
        (lambda: plain.marginal([]), "variables"),
        (lambda: ig.GaussianMRF("chain").fit(X), "graph"),
        (lambda: ig.GaussianMRF([(-1, 1)]).fit(X), "graph"),
        (lambda: ig.GaussianMRF([(0.0, 1.0)]).fit(X), "graph"),
        (lambda: ig.VectorAutoregression(2).fit(X[:5, :2]), "X"),  # fewer slices than coefficients
        (lambda: ig.VectorAutoregression(1).fit(np.ones((20, 2))), "X"),
        (lambda: ig.VectorAutoregression(1).fit(np.outer(0.9 ** np.arange(20), [1.0])), "X"),  # no noise at all
    ]:
        with pytest.raises(ig.InputError) as told:
            call()
        assert told.value.argument == name


def test_frames_with_columns_in_another_order_are_refused(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.random.default_rng(0).normal([0, 5, 10], 1, (50, 3)), columns=list("abc"))
    mrf = ig.GaussianMRF().fit(frame)
    mrf.save(tmp_path / "g.isg")
    for one in (mrf, ig.GaussianMRF.load(tmp_path / "g.isg")):
        assert one.score(frame) == one.score(frame.to_numpy())
        with pytest.raises(ig.InputError, match="X: expected columns in the order of fit, got 'c' in the place of 'a'"):
            one.score(frame[["c", "b", "a"]])
        refuses("columns in the order of fit", one.impute, frame[["c", "b", "a"]])
    assert ig.GaussianMRF().fit(frame.to_numpy()).feature_names_in_ is None


@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_units_that_overflow_are_named(unit):
    X = unit * np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ig.InputError, match="X: expected finite variances above 1e-308"):
        ig.GaussianMRF().fit(X)
