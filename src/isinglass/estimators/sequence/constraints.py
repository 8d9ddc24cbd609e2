"""What is ruled out: neighbours that may not be, labels that a token may have, labels that are known."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from isinglass.errors import InputError
from isinglass.estimators.classes import nearest_label
from isinglass.estimators.sequence.labels import codes_of, flat_labels, observed_labels
from isinglass.models.chain.model import ends_of
from isinglass.typing import FloatArray, IntArray, Mask
from isinglass.validation import items


def forbidden_table(pairs: Any, classes: list[Any], argument: str = "forbidden") -> Mask:
    """Return a table (labels + 1, labels + 1) of neighbours that may not be.

    Parameters
    ----------
    pairs : collection of (before, after), or None
        None before: `after` may not be first; None after: `before` may not be last.
    classes : list

    Examples
    --------
    >>> forbidden_table([("O", "I"), (None, "I")], ["B", "I", "O"]).astype(int)[2:].tolist()
    [[0, 1, 0, 0], [0, 1, 0, 0]]
    """
    k = len(classes)
    table = np.zeros((k + 1, k + 1), np.bool_)
    places: dict[Any, int] = {label: i for i, label in enumerate(classes)}
    places[None] = k
    if pairs is None:
        return table
    given = list(pairs) if isinstance(pairs, set | frozenset) else items(pairs, argument, "pairs of labels")
    for pair in given:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(isinstance(y, Hashable) for y in pair):
            raise InputError(argument, "pairs (before, after) of labels", f"{pair!r:.60}")
        for label in pair:
            if label not in places:
                remedy = nearest_label(label, classes) or "leave the pair out: a label without examples needs no rule"
                raise InputError(argument, f"pairs of the {k} labels of fit, or None", f"{label!r:.60}", remedy)
        table[places[pair[0]], places[pair[1]]] = True
    return table


@dataclass(frozen=True, eq=False)
class Constraints:
    """Labels that tokens may have (tokens, labels), None for any; and neighbours that may not be."""

    allowed: Mask | None
    forbidden: Mask

    def ruled(self, transition: FloatArray) -> FloatArray:
        """Return transitions with -inf for neighbours that may not be."""
        return np.where(self.forbidden[:-1, :-1], -np.inf, transition)

    def rule_out(self, scores: FloatArray, first: int, offsets: IntArray) -> None:
        """Give the score -inf to labels that may not be, in sequences with these offsets from token `first` on."""
        k = len(self.forbidden) - 1
        if self.forbidden[k].any() or self.forbidden[:, k].any():
            begins, ends = ends_of(offsets)
            scores[np.ix_(begins, np.flatnonzero(self.forbidden[k, :k]))] = -np.inf
            scores[np.ix_(ends, np.flatnonzero(self.forbidden[:k, k]))] = -np.inf
        if self.allowed is not None:
            scores[:, :k][~self.allowed[first : first + len(scores)]] = -np.inf


def constraints(
    forced: Any, allowed: Any, forbidden: Any, classes: list[Any], offsets: IntArray, ignore_label: Any = None
) -> Constraints:
    """Check what a caller rules out."""
    table = forbidden_table(forbidden, classes)
    mask: Mask | None = None
    if allowed is not None:
        mask = _allowed(allowed, classes, offsets)
    if forced is not None:
        codes = codes_of(observed_labels(forced, offsets, "forced", False, ignore_label), classes, "forced")
        rows = np.flatnonzero(codes >= 0)
        mask = np.ones((len(codes), len(classes)), np.bool_) if mask is None else mask
        kept = mask[rows, codes[rows]]
        mask[rows] = False
        mask[rows, codes[rows]] = kept
    return Constraints(mask, table)


def _allowed(allowed: Any, classes: list[Any], offsets: IntArray) -> Mask:
    """Return which labels each token may have."""
    flat = flat_labels(allowed, offsets, "allowed")
    mask = np.ones((len(flat), len(classes)), np.bool_)
    for t, labels in enumerate(flat):
        if labels is None:
            continue
        if not isinstance(labels, list | tuple | set | frozenset):
            raise InputError("allowed", "for each token a collection of labels, or None", f"{labels!r:.60}")
        mask[t] = False
        mask[t, codes_of(list(labels), classes, "allowed")] = True
    return mask
