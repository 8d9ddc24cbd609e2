"""Images as an estimator sees them: input, truth, beliefs, prediction."""

from __future__ import annotations

from typing import Any

import numpy as np

from isinglass.cli.examples import Images
from isinglass.pages import Pictures
from isinglass.typing import Array

MOST = 8  # images


def image_panel(crf: Any, data: Images) -> Pictures:
    """Return the first images: their last feature, their labels, and what the estimator makes of them."""
    X = data.X[:MOST]
    classes = np.asarray(crf.classes_).tolist()
    beliefs = np.asarray(crf.predict_marginals(X))
    rows: list[tuple[str, Array]] = [("input: last feature", _scaled(np.asarray(X[..., -1], np.float64)))]
    two = len(classes) == 2
    if data.Y is not None:
        rows.append(("truth", _places(data.Y[:MOST], classes)))
    rows.append((f"P(label {classes[1]})", beliefs[..., 1]) if two else ("beliefs, pale where unsure", beliefs))
    rows.append(("prediction", _places(np.asarray(crf.predict(X)), classes)))
    names = None if two else [str(label) for label in classes]
    return Pictures({"images": [(name, _grey(stack) if two else stack) for name, stack in rows]}, names)


def _scaled(values: Array) -> Array:
    return np.asarray((values - values.min()) / (np.ptp(values) or 1.0))


def _places(labels: Array, classes: list[Any]) -> Array:
    """Return the number of each label among the classes; -1 for others."""
    found = np.full(labels.shape, -1, np.int64)
    for k, label in enumerate(classes):
        found[labels == label] = k
    return found


def _grey(stack: Array) -> Array:
    """Return two labels as 0 and 1; not observed is nan."""
    return np.where(stack < 0, np.nan, stack) if stack.dtype.kind in "iu" else stack
