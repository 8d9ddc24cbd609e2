"""The graph of the regions of an image, such as superpixels: which of them touch, and how much they differ.

length(a, b)      =  the number of pairs of neighbouring pixels, one in a and one in b
difference(a, b)  =  mean colour of a  -  mean colour of b,  and its norm
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import integers, real_numbers


class RegionGraph(NamedTuple):
    """Regions as the nodes of a graph.

    Attributes
    ----------
    edges : int array (edges, 2)
        Regions that touch; the smaller number first, sorted.
    edge_features : array (edges, 3) or (edges, 1)
        The length of the common boundary, its share of the shorter of the two whole boundaries, and, if there is an
        image, the distance of the mean colours. Without an image the last is left out.
    sizes : int array (regions,)
        Pixels.
    centres : array (regions, 2)
        The mean row and column, from 0 to 1.
    means : array (regions, channels) or None
        Mean colours.
    regions : int array (height, width)
        The number of the region of each pixel, from 0 on; `spread` uses it.
    """

    edges: IntArray
    edge_features: FloatArray
    sizes: IntArray
    centres: FloatArray
    means: FloatArray | None
    regions: IntArray

    @property
    def n_regions(self) -> int:
        """The number of regions."""
        return len(self.sizes)

    def gather(self, labels: ArrayLike) -> IntArray:
        """Return for each region the most frequent of the labels of its pixels, an int array (height, width).

        Labels below 0, not observed, do not count; a region without others has -1.
        """
        given = integers(labels, "labels", 2)
        if given.shape != self.regions.shape:
            raise InputError("labels", f"shape {self.regions.shape}, as the image", f"shape {given.shape}")
        seen = given >= 0
        card = int(given.max(initial=0)) + 1
        counts = np.bincount(self.regions[seen] * card + given[seen], minlength=self.n_regions * card)
        table = counts.reshape(self.n_regions, card)
        return np.where(table.sum(axis=1) > 0, table.argmax(axis=1), -1)

    def spread(self, labels: ArrayLike) -> IntArray:
        """Return labels of regions as a picture: each pixel has that of its region."""
        given = integers(labels, "labels", 1)
        if len(given) != self.n_regions:
            raise InputError("labels", f"one for each of {self.n_regions} regions", f"{len(given)}")
        found: IntArray = given[self.regions]
        return found


def region_graph(regions: ArrayLike, image: ArrayLike | None = None, neighbours: int = 4) -> RegionGraph:
    """Return the graph of the regions of an image.

    Parameters
    ----------
    regions : int array (height, width)
        The region of each pixel, as superpixel methods give it; any numbers, which are counted from 0 in their order.
    image : array (height, width) or (height, width, channels), optional
        Colours, for their means and differences.
    neighbours : 4 or 8
        Which pixels are neighbours.

    Returns
    -------
    RegionGraph
        ``(node_features, found.edges, found.edge_features)`` is an example of `GraphCRF`.

    Examples
    --------
    >>> found = region_graph([[0, 0, 1], [0, 2, 1]], image=[[0.0, 0.0, 1.0], [0.0, 0.5, 1.0]])
    >>> found.edges.tolist(), found.edge_features[:, [0, 2]].tolist()
    ([[0, 1], [0, 2], [1, 2]], [[1.0, 1.0], [2.0, 0.5], [1.0, 0.5]])
    >>> found.sizes.tolist(), found.spread([7, 8, 9]).tolist()
    ([3, 2, 1], [[7, 7, 8], [7, 9, 8]])
    """
    given = integers(regions, "regions", 2)
    if not given.size:
        raise InputError("regions", "at least one pixel", "none")
    if neighbours not in (4, 8):
        raise InputError("neighbours", "4 or 8", repr(neighbours))
    _, flat = np.unique(given, return_inverse=True)
    number = flat.reshape(given.shape)
    edges, lengths = _boundaries(number, neighbours)
    sizes = np.bincount(number.ravel())
    around = np.bincount(edges.ravel(), np.repeat(lengths, 2), minlength=len(sizes))
    share = lengths / np.maximum(np.minimum(around[edges[:, 0]], around[edges[:, 1]]), 1)
    means = None if image is None else _means(number, image, sizes)
    columns = [lengths.astype(np.float64), share]
    if means is not None:
        columns.append(np.linalg.norm(means[edges[:, 0]] - means[edges[:, 1]], axis=1))
    return RegionGraph(edges, np.stack(columns, axis=1), sizes, _centres(number, sizes), means, number)


def _boundaries(number: IntArray, neighbours: int) -> tuple[IntArray, IntArray]:
    """Return the pairs of regions that touch, and how many pairs of pixels do."""
    steps = [(number[:, :-1], number[:, 1:]), (number[:-1], number[1:])]
    if neighbours == 8:
        steps += [(number[:-1, :-1], number[1:, 1:]), (number[:-1, 1:], number[1:, :-1])]
    pairs = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in steps])
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    count = int(number.max()) + 1
    code, lengths = np.unique(pairs[:, 0] * count + pairs[:, 1], return_counts=True)
    return np.stack(np.divmod(code, count), axis=1), lengths


def _means(number: IntArray, image: ArrayLike, sizes: IntArray) -> FloatArray:
    colours = real_numbers(image, "image", "numbers, (height, width) or (height, width, channels)")
    if colours.shape[:2] != number.shape or colours.ndim not in (2, 3):
        raise InputError("image", f"an image of {number.shape} pixels, as regions", f"shape {colours.shape}")
    channels = colours.reshape(number.size, -1)
    totals = [np.bincount(number.ravel(), channel, len(sizes)) for channel in channels.T]
    return np.stack(totals, axis=1) / sizes[:, None]


def _centres(number: IntArray, sizes: IntArray) -> FloatArray:
    rows, columns = np.indices(number.shape)
    height, width = number.shape
    mean = [np.bincount(number.ravel(), place.ravel(), len(sizes)) / sizes for place in (rows, columns)]
    return np.stack([mean[0] / max(height - 1, 1), mean[1] / max(width - 1, 1)], axis=1)
