"""Conditional random fields on images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from isinglass.errors import require
from isinglass.estimators.crf import CRF
from isinglass.estimators.parameters import Edges
from isinglass.estimators.persistence import register
from isinglass.learning.training.checks import checked_labels, listed_labels
from isinglass.models import Model, grid_model
from isinglass.models.checks import dense
from isinglass.models.grids import node_tables
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import jobs_of

Images = FloatArray | list[FloatArray]


@register
@dataclass(eq=False, repr=False)
class GridCRF(CRF):
    """A conditional random field on images: nodes are pixels, edges join the four neighbours.

    X is an array (images, height, width, features) and Y an int array (images, height, width). Or X is a list of arrays
    (height, width, features), of any sizes, and Y a list of int arrays (height, width); predictions are then lists.

    Parameters
    ----------
    schedule : str, default="grid"
        The order of message updates, for inference algorithms that have schedules. "grid" is the sweep of Domke (2009),
        figure 5.2.
    edges : "directions", "shared" or "none", default="directions"
        Whether horizontal and vertical edges have separate parameters or the same, or there are no edges (independent
        pixels).

    Attributes
    ----------
    parameters_ : dict of str to array
        "node" (features, states), "edge/horizontal" and "edge/vertical" (states, states), or "edge"; with
        ``entropy="fit"`` also the logarithms of the entropy weights, relative to their initial values.
        With `own_parameters` the first axis is the iteration.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Y = (rng.random((4, 6, 6)) < 0.5).astype(int)
    >>> X = Y[..., None] + 0.3 * rng.normal(size=(4, 6, 6, 1))
    >>> crf = GridCRF(iterations=2, bias=True, l2=0.1).fit(X, Y)
    >>> crf.predict(X).shape, crf.score(X, Y) > 0.9
    ((4, 6, 6), True)
    >>> crf.predict_marginals(X).shape
    (4, 6, 6, 2)
    """

    schema: ClassVar[str] = "grid-crf"

    schedule: str = "grid"
    edges: Edges = "directions"

    def _examples(self, X: Any) -> Images:
        axes = "images, height, width, features"
        shape = (0,) if isinstance(X, list | tuple) and not X else getattr(X, "shape", ())
        require(0 not in shape, "X", f"an array ({axes})", "one without entries", "give at least one image and feature")
        remedy = "one image alone is X[np.newaxis], one feature alone X[..., np.newaxis]"
        require(len(shape) != 3, "X", f"an array ({axes})", f"shape {shape}", remedy)
        if isinstance(X, list | tuple):
            return [dense(image, f"X[{i}]", "height, width, features") for i, image in enumerate(X)]
        return dense(X, "X", axes, jobs_of(self.n_jobs))

    def _flat_labels(self, X: Images, Y: Any) -> IntArray:
        if isinstance(X, np.ndarray):
            return checked_labels(Y, X.shape[:3], "Y")
        return listed_labels(Y, X, lambda x, _: x.shape[:2], "image", "int arrays (height, width)")

    def _plain_model(self, X: Images, n_states: int, like: Model | None) -> Model:
        return grid_model(X, n_states, edges=self.edges, bias=self.bias, like=like)

    def _tables(self, X: Images, nodes: Array) -> Callable[[slice], FloatArray] | None:
        if not isinstance(X, np.ndarray):
            return None
        return lambda images: node_tables(X[images], nodes, self.bias)

    def _sizes(self, X: Images) -> IntArray | None:
        return np.full(len(X), X.shape[1] * X.shape[2]) if isinstance(X, np.ndarray) else None

    def _arrays(self, X: Images) -> Iterator[Array]:
        yield from [X] if isinstance(X, np.ndarray) else X

    def _shaped(self, X: Any, flat: Array, sizes: IntArray) -> Any:
        if not isinstance(X, list | tuple):
            return flat.reshape(*np.shape(X)[:3], *flat.shape[1:])
        parts = zip(X, np.split(flat, np.cumsum(sizes)[:-1]), strict=True)
        return [part.reshape(*np.shape(image)[:2], *flat.shape[1:]) for image, part in parts]
