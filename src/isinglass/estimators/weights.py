"""The weights of fitted estimators by name: of features, and of neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from isinglass.estimators.explanation import Explained, Matrix, Weight

BIAS = "(bias)"


class ExplainedField(Explained):
    """Fields on graphs: weights of node features, tables of edges."""

    def _weights(self) -> Iterator[Weight]:
        return node_weights(self)

    def _matrices(self) -> dict[str, Matrix]:
        return edge_matrices(self)


class ExplainedSequence(Explained):
    """Estimators for sequences: weights of attributes, tables of transitions."""

    def _weights(self) -> Iterator[Weight]:
        return state_weights(self)

    def _matrices(self) -> dict[str, Matrix]:
        return transition_matrices(self)


def node_weights(crf: Any) -> Iterator[Weight]:
    """Yield the weights of node features of a field on graphs; with parameters of their own, of the last iteration."""
    stage, values = crf._stage(), crf.parameters_["node"]
    table = values[-1] if values.ndim == 3 else values
    names: list[Any] = [f"x{k}" for k in range(len(table) - bool(stage.bias))] + [BIAS] * bool(stage.bias)
    labels = crf.classes_.tolist()
    for name, row in zip(names, table.tolist(), strict=True):
        for label, weight in zip(labels, row, strict=True):
            yield Weight("node", name, label, weight)


def edge_matrices(crf: Any) -> dict[str, Matrix]:
    """Return the tables of edges of a field on graphs: for each kind of edge, or each feature of edges."""
    stage, labels = crf._stage(), crf.classes_.tolist()
    found = {}
    own = crf.parameters_["node"].ndim == 3
    for name, values in crf.parameters_.items():
        if not name.startswith("edge"):
            continue
        table = values[-1] if own else values
        if table.ndim == 2:
            found[name] = Matrix(np.asarray(table), labels, labels)
            continue
        constant = bool(getattr(stage, "edge_bias", False))
        for k, part in enumerate(table):
            last = constant and k == len(table) - 1
            found[f"{name} {BIAS if last else f'x{k}'}"] = Matrix(np.asarray(part), labels, labels)
    return found


def state_weights(estimator: Any) -> Iterator[Weight]:
    """Yield the weights of attributes of an estimator for sequences, and of first and last labels."""
    for (feature, label), weight in estimator.state_features_.items():
        yield Weight("state", feature, label, weight)
    for kind, name in (("start", "(first)"), ("end", "(last)")):
        if kind in estimator.parameters_:
            for label, weight in zip(estimator.classes_, estimator.parameters_[kind].tolist(), strict=True):
                yield Weight(kind, name, label, weight)


def transition_matrices(estimator: Any) -> dict[str, Matrix]:
    """Return the table of transitions."""
    labels = list(estimator.classes_)
    return {"transition": Matrix(np.asarray(estimator.parameters_["transition"]), labels, labels)}
