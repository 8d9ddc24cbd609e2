"""Labels of sequences: any hashable values of one type, None (or -1 among numbers) where not observed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from numbers import Number
from typing import Any

import numpy as np

from isinglass.errors import InputError, require
from isinglass.estimators.classes import nearest_label, require_alike, with_states
from isinglass.learning.training.checks import refuse_spins
from isinglass.typing import IntArray
from isinglass.validation import items

NOT_OBSERVED = "None, or -1 among numbers, is not observed"
_NO_CLASS = "it was not in the data of fit; None is a label that is not observed"


class _Numbers(dict[Any, int]):
    """Numbers of labels; what is no class has the number -2."""

    def __missing__(self, label: Any) -> int:
        return -2


def flat_labels(Y: Any, offsets: IntArray, argument: str = "Y") -> list[Any]:
    """Check that labels have the lengths of their sequences, and return all of them."""
    given = items(Y, argument, "a list of label sequences")
    require(len(given) == len(offsets) - 1, argument, f"{len(offsets) - 1} sequences, as in X", f"{len(given)}")
    plain = [_plain(one, f"{argument}[{i}]") for i, one in enumerate(given)]
    sizes = np.diff(offsets)
    wrong = np.flatnonzero(np.fromiter(map(len, plain), np.int64, len(plain)) != sizes)
    if len(wrong):
        i = int(wrong[0])
        remedy = "give each token a label (None: not observed)"
        raise InputError(f"{argument}[{i}]", f"{sizes[i]} labels", f"{len(plain[i])}", remedy)
    return list(chain.from_iterable(plain))


def observed_labels(
    Y: Any, offsets: IntArray, argument: str = "Y", new: bool = False, ignore_label: Any = None
) -> list[Any]:
    """Return all labels, None where not observed; those of several types are refused.

    Labels are `new` where it is not known yet which there are; then -1 and 1 alone are refused, too.
    """
    return observed(flat_labels(Y, offsets, argument), argument, new, ignore_label)


def observed(flat: list[Any], argument: str = "Y", new: bool = False, ignore_label: Any = None) -> list[Any]:
    """Return labels with None for `ignore_label`, and for -1 among numbers, of which others below 0 are refused.

    Examples
    --------
    >>> observed([0.0, -1.0, None, 1.0]), observed(["-1", "0", "?"], ignore_label="?")
    ([0.0, None, None, 1.0], ['-1', '0', None])
    """
    if any(issubclass(kind, np.generic) for kind in set(map(type, flat))):
        flat = [label.item() if isinstance(label, np.generic) else label for label in flat]
    kinds = {_family(kind) for kind in set(map(type, flat)) if kind is not type(None)}
    if float in kinds and any(label != label for label in flat if isinstance(label, float)):
        raise InputError(argument, "labels", "nan", "None is a label that is not observed")
    if len(kinds) > 1:
        remedy = "None is a label that is not observed; convert the others, e.g. with str"
        raise InputError(argument, "labels of one type", " and ".join(sorted(k.__name__ for k in kinds)), remedy)
    if ignore_label is not None and kinds:
        require_alike(ignore_label, next(label for label in flat if label is not None))
        flat = [None if label == ignore_label else label for label in flat]
    if not any(issubclass(kind, Number) for kind in kinds):
        return flat
    least = min((label for label in flat if label is not None), default=0) if kinds & {int, float} else 0
    if least < -1:
        remedy = f"number the labels from 0 on; or, if it means not observed, give ignore_label={least}"
        raise InputError(argument, "labels from 0 on, and -1 for not observed", f"{least}", remedy)
    if -1 not in flat:
        return flat
    if new:
        refuse_spins(np.array([label for label in flat if label is not None]))
    return [None if label == -1 else label for label in flat]


def _family(kind: type) -> type:
    """Return the type that labels of a type count as."""
    return next((base for base in (bool, int, float, str) if issubclass(kind, base)), kind)


def _plain(labels: Any, argument: str) -> Sequence[Any]:
    if isinstance(labels, np.ndarray):
        require(labels.ndim == 1, argument, "a sequence of labels", f"shape {labels.shape}")
        return labels.tolist()  # type: ignore[no-any-return]
    if isinstance(labels, list | tuple):
        return labels
    raise InputError(argument, "a list or array of labels", type(labels).__name__)


def classes_of(flat: list[Any], n_states: int | None = None) -> list[Any]:
    """Return the different labels: in order where they have one, else as they first occur; or 0 to n_states - 1.

    Examples
    --------
    >>> classes_of(["O", "B", None, "O"]), classes_of([("N", 1), None, (3, "N")])
    (['B', 'O'], [('N', 1), (3, 'N')])
    """
    try:
        found = [label for label in dict.fromkeys(flat) if label is not None]
    except TypeError:
        raise InputError("Y", "labels that are hashable", "others", "use strings, numbers or tuples") from None
    require(found, "Y", "at least one observed label", "none", NOT_OBSERVED)
    try:
        return with_states(sorted(found), n_states)
    except TypeError:
        return with_states(found, n_states)


def codes_of(
    flat: list[Any], classes: list[Any], argument: str = "Y", strict: bool = True, remedy: str = _NO_CLASS
) -> IntArray:
    """Return the numbers of labels, -1 for None; a label that is no class is refused, or has the number -2."""
    numbers = _Numbers({label: i for i, label in enumerate(classes)})
    numbers[None] = -1
    try:
        codes = np.fromiter(map(numbers.__getitem__, flat), np.int64, len(flat))
    except TypeError:
        raise InputError(argument, "labels that are hashable", "others") from None
    if strict and (codes == -2).any():
        label = flat[int(np.argmax(codes == -2))]
        remedy = nearest_label(label, classes) or remedy
        raise InputError(argument, f"labels among the {len(classes)} classes", f"{label!r:.60}", remedy)
    return codes
