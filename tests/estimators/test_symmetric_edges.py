"""`GraphCRF(symmetric=True)`: which node of an edge is written first changes nothing."""

import numpy as np
import pytest
from estimator_helpers import graph
from numpy.testing import assert_allclose

import isinglass as ig
from checks import each_close, each_equal, refuses
from isinglass.learning.optimizers import Lbfgs


def directed_data(n=6, seed=0, edge_features=False):
    """Three labels that go round, so that a directed table pays; and the same graphs with some edges turned."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for i in range(n):
        size = 5 + i % 3
        y = (np.arange(size) + i) % 3
        edges = np.array([(j, (j + 1) % size) for j in range(size)] + [(0, 2)])
        parts = np.eye(3)[y] + rng.normal(size=(size, 3)), edges
        X.append((*parts, rng.random((len(edges), 2))) if edge_features else parts)
        Y.append(y)
    turned = [(x, np.where(rng.random((len(e), 1)) < 0.5, e[:, ::-1], e), *rest) for x, e, *rest in X]
    return X, turned, Y


@pytest.mark.long
@pytest.mark.parametrize("edge_features", [False, True])
@pytest.mark.parametrize("loss", ["ucl", "cl"])
def test_turning_edges_changes_nothing(edge_features, loss):
    X, turned, Y = directed_data(edge_features=edge_features)
    options = {"loss": loss, "gradient": "unrolled", "iterations": 4, "tol": 1e-8, "l2": 0.1}
    one, two = (graph(symmetric=True, **options).fit(some, Y) for some in (X, turned))
    assert_allclose(one.theta_, two.theta_, atol=1e-6)
    edge = one.parameters_["edge"]
    assert_allclose(edge, edge.swapaxes(-1, -2), atol=1e-12)
    each_close(one.predict_marginals(X), one.predict_marginals(turned), atol=1e-12)
    each_equal(one.predict(X), one.predict(turned))
    plain = graph(**options).fit(X, Y)
    assert any((a != b).any() for a, b in zip(plain.predict(X), plain.predict(turned), strict=True))


def test_it_is_the_best_of_symmetric_tables():
    """The optimum is that of the directed model with each edge written both ways, which has a symmetric table."""
    X, _, Y = directed_data()
    both = [(x, np.concatenate([e, e[:, ::-1]])) for x, e in X]
    options = {"loss": "pseudo", "iterations": None, "optimizer": Lbfgs(tol=1e-10, ftol=0), "l2": 0.1}
    one = graph(symmetric=True, edge_l2=0.4, **options).fit(X, Y)
    two = graph(edge_l2=1.6, **options).fit(both, Y)  # the table counts twice, so it is half as large: ||V / 2||² 1.6
    assert_allclose(two.parameters_["node"], one.parameters_["node"], atol=1e-6)
    assert_allclose(2 * two.parameters_["edge"], one.parameters_["edge"], atol=1e-6)


@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
def test_files_warm_starts_and_stages_keep_it(tmp_path):
    X, turned, Y = directed_data(edge_features=True)
    crf = graph(symmetric=[0]).fit(X, Y)
    crf.save(tmp_path / "crf.isg")
    again = ig.GraphCRF.load(tmp_path / "crf.isg")
    assert again.symmetric == [0]
    each_equal(again.predict_marginals(turned), crf.predict_marginals(turned))
    first, second = crf.parameters_["edge"]
    assert_allclose(first, first.T, atol=1e-12)
    assert not np.allclose(second, second.T)
    crf.set_params(symmetric=True, warm_start=True, max_iter=1, l2=0.0).fit(X, Y)
    for table in crf.parameters_["edge"]:
        assert_allclose(table, table.T, atol=1e-12)
    staged = graph(stages=[{"symmetric": False}, {"symmetric": True, "max_iter": 1}], l2=0.0).fit(X, Y)
    for table in staged.parameters_["edge"]:
        assert_allclose(table, table.T, atol=1e-12)


@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
def test_a_checkpoint_of_directed_tables_is_refused(tmp_path):
    X, _, Y = directed_data()
    path = tmp_path / "run.npz"
    graph(checkpoint=path, max_iter=2).fit(X, Y)
    refuses("checkpoint", graph(checkpoint=path, max_iter=2, symmetric=True).fit, X, Y)


@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
def test_entropies_are_symmetric(tmp_path):
    X, turned, Y = directed_data(3)
    options = {"inference": "convex", "gradient": "implicit", "iterations": None, "max_iter": 5, "l2": 1.0}
    crf = graph(symmetric=True, entropy="fit", **options).fit(X, Y)
    assert_allclose(crf.entropy_["factors"], crf.entropy_["factors"].T, atol=1e-12)
    each_close(crf.predict_marginals(X), crf.predict_marginals(turned), atol=1e-6)
    skew = {"variables": 0.1, "factors": 1.0 + np.triu(np.ones((3, 3)))}
    refuses(r"entropy.*\(w \+ w.T\) / 2", graph(symmetric=True, entropy=skew, **options).fit, X, Y)


@pytest.mark.parametrize("wrong", ["yes", [0], 2, None])
def test_wrong_choices(wrong):
    X, _, Y = directed_data(2)
    refuses("symmetric", graph(symmetric=wrong).fit, X, Y)
