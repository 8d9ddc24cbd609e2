"""Other numbers of sweeps than in training (Domke 2009, section 6.4), on tiny subsets."""

from dataclasses import replace

import numpy as np
import pytest

import isinglass as ig
from isinglass.cli.main import main
from isinglass_experiments.catalogue import make
from isinglass_experiments.common.methods import Training, error, predict, train
from isinglass_experiments.domke import iterations


@pytest.fixture
def tiny(monkeypatch):
    """Make the experiment one of nine images and a few iterations."""
    genuine = iterations._errors
    training = Training(max_iter=4, tol=1e-3, most=20)
    monkeypatch.setattr(
        iterations, "_errors", lambda draw, plan: genuine(draw, replace(plan, images=1, training=training))
    )
    return training


@pytest.mark.parametrize(
    ("options", "word"),
    [({"rows": ["trw"]}, "rows"), ({"rows": []}, "rows"), ({"noise": [0.1, 0.2]}, "noise"), ({"n_jobs": 0}, "n_jobs")],
)
def test_wrong_options(options, word):
    with pytest.raises(ig.InputError, match=word):
        make("iterations", **options).run()


@pytest.mark.long
def test_errors_are_those_of_the_trained_model(tiny):
    report = make("iterations", rows=["ucl-1", "uquad-2"], draws=2, n_jobs=1).run()
    assert report.columns == ["trained", *map(str, range(1, 11))]
    assert [row[0] for row in report.rows] == ["ucl-1", "uquad-2"]
    assert [[cell.startswith("[") for cell in row].index(True) for row in report.rows] == [1, 2]
    data = ig.datasets.noisy_digits(0.5, 1, 1, random_state=1)
    start = train("trw", data.X, data.Y, tiny)
    fitted = train("uquad-2", data.X, data.Y, tiny, start.theta)
    mine = report.data["rows"][1]
    assert mine["draws"][1][1] == error(predict(fitted, data.X_test), data.Y_test)
    assert mine["error"][1] == pytest.approx(np.mean([draw[1] for draw in mine["draws"]]))
    assert len({*mine["draws"][1]}) > 1  # the number of sweeps changes the result


def test_the_figure_is_drawn(tiny, tmp_path, capsys):
    assert main(["reproduce", "iterations", "--quick", "--n-jobs", "1", "--out", str(tmp_path), "--quiet"]) == 0
    assert (tmp_path / "iterations.png").stat().st_size > 5000
