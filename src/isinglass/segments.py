"""Ranges in flat arrays; sums and maxima by place: over a component, or over the factors that share a table."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isinglass.typing import Array, FloatArray, IntArray


def starts(lengths: ArrayLike) -> IntArray:
    """Return where contiguous ranges of given lengths begin and, last, where the last one ends.

    Examples
    --------
    >>> starts([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    given = np.asarray(lengths, np.int64)
    found = np.zeros(len(given) + 1, np.int64)
    np.add.accumulate(given, out=found[1:])  # much faster than to put pieces together, for few
    return found


def ranges(first: IntArray, lengths: IntArray) -> IntArray:
    """Concatenate the ranges first, first + 1, ..., first + length - 1.

    Examples
    --------
    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = starts(lengths)
    flat: IntArray = np.arange(ends[-1]) + np.repeat(first - ends[:-1], lengths)
    return flat


def sum_at(places: IntArray, values: Array, length: int) -> Array:
    """Add up real or complex values that share a place, in their order.

    Examples
    --------
    >>> sum_at(np.array([0, 2, 0]), np.array([1.0, 2.0, 3.0]), 3).tolist()
    [4.0, 0.0, 2.0]
    """
    where = places.ravel()
    total: Array = np.bincount(where, values.real.ravel(), length)
    if values.dtype.kind == "c":
        total = total + 1j * np.bincount(where, values.imag.ravel(), length)
    return total


def distinct_rows(rows: NDArray[np.generic]) -> tuple[IntArray, IntArray]:
    """Return the first place of each different row, these in lexicographic order, and the number of every row's own.

    The different rows themselves are ``rows[first]``. `numpy.unique` with ``axis=0`` compares records; NumPy calls
    Python code for that, and takes a Ctrl-C in it for records that cannot be compared.

    Examples
    --------
    >>> first, number = distinct_rows(np.array([[2, 1], [0, 5], [2, 1]]))
    >>> first.tolist(), number.tolist()
    ([1, 0], [1, 0, 1])
    """
    if not rows.size:
        return np.arange(len(rows[:1])), np.zeros(len(rows), np.int64)
    order = np.lexsort(rows.T[::-1])
    ordered, new = rows[order], np.ones(len(rows), bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    number = np.empty(len(rows), np.int64)
    number[order] = np.cumsum(new) - 1
    return order[new], number


class Largest:
    """The largest size of a value in each of n components, for values whose components are known beforehand.

    Examples
    --------
    >>> Largest(np.array([0, 1, 0]), 2)(np.array([1.0, -2.0, -3.0])).tolist()
    [3.0, 2.0]
    """

    def __init__(self, owner: IntArray, n: int) -> None:
        self.owner, self.n = owner, n
        self.first: IntArray | None = None  # of each component in turn, if its values lie side by side
        if n > 1 and (owner[1:] >= owner[:-1]).all():
            self.first = np.flatnonzero(np.diff(owner, prepend=-1))

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return the sizes (n,)."""
        if self.n == 1:
            return np.array([max(values.max(initial=0.0), -values.min(initial=0.0))])
        found, sizes = np.zeros(self.n), np.abs(values)
        if self.first is None:
            np.maximum.at(found, self.owner, sizes)
        elif len(self.first):  # much faster than one by one
            found[self.owner[self.first]] = np.maximum.reduceat(sizes, self.first)
        return found

    def parts(self, values: Array) -> FloatArray:
        """Return the same of the real and, if there are any, of the imaginary parts, (parts, n)."""
        parts = (values.real, values.imag) if values.dtype.kind == "c" else (values,)
        return np.array([self(part) for part in parts])


def place_in(owner: IntArray) -> IntArray:
    """Return the place of each value inside its component, counted from zero.

    Examples
    --------
    >>> place_in(np.array([0, 1, 0, 1])).tolist()
    [0, 0, 1, 1]
    """
    order = np.argsort(owner, kind="stable")
    counts = np.bincount(owner)
    place = np.empty(len(owner), np.int64)
    place[order] = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    return place


def sum_rows(places: IntArray, rows: Array, length: int) -> Array:
    """Add up rows that share a place; rows that are all in their places are returned as they are.

    Examples
    --------
    >>> sum_rows(np.array([1, 1]), np.array([[1.0, 2.0], [3.0, 4.0]]), 2).tolist()
    [[0.0, 0.0], [4.0, 6.0]]
    """
    if len(places) == length and (places[1:] > places[:-1]).all():
        return rows
    return np.stack([sum_at(places, column, length) for column in rows.T], axis=1)


def component_sums(component: IntArray, starts: IntArray | None, values: Array, n: int) -> Array:
    """Sum values of variables or factors for each component, faster where a component's are side by side (`starts`).

    What other components hold changes no bit of a sum.
    """
    if starts is None:
        with np.errstate(invalid="ignore"):
            return sum_at(component, values, n)
    total: Array = np.zeros(n, values.dtype)
    if len(starts):
        total[component[starts]] = np.add.reduceat(values, starts)
    return total
