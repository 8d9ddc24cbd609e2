"""Noise that sets a share of the pixels at random, as in the experiments of Domke's thesis (2009)."""

from __future__ import annotations

import numpy as np

from isinglass.errors import InputError
from isinglass.typing import IntArray


def share_of(noise: float) -> float:
    """Check a share from 0 to 1.

    Examples
    --------
    >>> share_of(0.5)
    0.5
    """
    if isinstance(noise, bool) or not isinstance(noise, int | float | np.number) or not 0 <= noise <= 1:
        raise InputError("noise", "a number from 0 to 1", repr(noise))
    return float(noise)


def set_at_random(images: IntArray, noise: float, rng: np.random.Generator) -> IntArray:
    """Return a copy of binary images in which round(noise * pixels) pixels of each are 0 or 1 by a fair coin.

    Parameters
    ----------
    images : int array (n, height, width)
    noise : float
        From 0 to 1.
    rng : numpy.random.Generator
        Two draws for each pixel, whatever the noise: with equal seeds a lower noise is part of a higher one, and
        the noise of an image does not depend on the images after it.

    Examples
    --------
    >>> images = np.zeros((2, 5, 4), np.int64)
    >>> set_at_random(images, 1.0, np.random.default_rng(0)).mean(axis=(1, 2)).tolist()
    [0.4, 0.55]
    """
    share = share_of(noise)
    pixels = images[0].size if len(images) else 0
    draws = rng.random((len(images), 2, pixels))
    chosen = draws[:, 0].argsort(axis=1).argsort(axis=1) < round(share * pixels)
    coins = (draws[:, 1] < 0.5).astype(np.int64)
    return np.where(chosen.reshape(images.shape), coins.reshape(images.shape), images)
