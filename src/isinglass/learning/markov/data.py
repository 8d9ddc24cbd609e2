"""Samples of a Markov random field as users have them: states, strings, NaN, tables of counts.

A table of counts has one axis for each variable. Its cells become samples, with the counts as weights; a cell that is
NaN (or masked) is impossible by design, a structural zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.learning.markov.frames import frame_values, is_frame, is_missing
from isinglass.learning.training.checks import observed
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import array_of, integers, real_numbers

Categories = list[list[Any] | None]
"""For each variable the labels of its states, or None where they are numbers."""


class Table(NamedTuple):
    """A table of counts: its cells that are not empty, how often each was seen, and those that are impossible."""

    cells: IntArray
    counts: FloatArray
    impossible: IntArray


def is_table(X: Any, graph: FactorGraph) -> bool:
    """Tell whether an array is a table of counts, not samples: one axis for each variable, as long as its states.

    Two variables are a special case: an array (k, 2) for cards (k, 2) could be both. It is a table if its entries are
    no states.

    Examples
    --------
    >>> pair = FactorGraph([2, 2], [(0, 1)])
    >>> is_table(np.array([[43, 9], [44, 4]]), pair), is_table(np.array([[0, 1], [1, 1]]), pair)
    (True, False)
    """
    if not isinstance(X, np.ndarray) or X.shape != tuple(graph.cards.tolist()) or X.dtype.kind not in "iuf":
        return False
    if X.ndim != 2 or X.shape[1] != 2:
        return X.ndim > 1
    values = np.ma.filled(X.astype(float), np.nan)
    return bool(((values < -1) | (values >= graph.cards)).any())


def read_table(counts: Any, graph: FactorGraph) -> Table:
    """Check a table of counts, NaN or masked where a cell is impossible."""
    expected = f"counts of shape {tuple(graph.cards.tolist())}, one axis for each variable"
    filled = np.ma.filled(counts.astype(float), np.nan) if isinstance(counts, np.ma.MaskedArray) else counts
    table = real_numbers(filled, "counts", expected)
    if table.shape != tuple(graph.cards.tolist()):
        raise InputError("counts", expected, f"shape {table.shape}")
    bad = (table < 0) | np.isinf(table)
    if bad.any():
        where = tuple(np.argwhere(bad)[0].tolist())
        raise InputError("counts", "finite numbers that are not negative", f"{table[where]} at {where}")
    if not np.nansum(table):
        raise InputError("counts", "at least one count above zero", "none")
    cells = np.argwhere(np.nan_to_num(table) > 0)
    return Table(cells, table[tuple(cells.T)], np.argwhere(np.isnan(table)))


def encode(
    X: Any, graph: FactorGraph, known: Categories | None = None, fitted: bool = False
) -> tuple[IntArray, Categories | None]:
    """Return samples as states, -1 where a value is missing, and the labels of states where they are no numbers.

    Parameters
    ----------
    X : array (samples, variables), or data frame
        States; or labels such as strings, then sorted, unless the graph names its states; missing values are -1, NaN,
        None or masked. The columns of a frame are found by the names of the variables.
    graph : FactorGraph
    known : Categories, optional
        The labels that were learned; others are refused.
    fitted : bool
        Whether labels were learned before: where none are known, states are numbers, or have names in the graph.
    """
    values = label_array(frame_values(X, graph.names) if is_frame(X) else X)
    if values.dtype.kind == "O" and values.ndim == 2:
        return _of_labels(values, graph, known, fitted)
    if known is not None and any(labels is not None for labels in known):
        raise InputError("X", "labels, as in fit", f"dtype {values.dtype}")
    if values.dtype.kind == "f":
        values = _of_floats(np.ma.filled(values, np.nan) if isinstance(values, np.ma.MaskedArray) else values)
    return _states(values, graph), None


def label_array(X: Any) -> Array:
    """Return samples as an array; labels as objects, None where they are masked.

    NumPy would write the NaN of a list of strings as "nan", a label like others.

    Examples
    --------
    >>> label_array([["a", float("nan")], ["b", -1]]).tolist()
    [['a', nan], ['b', -1]]
    """
    if isinstance(X, np.ma.MaskedArray):
        if X.dtype.kind not in "OUST":
            return X
        labels = np.array(X.data, object)
        labels[np.ma.getmaskarray(X)] = None
        return labels
    values = array_of(X, "X", "an array (samples, variables)")
    if values.dtype.kind not in "UST":
        return values
    if not isinstance(X, np.ndarray):
        return np.asarray(X, object)
    for column in values.T.tolist() if values.ndim == 2 else ():
        marks = {"nan", "-1"} & set(column)
        if marks and not all(_is_number(label) for label in column):
            remedy = "NumPy writes NaN and -1 so among strings: make the array with dtype=object"
            raise InputError("X", "missing values that are no strings", repr(min(marks)), remedy)
    return values.astype(object)


def _is_number(label: str) -> bool:
    """Tell whether a label is written as a finite number."""
    try:
        return math.isfinite(float(label))
    except ValueError:
        return False


def decode(states: IntArray, categories: Categories | None) -> Array:
    """Return states by their labels; missing values are None there.

    Examples
    --------
    >>> decode(np.array([[0, 1], [1, -1]]), [["no", "yes"], None]).tolist()
    [['no', 1], ['yes', None]]
    """
    if categories is None:
        return states
    found = np.empty(states.shape, object)
    for i, labels in enumerate(categories):
        for n, state in enumerate(states[:, i].tolist()):
            found[n, i] = None if state < 0 else state if labels is None else labels[state]
    return found


def _of_floats(values: Array) -> IntArray:
    """Return whole numbers; NaN is a missing value."""
    missing = np.isnan(values)
    whole = np.where(missing, -1, values)
    if not (np.isfinite(whole).all() and (whole == np.rint(whole)).all()):
        bad = whole[~(np.isfinite(whole) & (whole == np.rint(whole)))][0]
        raise InputError("X", "whole numbers, or nan where a value is missing", f"{bad}", "number the states from 0 on")
    return whole.astype(np.int64)


def _of_labels(
    values: Array, graph: FactorGraph, known: Categories | None, fitted: bool
) -> tuple[IntArray, Categories | None]:
    """Number the labels of each variable, in sorted order; a column of whole numbers is kept."""
    if values.shape[1] != graph.n_variables:
        _states(np.zeros(values.shape, np.int64), graph)
    states = np.full(values.shape, -1, np.int64)
    categories: Categories = []
    for i in range(values.shape[1]):
        named = None if graph.names is None else graph.names.states[i]
        learned = None if known is None else known[i]
        minus = any(mark in (labels or ()) for mark in (-1, "-1") for labels in (named, learned))
        column = [_plain(v, minus) for v in values[:, i].tolist()]
        present = [v for v in column if v is not None]
        new = known is None and (named is not None or not fitted)
        labels = _labels(present, i, int(graph.cards[i]), named) if new else learned
        categories.append(labels)
        number = None if labels is None else {label: k for k, label in enumerate(labels)}
        for n, value in enumerate(column):
            if value is not None:
                states[n, i] = _state(value, n, i) if number is None else _number_of(value, number, n, i)
    plain = all(labels is None for labels in categories)
    return _states(states, graph), None if plain else categories


def _plain(value: Any, minus: bool) -> Any:
    """Return a label, as an integer where it is a whole number, and None where it is missing.

    `minus` says whether -1 is the label of a state.
    """
    if is_missing(value):
        return None
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    return None if not minus and not isinstance(whole, str) and whole == -1 else whole


def _state(value: Any, n: int, i: int) -> int:
    """Return a state that is a number, as in fit."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        expected = f"the number of a state of variable {i}, as in fit"
        raise InputError("X", expected, f"{value!r:.40} in sample {n}")
    return int(value)


def _labels(present: Sequence[Any], i: int, card: int, named: Sequence[str] | None) -> list[Any] | None:
    """Return the labels of a variable, its named states if there are such; None where they are whole numbers.

    Values that are no strings are told by how they are written: those of a column of categories 1 and 2, say.
    """
    if named is not None:
        written = {str(v): v for v in present}
        if all(isinstance(v, str) for v in present) or written.keys() <= set(named):
            return [written.get(name, name) for name in named]
    if all(isinstance(v, int | np.integer) and not isinstance(v, bool) for v in present):
        return None
    if not all(isinstance(v, str | bool | np.bool_ | int) for v in present):
        odd = next(v for v in present if not isinstance(v, str | bool | np.bool_ | int))
        raise InputError("X", "strings or whole numbers as states", f"{odd!r:.40} for variable {i}")
    found = sorted({str(v) if isinstance(v, str) else v for v in present}, key=lambda v: (type(v).__name__, v))
    if len(found) > card:
        got = f"{len(found)} for variable {i}: {', '.join(map(repr, found[:5]))}, ..."
        raise InputError("X", f"at most {card} different states", got)
    return found


def _number_of(value: Any, number: dict[Any, int], n: int, i: int) -> int:
    if value not in number:
        expected = f"one of the states {', '.join(map(repr, list(number)[:8]))} of variable {i}"
        raise InputError("X", expected, f"{value!r:.40} in sample {n}")
    return number[value]


def _states(X: Any, graph: FactorGraph) -> IntArray:
    """Check states."""
    states = integers(observed(X, "X"), "X", 2)
    if states.shape[1] != graph.n_variables or not len(states):
        expected = f"an int array (samples, variables) with {graph.n_variables} variables and at least one sample"
        raise InputError("X", expected, f"shape {states.shape}", "a table of counts: fit(counts=table)")
    bad = (states < -1) | (states >= graph.cards)
    if bad.any():
        n, i = (int(v) for v in np.argwhere(bad)[0])
        remedy = "states count from 0, -1 is a missing value"
        got = f"{states[n, i]} for variable {i} of sample {n}"
        raise InputError("X", f"states from 0 to {graph.cards[i] - 1}", got, remedy)
    return states
