"""Labels of graphs and images that are strings: numbered in sorted order for training, and named in predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from isinglass.errors import InputError, require
from isinglass.graph.names import nearest
from isinglass.typing import Array, IntArray
from isinglass.validation import whole_number

Classes = tuple[str, ...] | None
"""The labels of states; None where labels are numbers."""

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


def classes_of(Y: Any) -> Classes:
    """Return the different labels, sorted; None where they are numbers.

    Examples
    --------
    >>> classes_of([["sky", None], ["sea"]])
    ('sea', 'sky')
    """
    if not has_strings(Y):
        return None
    found = {label for i, part in enumerate(_parts(Y)) for label in _labels(part, f"Y[{i}]")}
    return tuple(sorted(label for label in found if label is not None))


def numbered(Y: Any, classes: Classes, argument: str = "Y") -> Any:
    """Return labels by their numbers, -1 for None, in the form in which they came; numbers stay as they are.

    Examples
    --------
    >>> [y.tolist() for y in numbered([["sky", None], ["sea"]], ("sea", "sky"))]
    [[1, -1], [0]]
    """
    if classes is None:
        if has_strings(Y):
            raise InputError(argument, "numbers, as in fit", "strings", "fit anew with them")
        return Y
    number: dict[str | None, int] = {label: i for i, label in enumerate(classes)}
    number[None] = -1
    if isinstance(Y, np.ndarray):
        return _codes(Y, number, argument)
    return [_codes(part, number, f"{argument}[{i}]") for i, part in enumerate(Y)]


def labels_of(states: IntArray, classes: Classes) -> Array:
    """Return states by their labels; as they are, where these are numbers.

    Examples
    --------
    >>> labels_of(np.array([1, 0]), ("sea", "sky")).tolist(), labels_of(np.array([1, 0]), None).tolist()
    (['sky', 'sea'], [1, 0])
    """
    return states if classes is None else np.array(classes)[states]


def named_weights(class_weight: Any, classes: Classes) -> Any:
    """Return class weights whose keys are numbers, where they are given by labels."""
    if classes is None or not isinstance(class_weight, dict):
        return class_weight
    unknown = [key for key in class_weight if key not in classes]
    if unknown:
        remedy = nearest(str(unknown[0]), classes)
        raise InputError("class_weight", "labels as keys", repr(unknown[0]), remedy)
    return {classes.index(key): weight for key, weight in class_weight.items()}


def classes_for(estimator: Any, Y: Any) -> Classes:
    """Return the labels for a fit of an estimator, if they are strings; a warm start goes on with those it knows."""
    found, known = classes_of(Y), estimator._labels
    if found is not None and estimator.n_states not in (None, len(found)):
        got, remedy = f"{estimator.n_states}", "leave it out: each label is a state"
        raise InputError("n_states", f"the number of labels, {len(found)}", got, remedy)
    if not (estimator.warm_start and hasattr(estimator, "theta_")) or found == known:
        require(found is None or len(found) > 1, "Y", "at least two labels", f"{found!r:.60}", _MISSING)
        return found
    if found is None or known is None or not set(found) <= set(known):
        raise InputError("Y", "the labels of the last fit", f"{found!r:.60}", "use warm_start=False")
    return tuple(known)


def state_count(labels: IntArray, n_states: int | None, remedy: str) -> int:
    """Return the given number of states, or the largest label and one."""
    most = int(labels.max(initial=-1)) + 1
    require(most != 0, "Y", "at least one observed label", "none", remedy)
    if n_states is None:
        require(most >= 2, "Y", "at least two labels", "0 alone", "or give n_states")
        return most
    count = whole_number(n_states, "n_states", 2)
    got, remedy = f"{most - 1}", f"give n_states={most}, or number the labels from 0"
    require(most <= count, "Y", f"labels below n_states = {count}", got, remedy)
    return count


def _parts(Y: Any) -> Sequence[Any]:
    return [Y] if isinstance(Y, np.ndarray) else Y if isinstance(Y, list | tuple) else []


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


def _labels(part: Any, argument: str) -> set[str | None]:
    flat = np.asarray(part, object).ravel().tolist()
    wrong = [label for label in flat if not (label is None or isinstance(label, str))]
    if wrong:
        raise InputError(argument, "labels that are all strings", repr(wrong[0]), _MISSING)
    return set(flat)


def _codes(part: Any, number: dict[str | None, int], argument: str) -> IntArray:
    array = np.asarray(part, object)
    found: list[int] = []
    for label in array.ravel().tolist():
        if label is not None and (not isinstance(label, str) or label not in number):
            known = [name for name in number if name is not None]
            remedy = (nearest(str(label), known) + " " + _MISSING).strip()
            raise InputError(argument, f"labels among the {len(known)} of fit", repr(label), remedy)
        found.append(number[label])
    return np.array(found, np.int64).reshape(array.shape)
