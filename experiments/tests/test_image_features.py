"""Attributes of tokens and features of images against plain loops."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import isinglass as ig
from isinglass_experiments.data import ImageFeatures
from isinglass_experiments.data.images import BINS, LEAST, gradient_histograms, nearest_centres, patches_of


def mirrored(i, n):
    while not 0 <= i < n:
        i = -i if i < 0 else 2 * n - 2 - i
    return i


def at(image, y, x):
    return image[mirrored(y, image.shape[0]), mirrored(x, image.shape[1])]


def plain_histogram(image, y, x, scale):
    """The histogram at a pixel, as the text says."""
    side, step = 2 * scale + 1, 2**scale

    def box(image, y, x):
        places = range(-scale, scale + 1)
        return np.mean([at(image, y + a, x + b) for a in places for b in places])

    boxes = np.array([[box(image, a, b) for b in range(image.shape[1])] for a in range(image.shape[0])])
    histogram, energy = np.zeros(BINS), 0.0
    for a in range(-3, 4):
        for b in range(-3, 4):
            v, u = mirrored(y + a * step, image.shape[0]), mirrored(x + b * step, image.shape[1])
            dx = at(boxes, v, u + side) - at(boxes, v, u - side)
            dy = at(boxes, v + side, u) - at(boxes, v - side, u)
            angle = np.degrees(np.arctan2(dy, dx)) % 360
            histogram[int((angle + 22.5) // 45) % BINS] += np.hypot(dx, dy)
            energy += dx**2 + dy**2
    return histogram / np.sqrt(LEAST**2 + energy)


@pytest.mark.parametrize("scale", [0, 1, 2])
def test_histograms(scale):
    image = np.random.default_rng(0).random((17, 19))
    found = gradient_histograms(image, scale)
    for y, x in ((8, 9), (0, 0), (16, 3)):
        assert_allclose(found[y, x], plain_histogram(image, y, x, scale), atol=1e-12)


def test_patches_and_clusters():
    rng = np.random.default_rng(1)
    image = rng.random((9, 8, 3))
    found = patches_of(image, 0).reshape(9, 8, 5, 5, 3)
    assert_array_equal(found[4, 4], image[2:7, 2:7])
    assert_array_equal(found[0, 0, 0, 0], image[2, 2])  # as in a mirror
    centres = rng.random((6, 75))
    near = nearest_centres(image, 0, centres)
    distance = ((patches_of(image, 0)[..., None, :] - centres) ** 2).sum(axis=-1)
    assert_array_equal(near.argmax(axis=2), distance.argmin(axis=2))
    assert (near.sum(axis=2) == 1).all()
    flat = patches_of(np.full((9, 8, 3), 0.3), 2)
    assert_allclose(flat, 0.3)


def test_the_transformer():
    X = np.random.default_rng(2).integers(0, 256, (3, 12, 16, 3)).astype(np.uint8)
    features = ImageFeatures(clusters=5, patches=200)
    out = features.fit_transform(X)
    assert out.shape == (3, 12, 16, 3 + 24 + 15)
    assert_allclose(out[..., :3], X / 255)
    assert_array_equal(clone(features).fit(X).transform(X), out)
    assert_array_equal(pickle.loads(pickle.dumps(features)).transform(X), out)
    listed = features.transform([X[0], X[1][:7]])
    assert_array_equal(listed[0], out[0])
    assert listed[1].shape == (7, 16, 42)
    Y = (X[..., 0] > 128).astype(int)
    crf = make_pipeline(features, ig.GridCRF(iterations=1, l2=1.0, max_iter=5))
    with pytest.warns(ig.ConvergenceWarning):
        crf.fit(X, Y)
    assert crf.score(X, Y) > 0.8
    assert ImageFeatures().fit(np.tile(X, (1, 2, 2, 1))).n_features_out_ == 177


def test_whitened_features_span_the_same_and_have_equal_moments():
    X = np.random.default_rng(3).integers(0, 256, (3, 12, 16, 3)).astype(np.uint8)
    plain, white = (ImageFeatures(4, 200, whiten=w).fit_transform(X).reshape(-1, 39) for w in (False, True))
    moments = white.T @ white / len(white)
    lengths = np.linalg.eigvalsh(plain.T @ plain / len(plain))
    assert_allclose(moments, np.diag(lengths / (lengths + 1e-3)), atol=1e-10)
    assert np.linalg.matrix_rank(np.hstack([plain, white]), 1e-6) == np.linalg.matrix_rank(plain, 1e-6)
    with pytest.raises(ig.InputError, match="whiten"):
        ImageFeatures(whiten="yes").fit(X)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([], "at least one image"),
        (5, "in an array or a list, got int"),
        (np.zeros((2, 5, 5)), r"X\[0\]: expected an image"),
        (np.full((1, 5, 5, 3), 2.0), "floats from 0 to 1"),
        (np.zeros((1, 5, 5, 3), int), "uint8"),
        (np.zeros((1, 2, 2, 3)), "clusters"),
    ],
)
def test_wrong_images(X, words):
    with pytest.raises(ig.InputError, match=words):
        ImageFeatures().fit(X)


def test_not_fitted():
    with pytest.raises(ValueError, match="not fitted"):
        ImageFeatures().transform(np.zeros((1, 5, 5, 3)))
