"""Estimators of Markov random fields without log Z: gradients, consistency, closed forms, special cases."""

import numpy as np
import pytest
from field_helpers import cells, difference, exact_table, truth
from numpy.testing import assert_allclose

import isinglass as ig
from isinglass.gradients import rule
from isinglass.learning.markov import Composite, PseudoMoments, Samples, Task, make_method
from isinglass.learning.markov.local import pairwise
from isinglass.learning.markov.local.composite import tree_blocks
from isinglass.learning.optimizers import Lbfgs
from isinglass.models import IndicatorTerm, Model, table_model

RING = ig.FactorGraph([2, 3, 2, 2], [(0, 1), (1, 2), (2, 3), (3, 0), (1,), (0, 2, 3)])
PAIRS = ig.FactorGraph([2, 3, 2, 2], [(0, 1), (1, 2), (2, 3), (3, 0), (1,)])
PRECISE = Lbfgs(tol=1e-9, ftol=0, max_iter=5000)


def task(graph, samples, l2=0.1):
    return Task(table_model(graph), samples, ig.Exact(), rule("envelope"), l2)


def weighted(graph, n=30, seed=0):
    rng = np.random.default_rng(seed)
    return Samples.of(ig.sample(truth(graph, seed), n, random_state=seed), rng.random(n))


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e5, 1e9])
def test_pseudo_moments_do_not_depend_on_the_number_of_samples(factor):
    table = np.array([[4.0, 1.0], [1.0, 4.0]])
    mrf = ig.MRF(ig.FactorGraph([2, 2], [(0,), (1,), (0, 1)]), method="pmm").fit(counts=factor * table)
    assert_allclose(ig.infer(mrf.potentials_).factor(2), table / 10, atol=1e-12)


METHODS = ["composite", "piecewise", "mpf", Composite([[0, 2], [1], [3]])]


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_gradients(method):
    f = make_method(method).objective(task(RING, weighted(RING)))
    rng = np.random.default_rng(1)
    theta = 0.5 * rng.normal(size=f.size)
    slope = f(theta)[1]
    for _ in range(4):
        way = rng.normal(size=f.size)
        found = (f(theta + 1e-5 * way)[0] - f(theta - 1e-5 * way)[0]) / 2e-5
        assert slope @ way == pytest.approx(found, rel=2e-6, abs=1e-7)


@pytest.mark.long
@pytest.mark.parametrize("method", ["pseudo", "composite", "mpf"], ids=str)
def test_consistent_methods_find_the_truth_in_its_exact_distribution(method):
    p = truth(RING, 4, 0.7)
    mrf = ig.MRF(RING, method=method, optimizer=PRECISE).fit(cells(RING), sample_weight=exact_table(p).ravel())
    assert mrf.converged_
    assert difference(mrf.potentials_, p) < 1e-6


def test_composite_likelihood_is_between_pseudolikelihood_and_likelihood():
    samples = weighted(RING)
    theta = np.random.default_rng(0).normal(size=table_model(RING).size)
    pairs = [(Composite([[i] for i in range(4)]), "pseudo"), (Composite([range(4)]), "ml")]
    for blocks, other in pairs:
        one, two = (make_method(m).objective(task(RING, samples)) for m in (blocks, other))
        assert one(theta)[0] == pytest.approx(two(theta)[0])
        assert_allclose(one(theta)[1], two(theta)[1], atol=1e-10)


def test_composite_likelihood_by_enumeration():
    graph = ig.grid_graph(2, 3, 2)
    samples = weighted(graph, 5)
    model = table_model(graph)
    theta = np.random.default_rng(0).normal(size=model.size)
    table = exact_table(model.potentials(theta))
    blocks, expected = tree_blocks(graph), 0.0
    assert blocks.max() == 1
    for row, weight in zip(samples.states, samples.weights, strict=True):
        for b in range(2):
            rest = tuple(slice(None) if blocks[i] == b else row[i] for i in range(6))
            expected -= weight * np.log(table[tuple(row)] / table[rest].sum())
    found = make_method("composite").objective(task(graph, samples, 0.0))(theta)[0]
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(5))
def test_blocks_are_forests_and_cover_everything(seed):
    nx = pytest.importorskip("networkx")
    graph = nx.gnp_random_graph(12, 0.4, seed=seed)
    blocks = tree_blocks(ig.from_networkx(graph, 2))
    for b in range(blocks.max() + 1):
        assert nx.is_forest(graph.subgraph(np.flatnonzero(blocks == b).tolist()))
    assert (blocks >= 0).all()


def test_missing_values_of_composite_likelihood_are_summed_over():
    X = ig.sample(truth(RING), 60, random_state=0)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = -1
    mrf = ig.MRF(RING, method=Composite([[0, 1], [2, 3]]), l2=0.1).fit(X)
    expected = 0.1 * (mrf.theta_**2).sum()
    for row in X:
        for block in ([0, 1], [2, 3]):
            seen = {i: int(x) for i, x in enumerate(row) if x >= 0}
            if any(i in seen for i in block):
                rest = {i: x for i, x in seen.items() if i not in block}
                one, two = (ig.infer(mrf.potentials_, "brute", evidence=e).log_z for e in (rest, seen))
                expected += one - two
    assert mrf.objective_ == pytest.approx(expected, rel=1e-9)


def test_piecewise_training_of_tables_has_a_closed_form():
    X = ig.sample(truth(PAIRS), 3000, random_state=0)
    mrf = ig.MRF(PAIRS, method="piecewise", optimizer=Lbfgs(tol=1e-8, ftol=0)).fit(X)
    for scope, table in zip(PAIRS.scopes, mrf.potentials_.log_tables, strict=True):
        seen = np.zeros(table.shape)
        np.add.at(seen, tuple(X[:, i] for i in scope), 1 / len(X))
        assert_allclose(np.exp(table) / np.exp(table).sum(), seen, atol=1e-7)


@pytest.mark.parametrize("kind", ["bp", "trw"])
def test_pseudo_moments_are_a_fixed_point(kind):
    graph = ig.grid_graph(3, 3, 2)
    X = ig.sample(truth(graph, 0, 0.5), 3000, random_state=0)
    mrf = ig.MRF(graph, method=PseudoMoments(kind)).fit(X)
    assert mrf.n_iter_ == 1
    assert mrf.report_["converged"]
    assert mrf.report_["stable"]
    assert mrf.report_["largest_difference"] < 1e-8
    r = ig.infer(mrf.potentials_, kind, tol=1e-10, max_iter=3000)
    assert_allclose(np.asarray(r.variables)[:, 1], X.mean(axis=0), atol=1e-8)


def test_pseudo_moments_are_maximum_likelihood_on_trees():
    graph = ig.tree_graph(6, 3, random_state=0)
    X = ig.sample(truth(graph), 2000, random_state=0)
    one, two = (ig.MRF(graph, method=m).fit(X) for m in ("pmm", "closed-form"))
    assert_allclose(exact_table(one.potentials_), exact_table(two.potentials_), atol=1e-12)


def test_an_unstable_fixed_point_is_reported():
    """Strong couplings: message passing leaves the marginals of the samples."""
    graph = ig.grid_graph(4, 4, 2)
    p = ig.models.Ising(graph).potentials(coupling=0.8, field=0.0)
    X = ig.sample(p, 4000, random_state=0)
    mrf = ig.MRF(graph, method="pmm").fit(np.concatenate([X, 1 - X]))
    assert mrf.report_["stable"] is False or mrf.report_["largest_difference"] > 0.01


@pytest.mark.parametrize("method", ["pseudo", "mpf"])
def test_products_of_matrices_are_the_general_layout(method, monkeypatch):
    samples = weighted(PAIRS, 40)
    theta = np.random.default_rng(0).normal(size=table_model(PAIRS).size)
    general = make_method(method).objective(task(PAIRS, samples))
    assert general.pairwise is None
    slow = general(theta)
    monkeypatch.setattr(pairwise, "WORTH", 1)
    monkeypatch.setattr(pairwise, "ROWS", 7)
    fast = make_method(method).objective(task(PAIRS, samples))
    assert fast.pairwise is not None
    assert fast(theta)[0] == pytest.approx(slow[0])
    assert_allclose(fast(theta)[1], slow[1], atol=1e-10)
    if method == "pseudo":
        assert fast.term_counts() == general.term_counts()


@pytest.mark.parametrize("loss", ["piecewise", "mpf"])
def test_they_are_losses_of_conditional_random_fields_too(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 4, 4, 2))
    Y = (X[..., 0] + 0.3 * rng.normal(size=X.shape[:3]) > 0).astype(int)
    crf = ig.GridCRF(loss=loss, inference="exact", gradient="envelope", l2=0.1).fit(X, Y)
    assert crf.score(X, Y) > 0.8


def test_pieces_among_inputs_alone_are_constants():
    X = np.array([[0, 0, 1, 0], [1, 2, 0, 0], [1, 1, 1, 1]])
    one, other = (
        ig.MRF(PAIRS, loss=loss, l2=0.1).fit(X, outputs=[True, False, False, False]) for loss in ("piecewise", "cl")
    )
    assert_allclose(one.theta_, other.theta_, atol=1e-4)


def tied_ising(graph):
    """Return an Ising model with one field and one coupling."""
    spins = np.array([-1.0, 1.0])
    n, m = (len(g) for g in graph.groups)
    one = IndicatorTerm("field", spins.reshape(-1, 1), (2,), table_ids=np.zeros(n, int))
    two = IndicatorTerm("coupling", np.outer(spins, spins).reshape(-1, 1), (2, 2), table_ids=np.zeros(m, int))
    return Model(graph, [[one], [two]])


@pytest.mark.parametrize("loops", [False, True])
def test_approximate_maximum_entropy_is_the_dual_of_a_surrogate_likelihood(loops):
    graph = ig.grid_graph(3, 3, 2) if loops else ig.chain_graph(5, 2)
    X = ig.sample(ig.models.Ising(graph).potentials(coupling=0.4, field=0.2), 1000, random_state=0)
    camel = ig.MRF(tied_ising(graph), method="camel", tol=1e-9).fit(X)
    assert camel.converged_
    assert camel.report_ == {"residual": camel.report_["residual"], "maximum": True, "concave": not loops}
    bp = ig.MRF(tied_ising(graph), inference=ig.BeliefPropagation(tol=1e-12, max_iter=5000), optimizer=PRECISE).fit(X)
    assert_allclose(camel.theta_, bp.theta_, atol=1e-6)
    exact = ig.MRF(tied_ising(graph), optimizer=PRECISE).fit(X)
    assert (np.abs(camel.theta_ - exact.theta_).max() < 1e-6) != loops
    tables, moments = (ig.MRF(graph, method=m, tol=1e-9).fit(X) for m in ("camel", "pmm"))
    assert difference(tables.potentials_, moments.potentials_) < 1e-8


def test_approximate_maximum_entropy_of_sriharis_triangle():
    """Two features, f00 and f11, shared by three pairs; f11 is never seen, so that a prior keeps it possible."""
    features = np.zeros((4, 2))
    features[0, 0] = features[3, 1] = 1
    triangle = ig.FactorGraph([2, 2, 2], [(0, 1), (1, 2), (2, 0)])
    model = Model(triangle, [[IndicatorTerm("f", features, (2, 2), table_ids=np.zeros(3, int))]])
    X = [[0, 0, 0], [0, 1, 0], [1, 0, 0]]
    mrf = ig.MRF(model, method="camel", prior="dirichlet", tol=1e-10).fit(X)
    beliefs = ig.infer(mrf.potentials_, "bp", tol=1e-12, max_iter=10000)
    found = sum(beliefs.factor(a) for a in range(3))
    assert_allclose([found[0, 0], found[1, 1]], [(5 + 0.75) / 4, 0.75 / 4], atol=1e-6)


SAMPLES = [[0, 0, 0, 0], [1, 1, 1, 1]]


@pytest.mark.parametrize(
    ("options", "X", "words"),
    [
        ({"method": "mpf"}, [[0, 0, 0, -1]], "no missing values for method='mpf'"),
        ({"method": "pmm", "l2": 1.0}, SAMPLES, "l2: expected 0 for method='pmm'"),
        ({"method": "camel", "graph": ig.complete_graph(40, 2)}, np.eye(40, dtype=int), "at most 3000 unknowns"),
        ({"method": "pmm", "tied": True}, SAMPLES, "a table for each factor"),
        ({"method": PseudoMoments("mf")}, SAMPLES, "'bp' or 'trw'"),
        ({"method": "mpf", "prior": "dirichlet"}, SAMPLES, "no Dirichlet prior for method='mpf'"),
        ({"method": Composite([[0], [0, 1, 2, 3]])}, SAMPLES, "variables of no other block, got 0"),
        ({"method": Composite([[0], [1, 2]])}, SAMPLES, "none for 3"),
    ],
)
def test_wrong_choices_are_named(options, X, words):
    with pytest.raises(ig.InputError, match=words):
        ig.MRF(**{"graph": ig.grid_graph(2, 2, 2), **options}).fit(X)
