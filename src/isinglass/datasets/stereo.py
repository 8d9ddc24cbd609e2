"""A pair of photographs from two places, and how far apart their pixels are: Tsukuba (Scharstein and Szeliski 2002).

The images are rectified: what is at column x on the left is at column x - d on the right, d being the *disparity*.
`stereo_model` makes a pairwise model of it, in which states are disparities (Boykov, Veksler and Zabih 2001):

    phi_i(d)       =  - min(mean over colours of |left_i - right_{i-d}|, 20) / 10
    phi_ij(d, e)   =  - strength min(|d - e|, 2)
"""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isinglass.datasets.folder import data_arrays
from isinglass.errors import FileFormatError
from isinglass.graph.builders import grid_graph
from isinglass.potentials import Potentials
from isinglass.typing import IntArray
from isinglass.validation import number, whole_number


class Stereo(NamedTuple):
    """Images uint8 (height, width, 3), and the disparity of each pixel on the left, -1 where it is unknown."""

    left: NDArray[np.uint8]
    right: NDArray[np.uint8]
    disparity: IntArray


def load_stereo(data_dir: str | os.PathLike[str] | None = None) -> Stereo:
    """Read the Tsukuba pair, 288 x 384 pixels with disparities from 5 to 14.

    Parameters
    ----------
    data_dir : str or os.PathLike, optional
        The folder of stereo_tsukuba_venus.npz; else the one that the environment variable ISINGLASS_DATA names.
    """
    name = "stereo_tsukuba_venus.npz"
    arrays = data_arrays(name, data_dir)
    left, right, disparity = (arrays.get(f"tsukuba_{what}") for what in ("left", "right", "disp"))
    if left is None or right is None or disparity is None or left.dtype != np.uint8 or left.shape != right.shape:
        raise FileFormatError(name, None, "arrays tsukuba_left, tsukuba_right and tsukuba_disp", "something else")
    if left.shape != (*disparity.shape, 3) or disparity.dtype.kind != "i":
        raise FileFormatError(name, None, f"disparities of shape {left.shape[:2]}", f"shape {disparity.shape}")
    return Stereo(left, right, disparity.astype(np.int64))


def stereo_model(
    left: NDArray[np.uint8], right: NDArray[np.uint8], n_disparities: int, strength: float = 0.3
) -> Potentials:
    """Return the pairwise model of a rectified pair; states are disparities from 0 on.

    Examples
    --------
    >>> left = np.zeros((2, 4, 3), np.uint8)
    >>> left[:, 2] = 200
    >>> p = stereo_model(left, np.roll(left, -1, axis=1), n_disparities=2)
    >>> import isinglass as ig
    >>> ig.map_assignment(p).states.reshape(2, 4)[:, 2].tolist()
    [1, 1]
    """
    n, height, width = whole_number(n_disparities, "n_disparities", 2), *left.shape[:2]
    strength = number(strength, "strength", 0.0, np.inf)
    costs = np.full((height, width, n), 20.0)
    for d in range(min(n, width)):
        apart = np.abs(left[:, d:].astype(float) - right[:, : width - d]).mean(axis=2)
        costs[:, d:, d] = np.minimum(apart, 20.0)
    steps = np.abs(np.arange(n)[:, None] - np.arange(n))
    tables = [-costs.reshape(-1, n) / 10, -strength * np.minimum(steps, 2)[None]]
    return Potentials.from_groups(grid_graph(height, width, n), tables)
