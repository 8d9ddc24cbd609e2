"""Structure learning: trees, sparse regressions and greedy search, against exhaustive search and scikit-learn."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

import isinglass as ig
from checks import refuses
from isinglass.learning.structure import STRUCTURES, GreedyDecomposable, NeighbourhoodSelection
from isinglass.learning.structure.chow_liu import mutual_information
from isinglass.learning.structure.learner import Observations
from isinglass.learning.structure.neighbourhood import coding, sparse_weights
from isinglass.testing import random_potentials


def edges(graph):
    return {s for s in graph.scopes if len(s) == 2}


def observations(X, cards=None):
    X = np.asarray(X)
    return Observations(X, np.ones(len(X)), X.max(axis=0) + 1 if cards is None else np.asarray(cards))


def samples(graph, n, coupling=0.5, seed=0):
    return ig.sample(ig.models.Ising(graph).potentials(coupling=coupling, field=0.1), n, random_state=seed)


@pytest.mark.parametrize("method", ["chow-liu", "neighbourhood", "group-l1", "greedy"])
def test_constant_columns_and_states_that_nobody_shows_do_no_harm(method):
    """They have no edges, no weights at infinity that never converge, and no tables that do not fit into memory."""
    X = np.random.default_rng(0).integers(0, 2, (200, 4))
    X[:, 2], X[:, 3] = 1, X[:, 0]
    for cards, Y in ((None, X), ([2] * 4, X), ([3] * 4, X), (None, X * [1, 1, 1, 10**5])):
        if method == "greedy" and cards is None and Y is not X:
            continue  # it counts parameters by all states, and takes none of so many
        graph = ig.learn_structure(Y, method, cards=cards)
        edges = {s for s in graph.scopes if len(s) == 2}
        assert (0, 3) in edges
        assert not any(2 in edge for edge in edges)


@pytest.mark.parametrize("cards", [(2, 2), (2, 3), (3, 5, 7), (2, 3, 4, 5)])
def test_independent_variables_are_not_joined_by_rounding(cards):
    every = np.array(list(np.ndindex(*cards)))
    assert all(len(s) < 2 for s in ig.learn_structure(every, "chow-liu", cards=cards).scopes)
    constant = np.c_[every, np.ones(len(every), int)][: len(every) - 1, [0, -1]]
    assert all(len(s) < 2 for s in ig.learn_structure(constant, "chow-liu", cards=[cards[0], 2]).scopes)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*likelihood has no maximum")
def test_the_tree_has_the_largest_likelihood_of_all_trees():
    nx = pytest.importorskip("networkx")
    X = ig.sample(random_potentials(ig.complete_graph(5, 3), np.random.default_rng(0)), 300, random_state=0)
    found = ig.learn_structure(X, cards=[3] * 5)
    assert found.is_forest
    best = ig.MRF(found, method="closed-form").fit(X).score(X)
    for pairs in itertools.combinations(itertools.combinations(range(5), 2), 4):
        if nx.is_tree(nx.Graph(list(pairs))) and len(nx.Graph(list(pairs))) == 5:
            other = ig.MRF(ig.pairwise_graph(5, pairs, 3), method="closed-form").fit(X).score(X)
            assert other <= best + 1e-12


def test_mutual_information_by_hand():
    X = np.random.default_rng(0).integers(0, [2, 3, 4], (50, 3))
    weights = np.random.default_rng(1).random(50)
    found = mutual_information(Observations(X, weights, np.array([2, 3, 4])))
    for i, j in itertools.combinations(range(3), 2):
        joint = np.zeros((5, 5))
        np.add.at(joint, (X[:, i], X[:, j]), weights / weights.sum())
        product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
        expected = sum(joint[a, b] * np.log(joint[a, b] / product[a, b]) for a, b in np.argwhere(joint > 0))
        assert found[i, j] == pytest.approx(expected)


def test_forests_rules_and_the_registry():
    X = samples(ig.chain_graph(3, 2), 4000, 0.7)
    X = np.c_[X, np.random.default_rng(0).integers(0, 2, 4000)]
    assert edges(ig.learn_structure(X, least=0.01)) == {(0, 1), (1, 2)}
    assert len(edges(ig.learn_structure(X))) == 3
    assert set(STRUCTURES) == {"chow-liu", "greedy", "neighbourhood", "group-l1"}
    X = samples(ig.chain_graph(3, 2), 200)
    assert edges(ig.learn_structure(X, NeighbourhoodSelection(0.1))) == edges(
        ig.learn_structure(X, "neighbourhood", strength=0.1)
    )
    with pytest.warns(ig.ConvergenceWarning, match="raise max_iter"):
        ig.learn_structure(X, "neighbourhood", strength=0.0, tol=1e-12, max_iter=2)


@pytest.mark.parametrize("strength", [0.02, 0.08])
def test_regressions_are_those_of_scikit_learn(strength):
    X = samples(ig.grid_graph(2, 3, 2), 400)
    found = sparse_weights(observations(X), strength, symmetric=False, tol=1e-10, max_iter=20000)
    spins = 2.0 * X - 1
    for i in range(6):
        rest = [j for j in range(6) if j != i]
        model = LogisticRegression(l1_ratio=1, solver="saga", C=2 / (400 * strength), tol=1e-8, max_iter=20000)
        model.fit(spins[:, rest], X[:, i])
        assert_allclose(found[rest, i], np.abs(model.coef_[0]) / 2, atol=1e-4)
        assert ((found[rest, i] == 0) == (np.abs(model.coef_[0]) < 1e-6)).all()


@pytest.mark.long
@pytest.mark.parametrize("symmetric", [False, True])
def test_optimality_of_blocks(symmetric):
    """Kept blocks have a slope of exactly the strength along themselves, the others one of at most it."""
    from isinglass.learning.structure import neighbourhood

    X = ig.sample(random_potentials(ig.chain_graph(4, 3), np.random.default_rng(0), 0.5), 500, random_state=0)
    data = observations(X, [3] * 4)
    problem = neighbourhood._Regressions(data)
    seen, strength = {}, 0.24 if symmetric else 0.12
    original = neighbourhood._Regressions.norms
    neighbourhood._Regressions.norms = lambda self, w: seen.update(last=w) or original(self, w)
    try:
        norms = sparse_weights(data, strength, symmetric, 1e-10, 50000)
    finally:
        neighbourhood._Regressions.norms = original
    weights = seen["last"]
    bias = np.zeros(8)
    for _ in range(1500):  # the bias is not returned: it minimises at these weights
        bias -= problem.gradient(weights, bias)[1] / problem.curvature
    slope = problem.gradient(weights, bias)[0]
    slope = slope + slope.T if symmetric else slope
    for i, j in itertools.permutations(range(4), 2):
        block = slope[2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
        own = weights[2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
        if norms[i, j] > 0:
            assert_allclose(block, -strength * own / norms[i, j], atol=1e-6)
        else:
            assert np.sqrt((block**2).sum()) <= strength + 1e-6
    assert 0 < (norms > 0).sum() < 12


@pytest.mark.parametrize("k", [2, 3, 5])
def test_contrasts_are_orthogonal_and_centred(k):
    code = coding(k)
    assert_allclose(code.T @ code, k * np.eye(k - 1), atol=1e-12)
    assert_allclose(code.sum(axis=0), 0, atol=1e-12)


@pytest.mark.parametrize("method", ["neighbourhood", "group-l1", "greedy"])
def test_many_samples_give_the_graph_back(method):
    graph = ig.tree_graph(8, 2, random_state=1)
    X = samples(graph, 4000)
    options = {"neighbourhood": {"strength": 0.1}, "group-l1": {"strength": 0.2}, "greedy": {}}[method]
    assert edges(ig.learn_structure(X, method, **options)) == edges(graph)
    if method != "greedy":
        cycle = ig.pairwise_graph(6, [(i, (i + 1) % 6) for i in range(6)], 2)
        found = edges(ig.learn_structure(samples(cycle, 4000), method, **options))
        assert {tuple(sorted(e)) for e in found} == {tuple(sorted(e)) for e in edges(cycle)}


def test_rules_and_stability_selection():
    X = samples(ig.grid_graph(3, 3, 2), 150)
    both = edges(ig.learn_structure(X, "neighbourhood", strength=0.08))
    either = edges(ig.learn_structure(X, "neighbourhood", strength=0.08, rule="or"))
    assert both < either
    stable = edges(ig.learn_structure(X, "neighbourhood", strength=0.08, stability=0.9, repeats=20))
    loose = edges(ig.learn_structure(X, "neighbourhood", strength=0.08, stability=0.3, repeats=20))
    assert stable <= loose
    assert stable == edges(ig.learn_structure(X, "neighbourhood", strength=0.08, stability=0.9, repeats=20))


def test_greedy_gains_are_those_of_the_likelihood():
    chordal = ig.FactorGraph([2, 2, 3, 2, 2], [(0, 1, 2), (1, 2, 3), (3, 4)])
    X = ig.sample(random_potentials(chordal, np.random.default_rng(3), 0.8), 3000, random_state=0)
    found = ig.learn_structure(X, "greedy", cards=chordal.cards)
    assert ig.is_chordal(found)
    mrf = ig.MRF(found, method="closed-form").fit(X)
    learner, data = GreedyDecomposable(), observations(X, chordal.cards)
    before = ig.MRF(ig.FactorGraph(chordal.cards, [(0, 2), (1, 2), (3,), (4,)]), method="closed-form").fit(X)
    after = ig.MRF(ig.FactorGraph(chordal.cards, [(0, 1, 2), (3,), (4,)]), method="closed-form").fit(X)
    gain = learner._gain(data, (2,), 0, 1)
    assert gain == pytest.approx((before.bic() - after.bic()) / 2)
    alone = ig.MRF(ig.FactorGraph(chordal.cards, [(i,) for i in range(5)]), method="closed-form").fit(X)
    assert mrf.bic() < alone.bic()
    assert max(map(len, ig.learn_structure(X, "greedy", cards=chordal.cards, largest=2).scopes)) == 2


@pytest.mark.parametrize(
    ("X", "options", "words"),
    [
        ([[0, -1]], {}, "states from 0 on, got -1 for variable 1 of sample 0; impute"),
        ([[0, 1]], {"cards": [2]}, "one number for each of 2 variables"),
        ([[0, 3]], {"cards": [2, 2]}, "states from 0 to 1 for variable 1"),
        ([[0.5, 1]], {}, "X"),
        ([[0, 1]], {"method": "chowliu"}, "did you mean 'chow-liu'"),
        ([[0, 1]], {"method": "neighbourhood", "rule": "xor"}, "'and' or 'or'"),
        ([[0, 1]], {"method": "greedy", "criterion": "dic"}, "'bic' or 'aic'"),
        ([[0, 1]], {"method": "chow-liu", "strength": 1.0}, "an option of 'chow-liu'"),
        ([[0, 1]], {"sample_weight": [0.0]}, "at least one weight above zero"),
    ],
)
def test_wrong_input_is_named(X, options, words):
    refuses(words, ig.learn_structure, X, **options)


@pytest.mark.parametrize("method", ["chow-liu", "neighbourhood", "greedy"])
def test_data_frames_and_labels(method):
    """The graph has the names of columns and states, and is that of the numbers."""
    pd = pytest.importorskip("pandas")
    X = ig.sample(ig.models.Ising(ig.chain_graph(3, 2)).potentials(coupling=0.8), 500, random_state=0)
    words = np.array(["no", "yes"])[X]
    frame = pd.DataFrame({name: words[:, i] for i, name in enumerate("abc")})
    found = ig.learn_structure(frame, method)
    assert found.names.variables == ("a", "b", "c")
    assert found.names.states[0] == ("no", "yes")
    assert found.scopes[:] == ig.learn_structure(X, method).scopes[:] == ig.learn_structure(words, method).scopes[:]
    mrf = ig.MRF(found, method="ipf").fit(frame)
    assert mrf.conditional("b", given={"a": "yes"})[1] > 0.7
    frame.loc[3, "b"] = None
    refuses("impute missing values", ig.learn_structure, frame, method)
    refuses("cards: expected None for a data frame", ig.learn_structure, frame, method, cards=[2, 2, 2])
