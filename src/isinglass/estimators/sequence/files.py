"""Fitted chains in files: beside what every estimator keeps, the names of attributes, the labels and the features.

Names of attributes are one array of bytes (UTF-8) with the place where each ends, so that hundreds of thousands of them
need no header.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError, IsinglassError
from isinglass.estimators.encoding import decoded, encoded
from isinglass.estimators.persistence import Saved
from isinglass.estimators.sequence.features import FeatureIndex
from isinglass.models.chain.attributes import StateFeatures
from isinglass.models.chain.model import SequenceModel

_PLAIN = (str, bool, int, float)


def chain_contents(crf: Any) -> tuple[dict[str, Any], Mapping[str, ArrayLike]]:
    """Return the metadata and arrays of a fitted chain."""
    metadata = {
        "classes": [_label(label) for label in crf.classes_],
        "named": crf.index_.names is not None,
        "bias": crf.index_.bias,
        "boundary": crf.model_.boundary,
        "n_features_in": int(crf.n_features_in_),
        "seen": float(getattr(crf, "_seen", 0.0)),
    }
    names = [name.encode("utf-8", "surrogatepass") for name in crf.index_.names or ()]
    features = crf.model_.features
    return metadata, {
        "names": np.frombuffer(b"".join(names), np.uint8),
        "name-ends": np.cumsum([len(name) for name in names], dtype=np.int64),
        "first": features.first,
        "labels": features.labels,
        "forbidden": crf.model_.forbidden,
    }


def restore_chain(crf: Any, saved: Saved) -> None:
    """Set what a chain learned, once it is checked."""
    crf.n_features_in_ = saved.entry("n_features_in", int)
    crf._seen = saved.optional("seen", float) or 0.0
    saved.require(0 <= crf._seen < math.inf, "a number of sequences", f"{crf._seen}")
    crf.classes_ = _classes(saved)
    crf.index_ = _index(saved, crf.n_features_in_)
    crf.model_ = _model(saved, len(crf.classes_), crf.index_.n_attributes)
    crf.theta_ = saved.array("theta", "f", (crf.model_.size,))
    crf.parameters_ = crf.model_.split(crf.theta_)


def _label(label: Any) -> Any:
    """Return what JSON can hold for a label."""
    if isinstance(label, np.generic):
        label = label.item()
    if _fits(label):
        return encoded(label, "classes_")
    expected = "labels that a safe file can hold: strings, numbers, Booleans, tuples of those"
    raise InputError("classes_", expected, f"{label!r:.60}", "pickle the estimator")


def _fits(label: Any) -> bool:
    """Tell whether a safe file can hold a label."""
    return all(map(_fits, label)) if type(label) is tuple else type(label) in _PLAIN


def _classes(saved: Saved) -> list[Any]:
    given = saved.entry("classes", list)
    try:
        classes = [tuple(one) if type(one) is list else decoded(one, "classes") for one in given]
        fine = all(map(_fits, classes)) and len(set(classes)) == len(classes) > 0
    except (IsinglassError, RecursionError, TypeError):
        fine = False
    saved.require(fine, "different labels in classes", "something else")
    return classes


def _index(saved: Saved, n_given: int) -> FeatureIndex:
    bias = saved.entry("bias", bool)
    saved.require(n_given >= 0, "a number of features", str(n_given))
    if not saved.entry("named", bool):
        return FeatureIndex(None, n_given, bias)
    ends = saved.array("name-ends", "i", (n_given,))
    data = saved.array("names", "u", (-1,)).astype(np.uint8).tobytes()
    starts = np.concatenate([[0], ends[:-1]]) if n_given else ends
    if (ends < starts).any() or (n_given and (ends[-1] != len(data) or starts[0] != 0)):
        raise saved.error("names that end one after the other", "others")
    try:
        names = [
            data[a:b].decode("utf-8", "surrogatepass") for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
    except UnicodeDecodeError:
        raise saved.error("names in UTF-8", "other bytes") from None
    index = {one: i for i, one in enumerate(names)}
    saved.require(len(index) == n_given, "different names of attributes", "one twice")
    return FeatureIndex(index, n_given, bias)


def _model(saved: Saved, card: int, n_attributes: int) -> SequenceModel:
    first = saved.array("first", "i", (n_attributes + 1,)).astype(np.int64)
    labels = saved.array("labels", "i", (-1,)).astype(np.int32)
    forbidden = saved.array("forbidden", "b", (card + 1, card + 1))
    steps = np.diff(first)
    fits = first[0] == 0 and first[-1] == len(labels) and (steps >= 0).all() and ((labels >= 0) & (labels < card)).all()
    attributes = np.repeat(np.arange(n_attributes), np.maximum(steps, 0)) if fits else np.zeros(0)
    if not fits or (np.diff(attributes * card + labels) <= 0).any():
        raise saved.error("weights listed by attribute and label", "something else")
    return SequenceModel(StateFeatures(card, first, labels), saved.entry("boundary", bool), forbidden)
