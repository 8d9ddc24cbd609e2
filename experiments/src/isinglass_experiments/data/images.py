"""Features of colour images for linear models: J. Domke (2009), section 6.5 and table 6.2.

At each pixel:

    colours      the three channels, from 0 to 1
    gradients    histograms of the directions of the brightness gradient, 8 bins, in a patch of 7 x 7 pixels that lie
                 2^k apart (k = 0, 1, 2). With dx, dy the differences of boxes of side 2k + 1 on both sides, a pixel's
                 weight is r / sqrt(0.01² + sum r²), r² = dx² + dy², the sum over the patch (Dalal and Triggs 2005)
    clusters     which of 50 centres the patch of 5 x 5 colours is nearest to, as indicators; at whole, half and quarter
                 scale: pixels 1, 2 and 4 apart in an image that is smoothed before

Beyond its border an image goes on as a mirror. Features can be whitened: with M the mean of x x' over all pixels of the
training images, M = U diag(s) U', they are then x' U diag(s + 1e-3)^(-1/2). A linear model of those is one of the
others, but gradient methods find it in far fewer iterations: its Hessian is nearer to a multiple of the identity.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import convolve1d, gaussian_filter, uniform_filter1d
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

from isinglass.errors import InputError, require
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import array_of, whole_number

BINS, REACH, LEAST = 8, 3, 0.01
RIDGE = 1e-3  # in the whitening: some features add up to one
PATCH = 5
SCALES = (0, 1, 2)


class ImageFeatures(BaseEstimator):  # type: ignore[misc]
    """From colour images to features of each pixel: a transformer of scikit-learn.

    Parameters
    ----------
    clusters : int, default=50
        Patch clusters at each scale.
    patches : int, default=20000
        Random patches of the training images that the clusters are made of, at each scale.
    random_state : int, default=0
    whiten : bool, default=False

    Attributes
    ----------
    centres_ : list of arrays (clusters, 75)
        For each scale.
    whitening_ : array (features, features), or None
    n_features_out_ : int
        3 + 24 + 3 clusters: 177 by default.

    Examples
    --------
    >>> X = np.random.default_rng(0).integers(0, 256, (2, 12, 16, 3)).astype(np.uint8)
    >>> ImageFeatures(clusters=4, patches=100).fit_transform(X).shape
    (2, 12, 16, 39)
    """

    def __init__(self, clusters: int = 50, patches: int = 20000, random_state: int = 0, whiten: bool = False) -> None:
        self.clusters = clusters
        self.patches = patches
        self.random_state = random_state
        self.whiten = whiten

    @threadpool_limits.wrap(limits=1, user_api="blas")  # type: ignore[untyped-decorator]
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Find the clusters of patches.

        Parameters
        ----------
        X : array (images, height, width, 3), or list of arrays (height, width, 3)
            uint8, or floats from 0 to 1.
        y : ignored
        """
        from sklearn.cluster import MiniBatchKMeans

        images = _images(X)
        wanted, count = whole_number(self.clusters, "clusters", 1), whole_number(self.patches, "patches", 1)
        seed = whole_number(self.random_state, "random_state")
        self.centres_: list[FloatArray] = []
        for scale in SCALES:
            rows = _some_patches(images, scale, count, np.random.default_rng([seed, scale]))
            require(len(rows) >= wanted, "clusters", f"at most {len(rows)}, the number of patches", f"{wanted}")
            found = MiniBatchKMeans(wanted, random_state=seed, n_init=3, batch_size=2048).fit(rows)
            self.centres_.append(np.asarray(found.cluster_centers_, np.float64))
        self.n_features_out_ = 3 + BINS * len(SCALES) + wanted * len(SCALES)
        self.whitening_: FloatArray | None = None
        require(isinstance(self.whiten, bool | np.bool_), "whiten", "True or False", repr(self.whiten))
        if self.whiten:
            self.whitening_ = self._whitening(images)
        return self

    @threadpool_limits.wrap(limits=1, user_api="blas")  # type: ignore[untyped-decorator]
    def transform(self, X: ArrayLike) -> Any:
        """Return features (images, height, width, features), a list of arrays if X is one."""
        if not hasattr(self, "centres_"):
            raise NotFittedError("this ImageFeatures is not fitted yet; call fit first")
        found = [self._features(image) for image in _images(X)]
        return found if isinstance(X, list | tuple) else np.stack(found)

    def fit_transform(self, X: ArrayLike, y: object = None) -> Any:
        """Fit, and return the features of the same images."""
        return self.fit(X).transform(X)

    def _features(self, image: FloatArray) -> FloatArray:
        histograms = [gradient_histograms(image.mean(axis=2), scale) for scale in SCALES]
        nearest = [nearest_centres(image, scale, self.centres_[scale]) for scale in SCALES]
        found = np.concatenate([image, *histograms, *nearest], axis=2)
        return found if self.whitening_ is None else np.asarray(found @ self.whitening_)

    def _whitening(self, images: list[FloatArray]) -> FloatArray:
        moments, pixels = np.zeros((self.n_features_out_,) * 2), 0
        for image in images:
            rows = self._features(image).reshape(-1, self.n_features_out_)
            moments, pixels = moments + rows.T @ rows, pixels + len(rows)
        lengths, directions = np.linalg.eigh(moments / pixels)
        return np.asarray(directions / np.sqrt(np.maximum(lengths, 0) + RIDGE))


def gradient_histograms(brightness: FloatArray, scale: int) -> FloatArray:
    """Return the histograms (height, width, 8) of gradient directions at a scale.

    Examples
    --------
    A ramp to the right has one direction, the first bin; its 49 weights are r / (7 r) each:

    >>> ramp = np.tile(np.arange(20.0), (20, 1))
    >>> gradient_histograms(ramp, 0)[10, 10].round(3).tolist()
    [7.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    dx, dy = (_difference(brightness, axis, scale) for axis in (1, 0))
    length = np.hypot(dx, dy)
    turn = np.arctan2(dy, dx) / (2 * np.pi) + 0.5 / BINS  # bins are centred at multiples of an eighth of a turn
    direction = np.floor(BINS * turn).astype(np.int64) % BINS
    votes = np.eye(BINS)[direction] * length[..., None]
    energy = _patch_sum(length[..., None] ** 2, scale)
    return np.asarray(_patch_sum(votes, scale) / np.sqrt(LEAST**2 + energy))


def nearest_centres(image: FloatArray, scale: int, centres: FloatArray) -> FloatArray:
    """Return indicators (height, width, clusters) of the centre that the patch around each pixel is nearest to."""
    height, width, _ = image.shape
    rows = patches_of(image, scale).reshape(height * width, -1)
    distance = (centres**2).sum(axis=1) - 2 * rows @ centres.T
    return np.asarray(np.eye(len(centres))[distance.argmin(axis=1)].reshape(height, width, -1))


def patches_of(image: FloatArray, scale: int) -> FloatArray:
    """Return the patch around each pixel, (height, width, 75), of an image that is smoothed for the scale."""
    step, reach = 2**scale, PATCH // 2
    smooth = image if scale == 0 else gaussian_filter(image, sigma=(step / 2, step / 2, 0), mode="mirror")
    height, width, _ = image.shape
    rows, columns = (_mirrored(np.arange(n)[:, None] + step * np.arange(-reach, reach + 1), n) for n in (height, width))
    found = smooth[rows[:, None, :, None], columns[None, :, None, :]]
    return np.asarray(found.reshape(height, width, -1))


def _some_patches(images: list[FloatArray], scale: int, count: int, random: np.random.Generator) -> FloatArray:
    """Return so many patches, spread over all images, or all if there are fewer."""
    each = -(-count // len(images))
    found = []
    for image in images:
        rows = patches_of(image, scale).reshape(-1, 3 * PATCH**2)
        found.append(rows[random.permutation(len(rows))[:each]])
    return np.concatenate(found)[:count] if len(images) * each > count else np.concatenate(found)


def _difference(brightness: FloatArray, axis: int, scale: int) -> FloatArray:
    """Return the difference of the box means on both sides, along an axis: [-1 0 1], each a box of side 2 scale + 1."""
    side = 2 * scale + 1
    boxes = brightness
    for each in (0, 1):
        boxes = uniform_filter1d(boxes, side, axis=each, mode="mirror") if side > 1 else boxes
    weights = np.zeros(2 * side + 1)
    weights[0], weights[-1] = 1.0, -1.0  # a convolution turns them round
    return np.asarray(convolve1d(boxes, weights, axis=axis, mode="mirror"))


def _patch_sum(values: FloatArray, scale: int) -> FloatArray:
    """Return sums over 7 x 7 pixels that lie 2^scale apart."""
    step = 2**scale
    weights = np.zeros(2 * REACH * step + 1)
    weights[::step] = 1.0
    rows = convolve1d(values, weights, axis=0, mode="mirror")
    return np.asarray(convolve1d(rows, weights, axis=1, mode="mirror"))


def _mirrored(places: IntArray, n: int) -> IntArray:
    """Fold places beyond a border back, as in a mirror: -1 is 1, n is n - 2."""
    period = max(2 * n - 2, 1)
    folded = np.abs(places) % period
    return np.where(folded < n, folded, period - folded)


def _images(X: ArrayLike) -> list[FloatArray]:
    """Check images, and return them as floats from 0 to 1."""
    if not isinstance(X, np.ndarray | list | tuple) or not np.size(X[:1]):
        got = "none" if isinstance(X, np.ndarray | list | tuple) else type(X).__name__
        raise InputError("X", "at least one image (height, width, 3), in an array or a list", got)
    found = []
    for i, image in enumerate(X):
        array = array_of(image, f"X[{i}]", "an image (height, width, 3)")
        if array.ndim != 3 or array.shape[2] != 3 or 0 in array.shape:
            raise InputError(f"X[{i}]", "an image (height, width, 3)", f"shape {array.shape}")
        if array.dtype == np.uint8:
            found.append(array / 255.0)
            continue
        if array.dtype.kind != "f" or not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 1):
            raise InputError(f"X[{i}]", "uint8, or floats from 0 to 1", f"dtype {array.dtype}", "divide by 255")
        found.append(array.astype(np.float64))
    return found
