"""The largest weights of a fitted model, by label, and its tables of neighbouring labels.

Weights are in nats: a feature of value 1 with weight w for a label raises the log-odds of that label against a label of
weight zero by w. Only weights of features of equal scale are comparable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np

from isinglass.estimators.estimator import Estimator
from isinglass.runtime.pandas import pandas_for
from isinglass.typing import FloatArray
from isinglass.validation import whole_number


class Weight(NamedTuple):
    """One parameter: what kind it is, its feature (for a transition: the label before), its label, and its value."""

    kind: str
    feature: Any
    label: Any
    weight: float


class Matrix(NamedTuple):
    """A table of weights with the names of its rows and columns."""

    values: FloatArray
    rows: list[Any]
    columns: list[Any]


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The largest weights of a fitted estimator; ``print`` and notebooks show them.

    Attributes
    ----------
    classes : list
    features : dict of label to list of Weight
        For each label the features with the largest positive weights, in decreasing order, followed by the most
        negative ones, the most negative first.
    transitions : list of Weight
        The transition (or edge) weights with the largest absolute values.
    matrices : dict of str to Matrix
        All tables of neighbouring labels: of transitions, or of each kind of edge. ``ig.viz.heat_map`` draws them.
    top : int
    """

    classes: list[Any]
    features: dict[Any, list[Weight]]
    transitions: list[Weight]
    matrices: dict[str, Matrix]
    top: int

    def to_frame(self) -> Any:
        """Return the shown weights as a pandas DataFrame: kind, feature, label, weight."""
        rows = [weight for listed in self.features.values() for weight in listed]
        return pandas_for("to_frame").DataFrame([*rows, *self.transitions], columns=Weight._fields)

    def __str__(self) -> str:
        parts = []
        for label, listed in self.features.items():
            parts.append(f"{label}")
            parts += [f"  {w.weight:+9.4f}  {w.feature}" for w in listed] or ["  (no weights)"]
        if self.transitions:
            parts.append("neighbours")
            parts += [f"  {w.weight:+9.4f}  {w.feature} -> {w.label}{_of(w.kind)}" for w in self.transitions]
        return "\n".join(parts)

    def __repr__(self) -> str:
        return f"Explanation: the {self.top} strongest weights of each sign for {len(self.classes)} labels"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _of(kind: str) -> str:
    return "" if kind in ("transition", "edge") else f"  ({kind})"


class Explained(Estimator):
    """Estimators whose weights can be listed; subclasses say which there are."""

    classes_: Any
    parameters_: dict[str, FloatArray]

    def _weights(self) -> Iterable[Weight]:
        """Return all weights of features."""
        raise NotImplementedError

    def _matrices(self) -> dict[str, Matrix]:
        """Return all tables of neighbours."""
        raise NotImplementedError

    def _explained(self) -> list[Any]:
        """Return the labels that weights are listed for."""
        return list(self.classes_.tolist() if isinstance(self.classes_, np.ndarray) else self.classes_)

    def explain(self, top: int = 20) -> Explanation:
        """Return the largest positive and negative weights for each label, and of pairs of neighbouring labels.

        Parameters
        ----------
        top : int
            The number of weights of each sign for each label; twice as many are listed for pairs.

        Examples
        --------
        >>> import isinglass as ig
        >>> X = [[["w=the"], ["w=dog"]], [["w=a"], ["w=dog"], ["w=barks"]]]
        >>> crf = ig.ChainCRF(l2=0.1, boundary=False).fit(X, [["D", "N"], ["D", "N", "V"]])
        >>> [w.feature for w in crf.explain(top=2).features["D"]]
        ['w=the', 'w=a']
        """
        self._require_fitted()
        count = whole_number(top, "top", 1)
        classes = self._explained()
        by_label: dict[Any, list[Weight]] = {label: [] for label in classes}
        for weight in self._weights():
            by_label[weight.label].append(weight)
        matrices = self._matrices()
        features = {label: _strongest(found, count) for label, found in by_label.items()}
        return Explanation(classes, features, _strongest_pairs(matrices, 2 * count), matrices, count)

    def weights_frame(self) -> Any:
        """Return all weights as a pandas DataFrame: kind, feature, label, weight; of neighbours, feature is the first.

        Examples
        --------
        >>> import isinglass as ig
        >>> crf = ig.ChainCRF(l2=0.1).fit([[["w=a"], ["w=b"]]], [["A", "B"]])
        >>> crf.weights_frame().groupby("kind").size().to_dict()
        {'end': 2, 'start': 2, 'state': 4, 'transition': 4}
        """
        self._require_fitted()
        found = [*self._weights()]
        for kind, matrix in self._matrices().items():
            found += _pairs(kind, matrix)
        return pandas_for("weights_frame").DataFrame(found, columns=Weight._fields)


def _strongest(weights: Sequence[Weight], count: int) -> list[Weight]:
    positive = sorted((w for w in weights if w.weight > 0), key=lambda w: -w.weight)[:count]
    negative = sorted((w for w in weights if w.weight < 0), key=lambda w: w.weight)[:count]
    return [*positive, *negative]


def _pairs(kind: str, matrix: Matrix) -> list[Weight]:
    return [
        Weight(kind, before, after, value)
        for before, row in zip(matrix.rows, matrix.values.tolist(), strict=True)
        for after, value in zip(matrix.columns, row, strict=True)
    ]


def _strongest_pairs(matrices: dict[str, Matrix], count: int) -> list[Weight]:
    found = [weight for kind, matrix in matrices.items() for weight in _pairs(kind, matrix) if weight.weight]
    return sorted(found, key=lambda w: -abs(w.weight))[:count]
