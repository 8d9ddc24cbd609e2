"""Snakes: a grid on which only the input decides how neighbours interact.

A snake of ten cells wanders over a grid. Each cell of it has the colour of the direction in which it went on; the
labels count the cells, 1 to 10, and 0 is background. A pixel alone tells little, so that a model must pass on what it
knows along the snake: Nowozin, Rother, Bagon, Sharp, Yao and Kohli, Decision Tree Fields, ICCV 2011.

The images are not part of the library: they are read from snakes.npz in a data folder.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isinglass.errors import FileFormatError, InputError, require
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import array_of, whole_number
from isinglass_experiments.data.files import data_arrays

Image = NDArray[np.uint8]
GraphExample = tuple[FloatArray, IntArray, FloatArray]

N_LABELS = 11
_COLOURS = np.array([[0, 0, 255], [0, 255, 0], [0, 255, 255], [255, 0, 0], [255, 255, 0]], np.uint8)  # 0: background
_PARTS = ("train", "test")


@dataclass(frozen=True, eq=False)
class Snakes:
    """Images of snakes and their labels.

    Attributes
    ----------
    X_train, X_test : lists of uint8 arrays (height, width, 3)
        Red, green and blue; the sizes differ.
    Y_train, Y_test : lists of int arrays (height, width)
        0 is background, 1 to 10 are the cells of the snake in their order.
    """

    X_train: list[Image] = field(repr=False)
    Y_train: list[IntArray] = field(repr=False)
    X_test: list[Image] = field(repr=False)
    Y_test: list[IntArray] = field(repr=False)

    def graphs(self, part: str = "train", *, window: int = 1) -> tuple[list[GraphExample], list[IntArray]]:
        """Return the examples of one part as graphs: see `snake_graph`.

        Parameters
        ----------
        part : {"train", "test"}
        window : int
            How far a pixel looks.

        Returns
        -------
        X : list of (node_features, edges, edge_features)
        Y : list of int arrays (nodes,)
        """
        images, labels = self._part(part)
        return [snake_graph(image, window=window) for image in images], [label.ravel() for label in labels]

    def grids(self, part: str = "train", *, window: int = 1) -> tuple[FloatArray, IntArray]:
        """Return the examples of one part as grids of one size.

        Parameters
        ----------
        part : {"train", "test"}
        window : int
            How far a pixel looks; the features are the node features of `snake_graph`.

        Returns
        -------
        X : float array (n, height, width, features)
            All 0 outside the image.
        Y : int array (n, height, width)
            -1, not observed, outside the image.
        """
        images, labels = self._part(part)
        features = [_window_features(_colour_codes(x), window).reshape(*x.shape[:2], -1) for x in images]
        return _padded(features, 0), _padded(labels, -1)

    def _part(self, part: str) -> tuple[list[Image], list[IntArray]]:
        require(part in _PARTS, "part", "'train' or 'test'", repr(part))
        return (self.X_train, self.Y_train) if part == "train" else (self.X_test, self.Y_test)


def load_snakes(data_dir: str | os.PathLike[str] | None = None) -> Snakes:
    """Read the snakes from ``snakes.npz``: 200 images to train on and 50 to test.

    Parameters
    ----------
    data_dir : str or os.PathLike, optional
        The folder of the file; else the one that the environment variable ISINGLASS_DATA names.

    Returns
    -------
    Snakes

    Raises
    ------
    InputError
        If there is no such folder or no such file in it.
    FileFormatError
        If the file is not what it should be.
    """
    name = "snakes.npz"
    arrays = data_arrays(name, data_dir)
    parts: list[Any] = []
    for part in _PARTS:
        _check(arrays, part, name)
        sizes = arrays[f"shape_{part}"].tolist()
        parts.append([x[:h, :w].copy() for x, (h, w) in zip(arrays[f"X_{part}"], sizes, strict=True)])
        parts.append([y[:h, :w].astype(np.int64) for y, (h, w) in zip(arrays[f"Y_{part}"], sizes, strict=True)])
    return Snakes(*parts)


def snake_graph(image: Image, *, window: int = 1) -> GraphExample:
    """Return an image as a graph with features, for models with a weight for every feature of nodes and edges.

    Parameters
    ----------
    image : uint8 array (height, width, 3)
        Of the five colours of the snakes.
    window : int
        A pixel sees the colours of the pixels up to this far in both directions, background beyond the border.

    Returns
    -------
    node_features : float array (nodes, 5 (2 window + 1)^2)
        One-hot colours in the window of each pixel, pixels row by row.
    edges : int array (edges, 2)
        Neighbours: to the right, then down, each row by row, as in `grid_graph`.
    edge_features : float array (edges, 4 nodes' features)
        The features of both ends; for horizontal edges in the first half, for vertical ones in the second, so that a
        model can tell the directions apart.

    Examples
    --------
    >>> image = np.full((2, 3, 3), (0, 0, 255), np.uint8)
    >>> nodes, edges, edge_features = snake_graph(image)
    >>> nodes.shape, edges.shape, edge_features.shape
    ((6, 45), (7, 2), (7, 180))
    """
    nodes = _window_features(_colour_codes(image), window)
    height, width = image.shape[:2]
    sites = np.arange(height * width).reshape(height, width)
    right = np.stack([sites[:, :-1].ravel(), sites[:, 1:].ravel()], axis=1)
    down = np.stack([sites[:-1].ravel(), sites[1:].ravel()], axis=1)
    edges = np.concatenate([right, down])
    ends = nodes[edges].reshape(len(edges), -1)
    horizontal = (np.arange(len(edges)) < len(right))[:, None]
    return nodes, edges, np.concatenate([ends * horizontal, ends * ~horizontal], axis=1)


def _colour_codes(image: Image) -> IntArray:
    """Return the number of the colour of each pixel."""
    pixels = array_of(image, "image", "an array (height, width, 3)")
    if pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise InputError("image", "an array (height, width, 3)", f"shape {pixels.shape}")
    same = (pixels[:, :, None] == _COLOURS).all(axis=-1)
    if not same.any(axis=-1).all():
        raise InputError("image", f"only the colours {_COLOURS.tolist()}", "others", "cut the padding off")
    codes: IntArray = same.argmax(axis=-1)
    return codes


def _window_features(codes: IntArray, window: int) -> FloatArray:
    """Return the one-hot colours of every pixel of the window, (pixels, 5 (2 window + 1)^2)."""
    side = 2 * whole_number(window, "window") + 1
    padded = np.pad(codes, side // 2)  # background is 0
    views = np.lib.stride_tricks.sliding_window_view(padded, (side, side))
    return np.eye(len(_COLOURS))[views].reshape(codes.size, -1)


def _check(arrays: dict[str, Array], part: str, name: str) -> None:
    """Refuse arrays that do not fit together."""
    missing = {f"X_{part}", f"Y_{part}", f"shape_{part}"} - set(arrays)
    if missing:
        raise FileFormatError(name, None, f"the arrays {', '.join(sorted(missing))}", "a file without them")
    x, y, sizes = arrays[f"X_{part}"], arrays[f"Y_{part}"], arrays[f"shape_{part}"]
    fits = x.dtype == np.uint8 and x.ndim == 4 and x.shape[3] == 3 and y.shape == x.shape[:3] and y.dtype.kind in "iu"
    if not fits or sizes.shape != (len(x), 2) or sizes.dtype.kind not in "iu":
        raise FileFormatError(name, None, f"images, labels and sizes that fit together ({part})", _shapes(x, y, sizes))
    inside = (sizes >= 1).all() and (sizes <= np.array(x.shape[1:3])).all()
    if not inside or not ((y >= -1) & (y < N_LABELS)).all():
        raise FileFormatError(name, None, f"sizes inside the images and labels below {N_LABELS} ({part})", "others")


def _shapes(*arrays: Array) -> str:
    return ", ".join(f"{a.dtype} {a.shape}" for a in arrays)


def _padded(examples: Sequence[Array], fill: int) -> Array:
    """Return arrays (height, width, ...) of different sizes in one, the rest filled."""
    height, width = (max(a.shape[axis] for a in examples) for axis in (0, 1))
    grid = np.full((len(examples), height, width, *examples[0].shape[2:]), fill, examples[0].dtype)
    for place, example in zip(grid, examples, strict=True):
        place[: example.shape[0], : example.shape[1]] = example
    return grid
