"""Scenes with several labels each: Boutell, Luo, Shen and Brown, Learning Multi-Label Scene Classification, 2004.

The data are not part of the library: they are read from ``scene.npz`` in a data folder.
"""

from __future__ import annotations

import os
from itertools import combinations
from typing import NamedTuple

import numpy as np

from isinglass.datasets.folder import data_arrays
from isinglass.errors import FileFormatError
from isinglass.typing import Array, FloatArray, IntArray

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
