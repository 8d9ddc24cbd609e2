"""Wrong input: each error names the argument and what to do, before any work."""

import numpy as np
import pytest
from estimator_helpers import graph, graphs, grid, images

import isinglass as ig
from isinglass.estimators import estimator
from isinglass.learning.optimizers import Lbfgs, OwlQn

X, Y = images()
MASKED = np.ma.masked_greater(X, 1)
G, L = graphs()
HOLES = np.where(np.arange(X.size).reshape(X.shape) == 7, np.nan, X)


def on_grid(X=X, Y=Y, weights=None, validation=None, **options):
    return lambda: grid(**options).fit(X, Y, weights, validation)


def on_graph(X=G, Y=L, weights=None, validation=None, **options):
    return lambda: graph(**options).fit(X, Y, weights, validation)


WRONG = {
    # data
    "one image": (on_grid(X[0], Y[0]), "X", "X[np.newaxis]"),
    "fewer label images": (on_grid(list(X), list(Y)[:3]), "Y", "one array for each image"),
    "label images of another size": (on_grid([X[0], X[1][:2]], list(Y[:2])), "Y[1]", "labels of shape (2, 4)"),
    "a list of flat images": (on_grid([x[..., 0] for x in X], list(Y)), "X[0]", "(height, width, features)"),
    "images with other features": (on_grid([X[0], X[1][..., :1]], list(Y[:2])), "X", "same number of features"),
    "missing features in a list": (on_grid(list(HOLES), list(Y)), "X[0]", "missing values"),
    "fewer labels": (on_grid(Y=Y[:2]), "Y", "labels of shape (4, 3, 4), got shape (2, 3, 4)"),
    "other height": (on_grid(Y=Y[:, :2]), "Y", "labels of shape (4, 3, 4)"),
    "ragged labels": (on_grid(Y=[[0], [0, 1]]), "Y", "do not form an array"),
    "negative labels": (on_grid(Y=Y - 3), "Y", "number the labels from 0 on"),
    "labels beyond n_states": (on_grid(Y=Y * 3, n_states=2), "Y", "give n_states=4"),
    "spins": (on_grid(Y=2 * Y - 1), "Y", "use (Y + 1) // 2"),
    "float labels": (on_grid(Y=Y * 1.0), "Y", ".astype(int)"),
    "words and numbers for labels": (on_grid(Y=np.where(Y, "y", Y.astype(object))), "Y[0]", "None is a label"),
    "words and numbers on graphs": (
        on_graph(Y=[np.where(y, "y", y.astype(object)) for y in L]),
        "Y[0]",
        "None is a label",
    ),
    "one word for all labels": (on_grid(Y=np.full(Y.shape, "y")), "Y", "None is"),
    "fractions for labels": (on_grid(Y=Y + 0.5), "Y", "np.unique(Y, return_inverse=True)"),
    "labels that are nan": (on_grid(Y=np.where(Y, np.nan, Y)), "Y", "put -1 where it is not observed"),
    "labels beyond an int64": (on_grid(Y=np.where(Y, np.uint64(2**64 - 1), np.uint64(0))), "Y", "18446744073709551615"),
    "masked features": (on_grid(MASKED), "X", "fill in or drop masked values"),
    "masked features in a list": (on_grid(list(MASKED), list(Y)), "X[0]", "masked"),
    "masked node features": (
        on_graph([(np.ma.masked_greater(x, 1), e) for x, e in G]),
        "X[0]: node_features",
        "masked",
    ),
    "masked edges": (on_graph([(x, np.ma.masked_equal(e, 2)) for x, e in G]), "X[0]: edges", "what is masked"),
    "masked weights": (on_grid(weights=np.ma.masked_equal([1, 2, 3, 0], 0)), "sample_weight", "what is masked"),
    "masked class weights": (on_grid(class_weight=np.ma.masked_equal([1, 0], 0)), "class_weight", "what is masked"),
    "masked labels in a list": (on_grid(Y=[np.ma.masked_equal(y, 1) for y in Y]), "Y", ".filled(-1)"),
    "too many threads": (on_grid(n_jobs=2**40), "n_jobs", "or -1 for all processors"),
    "one label": (on_grid(Y=0 * Y), "Y", "or give n_states"),
    "no labels": (on_grid(Y=0 * Y - 1, n_states=2), "Y", "-1 is not observed"),
    "missing features": (on_grid(HOLES), "X", "fill in or drop missing values"),
    "objects": (on_grid(X.astype(object)), "X", ".astype(float)"),
    "no images": (on_grid([], []), "X", "give at least one image"),
    "no features": (on_grid(X[..., :0]), "X", "give at least one image and feature"),
    "no graphs": (on_graph([], []), "X", "at least one of tuples (node_features, edges)"),
    "features alone": (on_graph([x for x, _ in G]), "X[0]", "a tuple (node_features, edges)"),
    "one graph": (on_graph(G[0], L[0]), "Y", "one array for each example"),
    "fewer label arrays": (on_graph(Y=L[:3]), "Y", "labels for each of 4 examples, got 3"),
    "label arrays of other lengths": (on_graph(Y=L[::-1]), "Y[1]", "give each variable of an example a label"),
    "labels that are text": (on_graph(Y="abcd"), "Y", "a list of int arrays"),
    "spins on graphs": (on_graph(Y=[2 * y - 1 for y in L]), "Y", "use (Y + 1) // 2"),
    "float labels on graphs": (on_graph(Y=[y * 1.0 for y in L]), "Y[0]", ".astype(int)"),
    "edges out of range": (on_graph([(x, e + 3) for x, e in G]), "X[0]: edges", "count nodes from 0"),
    "edges the other way": (on_graph([(x, e.T) for x, e in G]), "X[0]: edges", "transpose it"),
    "float edges": (on_graph([(x, e * 1.0) for x, e in G]), "X[0]: edges", ".astype(int)"),
    "loops": (on_graph([(x, 0 * e) for x, e in G]), "X[0]: edges", "put what depends on one node in its features"),
    "missing node features": (on_graph([(x + np.nan, e) for x, e in G]), "X[0]: node_features", "missing values"),
    "different features": (on_graph([G[0], (G[1][0][:, :1], G[1][1]), *G[2:]]), "X", "same number of features"),
    "edge features in one": (on_graph([(*G[0], np.ones((5, 1))), *G[1:]]), "X", "in every example, or in none"),
    "edge feature rows": (on_graph([(x, e, x) for x, e in G]), "X[0]: edge_features", "a row for each of 5 edges"),
    "weights": (on_graph(weights=[1, 2]), "sample_weight", "one number for each of 4 examples"),
    "negative weights": (on_grid(weights=[1, 2, -1, 0]), "sample_weight", "leave out such examples"),
    "validation": (on_grid(validation=X), "validation", "a tuple (X, Y)"),
    "validation of three parts": (on_grid(validation=(X, Y, Y)), "validation", "got 3 parts"),
    "validation labels": (on_grid(validation=(X, Y[:2])), "validation[1]", "labels of shape (4, 3, 4)"),
    "validation without labels": (on_grid(validation=(X, 0 * Y - 1)), "validation[1]", "from 0 to 1"),
    "new labels for validation": (on_grid(validation=(X, 2 * Y)), "validation[1]", "give n_states"),
    "other features for validation": (on_grid(validation=(X[..., :1], Y)), "validation[0]", "the same features"),
    "edges for validation": (
        on_graph(validation=([(x, e + 3) for x, e in G], L)),
        "validation[0][0]: edges",
        "count nodes from 0",
    ),
    # names
    "loss": (on_grid(loss="ulc"), "loss", "did you mean 'ucl'?"),
    "loss object": (on_grid(loss=3), "loss", "a name such as 'ucl'"),
    "inference": (on_grid(inference="bpp"), "inference", "did you mean 'bp'?"),
    "inference class": (on_grid(inference=ig.Exact), "inference", "an object such as Exact()"),
    "gradient": (on_grid(gradient="unroled"), "gradient", "did you mean 'unrolled'?"),
    "gradient object": (on_grid(gradient=[]), "gradient", "one of 'unrolled'"),
    "optimizer": (on_grid(optimizer="lbgs"), "optimizer", "did you mean 'lbfgs'?"),
    "optimizer object": (on_grid(optimizer=None), "optimizer", "a name such as 'lbfgs'"),
    "decoder": (on_grid(decoder="mmp"), "decoder", "did you mean 'mpm'?"),
    "schedule": (on_grid(schedule="gird"), "schedule", "one of 'auto'"),
    "edges": (on_grid(edges="both"), "edges", "'directions', 'shared' or 'none'"),
    # numbers
    "l2": (on_grid(l2=-1), "l2", "a number of at least 0"),
    "edge_l2": (on_grid(edge_l2="much"), "edge_l2", "a number of at least 0"),
    "l1": (on_grid(l1=-1), "l1", "a number of at least 0"),
    "edge_l1": (on_graph(edge_l1="much"), "edge_l1", "a number of at least 0"),
    "l1 of an optimizer without": (on_grid(l1=1, optimizer=Lbfgs()), "optimizer", "use 'lbfgs' by name"),
    "iterations": (on_grid(iterations=0), "iterations", "a whole number of at least 1"),
    "n_states": (on_grid(n_states=1), "n_states", "a whole number of at least 2"),
    "max_iter": (on_grid(max_iter=2.5), "max_iter", "a whole number"),
    "patience": (on_grid(patience=0), "patience", "a whole number of at least 1"),
    "n_jobs": (on_grid(n_jobs=0), "n_jobs", "or -1 for all processors"),
    "n_jobs that is none": (on_graph(n_jobs=1.5), "n_jobs", "or -1 for all processors"),
    "tol": (on_grid(tol=np.nan), "tol", "a number of at least 0"),
    "bias": (on_grid(bias=1), "bias", "True or False"),
    "warm_start": (on_grid(warm_start="yes"), "warm_start", "True or False"),
    "callback": (on_grid(callback=3), "callback", "a function"),
    "checkpoint": (on_grid(checkpoint=3), "checkpoint", "a str or an os.PathLike"),
    "class_weight": (on_grid(class_weight="balance"), "class_weight", "did you mean 'balanced'?"),
    "class_weight length": (on_grid(class_weight=[1, 2, 3]), "class_weight", "one number for each of 2 labels"),
    "class_weight key": (on_grid(class_weight={2: 1.0}), "class_weight", "labels from 0 to 1"),
    "l1 of another length": (on_grid(optimizer=OwlQn(l1=[1.0])), "l1", "one or 14"),
    # combinations
    "envelope of beliefs": (on_grid(gradient="envelope"), "gradient", "use 'unrolled'"),
    "truncated fixed point": (on_grid(gradient="perturbation"), "gradient", "leave out iterations, or use 'unrolled'"),
    "max-marginals": (on_grid(inference="max-product"), "gradient", "see ig.combinations()"),
    "iterations of exact": (on_grid(inference="exact"), "iterations", "leave it out"),
    "class_weight of cl": (on_grid(loss="cl", class_weight="balanced"), "class_weight", "use a loss such as 'ucl'"),
    "own parameters of what": (on_grid(own_parameters=1), "own_parameters", "True or False"),
    "own parameters of mf": (on_grid(own_parameters=True, inference="mf"), "own_parameters", "use message passing"),
    "own parameters of no iterations": (
        on_grid(own_parameters=True, iterations=None),
        "own_parameters",
        "give iterations",
    ),
    "own parameters of cl": (on_graph(own_parameters=True, loss="cl"), "own_parameters", "a loss of beliefs"),
    "own parameters of pseudo": (on_graph(own_parameters=True, loss="pseudo"), "own_parameters", "a loss of beliefs"),
    "own parameters of mean field": (
        on_graph(own_parameters=True, inference=ig.MeanField(iterations=3)),
        "own_parameters",
        "use message passing",
    ),
    "edge_bias": (on_graph(edge_bias=True), "edge_bias", "one table is shared anyway"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_refused_before_any_work(name, monkeypatch):
    def work(*_):
        raise AssertionError("training began")

    monkeypatch.setattr(estimator, "train_stages", work)
    call, argument, remedy = WRONG[name]
    with pytest.raises(ig.InputError) as caught:
        call()
    assert caught.value.argument == argument
    assert remedy in str(caught.value)


@pytest.fixture(scope="module")
def fitted():
    return grid().fit(X, Y), graph().fit(G, L)


def test_other_features_at_prediction(fitted):
    on_images, on_graphs = fitted
    more = graphs(edge_features=True)[0]
    for call, message in {
        lambda: on_images.predict(X[..., :1]): "X: expected 2 features, as in fit, got 1; give the same features",
        lambda: on_images.predict(HOLES): "X: expected finite real numbers",
        lambda: on_images.predict(X[0]): "X: expected an array",
        lambda: on_graphs.predict([(np.ones((3, 5)), [(0, 1)])]): "X: expected 2 features, as in fit, got 5",
        lambda: on_graphs.predict_marginals(more): "give the same edge features as to fit",
        lambda: on_graphs.predict([]): "X: expected at least one",
        lambda: on_graphs.score(G, L[:2]): "Y: expected labels for each of 4 examples",
        lambda: on_images.score(X, 0 * Y - 1): "Y: expected at least one observed label",
    }.items():
        with pytest.raises(ig.InputError) as caught:
            call()
        assert message in str(caught.value)


def test_a_refused_fit_leaves_the_last_one(fitted):
    crf = fitted[0]
    theta = crf.theta_.copy()
    with pytest.raises(ig.InputError):
        crf.fit(X, Y * 1.0)
    assert (crf.theta_ == theta).all()


@pytest.mark.parametrize("make", [on_grid, on_graph])
def test_a_label_that_is_far_too_large(make):
    """10^5 as a label is one label; 10^5 states have tables that no memory holds: it is said, not tried."""
    far = np.where(Y, 10**5, 0) if make is on_grid else [np.where(y, 10**5, 0) for y in L]
    assert make(Y=far)().classes_.tolist() == [0, 10**5]
    with pytest.raises(ig.MemoryLimitError, match=r"tables of 100001 x 100001 labels need .* have fewer labels"):
        make(Y=far, n_states=10**5 + 1)()
    for states in (10**6, 10**12, 10**18, 2**63, 10**30):
        with pytest.raises(ig.MemoryLimitError, match="labels"):
            make(n_states=states, class_weight="balanced")()
    with pytest.raises(ig.MemoryLimitError, match="labels"):
        make(n_states=10**5, loss="pseudo", iterations=None)()


def test_exact_inference_that_does_not_fit_is_refused_by_one_example(monkeypatch):
    """The search for an order went through all images, 82 seconds of it, before the first was refused."""
    seen = []
    genuine = ig.Exact.shortage
    monkeypatch.setattr(ig.Exact, "shortage", lambda self, p: seen.append(p.graph.n_variables) or genuine(self, p))
    wide, labels = np.zeros((3, 40, 40, 1)), np.indices((3, 40, 40)).sum(axis=0) % 2
    with pytest.raises(ig.MemoryLimitError, match=r"does not fit .*, or use an approximate inference, such as 'bp'"):
        ig.GridCRF("exact", loss="cl").fit(wide, labels)
    assert seen == [40 * 40]


def test_edge_features_of_very_different_size_are_said():
    rng = np.random.default_rng(0)
    sized = [(*x, np.c_[np.ones(len(x[1])), rng.integers(0, 63, len(x[1]))]) for x in G]
    with pytest.warns(UserWarning, match=r"edge features have very different sizes, from 1 to \d\d .*divide each"):
        graph().fit(sized, L)
    graph().fit([(*x[:2], x[2] / [1, 36]) for x in sized], L)
    graph().fit([(*x[:2], np.eye(len(x[1]))[:, :2]) for x in sized], L)  # indicators have size 1, however rare


def test_masked_labels_are_not_observed():
    hidden = np.arange(Y.size).reshape(Y.shape) % 5 == 2
    masked = grid().fit(X, np.ma.array(Y.astype(np.uint8), mask=hidden))
    filled = grid().fit(X, np.where(hidden, -1, Y))
    assert masked.theta_.tobytes() == filled.theta_.tobytes()
    assert masked.score(X, np.ma.array(Y, mask=hidden)) == filled.score(X, np.where(hidden, -1, Y))
    assert grid().fit(np.ma.array(X), np.ma.array(Y)).theta_.tobytes() == grid().fit(X, Y).theta_.tobytes()
    on_graphs = [np.ma.array(y, mask=np.arange(len(y)) == 1) for y in L]
    one, two = (graph().fit(G, labels) for labels in (on_graphs, [y.filled(-1) for y in on_graphs]))
    assert one.theta_.tobytes() == two.theta_.tobytes()


def test_one_and_minus_one_may_be_scored():
    """Which labels there are is known by then: -1 beside 1 alone is not observed, as everywhere."""
    ones = np.where(Y == 1, 1, -1)
    crf = grid().fit(X, Y)
    assert crf.score(X, ones) == (crf.predict(X)[Y == 1] == 1).mean()
    grid(tol=1e9).fit(X, Y, validation=(X, ones))
    on_graphs = [np.where(y == 1, 1, -1) for y in L]
    assert 0 <= graph().fit(G, L).score(G, on_graphs) <= 1
    with pytest.raises(ig.InputError, match="observed"):
        crf.score(X, 0 * Y - 1)
