"""Street scenes and horses (Domke 2009, section 6.5), a few small ones."""

import os

import numpy as np
import pytest

import isinglass as ig
from isinglass_experiments.catalogue import make
from isinglass_experiments.data import Photographs
from isinglass_experiments.domke import scenes


@pytest.fixture
def tiny(monkeypatch):
    """Replace the photographs by small ones of two colours."""

    def load(_folder=None):
        rng = np.random.default_rng(0)
        Y = (rng.random((8, 12, 12)) < 0.5).astype(np.int64)
        X = np.stack([60 + 120 * Y + rng.integers(0, 60, Y.shape)] * 3, axis=-1).astype(np.uint8)
        Y[:, 0] = -1
        return Photographs(X, Y, X[::-1], Y[::-1])

    monkeypatch.setattr(scenes, "load_street_scenes", load)
    monkeypatch.setattr(scenes, "load_horses", load)


def test_rows_start_where_they_should_and_are_compared_with_the_baseline(tiny):
    report = make("scenes", quick=True, rows=["baseline", "uquad-1", "pseudo"]).run()
    rows = {row["row"]: row for row in report.data["rows"]}
    assert rows["baseline"]["p"] is None
    assert 0 <= rows["uquad-1"]["p"] <= 1
    assert rows["uquad-1"]["error"] < 0.3
    assert [row[2] for row in report.rows] == ["0.333", "0.252", "0.847"]
    assert len(report.pictures["scenes"]) == 4
    assert np.mean(rows["pseudo"]["by_image"]) == pytest.approx(rows["pseudo"]["error"])


def test_the_estimators_are_those_of_the_rows():
    Y = np.zeros((1, 2, 2), int)
    made = {row: scenes.Training(True, 1, None).estimator(row, Y).get_params() for row in scenes.ROWS}
    assert made["baseline"]["edges"] == "none"
    assert made["uquad + entropy"]["entropy"] == "fit"
    assert made["ucl"]["gradient"] == "implicit"
    assert made["ucl-2"]["iterations"] == 2
    assert set(scenes.PUBLISHED) <= set(scenes.ROWS)


def test_the_baseline_is_where_convex_rows_begin(tiny):
    data = scenes.load_street_scenes()
    X, Y = data.X_train[:2] / 255.0, data.Y_train[:2]
    training, fitted = scenes.Training(True, 1, None), {}
    base = training.fit("baseline", X, Y, fitted).crf
    model = training.estimator("uquad", Y)._model(X, 2)
    theta = np.zeros(model.size)
    theta[: len(base.theta_)] = scenes.INNER * base.theta_
    beliefs = ig.infer(model.potentials(theta), "convex")
    shaped = np.asarray(beliefs.variables).reshape(2, 12, 12, 2)[:, 1:-1, 1:-1]
    np.testing.assert_allclose(shaped, base.predict_marginals(X)[:, 1:-1, 1:-1], atol=1e-8)


@pytest.mark.long
def test_a_further_run_goes_on_from_the_checkpoints(tiny, tmp_path):
    folder = str(tmp_path / "kept")
    first = make("scenes", quick=True, rows=["uquad + entropy"], checkpoints=folder).run()
    assert sorted(os.listdir(folder)) == ["baseline.npz", "uquad+entropy.npz", "uquad.npz"]
    again = make("scenes", quick=True, rows=["uquad + entropy"], checkpoints=folder).run()
    assert again.data["rows"][0]["error"] == first.data["rows"][0]["error"]


@pytest.mark.parametrize("options", [{"rows": ["lbp"]}, {"rows": []}])
def test_wrong_options(options, tiny):
    with pytest.raises(ig.InputError, match="rows"):
        make("horses", quick=True, **options).run()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scenes", "horses"])
def test_quick_versions(name):
    if not os.environ.get("ISINGLASS_DATA"):
        pytest.skip("ISINGLASS_DATA is not set")
    report = make(name, quick=True).run()
    assert len(report.rows) == len(scenes.QUICK_ROWS)
