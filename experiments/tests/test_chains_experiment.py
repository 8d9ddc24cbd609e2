"""Losses on three kinds of chains (Domke 2009, section 3.7), few of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig
from isinglass.cli.main import main
from isinglass.models import chain_model
from isinglass_experiments.catalogue import make
from isinglass_experiments.common.statistics import holm, p_value
from isinglass_experiments.domke import chains


def test_worlds():
    rng = np.random.default_rng(0)
    x, y = chains.chains("semi", 400, np.zeros(8), rng)
    runs = np.diff(np.flatnonzero(np.diff(y[0])))
    assert (runs == chains.GROUP).all()
    assert (x != y).mean() == pytest.approx(0.3, abs=0.01)
    x, y = chains.chains("misspecified", 400, np.zeros(8), rng)
    assert set(np.minimum(y.sum(axis=1), chains.LENGTH - y.sum(axis=1))) == {chains.CHANGED}
    assert (x != y).mean() == pytest.approx(0.38, abs=0.01)  # 38 of 50 places


def test_labels_of_the_well_specified_world_follow_its_crf():
    theta = np.random.default_rng(1).normal(size=8)
    x = np.tile(np.random.default_rng(2).integers(0, 2, (1, chains.LENGTH)), (20000, 1))
    y = chains._drawn(x, theta, np.random.default_rng(3))
    r = ig.infer(chain_model([np.eye(2)[x[0]]], 2).potentials(theta), "exact")
    assert_allclose(y.mean(axis=0), np.asarray(r.variables)[:, 1], atol=0.015)
    pair = np.mean(y[:, 10] & y[:, 11])
    assert pair == pytest.approx(r.factor(chains.LENGTH + 10)[1, 1], abs=0.015)


def test_adjusted_p_values():
    assert_allclose(holm([0.001, 0.02, 0.03, 0.9]), [0.004, 0.06, 0.06, 0.9])
    assert p_value(np.array([1.0, 2.0, 4.0]), np.array([2.0, 3.5, 5.0])) < 0.1


@pytest.mark.long
def test_losses_start_from_the_likelihood_and_marginal_ones_win_where_the_model_is_wrong():
    report = make("chains", quick=True, rows=["cl", "ucl", "pseudo"], draws=5, n_jobs=1).run()
    assert [row[:2] for row in report.rows[-3:]] == [["misspecified", name] for name in ("cl", "ucl", "pseudo")]
    means = np.array(report.data["means"])[2, :, -1, 0]
    assert means[1] < means[0] < means[2]
    tests = {(t["better"], t["worse"]): t["p"] for t in report.data["tests"]["misspecified"]}
    assert tests["ucl", "cl"] < 0.01
    assert "cl is beaten by ucl" in report.notes[3]


@pytest.mark.long
def test_figures(tmp_path, monkeypatch):
    monkeypatch.setattr(chains, "LENGTH", 12)
    command = ["reproduce", "chains", "--quick", "--draws", "2", "--rows", "cl,ucl", "--n-jobs", "1", "--quiet"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    assert len(list(tmp_path.glob("chains-*.png"))) == 3 * 5


@pytest.mark.parametrize("options", [{"rows": ["f1"]}, {"rows": []}, {"draws": 1}, {"n_jobs": 0}])
def test_wrong_options(options):
    with pytest.raises(ig.InputError, match=next(iter(options))):
        make("chains", quick=True, **options).run()
