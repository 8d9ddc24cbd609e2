"""Label bias, small: the MEMM fails where HMM and CRF do not."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

import isinglass as ig
from isinglass_experiments import labelbias
from isinglass_experiments.catalogue import make


def test_words_are_as_noisy_as_asked():
    X, Y = labelbias.words(4000, 3 / 32, np.random.default_rng(0))
    letters = np.array([[token[0] for token in x] for x in X])
    own = np.array([[state[0] for state in y] for y in Y])
    assert np.mean(letters != own) == pytest.approx(3 / 32, abs=0.01)
    assert {tuple(y) for y in Y} == set(labelbias.PATHS)


@pytest.mark.long
def test_the_memm_fails_where_the_others_are_as_good_as_can_be():
    report = make("labelbias", quick=True, noise=[0.05, 3 / 32, 0.2], draws=4, n_jobs=1).run()
    words = np.array(report.data["errors"])[..., 0]  # levels, draws, models
    hmm, memm, crf = np.moveaxis(words, 2, 0).reshape(3, -1)
    assert ttest_rel(memm, crf, alternative="greater").pvalue < 1e-6
    assert (memm > crf + 0.2).all()
    spread = np.sqrt(np.array(report.data["least"]) / (4 * 500))
    for found in (hmm, crf):
        assert (np.abs(found.reshape(3, 4).mean(axis=1) - report.data["least"]) < 4 * spread).all()
    assert report.rows[4][1:2] + report.rows[4][-1:] == ["MEMM", "0.420"]


def test_the_second_letter_says_nothing_to_the_memm():
    X, Y = labelbias.words(200, 0.05, np.random.default_rng(1))
    memm = ig.MEMM(l2=0.01, state_features="all", forbidden=labelbias.FORBIDDEN).fit(X, Y)
    one, two = memm.predict_marginals([[["r"], ["i"], ["b"]], [["r"], ["o"], ["b"]]])
    np.testing.assert_allclose(one, two, atol=1e-12)
    crf = ig.ChainCRF(l2=0.01, state_features="all", forbidden=labelbias.FORBIDDEN).fit(X, Y)
    assert crf.predict([[["r"], ["i"], ["b"]], [["r"], ["o"], ["b"]]]) == [list(path) for path in labelbias.PATHS]


@pytest.mark.parametrize("options", [{"noise": []}, {"noise": [0.8]}, {"noise": [-0.1]}, {"draws": 0}, {"n_jobs": 0}])
def test_wrong_options(options):
    with pytest.raises(ig.InputError, match=next(iter(options))):
        make("labelbias", quick=True, **options).run()
