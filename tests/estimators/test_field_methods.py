"""Maximum likelihood of Markov random fields by closed forms, proportional fitting, scaling and EM."""

import itertools

import numpy as np
import pytest
from field_helpers import cells, chordal_graph, difference, exact_table, truth
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from checks import refuses
from isinglass.learning.markov import METHODS, ExpectationMaximisation, IterativeScaling, Samples
from isinglass.learning.markov.likelihood.cluster_tree import ClusterTree
from isinglass.learning.markov.likelihood.maximum import counted
from isinglass.learning.markov.priors import Dirichlet, Gaussian, Laplace
from isinglass.learning.markov.priors.bayesian_fitting import BayesianFitting
from isinglass.learning.optimizers import FixedPoint, Lbfgs
from isinglass.models import IndicatorTerm, Model

RING = ig.FactorGraph([2, 3, 2, 2], [(0, 1), (1, 2), (2, 3), (3, 0), (1,), (0, 2, 3)])
CHAIN = ig.chain_graph(3, 2)
SPINS = np.array([-1.0, 1.0])
PRECISE = Lbfgs(tol=1e-10, ftol=0, max_iter=5000)


def ising(graph, shift=0.0):
    """Return an Ising model of a pairwise graph, one field and one coupling for all; features may be negative."""
    n, m = (len(g) for g in graph.groups)
    one = IndicatorTerm("field", (SPINS + shift).reshape(-1, 1), (2,), table_ids=np.zeros(n, int))
    two = IndicatorTerm("coupling", np.outer(SPINS, SPINS).reshape(-1, 1), (2, 2), table_ids=np.zeros(m, int))
    return Model(graph, [[one], [two]])


def test_murphys_table():
    """Section 19.5.7.1: two binary variables, independent."""
    graph = ig.FactorGraph([2, 2], [(0,), (1,)])
    for method in ("ipf", "closed-form"):
        mrf = ig.MRF(graph, method=method).fit(counts=[[43, 9], [44, 4]])
        assert_allclose(100 * exact_table(mrf.potentials_), [[45.24, 6.76], [41.76, 6.24]], atol=1e-10)
        assert mrf.n_iter_ == 1


def test_sriharis_counts():
    """Three instances of a triangle with the features f00 and f11, shared by all edges: 5/3 and 0."""
    triangle = ig.FactorGraph([2, 2, 2], [(0, 1), (1, 2), (2, 0)])
    features = np.zeros((4, 2))
    features[0, 0] = features[3, 1] = 1
    model = Model(triangle, [[IndicatorTerm("f", features, (2, 2), table_ids=np.zeros(3, int))]])
    samples = Samples(np.array([[0, 0, 0], [0, 1, 0], [1, 0, 0]]), np.ones(3))
    found = model.transpose(counted(model.potentials(np.zeros(2)), samples)) / 3
    assert_allclose(found, [5 / 3, 0], atol=1e-15)
    refuses("parameter 1, whose feature has its least value", ig.MRF(model, method="scaling").fit, samples.states)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_closed_form_and_one_sweep_are_the_maximum_on_chordal_graphs(seed):
    rng = np.random.default_rng(seed)
    graph = chordal_graph(rng)
    table = rng.integers(1, 20, graph.cards)
    closed, ipf = (ig.MRF(graph, method=m, tol=1e-11).fit(counts=table) for m in ("closed-form", "ipf"))
    assert closed.n_iter_ == ipf.n_iter_ == 1
    assert_allclose(exact_table(closed.potentials_), exact_table(ipf.potentials_), atol=1e-13)
    ml = ig.MRF(graph, optimizer=PRECISE).fit(counts=table / table.sum())
    assert_allclose(exact_table(closed.potentials_), exact_table(ml.potentials_), atol=1e-8)
    tree = ig.junction_tree(graph)
    share = table / table.sum()
    expected = np.ones_like(share)
    for scopes, power in ((tree.cliques, 1), (tree.separators, -1)):
        for scope in scopes:
            rest = tuple(i for i in range(share.ndim) if i not in scope)
            expected = expected * share.sum(axis=rest, keepdims=True) ** power
    assert_allclose(exact_table(closed.potentials_), expected, atol=1e-13)


@pytest.mark.parametrize("method", ["ipf", "scaling"])
def test_fitting_and_scaling_find_the_maximum_of_other_graphs(method):
    X = ig.sample(truth(RING), 2000, random_state=0)
    ml = ig.MRF(RING, optimizer=PRECISE).fit(X, sample_weight=np.full(2000, 1 / 2000))
    mrf = ig.MRF(RING, method=method, tol=1e-9, max_iter=5000).fit(X)
    assert mrf.converged_
    assert_allclose(exact_table(mrf.potentials_), exact_table(ml.potentials_), atol=1e-8)
    values = [epoch.value for epoch in mrf.history_]
    assert (np.diff(values) <= 1e-9).all()


@pytest.mark.parametrize("method", ["ml", "closed-form", "ipf", "scaling", "em"])
def test_the_exact_distribution_gives_the_parameters_back(method):
    p = truth(CHAIN, 3)
    options = {"optimizer": PRECISE} if method == "ml" else {"tol": 1e-10, "max_iter": 5000}
    mrf = ig.MRF(CHAIN, method=method, **options).fit(cells(CHAIN), sample_weight=exact_table(p).ravel())
    assert difference(mrf.potentials_, p) < 1e-8


@pytest.mark.parametrize("structural", [False, True])
@pytest.mark.filterwarnings("ignore:.*likelihood has no maximum")
def test_scaling_keeps_cells_that_were_not_seen_but_can_be(structural):
    """Only entries of the model's own tables become hard zeros, not all empty cells, where some cell is forbidden."""
    table = np.array([[4.0, 0.0, 2.0], [1.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
    if structural:
        table[0, 1] = np.nan
    graph = ig.FactorGraph([3, 3], [(0,), (1,)])
    scaling, ipf = (ig.MRF(graph, method=m, tol=1e-9, max_iter=5000).fit(counts=table) for m in ("scaling", "ipf"))
    assert_allclose(exact_table(scaling.potentials_), exact_table(ipf.potentials_), atol=1e-8)
    assert exact_table(scaling.potentials_)[1, 2] > 0.02
    assert scaling.deviance() == pytest.approx(ipf.deviance(), abs=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_scaling_of_any_features_finds_the_maximum(shift):
    graph = ig.grid_graph(2, 2, 2)
    X = ig.sample(ig.models.Ising(graph).potentials(coupling=0.4, field=0.2), 300, random_state=0)
    model = ising(graph, shift)
    ml = ig.MRF(model, optimizer=Lbfgs(tol=1e-9, ftol=0)).fit(X)
    steps = {}
    for kind in ("gis", "iis"):
        mrf = ig.MRF(model, method=IterativeScaling(kind), tol=1e-7, max_iter=3000).fit(X)
        assert mrf.converged_
        assert_allclose(mrf.theta_, ml.theta_, atol=1e-6)
        assert (np.diff([epoch.value for epoch in mrf.history_]) <= 1e-9).all()
        steps[kind] = mrf.n_iter_
    assert steps["iis"] < steps["gis"]  # an exact solution of each coordinate's equation takes fewer steps
    assert IterativeScaling().kind == "gis"


@pytest.mark.parametrize("tied", [False, True])
def test_em_is_the_likelihood_of_missing_values_and_never_falls(tied):
    graph = ig.chain_graph(4, 2)
    rng = np.random.default_rng(1)
    X = ig.sample(truth(graph, 1, 0.4), 300, random_state=1)
    X[rng.random(X.shape) < 0.25] = -1
    ml = ig.MRF(graph, tied=tied, optimizer=Lbfgs(tol=1e-8, ftol=0, max_iter=3000)).fit(X)
    em = ig.MRF(graph, method="em", tied=tied, tol=1e-9, max_iter=4000).fit(X)
    assert em.converged_
    assert em.objective_ == pytest.approx(ml.objective_, abs=1e-6)
    assert_allclose(exact_table(em.potentials_), exact_table(ml.potentials_), atol=1e-6)
    assert (np.diff([epoch.value for epoch in em.history_]) <= 1e-9).all()


def hidden_cause(n=400):
    """Three children of a hidden cause."""
    rng = np.random.default_rng(0)
    cause = rng.integers(0, 2, n)
    children = [np.where(rng.random(n) < 0.9, cause, 1 - cause) for _ in range(3)]
    graph = ig.FactorGraph([2] * 4, [(0,), (1,), (2,), (3,), (0, 1), (0, 2), (0, 3)])
    return graph, np.stack([np.full(n, -1), *children], axis=1)


@pytest.mark.parametrize("method", ["ml", "em"])
@pytest.mark.parametrize("balanced", [[[0, -1, -1, -1], [1, -1, -1, -1]], [[0, 1, 0, 1], [1, 1, 0, 1]]])
def test_samples_that_show_a_hidden_variable_alone_or_balanced_hold_no_saddle_point(method, balanced):
    graph, X = hidden_cause()
    mrf = ig.MRF(graph, method=method, max_iter=3000).fit(np.vstack([X, balanced]))
    assert mrf.log_likelihood(X) > -600  # at the saddle point -824


def test_outputs_with_a_hidden_variable_leave_the_saddle_point():
    graph, X = hidden_cause()
    outputs = np.array([False, False, True, True])
    mrf = ig.MRF(graph, max_iter=2000).fit(X, outputs=outputs)
    assert mrf.objective_ < 317  # at the saddle point 552


def test_em_with_a_hidden_variable_leaves_the_saddle_point():
    """Three children of a hidden cause: without it they would be independent."""
    star = ig.FactorGraph([2] * 4, [(0, 1), (0, 2), (0, 3)])
    p = ig.Potentials(star, [1.2 * np.outer(SPINS, SPINS)] * 3)
    X = np.c_[np.full(4000, -1), ig.sample(p, 4000, random_state=0)[:, 1:]]
    em = ig.MRF(star, method=ExpectationMaximisation(random_state=1), tol=1e-7, max_iter=3000).fit(X)
    alone = ig.MRF(ig.FactorGraph([2] * 3, [(0,), (1,), (2,)]), method="ipf").fit(X[:, 1:])
    assert em.score(X) > alone.score(X[:, 1:]) + 0.1
    assert_allclose(ig.infer(em.potentials_).joint([1, 2, 3]), ig.infer(p).joint([1, 2, 3]), atol=0.03)
    assert ig.MRF(star).fit(X).score(X) > alone.score(X[:, 1:]) + 0.1  # gradients leave it, too


@pytest.mark.filterwarnings("ignore:.*likelihood has no maximum")
def test_entries_that_no_sample_shows_are_hard_zeros():
    table = np.array([[[5, 0], [3, 2]], [[0, 0], [4, 1]]])
    graph = ig.FactorGraph([2, 2, 2], [(0, 1), (1, 2), (0, 2)])
    for method in ("ipf", "scaling"):
        mrf = ig.MRF(graph, method=method, tol=1e-8, max_iter=20000).fit(counts=table)
        fitted = table.sum() * exact_table(mrf.potentials_)
        assert_allclose(fitted[1, 0], 0, atol=0)
        for axis in range(3):
            assert_allclose(fitted.sum(axis=axis), table.sum(axis=axis), atol=1e-6)
        assert np.isfinite(mrf.theta_).all()
        assert mrf.score_samples([[1, 0, 0]])[0] == -np.inf


def test_structural_zeros_are_never_given_any_mass():
    """Quasi-independence: a table without its diagonal."""
    table = np.array([[np.nan, 10, 20], [5, np.nan, 15], [8, 12, np.nan]])
    graph = ig.FactorGraph([3, 3], [(0,), (1,)])
    mrf = ig.MRF(graph, method="ipf", tol=1e-11, max_iter=2000).fit(counts=table)
    fitted = np.nansum(table) * exact_table(mrf.potentials_)
    assert_array_equal(np.diag(fitted), np.zeros(3))
    for axis in range(2):
        assert_allclose(fitted.sum(axis=axis), np.nansum(table, axis=axis), rtol=1e-10)
    ratio = fitted[0, 1] * fitted[1, 2] * fitted[2, 0] / (fitted[1, 0] * fitted[2, 1] * fitted[0, 2])
    assert ratio == pytest.approx(1)
    ml = ig.MRF(graph, optimizer=PRECISE).fit(counts=np.ma.masked_invalid(table) / 70)
    assert_allclose(exact_table(ml.potentials_), exact_table(mrf.potentials_), atol=1e-7)
    refuses("impossible configurations", ig.MRF(graph, method="closed-form").fit, counts=table)
    assert mrf.degrees_of_freedom() == 6 - 1 - 4
    assert mrf.score_samples([[1, 1]])[0] == -np.inf


def test_a_dirichlet_prior_is_virtual_samples():
    rng = np.random.default_rng(0)
    graph = chordal_graph(rng)
    table = rng.integers(0, 3, graph.cards)
    smooth = table + 7.0 / table.size
    for method in ("closed-form", "ipf", "ml"):
        own = {"optimizer": Lbfgs(tol=1e-9, ftol=0, max_iter=5000)} if method == "ml" else {"tol": 1e-12}
        one = ig.MRF(graph, method=method, prior=Dirichlet(7.0), **own).fit(counts=table)
        two = ig.MRF(graph, method="closed-form").fit(counts=smooth)
        assert_allclose(exact_table(one.potentials_), exact_table(two.potentials_), atol=1e-9)
    assert (exact_table(one.potentials_) > 0).all()


@pytest.mark.long
def test_the_posterior_of_a_chordal_model():
    """Draws have the mean and the quantiles that are known, and agree on separators; evidence by the chain rule."""
    graph = ig.FactorGraph([2, 2, 3], [(0, 1), (1, 2)])
    table = np.random.default_rng(0).integers(0, 6, (2, 2, 3))
    mrf = ig.MRF(graph, method="closed-form", prior=Dirichlet(6.0)).fit(counts=table)
    posterior = mrf.posterior()
    rng = np.random.default_rng(1)
    drawn = [posterior.draw(rng) for _ in range(1500)]
    assert max(abs(ig.infer(p, "brute").log_z) for p in drawn[:20]) < 1e-12
    pairs = np.array([ig.infer(p, "brute").joint([1, 2]) for p in drawn])
    mean = (table.sum(axis=0) + 1.0) / (table.sum() + 6)
    assert_allclose(pairs.mean(axis=0), mean, atol=0.006)
    assert_allclose(np.quantile(pairs, [0.05, 0.95], axis=0), posterior.intervals(0.9)[1, 2], atol=0.015)
    # one sample more: the evidence grows by the log of its predictive probability, the mean over the posterior
    predictive = exact_table(mrf.potentials_)
    more = table.copy()
    more[1, 0, 2] += 1
    after = ig.MRF(graph, method="closed-form", prior=Dirichlet(6.0)).fit(counts=more).posterior()
    assert after.log_evidence() - posterior.log_evidence() == pytest.approx(np.log(predictive[1, 0, 2]), abs=1e-10)
    refuses("a Dirichlet prior", ig.MRF(graph, method="closed-form").fit(counts=table).posterior)
    square = ig.MRF(ig.grid_graph(2, 2, 2), method="ipf", prior="dirichlet").fit([[0, 0, 0, 0]])
    assert isinstance(square.posterior(), BayesianFitting)  # which has no closed form


def test_gaussian_and_laplace_priors():
    X = ig.sample(truth(RING), 100, random_state=0)
    one = ig.MRF(RING, prior=Gaussian(2.0)).fit(X)
    assert_array_equal(one.theta_, ig.MRF(RING, l2=1 / 8).fit(X).theta_)
    sparse = ig.MRF(RING, prior=Laplace(0.1)).fit(X)
    assert (sparse.theta_ == 0).sum() > len(sparse.theta_) / 3
    assert (ig.MRF(RING, prior="laplace", method="pseudo").fit(X).theta_ == 0).any()


@pytest.mark.parametrize("seed", range(6))
def test_marginals_on_a_junction_tree_stay_exact_while_tables_change(seed):
    rng = np.random.default_rng(seed)
    n = 7
    edges = [e for e in itertools.combinations(range(n), 2) if rng.random() < 0.5]
    graph = ig.FactorGraph(rng.integers(1, 4, n), [*edges, (0, 1, 2), (6,)])
    factors = list(range(graph.n_factors))
    p = truth(graph, seed)
    tree = ClusterTree(graph, factors)
    tree.start(p)
    r = ig.infer(p, "brute")
    for a in factors:
        assert_allclose(tree.marginal(a), r.factor(a).ravel(), atol=1e-12)
    steps = [rng.uniform(0.5, 2, t.size) for t in p.log_tables]
    done = [np.zeros(t.size) for t in p.log_tables]

    def fit(a, marginal):
        ratio = steps[a] / (steps[a] @ marginal)
        done[a] += np.log(ratio)
        return ratio

    tree.sweep(fit)
    moved = ig.Potentials(graph, [t + d.reshape(t.shape) for t, d in zip(p.log_tables, done, strict=True)])
    r = ig.infer(moved, "brute")
    for a in factors:
        assert_allclose(tree.marginal(a), r.factor(a).ravel(), atol=1e-12)


def test_large_clusters_are_fitted_in_blocks():
    n = 12
    graph = ig.FactorGraph([2] * n, list(itertools.combinations(range(n), 2)))
    table = exact_table(truth(graph, 0, 0.3))
    mrf = ig.MRF(graph, method="ipf", tol=1e-9).fit(counts=table)
    assert_allclose(exact_table(mrf.potentials_), table, atol=1e-9)
    blocks = ClusterTree(graph, range(66)).blocks[0]
    assert 1 < len(blocks) < 10
    assert sorted(a for block in blocks for a in block.factors) == list(range(66))


def test_training_goes_on_from_a_checkpoint(tmp_path):
    X = ig.sample(truth(RING), 200, random_state=0)
    options = {"method": "ipf", "tol": 1e-10}
    whole = ig.MRF(RING, **options).fit(X)
    half = {**options, "checkpoint": tmp_path / "run.npz"}
    ig.MRF(RING, callback=lambda p: p.iteration == 3, **half).fit(X)
    again = ig.MRF(RING, **half).fit(X)
    assert_allclose(again.theta_, whole.theta_, atol=1e-12)
    assert again.n_iter_ == whole.n_iter_


@pytest.mark.filterwarnings("ignore:.*likelihood has no maximum")
def test_zeros_and_labels_are_kept_in_files(tmp_path):
    table = np.array([[np.nan, 10.0, 0.0], [5, np.nan, 15], [8, 12, np.nan]])
    mrf = ig.MRF(ig.FactorGraph([3, 3], [(0,), (1,)]), method="ipf").fit(counts=table)
    mrf.save(tmp_path / "a.isg")
    again = ig.MRF.load(tmp_path / "a.isg")
    assert_array_equal(exact_table(again.potentials_), exact_table(mrf.potentials_))
    empty = ig.MRF(ig.FactorGraph([2, 2], [(0, 1)]), method=ExpectationMaximisation(3)).fit(counts=[[3, 0], [1, 1]])
    empty.save(tmp_path / "b.isg")
    loaded = ig.MRF.load(tmp_path / "b.isg")
    assert loaded.method == ExpectationMaximisation(3)
    assert_array_equal(exact_table(loaded.potentials_), exact_table(empty.potentials_))
    refuses("does not hold those of its fit", loaded.deviance)
    words = ig.MRF(ig.FactorGraph([2, 2], [(0, 1)]), prior=Dirichlet(1.0)).fit([["a", "x"], ["b", "y"]])
    words.save(tmp_path / "c.isg")
    assert ig.MRF.load(tmp_path / "c.isg").score_samples([["a", None]]) == pytest.approx(np.log(0.5))


SQUARE = ig.grid_graph(2, 2, 2)
SAMPLES = [[0, 0, 0, 0], [1, 1, 1, 1]]


@pytest.mark.parametrize(
    ("options", "X", "words"),
    [
        ({"method": "closed-form"}, SAMPLES, "a cycle without a chord"),
        ({"method": "closed-form", "graph": ig.FactorGraph([2] * 3, [(0, 1), (1, 2), (0, 2)])}, [[0, 0, 0]], "clique"),
        ({"method": "ipf"}, [[0, 0, 0, -1]], "no missing values for method='ipf'.*use method='em'"),
        ({"method": "ipf", "l2": 1.0}, SAMPLES, "l2: expected 0 for method='ipf'"),
        ({"method": "ipf", "tied": True}, SAMPLES, "graph: expected a graph, with a table for each factor"),
        ({"method": "ipf", "optimizer": "owlqn"}, SAMPLES, "an update of its own"),
        ({"method": "viterbi"}, SAMPLES, "got 'viterbi'; it is a loss: use loss='viterbi', and outputs= in fit"),
        ({"method": "ipf", "prior": "laplace"}, SAMPLES, "no Laplace prior"),
        ({"method": "em", "prior": "dirichle"}, SAMPLES, "did you mean 'dirichlet'"),
        ({"prior": "gaussian", "l2": 1.0}, SAMPLES, "l2: expected 0 if a prior is given"),
        ({"prior": Gaussian(0.0)}, SAMPLES, "prior.scale"),
        ({"method": IterativeScaling("gsi")}, SAMPLES, "'gis' or 'iis'"),
        ({"method": ExpectationMaximisation(steps=0)}, SAMPLES, "method.steps"),
        ({"optimizer": "fixed-point"}, SAMPLES, "one that minimises any function"),
        ({"method": 3}, SAMPLES, "method: expected a name"),
    ],
)
def test_wrong_choices_are_named(options, X, words):
    refuses(words, ig.MRF(**{"graph": SQUARE, **options}).fit, X)


def test_the_registry_states_facts():
    assert {"ml", "pseudo", "closed-form", "ipf", "scaling", "em"} <= set(METHODS)
    for name, cls in METHODS.items():
        assert cls.name == name
        assert cls.facts.formula
        assert ig.MRF(CHAIN, method=cls()).method.name == name
    refuses("lbfgs", FixedPoint().minimise, lambda x: (float(x @ x), 2 * x), [1.0])
