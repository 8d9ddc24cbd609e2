"""A small black and white picture, the same with noise, and the Ising model that takes the noise away.

    log p(x | y) = sum_i log p(y_i | x_i) + coupling * sum_ij s_i s_j - log Z,   s_i = 2 x_i - 1

The picture is a fish: the first isinglass was made of them. It is 16 pixels high, so that exact inference is
easy (width 16) and still shows what an approximation loses.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from isinglass.datasets.noise import share_of
from isinglass.errors import InputError, require
from isinglass.graph import grid_graph
from isinglass.potentials import Potentials
from isinglass.typing import IntArray
from isinglass.validation import RandomState, generator, integers

_FISH = """
........................
..........####..........
........########........
......###########.....##
....##############...###
...################.####
..####..################
.#####..###############.
.#####..##############..
.#####################..
..#####################.
...################.####
....##############...###
......###########.....##
........########........
..........####..........
"""


def glyph() -> IntArray:
    """Return the picture: an int array (16, 24) of 0 (background) and 1.

    Examples
    --------
    >>> picture = glyph()
    >>> picture.shape, int(picture.sum())
    ((16, 24), 225)
    """
    return np.array([[int(mark == "#") for mark in row] for row in _FISH.split()], np.int64)


def noisy_glyph(noise: float = 0.3, random_state: RandomState = 0) -> tuple[IntArray, IntArray]:
    """Return the picture and a noisy copy of it.

    Parameters
    ----------
    noise : float
        The share of the pixels, drawn at random, that get a random value; half of them keep theirs.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    truth, observed : int arrays (16, 24)

    Examples
    --------
    >>> truth, observed = noisy_glyph(noise=0.3, random_state=0)
    >>> float((truth != observed).mean().round(2))
    0.16
    """
    share = share_of(noise)
    rng = generator(random_state)
    truth = glyph()
    observed = truth.copy()
    chosen = rng.permutation(truth.size)[: round(share * truth.size)]
    observed.flat[chosen] = rng.integers(0, 2, len(chosen))
    return truth, observed


def denoising_model(observed: ArrayLike, noise: float = 0.3, coupling: float = 0.5) -> Potentials:
    """Return an Ising model of the picture behind a noisy one.

    Parameters
    ----------
    observed : int array (height, width)
        Pixels 0 or 1, or -1 where nothing was observed.
    noise : float
        The share of the pixels that got a random value; a pixel is wrong with probability ``noise / 2``.
    coupling : float
        How strongly neighbours want to be equal, in nats for each unit of s_i s_j.

    Returns
    -------
    Potentials
        On ``grid_graph(height, width, 2)``; state 0 is spin -1. All edges share one table.

    Examples
    --------
    >>> denoising_model([[0, 1], [1, -1]], noise=0.2).log_tables[4].tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    """
    pixels = _pixels(observed)
    wrong = share_of(noise) / 2
    with np.errstate(divide="ignore"):
        likelihood = np.log([[1 - wrong, wrong], [wrong, 1 - wrong], [1.0, 1.0]])
    require(np.isfinite(coupling), "coupling", "a finite number", repr(coupling))
    graph = grid_graph(pixels.shape[0], pixels.shape[1], 2)
    spins = np.array([-1.0, 1.0])
    tables = [likelihood[pixels.ravel()], coupling * np.multiply.outer(spins, spins)[None]]
    return Potentials.from_groups(graph, tables[: len(graph.groups)])


def _pixels(observed: ArrayLike) -> IntArray:
    pixels = integers(observed, "observed", 2)
    require(pixels.size, "observed", "at least one pixel", f"shape {pixels.shape}")
    if pixels.min() < -1 or pixels.max() > 1:
        raise InputError("observed", "pixels 0, 1 or -1 (not observed)", f"{pixels.min()} to {pixels.max()}")
    return pixels
