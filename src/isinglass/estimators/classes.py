"""Labels of graphs and images: which ones there are, their numbers in training, and their names in predictions.

One rule holds for all estimators, also for those of sequences (`isinglass.estimators.sequence.labels`). The classes are
the labels that occur, sorted, or with `n_states` 0, 1, ..., n_states - 1. Labels are strings, or integers from 0. Not
observed are None among strings, -1 and masked entries among integers, and `ignore_label` among both.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from isinglass.errors import InputError, require
from isinglass.graph.names import nearest
from isinglass.learning.training.checks import MOST, NUMBERED, observed, refuse_spins
from isinglass.typing import Array, IntArray

Classes = tuple[Any, ...]
"""The labels of states, strings or integers; none where only their number is known."""

_OF_TEXT = "OUST"  # kinds of dtypes
_MISSING = "None is a label that is not observed"


def has_strings(Y: Any) -> bool:
    """Tell whether labels, an array or a list of arrays, are strings.

    Examples
    --------
    >>> has_strings(np.array([["sky", "sea"]])), has_strings([[0, 1], [1]])
    (True, False)
    """
    return any(_kind(part) in _OF_TEXT and _texts(part) for part in _parts(Y))


def classes_of(Y: Any, ignore_label: Any = None) -> tuple[Any, ...]:
    """Return the different labels that were observed, sorted.

    Examples
    --------
    >>> classes_of([["sky", None], ["sea"]]), classes_of(np.array([[0, 255], [-1, 7]]), ignore_label=7)
    (('sea', 'sky'), (0, 255))
    """
    if has_strings(Y):
        words = {label for i, part in enumerate(_parts(Y)) for label in _words(part, f"Y[{i}]")}
        return tuple(sorted(words - {None, ignore_label}))
    arrays = [array.ravel() for array in map(_integers, _parts(Y)) if array is not None]
    found = sorted(set(_different(np.concatenate(arrays))) - {ignore_label}) if arrays else []
    refuse_spins(np.array(found))
    if found and found[0] < -1:
        remedy = f"{NUMBERED}; or, if it means not observed, give ignore_label={found[0]}"
        raise InputError("Y", "labels from 0 on, and -1 for not observed", f"{found[0]}", remedy)
    return tuple(label for label in found if label != -1)


def numbered(Y: Any, classes: Classes, ignore_label: Any = None, argument: str = "Y") -> Any:
    """Return labels by their numbers, -1 where not observed, in the form in which they came.

    What is no label stays as it is: `checked_labels` says what is wrong with it.

    Examples
    --------
    >>> [y.tolist() for y in numbered([["sky", None], ["sea"]], ("sea", "sky"))]
    [[1, -1], [0]]
    >>> numbered(np.array([0, 255, 7]), (0, 255), ignore_label=7).tolist()
    [0, 1, -1]
    """
    words, listed = bool(classes) and isinstance(classes[0], str), isinstance(Y, list | tuple)
    if not words and has_strings(Y):
        raise InputError(argument, "numbers, as in fit", "strings", "fit anew with them")
    code = _codes_of_words if words else _codes_of_integers
    found = [
        code(part, classes, ignore_label, f"{argument}[{i}]" if listed else argument)
        for i, part in enumerate(_parts(Y))
    ]
    return found if listed else found[0] if found else Y


def labels_of(states: IntArray, classes: Classes) -> Array:
    """Return the labels of states.

    Examples
    --------
    >>> labels_of(np.array([1, 0]), ("sea", "sky")).tolist(), labels_of(np.array([1, 0]), (0, 255)).tolist()
    (['sky', 'sea'], [255, 0])
    """
    return states if _are_states(classes) else np.array(classes)[states]


def named_weights(class_weight: Any, classes: Classes) -> Any:
    """Return class weights by the numbers of labels, where they are given by labels."""
    if _are_states(classes) or not isinstance(class_weight, dict):
        return class_weight
    unknown = [key for key in class_weight if key not in classes]
    if unknown:
        raise InputError("class_weight", "labels as keys", repr(unknown[0]), nearest_label(unknown[0], classes))
    return {classes.index(key): weight for key, weight in class_weight.items()}


def classes_for(estimator: Any, Y: Any) -> tuple[Any, ...]:
    """Return the classes for a fit of an estimator; a warm start goes on with those that it knows."""
    require(isinstance(estimator.ignore_label, Hashable), "ignore_label", "a label", f"{estimator.ignore_label!r:.60}")
    found = classes_of(Y, estimator.ignore_label)
    if found:
        require_alike(estimator.ignore_label, found[0])
    count = estimator.n_states
    found = tuple(with_states(found, count))
    known = estimator._labels if estimator.warm_start and hasattr(estimator, "theta_") else ()
    if not known or found == known or (count is None and set(found) <= set(known)):
        return known or found
    expected, got = f"the labels of the last fit, {list(known)!r:.60}", f"{list(found)!r:.60}"
    raise InputError("warm_start", expected, got, "use warm_start=False")


def with_states(found: Sequence[Any], n_states: int | None) -> list[Any]:
    """Return the labels 0 to n_states - 1, where that is given; or else those that were found.

    Examples
    --------
    >>> with_states([0, 2], None), with_states([0, 2], 4)
    ([0, 2], [0, 1, 2, 3])
    """
    if n_states is None:
        return list(found)
    if any(type(label) is not int for label in found):
        got, remedy = f"{n_states}", "leave it out: each label is a state"
        require(n_states == len(found), "n_states", f"the number of labels, {len(found)}", got, remedy)
        return list(found)
    most = max(found, default=0)
    remedy = f"give n_states={most + 1}, or leave it out: the labels that occur are the classes"
    require(most < n_states, "Y", f"labels below n_states = {n_states}", f"{most}", remedy)
    return list(range(n_states))


def require_alike(ignore_label: Any, label: Any) -> None:
    """Refuse an `ignore_label` of another type than the labels, which would ignore nothing."""
    if ignore_label is not None and isinstance(ignore_label, str) is not isinstance(label, str):
        expected = f"a label of the type of the others, such as {label!r:.40}"
        raise InputError("ignore_label", expected, f"{ignore_label!r:.40}", "or None")


def nearest_label(label: Any, classes: Iterable[Any]) -> str:
    """Return a remedy: the label that is most like one that is not known."""
    return nearest(label, [known for known in classes if isinstance(known, str)]) if isinstance(label, str) else ""


def _are_states(classes: Classes) -> bool:
    """Tell whether labels are the numbers of their states."""
    return classes == tuple(range(len(classes)))


def _parts(Y: Any) -> Sequence[Any]:
    return Y if isinstance(Y, list | tuple) else [Y] if hasattr(Y, "__array__") else []


def _kind(part: Any) -> str:
    if isinstance(part, np.ndarray):
        return str(part.dtype.kind)
    try:
        return str(np.asarray(part).dtype.kind)
    except (ValueError, TypeError):
        return "?"


def _texts(part: Any) -> bool:
    """Tell whether some label is a string; those of objects are looked at one by one."""
    if _kind(part) in "UT":
        return True
    return any(isinstance(label, str) for label in np.asarray(part, object).ravel().tolist())


def _objects(part: Any) -> list[Any]:
    """Return the labels of a part, None where masked."""
    filled = np.ma.filled(part.astype(object), None) if isinstance(part, np.ma.MaskedArray) else part
    return np.asarray(filled, object).ravel().tolist()


def _words(part: Any, argument: str) -> list[str | None]:
    """Return the strings of a part, None where not observed."""
    flat = _objects(part)
    wrong = [label for label in flat if not (label is None or isinstance(label, str))]
    if wrong:
        raise InputError(argument, "labels that are all strings", repr(wrong[0]), _MISSING)
    return flat


def _integers(part: Any) -> IntArray | None:
    """Return the integers of a part, -1 where masked; None if it holds something else."""
    try:
        array = np.asarray(observed(part, "Y"))
    except (ValueError, TypeError, OverflowError):
        return None
    if array.dtype.kind not in "biu" or (array.dtype.kind == "u" and array.max(initial=0) > MOST):
        return None
    return array.astype(np.int64, copy=False)


def _different(flat: IntArray) -> list[int]:
    """Return the different numbers; by counting where they are small, as those of images are."""
    if not len(flat) or int(flat.max()) - int(flat.min()) > 2**16:
        return np.unique(flat).tolist()  # type: ignore[no-any-return]
    low = int(flat.min())
    return (np.flatnonzero(np.bincount(flat - low)) + low).tolist()


def _codes_of_words(part: Any, classes: Classes, ignore_label: Any, argument: str) -> IntArray:
    number = {label: i for i, label in enumerate(classes)} | {None: -1, ignore_label: -1}
    flat = _objects(part)
    for label in flat:
        if not isinstance(label, str | None) or label not in number:
            remedy = f"{nearest_label(label, classes)} {_MISSING}".strip()
            raise InputError(argument, f"labels among the {len(classes)} of fit", repr(label), remedy)
    return np.array([number[label] for label in flat], np.int64).reshape(np.shape(part))


def _codes_of_integers(part: Any, classes: Classes, ignore_label: Any, argument: str) -> Any:
    """Return the numbers of integers; what is no array of integers stays as it is."""
    labels = _integers(part)
    if labels is None:
        return part
    if ignore_label is not None:
        labels = part = np.where(labels == ignore_label, -1, labels)
    if not classes:
        return part
    known, plain = np.array(classes, np.int64), _are_states(classes)
    found = labels if plain else np.minimum(np.searchsorted(known, labels), len(known) - 1)
    strange = (labels < -1) | (labels >= len(known)) if plain else (known[found] != labels) & (labels != -1)
    if strange.any():
        got, those = int(labels[strange][0]), f"from 0 to {len(known) - 1}" if plain else f"among {list(classes)!r:.60}"
        remedy = f"give n_states={got + 1} to fit a class without examples, or give ignore_label={got}"
        raise InputError(argument, f"labels {those}, as in fit, or -1", f"{got}", remedy)
    return part if plain else np.where(labels == -1, -1, found)
