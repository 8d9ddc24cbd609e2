"""Noisy binary digits: the images of Domke's thesis (2009), section 6.2.

    y: a handwritten digit of MNIST, 28 x 28 pixels, 1 where there is ink (intensity above 0)
    x: y, with a share `noise` of the pixels set at random: 0 or 1 with probability 1/2 each

So half of the chosen pixels keep their value: at 50 % noise a quarter of the pixels are wrong. The chosen pixels
of an image are exactly round(noise * 784), drawn without replacement. Input features are the indicators of section
6.1.1 for discrete input, f_i(x) = ([x_i = 0], [x_i = 1]), so that univariate weights are a table psi(y_i, x_i).

`tools/make_digits.py` makes digits.npz; where it comes from and on what terms is told in README.md beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isinglass.datasets.noise import set_at_random, share_of
from isinglass.errors import FileFormatError, InputError
from isinglass.io import read_npz
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import RandomState, generator, whole_number

SIDE = 28
_FILE = Path(__file__).with_name("digits.npz")
_DIGITS = range(1, 10)  # the thesis leaves zero out


@dataclass(frozen=True, eq=False)
class NoisyDigits:
    """Images to denoise; unpacks to ``X, Y, X_test, Y_test``.

    Attributes
    ----------
    X, X_test : float arrays (n, 28, 28, 2)
        The noisy input as two indicators: ``X[..., 0]`` is 1 where the noisy pixel is 0, and ``X[..., 1]`` is the noisy
        picture.
    Y, Y_test : int arrays (n, 28, 28)
        The truth: 1 is ink.
    digits, digits_test : int arrays (n,)
        Which digit it is: 1, 2, ..., 9, 1, 2, ...
    noise : float
        The share of the pixels that were set at random.
    """

    X: FloatArray = field(repr=False)
    Y: IntArray = field(repr=False)
    X_test: FloatArray = field(repr=False)
    Y_test: IntArray = field(repr=False)
    digits: IntArray = field(repr=False)
    digits_test: IntArray = field(repr=False)
    noise: float

    def __iter__(self) -> Iterator[Array]:
        return iter((self.X, self.Y, self.X_test, self.Y_test))


def binary_digits() -> tuple[NDArray[np.uint8], IntArray]:
    """Return the binary digits that come with the library, sorted by digit.

    Returns
    -------
    images : uint8 array (n, 28, 28)
        1 where there is ink.
    digits : int array (n,)
        0 to 9, equally often.

    Examples
    --------
    >>> images, digits = binary_digits()
    >>> images.shape[1:], sorted(set(digits.tolist()))
    ((28, 28), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    arrays = read_npz(_FILE, limit=2**22)
    bits, digits = arrays.get("bits"), arrays.get("digits")
    if bits is None or digits is None or bits.shape != (len(digits), SIDE * SIDE // 8) or bits.dtype != np.uint8:
        raise FileFormatError(
            _FILE.name, None, "bits (n, 98) and digits (n,)", "other arrays", "install isinglass again"
        )
    return np.unpackbits(bits, axis=1).reshape(-1, SIDE, SIDE), digits.astype(np.int64)


def noisy_digits(
    noise: float,
    n_train_per_digit: int = 10,
    n_test_per_digit: int = 10,
    random_state: RandomState = 0,
) -> NoisyDigits:
    """Return noisy images of the digits 1 to 9 for training and testing: thesis of Domke (2009), section 6.2.

    Parameters
    ----------
    noise : float
        The share of the pixels of each image that get a random value, 0 to 1; half of them keep theirs. The thesis
        has 0.1, 0.3, 0.5 and 0.7.
    n_train_per_digit, n_test_per_digit : int
        How many images of each digit; training and test images are different images.
    random_state : int, numpy.random.Generator or None
        The same seed gives the same images at every noise level, and the noise of a lower level is part of that of a
        higher one. The test images do not depend on the number of training images, and more training images add
        to fewer.

    Returns
    -------
    NoisyDigits

    Examples
    --------
    >>> X, Y, X_test, Y_test = noisy_digits(noise=0.5)
    >>> X.shape, Y.shape
    ((90, 28, 28, 2), (90, 28, 28))
    >>> float((X[..., 1] != Y).mean().round(2))  # half of the half that was set at random
    0.25
    """
    share = share_of(noise)
    n_train = whole_number(n_train_per_digit, "n_train_per_digit")
    n_test = whole_number(n_test_per_digit, "n_test_per_digit")
    choice, train_noise, test_noise = generator(random_state).integers(2**63, size=3)
    images, digits = binary_digits()
    chosen = _choose(digits, n_train, n_test, int(choice))
    train, test = chosen[n_test:].ravel(), chosen[:n_test].ravel()
    X, Y = _pairs(images[train], share, int(train_noise))
    X_test, Y_test = _pairs(images[test], share, int(test_noise))
    return NoisyDigits(X, Y, X_test, Y_test, digits[train], digits[test], share)


def _choose(digits: IntArray, n_train: int, n_test: int, seed: int) -> IntArray:
    """Return indices (n_test + n_train, 9): a column for each digit, in random order."""
    rng = np.random.default_rng(seed)
    columns = [rng.permutation(np.flatnonzero(digits == digit)) for digit in _DIGITS]
    available = min(len(column) for column in columns)
    if n_train + n_test > available:
        expected = f"together with n_test_per_digit at most {available}, the images there are of each digit"
        raise InputError("n_train_per_digit", expected, f"{n_train} + {n_test}", "ask for fewer of either")
    return np.stack([column[: n_test + n_train] for column in columns], axis=1)


def _pairs(images: NDArray[np.uint8], noise: float, seed: int) -> tuple[FloatArray, IntArray]:
    """Return the features of noisy copies, and the labels."""
    labels = images.astype(np.int64)
    noisy = set_at_random(labels, noise, np.random.default_rng(seed))
    return np.stack([noisy == 0, noisy == 1], axis=-1).astype(np.float64), labels
