"""Pictures with labels: street scenes, horses, handwritten words, scenes with several labels, and a stereo pair.

Street scenes (``camvid_60x80.npz``): CamVid of Brostow, Fauqueur and Cipolla (2009), five classes, others unlabelled;
horses (``weizmann_horses_60x80.npz``): Borenstein and Ullman (2002), horse or not. Both are 60 x 80 pixels. Letters
(``letters_folds0-7.npz``): Kassel (1995), Taskar, Guestrin and Koller (2003), 16 x 8 pixels each; the first letter of a
word, a capital, is left out of the data. Scenes (``scene.npz``): Boutell, Luo, Shen and Brown (2004).

Tsukuba (Scharstein and Szeliski 2002): the images are rectified, so that what is at column x on the left is at column
x - d on the right, d being the *disparity*. `stereo_model` makes a pairwise model of it, in which states are
disparities (Boykov, Veksler and Zabih 2001):

    phi_i(d)       =  - min(mean over colours of |left_i - right_{i-d}|, 20) / 10
    phi_ij(d, e)   =  - strength min(|d - e|, 2)
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isinglass import Potentials, grid_graph
from isinglass.errors import FileFormatError
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import number, whole_number
from isinglass_experiments.data.files import data_arrays

SCENE_LABELS = ("building", "sky", "car", "road", "tree")


class Photographs(NamedTuple):
    """Images uint8 (n, 60, 80, 3) and labels (n, 60, 80), -1 where there is none, to train on and to test."""

    X_train: NDArray[np.uint8]
    Y_train: IntArray
    X_test: NDArray[np.uint8]
    Y_test: IntArray


def load_street_scenes(data_dir: str | os.PathLike[str] | None = None) -> Photographs:
    """Read 100 street scenes to train on and 100 to test; labels as in `SCENE_LABELS`, about 8 % of pixels have none.

    Parameters
    ----------
    data_dir : str or os.PathLike, optional
        The folder of camvid_60x80.npz; else the one that the environment variable ISINGLASS_DATA names.
    """
    name = "camvid_60x80.npz"
    arrays = data_arrays(name, data_dir)
    parts = [arrays.get(f"{what}_{part}") for part in ("train", "test") for what in "XY"]
    return _checked(parts, len(SCENE_LABELS), name)


def load_horses(data_dir: str | os.PathLike[str] | None = None) -> Photographs:
    """Read 327 pictures of horses; every other one is to train on.

    Parameters
    ----------
    data_dir : str or os.PathLike, optional
        The folder of weizmann_horses_60x80.npz; else the one that the environment variable ISINGLASS_DATA names.
    """
    name = "weizmann_horses_60x80.npz"
    arrays = data_arrays(name, data_dir)
    chosen = arrays.get("is_train")
    if chosen is None or chosen.ndim != 1 or chosen.dtype.kind not in "biu":
        raise FileFormatError(name, None, "an array 'is_train'", "something else")
    masks = (chosen.astype(bool), ~chosen.astype(bool))
    for what in "XY":
        if what not in arrays or len(arrays[what]) != len(chosen):
            raise FileFormatError(name, None, f"an array {what!r} of {len(chosen)} images", "something else")
    return _checked([arrays[what][mask] for mask in masks for what in "XY"], 2, name)


def _checked(parts: list[Array | None], labels: int, name: str) -> Photographs:
    found: list[Array] = []
    for X, Y in (parts[:2], parts[2:]):
        if X is None or Y is None or X.dtype != np.uint8 or X.shape != (*Y.shape, 3) or Y.dtype.kind not in "iu":
            raise FileFormatError(name, None, "images (n, height, width, 3), uint8, and labels", "something else")
        if not len(Y) or int(Y.min()) < -1 or int(Y.max()) >= labels:
            raise FileFormatError(name, None, f"labels from -1 to {labels - 1}", "others")
        found += [X, Y.astype(np.int64)]
    return Photographs(*found)


HEIGHT, WIDTH = 16, 8


@dataclass(frozen=True, eq=False)
class Letters:
    """Words as sequences of letters.

    Attributes
    ----------
    X : list of float arrays (letters, 128)
        Pixels, 0 or 1, row by row.
    Y : list of int arrays (letters,)
        0 is a, 25 is z.
    fold : int array (words,)
        For cross-validation, from 0 on.
    """

    X: list[FloatArray] = field(repr=False)
    Y: list[IntArray] = field(repr=False)
    fold: IntArray = field(repr=False)

    def part(self, *folds: int) -> tuple[list[FloatArray], list[IntArray]]:
        """Return the words of some folds."""
        rows = np.flatnonzero(np.isin(self.fold, folds)).tolist()
        return [self.X[i] for i in rows], [self.Y[i] for i in rows]


def load_letters(data_dir: str | os.PathLike[str] | None = None) -> Letters:
    """Read the letters: 5512 words in eight folds.

    Parameters
    ----------
    data_dir : str or os.PathLike, optional
        The folder of the file; else the one that the environment variable ISINGLASS_DATA names.
    """
    name = "letters_folds0-7.npz"
    arrays = data_arrays(name, data_dir)
    if missing := {"X_bits", "y", "lengths", "fold"} - set(arrays):
        raise FileFormatError(name, None, "the arrays X_bits, y, lengths, fold", f"none called {min(missing)}")
    bits, y, lengths, fold = (arrays[name] for name in ("X_bits", "y", "lengths", "fold"))
    fits = bits.dtype == np.uint8 and bits.ndim == 2 and bits.shape[1] == HEIGHT * WIDTH // 8
    whole = all(a.dtype.kind in "iu" and a.ndim == 1 for a in (y, lengths, fold))
    if not (fits and whole and len(y) == len(bits) == lengths.sum() and len(fold) == len(lengths)):
        raise FileFormatError(name, None, "pixels, labels, lengths and folds that fit together", "others")
    if not ((y >= 0) & (y < 26)).all() or not (lengths > 0).all():
        raise FileFormatError(name, None, "letters from 0 to 25 in words that have some", "others")
    cuts = np.cumsum(lengths)[:-1].astype(np.int64)
    pixels = np.unpackbits(bits, axis=1).astype(np.float64)
    return Letters(np.split(pixels, cuts), np.split(y.astype(np.int64), cuts), fold.astype(np.int64))


MULTI_LABELS = ("beach", "sunset", "fall foliage", "field", "mountain", "urban")


class MultiLabel(NamedTuple):
    """Features (n, 294) of pictures, and whether each has each of six labels, (n, 6), to train on and to test."""

    X_train: FloatArray
    Y_train: IntArray
    X_test: FloatArray
    Y_test: IntArray


def load_scene_labels(data_dir: str | os.PathLike[str] | None = None) -> MultiLabel:
    """Read 1211 pictures to train on and 598 to test; labels as in `MULTI_LABELS`.

    Parameters
    ----------
    data_dir : str or os.PathLike, optional
        The folder of scene.npz; else the one that the environment variable ISINGLASS_DATA names.
    """
    name, n = "scene.npz", len(MULTI_LABELS)
    arrays = data_arrays(name, data_dir)
    found: list[Array] = []
    for part in ("train", "test"):
        X, y = arrays.get(f"X_{part}"), arrays.get(f"y_{part}")
        if X is None or y is None or X.ndim != 2 or X.dtype.kind != "f" or y.shape != (len(X), n):
            raise FileFormatError(name, None, f"features and {n} labels of each picture", "something else")
        if y.dtype.kind not in "iu" or not np.isin(y, (0, 1)).all():
            raise FileFormatError(name, None, "labels 0 and 1", "others")
        found += [X.astype(np.float64), y.astype(np.int64)]
    return MultiLabel(*found)


def label_graph(x: FloatArray, n_labels: int) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return a picture as a graph of its labels: every label has weights of its own, and every pair of them.

    Parameters
    ----------
    x : array (features,)
    n_labels : int

    Returns
    -------
    node_features : array (labels, labels * (features + 1))
    edges : int array (pairs, 2)
    edge_features : array (pairs, pairs)

    Examples
    --------
    >>> nodes, edges, features = label_graph(np.array([0.5]), 2)
    >>> nodes.tolist(), edges.tolist(), features.tolist()
    ([[0.5, 1.0, 0.0, 0.0], [0.0, 0.0, 0.5, 1.0]], [[0, 1]], [[1.0]])
    """
    edges = np.array(list(combinations(range(n_labels), 2)), np.int64).reshape(-1, 2)
    return np.kron(np.eye(n_labels), np.append(x, 1.0)[None]), edges, np.eye(len(edges))


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
