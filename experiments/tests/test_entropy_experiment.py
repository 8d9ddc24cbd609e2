"""Entropies, fixed and fitted (Domke 2009, section 6.3), on tiny subsets."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig
from isinglass.cli.main import main
from isinglass_experiments.catalogue import make
from isinglass_experiments.common.methods import LOSSES, Training, error, predict
from isinglass_experiments.domke import entropy
from isinglass_experiments.domke.entropy import ROWS, Entropy, Plan, weights_of

FEW = Training(max_iter=2)


@pytest.fixture
def tiny(monkeypatch):
    """Make the experiment one of nine images and two iterations."""
    genuine = Entropy._plan

    def plan(self):
        whole = genuine(self)
        return Plan(whole.rows, whole.noise, whole.draws, 1, FEW)

    monkeypatch.setattr(Entropy, "_plan", plan)


@pytest.mark.parametrize(
    ("options", "word"),
    [({"rows": ["D"]}, "rows"), ({"rows": []}, "rows"), ({"noise": [2.0]}, "noise"), ({"noise": []}, "noise"),
     ({"draws": 0}, "draws"), ({"n_jobs": 0}, "n_jobs")],
)  # fmt: skip
def test_wrong_options(options, word):
    with pytest.raises(ig.InputError, match=word):
        make("entropy", **options).run()


def test_the_entropies():
    assert ROWS == ("A", "B", "C", "r1", "r2", "r3", "r4", "r5")
    assert [weights_of(row) for row in "ABC"] == ["A", "B", "C"]
    tables = [np.concatenate([t.ravel() for t in weights_of(row).values()]) for row in ROWS[3:]]
    assert np.min(tables) > 0
    assert np.max(tables) < 1
    assert len({t.tobytes() for t in tables}) == 5
    assert tables[0].tobytes() == np.concatenate([t.ravel() for t in weights_of("r1").values()]).tobytes()


@pytest.mark.long
def test_fitting_goes_on_from_the_fixed_entropy():
    """As the three stages of one estimator."""
    data = ig.datasets.noisy_digits(0.5, 1, 1)
    found = entropy.train("r2", data, FEW)
    stages = [{"loss": "cl", "gradient": "envelope"}, "ucl", {"entropy": "fit"}]
    crf = ig.GridCRF(
        ig.ConvexFreeEnergy(weights=weights_of("r2")),
        gradient="implicit",
        l2=1e-3,
        bias=False,
        max_iter=2,
        tol=0.0,
        stages=stages,
    )
    with pytest.warns(ig.ConvergenceWarning, match="stage 2"):
        crf.fit(data.X, data.Y)
    assert_allclose(found["fitted"].theta, crf.theta_[:-6], rtol=1e-6)
    for name, table in crf.entropy_.items():
        assert_allclose(found["fitted"].entropy[name], table, rtol=1e-6)
        assert abs(table - weights_of("r2")[name]).max() > 1e-4
    assert found["fixed"].entropy is None
    expected = 1 - crf.score(data.X_test, data.Y_test)
    assert error(predict(found["fitted"], data.X_test), data.Y_test) == pytest.approx(expected)


@pytest.mark.long
@pytest.mark.usefixtures("tiny")
def test_report():
    seen = []
    report = make("entropy", rows=["A", "r1"], noise=[0.3, 0.5], n_jobs=1).run(lambda *told: seen.append(told))
    assert report.columns == [
        "entropy",
        *(t for n in (30, 50) for k in ("fixed", "fitted") for t in (f"{n}% {k}", "publ.")),
    ]
    assert [row[2::2] for row in report.rows] == [["-", "-", ".0710", ".050-.059"], ["-", "-", "-", ".050-.059"]]
    assert [row[0] for row in report.rows] == ["A", "r1"]
    assert all(text.endswith("*") for row in report.rows for text in row[1::2])
    assert seen[-1][1] == 1.0
    rows = {(row["row"], row["noise"], row["kind"]): row for row in report.data["rows"]}
    assert len(rows) == 8
    assert min(np.min(table) for table in rows["r1", 0.5, "fitted"]["draws"][0]["entropy"].values()) > 0
    assert rows["A", 0.5, "fixed"]["draws"][0]["entropy"] is None
    assert rows["A", 0.3, "fixed"]["error"] < rows["A", 0.5, "fixed"]["error"]
    assert set(report.pictures) == {f"entropy-{n}-{kind}" for n in (30, 50) for kind in ("fixed", "fitted")}
    assert [title for title, _ in report.pictures["entropy-50-fitted"]] == ["truth", "input", "A", "r1"]
    assert set(report.plots) == {f"entropy-{name}" for name in ("error", *LOSSES)}
    line = report.plots["entropy-ucl"].lines["fitted, 50% noise"]
    assert line == ([1, 2], [rows[row, 0.5, "fitted"]["ucl"] for row in ("A", "r1")])


@pytest.mark.long
@pytest.mark.usefixtures("tiny")
def test_the_figures_are_drawn(tmp_path, capsys):
    argv = ["reproduce", "entropy", "--quick", "--rows", "C", "--n-jobs", "1", "--out", str(tmp_path), "--quiet"]
    assert main(argv) == 0
    assert len(list(tmp_path.glob("*.png"))) == 2 + 5
    assert ".050-.059" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.usefixtures("tiny")
def test_draws_are_averaged():
    report = make("entropy", rows=["B"], draws=2, n_jobs=1).run()
    first = report.data["rows"][0]
    assert first["error"] == np.mean([draw["error"] for draw in first["draws"]])
    assert "±" in report.rows[0][1]
