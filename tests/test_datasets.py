"""The data sets that come with the library."""

import numpy as np
import pytest

import isinglass as ig
from checks import refuses


def test_glyph():
    picture = ig.datasets.glyph()
    assert picture.shape == (16, 24)
    assert set(np.unique(picture)) == {0, 1}
    picture[:] = 0
    assert ig.datasets.glyph().any()  # a fresh array each time


def test_noise():
    truth, observed = ig.datasets.noisy_glyph()
    np.testing.assert_array_equal(truth, ig.datasets.glyph())
    np.testing.assert_array_equal(observed, ig.datasets.noisy_glyph(random_state=0)[1])
    assert (observed != ig.datasets.noisy_glyph(random_state=1)[1]).any()
    np.testing.assert_array_equal(ig.datasets.noisy_glyph(0.0)[1], truth)
    wrong = [(ig.datasets.noisy_glyph(0.5, seed)[1] != truth).mean() for seed in range(50)]
    assert max(wrong) < 0.5
    assert np.mean(wrong) == pytest.approx(0.25, abs=0.02)  # half of the chosen pixels keep their value


def test_model_is_the_posterior():
    """Against the definition: likelihood of each pixel times exp(coupling * sum of s_i s_j)."""
    rng = np.random.default_rng(0)
    observed = np.array([[0, 1, -1], [1, 1, 0]])
    noise, coupling = 0.3, 0.7
    p = ig.datasets.denoising_model(observed, noise, coupling)
    for _ in range(20):
        x = rng.integers(0, 2, (2, 3))
        s = 2 * x - 1
        seen = observed >= 0
        likelihood = np.where(x == observed, 1 - noise / 2, noise / 2)[seen]
        agreement = (s[:, 1:] * s[:, :-1]).sum() + (s[1:] * s[:-1]).sum()
        expected = np.log(likelihood).sum() + coupling * agreement
        assert float(p.log_score(x.ravel())) == pytest.approx(expected, abs=1e-12)
    assert len(p.groups[1]) == 1  # one shared table


def test_model_of_odd_sizes():
    assert ig.datasets.denoising_model([[1]]).graph.n_factors == 1
    assert ig.datasets.denoising_model([[1, 0, 1]]).graph.is_forest
    certain = ig.infer(ig.datasets.denoising_model([[1, 0]], noise=0.0))
    assert certain.variable(0).tolist() == [0, 1]


@pytest.mark.long
def test_denoising_helps():
    truth, observed = ig.datasets.noisy_glyph()
    beliefs = np.asarray(ig.infer(ig.datasets.denoising_model(observed)).variables)
    assert (beliefs.argmax(1).reshape(truth.shape) != truth).mean() < 0.6 * (observed != truth).mean()


@pytest.mark.parametrize("noise", [-0.1, 1.1, float("nan"), "0.1", True, None])
def test_bad_noise(noise):
    refuses("noise: expected a number from 0 to 1", ig.datasets.noisy_glyph, noise)
    refuses("noise", ig.datasets.denoising_model, [[1]], noise)


@pytest.mark.parametrize("observed", [[[2]], [[-2]], [[0.5]], [1], [[]], [[True]]])
def test_bad_pictures(observed):
    refuses("observed", ig.datasets.denoising_model, observed)


def test_bad_coupling():
    refuses("coupling", ig.datasets.denoising_model, [[1]], coupling=np.inf)


@pytest.mark.parametrize("algorithm", ["exact", "brute"])
def test_misconception(algorithm):
    """The numbers of Koller and Friedman (2009), section 4.2 and figure 4.2."""
    p = ig.datasets.misconception()
    r = ig.infer(p, algorithm)
    assert np.exp(r.log_z) == pytest.approx(7_201_840, rel=1e-12)
    best = ig.map_assignment(p, algorithm)
    assert best.states.tolist() == [0, 1, 1, 0]
    assert np.exp(best.score - r.log_z) == pytest.approx(0.69, abs=0.005)
    assert r.variable(1)[1] == pytest.approx(5_301_510 / 7_201_840, rel=1e-12)  # added up from figure 4.2
    given_c = ig.infer(p, algorithm, evidence={2: 0})
    assert given_c.variable(1)[1] == pytest.approx(0.06, abs=0.005)
