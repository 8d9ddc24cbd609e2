"""Experiments on learning Markov random fields, small."""

import os

import numpy as np
import pytest

import isinglass as ig
from isinglass_experiments import data
from isinglass_experiments.catalogue import make
from isinglass_experiments.fields import dca, estimators, ipf

needs_data = pytest.mark.skipif("ISINGLASS_DATA" not in os.environ, reason="ISINGLASS_DATA is not set")


@needs_data
def test_tables_are_fitted():
    report = make("ipf", quick=True).run()
    rows = {(row[0], row[1]): row for row in report.rows}
    assert rows["HairEyeColor", "all pairs"][4:6] == ["6.761", "9"]
    assert rows["Titanic", "all pairs"][-1] == "4"
    assert all(row[6] == "1" for row in report.rows if row[1] == "independent")
    np.testing.assert_allclose(ipf.fitted(ipf.MURPHY), ipf.PUBLISHED, atol=1e-10)


@pytest.mark.long
def test_consistent_methods_get_better_with_samples():
    methods = ["ml", "pseudo", "mpf", "composite", "piecewise"]
    report = make("estimators", quick=True, draws=2, rows=methods, n_jobs=1).run()
    error = np.array(report.data["values"]).mean(axis=2)[:, :, 0]
    assert (error[:4, 1] < 0.6 * error[:4, 0]).all()
    assert error[4, 1] > 3 * error[0, 1]  # piecewise training is not consistent
    with pytest.raises(ig.InputError, match="rows"):
        make("estimators", rows=["mle"]).run()
    compared = {method.name for method in estimators.COMPARED.values()}
    assert compared == set(ig.learning.markov.METHODS) - {"closed-form"}  # every method that a grid can have


@pytest.mark.long
def test_recovery_rises_to_one():
    report = make("structure", quick=True, draws=4, n_jobs=1).run()
    exact = np.array(report.data["values"]).mean(axis=2)[:2, :, 0]
    assert (exact[:, 0] < 0.5).all()
    assert (exact[:, -1] == 1).all()


@pytest.mark.long
@needs_data
def test_couplings_find_more_contacts_than_mutual_information():
    report = make("dca", quick=True).run()
    found = report.data["precision"]
    assert report.data["base"] == pytest.approx(0.229, abs=0.001)
    assert found["pseudolikelihood, corrected"] > found["mutual information, corrected"]
    assert found["pseudolikelihood, corrected"] > 0.79


def test_weights_and_corrections():
    X = np.array([[1] * 10, [1] * 9 + [2], [3] * 10])
    np.testing.assert_allclose(dca.sequence_weights(X), [0.5, 0.5, 1])
    scores = np.add.outer(np.arange(4.0), np.arange(4.0))
    assert np.abs(dca.corrected(np.outer([1, 2, 3], [1, 2, 3]).astype(float))).max() < 1e-12
    assert dca.corrected(scores).shape == (4, 4)


@needs_data
def test_wrong_names_are_named():
    with pytest.raises(ig.InputError, match="HairEyeColor"):
        data.load_contingency("HairEye")
    table = data.load_contingency("UCBAdmissions")[0]
    assert table.counts.shape == tuple(map(len, table.levels))
    assert table.counts.sum() == 4526
