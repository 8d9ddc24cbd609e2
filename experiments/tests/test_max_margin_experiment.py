"""Max-margin learning beside likelihoods: accuracies, blocks and labels, and quick runs on a few examples."""

import os
from typing import ClassVar

import numpy as np
import pytest

import isinglass as ig
from isinglass_experiments import data
from isinglass_experiments.catalogue import make
from isinglass_experiments.margins import experiment, tasks


def test_standard_errors_are_those_of_words():
    rng = np.random.default_rng(0)
    truth = [rng.integers(0, 2, 4) for _ in range(400)]
    predicted = [np.where(rng.random(4) < 0.9, y, 1 - y) for y in truth]
    share, error = experiment.accuracy(predicted, truth)
    assert share == pytest.approx(0.9, abs=0.03)
    assert error == pytest.approx(np.sqrt(0.9 * 0.1 / 1600), rel=0.3)


def test_labels_that_do_not_count_are_left_out():
    truth = [np.array([0, 3, -1]), np.array([1, 0, 2])]
    share, _ = experiment.accuracy([[0, 0, 5], [1, 1, 1]], truth, [y > 0 for y in truth])
    assert share == pytest.approx(1 / 3)


def test_every_task_has_the_same_rivals():
    for task in tasks.TASKS.values():
        assert {"cl", "ucl", "uquad"} < set(task.methods)
        assert any(method.startswith("margin") for method in task.methods)
    with pytest.raises(ig.InputError, match="rows: expected some of letters/cl"):
        make("maxmargin", rows=["letters/hinge"]).run()


class Constant:
    """A classifier that says the same everywhere, and remembers what it was trained on."""

    n_iter_, converged_, message_ = 1, True, ""
    seen: ClassVar[list] = []

    def __init__(self, says, l2, **options):
        self.says, self.l2 = says, l2

    def fit(self, X, Y):
        self.seen.append((self.says, self.l2, list(X)))


class ConstantTask(tasks.Task):
    name, l2 = "constant", 8.0
    methods: ClassVar[dict] = {"margin": {}}
    choices: ClassVar[dict] = {"margin": ({"says": 0}, {"says": 1}, {"says": 2})}

    def load(self, data, quick):
        return (list(range(8)), [[2], [2], [2], [2], [2], [2], [1], [1]]), ([8, 9], [[0], [0]])

    def estimator(self, **options):
        return Constant(**options)

    def predict(self, crf, X):
        return [[crf.says] for _ in X]


def test_what_is_held_out_chooses_and_not_the_test(monkeypatch):
    monkeypatch.setattr(Constant, "seen", [])
    task = ConstantTask()
    found = experiment.MaxMargin()._trained("constant/margin", task, *task.load(None, False))
    part, whole = list(range(6)), list(range(8))
    assert Constant.seen == [(0, 6.0, part), (1, 6.0, part), (2, 6.0, part), (1, 8.0, whole)]
    assert found["held_out"] == [0.0, 1.0, 0.0]
    assert (found["accuracy"], found["test"]) == (0.0, 2)


@pytest.mark.long
@pytest.mark.parametrize(
    ("rows", "least", "behind"),
    [
        (("letters/cl", "letters/margin-1e-1"), 0.75, 0.03),
        (("labels/cl", "labels/margin"), 0.8, 0.03),
    ],
)
def test_quick_runs(rows, least, behind):
    if not os.environ.get("ISINGLASS_DATA"):
        pytest.skip("ISINGLASS_DATA is not set")
    report = make("maxmargin", quick=True, rows=rows).run()
    likelihood, margin = (row["accuracy"] for row in report.data["rows"])
    assert likelihood > least
    assert margin > likelihood - behind
    assert "duality gap" in report.data["rows"][1]["message"]
    assert [row[0] for row in report.rows] == list(rows)


def test_scene_labels_are_checked(tmp_path):
    np.savez(tmp_path / "scene.npz", X_train=np.zeros((2, 3)), y_train=np.full((2, 6), 2), X_test=np.zeros((1, 3)))
    with pytest.raises(ig.errors.FileFormatError, match="labels 0 and 1"):
        data.load_scene_labels(tmp_path)
    np.savez(tmp_path / "scene.npz", X_train=np.zeros((2, 3)), y_train=np.zeros((2, 6), int))
    with pytest.raises(ig.errors.FileFormatError, match="features and 6 labels"):
        data.load_scene_labels(tmp_path)
    if os.environ.get("ISINGLASS_DATA"):
        found = data.load_scene_labels()
        assert found.X_train.shape == (1211, 294)
        assert found.Y_test.shape == (598, 6)
