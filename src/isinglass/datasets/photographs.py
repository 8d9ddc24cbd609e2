"""Photographs with labelled pixels, not part of the library: street scenes and horses, read from a data folder.

Street scenes (``camvid_60x80.npz``): CamVid of Brostow, Fauqueur and Cipolla (2009), five classes, others unlabelled;
horses (``weizmann_horses_60x80.npz``): Borenstein and Ullman (2002), horse or not. Both are 60 x 80 pixels.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isinglass.datasets.folder import data_arrays
from isinglass.errors import FileFormatError
from isinglass.typing import Array, IntArray

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
