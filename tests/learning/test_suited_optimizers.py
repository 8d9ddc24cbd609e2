"""The optimizer that training uses where none is chosen."""

import numpy as np
import pytest

import isinglass as ig
from isinglass.learning.optimizers import OPTIMIZERS, Lbfgs


def chains(n=40):
    rng = np.random.default_rng(0)
    Y = [rng.integers(0, 5, 8) for _ in range(n)]
    look = rng.normal(size=(5, 20)) > 0
    return [(look[y] ^ (rng.random((8, 20)) < 0.1)).astype(float) for y in Y], Y


def graphs(n=20):
    X, Y = chains(n)
    return [(x, [(i, (i + 1) % 8) for i in range(8)]) for x in X], Y


def images():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (6, 4, 4))
    return np.eye(2)[Y] + 0.3 * rng.normal(size=(6, 4, 4, 2)), Y


def label_sets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    return X, (X[:, :3] + 0.1 * rng.normal(size=(60, 3)) > 0).astype(int)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "data", "optimizer"),
    [
        (ig.ChainCRF, chains, "bcfw"),
        (ig.GraphCRF, graphs, "cutting-plane"),
        (ig.GridCRF, images, "cutting-plane"),
        (ig.MultiLabelCRF, label_sets, "cutting-plane"),
    ],
)
def test_a_margin_is_trained_well_by_default(kind, data, optimizer, capsys):
    crf = kind(loss="margin", verbose=True).fit(*data())
    assert f"optimizer: {optimizer!r}, by the loss" in capsys.readouterr().out
    assert crf.get_params()["optimizer"] == "auto"
    assert crf.converged_
    assert "duality gap" in crf.message_
    assert "tol = 0.01" in crf.message_
    assert crf.score(*data()) > 0.9
    assert crf.objective_ <= 1.01 * kind(loss="margin", optimizer="cutting-plane", tol=0.01).fit(*data()).objective_


def test_the_choice_follows_loss_and_penalties():
    def name(kind=ig.ChainCRF, **options):
        return kind(**options)._choices().optimizer.name

    assert name() == name(ig.GraphCRF) == name(ig.MEMM) == "lbfgs"
    assert ig.ChainCRF()._choices().optimizer == Lbfgs(tol=1e-4, max_iter=200)
    assert name(loss="margin", optimizer="lbfgs") == name(loss="margin", l2=0) == "lbfgs"
    assert name(ig.GraphCRF, loss="margin", edge_l2=0) == "lbfgs"
    assert name(loss="margin", l1=0.1) == name(l1=0.1) == "owlqn"
    assert name(loss="slack") == name(loss=ig.losses.Margin("f1")) == "cutting-plane"
    assert name(loss="perceptron") == name(loss="viterbi", l2=0) == "averaged-perceptron"
    assert name(ig.GraphCRF, loss="pcd") == name(ig.GraphCRF, loss="pcd", optimizer="lbfgs") == "adagrad"
    with pytest.raises(ig.InputError, match="optimizer"):
        name(optimizer="best")


def test_declared_optimizers_are_registered():
    declared = {cls.facts.optimizer for cls in ig.losses.LOSSES.values()} - {None}
    assert declared == {"cutting-plane", "averaged-perceptron"}
    assert declared <= set(OPTIMIZERS)


@pytest.mark.long
@pytest.mark.parametrize(("kind", "data"), [(ig.ChainCRF, chains), (ig.GraphCRF, graphs)])
def test_hidden_labels_are_completed(kind, data):
    X, Y = data(10)
    Y = [np.where(np.arange(8) == i % 8, -1, y) for i, y in enumerate(Y)]
    crf = kind(loss="margin").fit(X, Y)
    assert "with these completions" in crf.message_
    with pytest.raises(ig.InputError, match="all observed"):
        kind(loss="margin", optimizer="cutting-plane").fit(X, Y)


def test_a_perceptron_is_trained_by_default():
    X, Y = chains()
    assert ig.ChainCRF(loss="perceptron", l2=0).fit(X, Y).score(X, Y) > 0.95


def test_a_file_keeps_the_choice_open(tmp_path):
    X, Y = chains(10)
    crf = ig.ChainCRF(loss="margin").fit(X, Y)
    crf.save(tmp_path / "a.isg")
    again = ig.ChainCRF.load(tmp_path / "a.isg")
    assert again.optimizer == "auto"
    assert again.score(X, Y) == crf.score(X, Y)


def test_the_perceptron_leaves_zero_parameters_on_graphs():
    """There all assignments tie; the labels are one of them."""
    rng = np.random.default_rng(0)
    edges, W = np.array([(i, (i + 1) % 6) for i in range(6)]), rng.normal(size=(4, 3))
    X = [(rng.normal(size=(6, 4)), edges) for _ in range(12)]
    Y = [np.argmax(x @ W, axis=1) for x, _ in X]
    crf = ig.GraphCRF(loss="perceptron", l2=0.0).fit(X, Y)
    assert crf.converged_
    assert crf.score(X, Y) > 0.95
