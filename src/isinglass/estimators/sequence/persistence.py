"""Fitted chains in safe files (`isinglass.io.arrays`): parameters, names of attributes, labels; nothing is ever run.

Names of attributes are one array of bytes (UTF-8) with the place where each ends, so that hundreds of thousands of them
need no header.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from isinglass.errors import FileFormatError, InputError, IsinglassError
from isinglass.estimators.persistence import _decoded, _encoded, _entry
from isinglass.estimators.sequence.features import FeatureIndex, Names
from isinglass.io.arrays import ArrayFile, read_arrays, write_arrays
from isinglass.io.files import PathLike, shown_path
from isinglass.learning.training.loop import history_of, history_rows
from isinglass.models.chain.attributes import StateFeatures
from isinglass.models.chain.model import SequenceModel
from isinglass.typing import Array

VERSION = 2  # 1 wrote tuples as lists
_DROPPED = ("checkpoint",)
_FACTS = {"n_features_in": int, "n_iter": int, "converged": bool, "message": str}
_PLAIN = (str, bool, int, float)


def save(crf: Any, path: PathLike, notes: Mapping[str, Any] | None = None) -> None:
    """Write a fitted estimator to a file, all or nothing; notes are JSON values for whoever reads it."""
    crf._checked()  # as `load` does
    given = {name: value for name, value in crf.get_params(deep=False).items() if name not in _DROPPED}
    metadata = {
        "parameters": {name: _encoded(value, name) for name, value in given.items()},
        "classes": [_label(label) for label in crf.classes_],
        "named": crf.index_.names is not None,
        "bias": crf.index_.bias,
        "boundary": crf.model_.boundary,
        "order": crf.model_.order,
        **{name: kind(getattr(crf, f"{name}_")) for name, kind in _FACTS.items()},
        **({} if notes is None else {"notes": dict(notes)}),
    }
    names = [name.encode("utf-8", "surrogatepass") for name in crf.index_.names or ()]
    features = crf.model_.features
    arrays = {
        "theta": crf.theta_,
        "history": history_rows(crf.history_),
        "objective": np.float64(crf.objective_),
        "names": np.frombuffer(b"".join(names), np.uint8),
        "name-ends": np.cumsum([len(name) for name in names], dtype=np.int64),
        "first": features.first,
        "labels": features.labels,
        "forbidden": crf.model_.forbidden,
    }
    write_arrays(path, arrays, schema=crf.schema, version=VERSION, metadata=metadata)


def load(cls: type[Any], path: PathLike) -> Any:
    """Read what `save` wrote; everything is checked before it is believed."""
    file, name = read_arrays(path, schema=cls.schema, version=VERSION), shown_path(path)
    crf = cls()
    given = _entry(file, "parameters", dict, name)
    if unknown := sorted(set(given) - set(crf.get_params(deep=False))):
        raise FileFormatError(name, None, f"parameters of {cls.__name__}", f"{unknown[0]!a:.60}")
    try:
        crf.set_params(**{key: _decoded(value, key) for key, value in given.items()})
        crf._checked()
    except (IsinglassError, RecursionError) as error:
        raise FileFormatError(name, None, f"parameters of {cls.__name__}", f"{error!s:.200}") from None
    for key, kind in _FACTS.items():
        setattr(crf, f"{key}_", _entry(file, key, kind, name))
    crf.classes_ = _classes(file, name)
    crf.index_ = _index(file, crf.n_features_in_, name)
    crf.model_ = _model(file, len(crf.classes_), crf.index_.n_attributes, name)
    crf.theta_ = _array(file, "theta", "f", (crf.model_.size,), name)
    crf.parameters_ = crf.model_.split(crf.theta_)
    crf.history_ = history_of(file.arrays.get("history"), name)
    crf.objective_ = float(_array(file, "objective", "f", (), name))
    return crf


def _label(label: Any) -> Any:
    """Return what JSON can hold for a label."""
    if isinstance(label, np.generic):
        label = label.item()
    if _fits(label):
        return _encoded(label, "classes_")
    expected = "labels that a safe file can hold: strings, numbers, Booleans, tuples of those"
    raise InputError("classes_", expected, f"{label!r:.60}", "pickle the estimator")


def _fits(label: Any) -> bool:
    """Tell whether a safe file can hold a label."""
    return all(map(_fits, label)) if type(label) is tuple else type(label) in _PLAIN


def _classes(file: ArrayFile, name: str) -> list[Any]:
    given = _entry(file, "classes", list, name)
    try:
        classes = [tuple(one) if type(one) is list else _decoded(one, "classes") for one in given]
        fine = all(map(_fits, classes)) and len(set(classes)) == len(classes) > 0
    except (IsinglassError, RecursionError, TypeError):
        fine = False
    if not fine:
        raise FileFormatError(name, None, "different labels in classes", "something else")
    return classes


def _index(file: ArrayFile, n_given: int, name: str) -> FeatureIndex:
    bias = _entry(file, "bias", bool, name)
    if n_given < 0:
        raise FileFormatError(name, None, "a number of features", str(n_given))
    if not _entry(file, "named", bool, name):
        return FeatureIndex(None, n_given, bias)
    ends = _array(file, "name-ends", "i", (n_given,), name)
    data = _array(file, "names", "u", (-1,), name).astype(np.uint8).tobytes()
    starts = np.concatenate([[0], ends[:-1]]) if n_given else ends
    if (ends < starts).any() or (n_given and (ends[-1] != len(data) or starts[0] != 0)):
        raise FileFormatError(name, None, "names that end one after the other", "others")
    try:
        names = [
            data[a:b].decode("utf-8", "surrogatepass") for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
    except UnicodeDecodeError:
        raise FileFormatError(name, None, "names in UTF-8", "other bytes") from None
    index = Names((one, i) for i, one in enumerate(names))
    if len(index) != n_given:
        raise FileFormatError(name, None, "different names of attributes", "one twice")
    return FeatureIndex(index, n_given, bias)


def _model(file: ArrayFile, card: int, n_attributes: int, name: str) -> SequenceModel:
    first = _array(file, "first", "i", (n_attributes + 1,), name).astype(np.int64)
    labels = _array(file, "labels", "i", (-1,), name).astype(np.int32)
    forbidden = _array(file, "forbidden", "b", (card + 1, card + 1), name)
    steps = np.diff(first)
    fits = first[0] == 0 and first[-1] == len(labels) and (steps >= 0).all() and ((labels >= 0) & (labels < card)).all()
    attributes = np.repeat(np.arange(n_attributes), np.maximum(steps, 0)) if fits else np.zeros(0)
    if not fits or (np.diff(attributes * card + labels) <= 0).any():
        raise FileFormatError(name, None, "weights listed by attribute and label", "something else")
    order = _entry(file, "order", int, name)
    if order not in (1, 2):
        raise FileFormatError(name, None, "order 1 or 2", str(order))
    return SequenceModel(StateFeatures(card, first, labels), _entry(file, "boundary", bool, name), forbidden, order)


def _array(file: ArrayFile, key: str, kind: str, shape: tuple[int, ...], name: str) -> Array:
    """Return an array of a kind and shape (-1: any length), finite."""
    array = file.arrays.get(key)
    fits = array is not None and array.dtype.kind == kind and array.ndim == len(shape)
    if not fits or any(n not in (-1, m) for n, m in zip(shape, array.shape, strict=True)):  # type: ignore[union-attr]
        got = "nothing" if array is None else f"dtype {array.dtype} of shape {array.shape}"
        raise FileFormatError(name, None, f"an array {key!r} of shape {shape}", got)
    if kind == "f" and not np.isfinite(array).all():  # type: ignore[arg-type]
        raise FileFormatError(name, None, f"finite numbers in {key!r}", "others")
    return array.copy()  # type: ignore[union-attr]
