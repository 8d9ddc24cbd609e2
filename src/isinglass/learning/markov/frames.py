"""Data frames, of pandas or Polars, as samples: columns are variables, categories are states.

Both packages give a column by ``frame[name]`` and its values by ``to_list``; nothing else of them is needed, and
neither is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from isinglass.errors import InputError, UnknownNameError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.names import Names, VariableLike, nearest
from isinglass.typing import Array
from isinglass.validation import items

COUNTS = {"freq", "freqs", "frequency", "frequencies", "count", "counts", "n", "weight", "weights"}  # names of columns
FEW = 20  # so many states a column may have, however few the rows


def is_frame(X: Any) -> bool:
    """Tell whether samples are a data frame."""
    return hasattr(X, "columns") and not isinstance(X, np.ndarray) and hasattr(X, "shape") and len(X.shape) == 2


def columns_of(frame: Any) -> list[str]:
    """Return the names of columns, which must be strings."""
    found = list(frame.columns)
    wrong = [name for name in found if not isinstance(name, str)]
    if wrong:
        raise InputError("X", "columns whose names are strings", repr(wrong[0]), "rename them, or give X.to_numpy()")
    twice = [name for name in found if found.count(name) > 1]
    if twice:
        raise InputError("X", "columns with different names", f"{twice[0]!r} twice", "rename or drop one of them")
    return [str(name) for name in found]


def frame_graph(frame: Any, edges: Sequence[Sequence[VariableLike]]) -> FactorGraph:
    """Return a graph with a variable for each column, a factor for each of them, and one for each of `edges`.

    Examples
    --------
    >>> import pandas as pd
    >>> frame_graph(pd.DataFrame({"a": ["no", "yes"], "b": [0, 2]}), [("a", "b")])
    FactorGraph: 2 variables (a, b; 2-3 states), 3 factors (arity 1-2), forest
    """
    cards: dict[str, int | Sequence[str]] = {}
    for name in columns_of(frame):
        labels = column_states(frame, name)
        cards[name] = labels if isinstance(labels, int) else [str(label) for label in labels]
    listed = items(edges, "edges", "a list of tuples of variables")
    try:
        return FactorGraph(cards, [*((name,) for name in cards), *listed])
    except InputError as error:
        argument = error.argument.replace("scopes", "edges").replace("cards", "X")
        raise type(error)(argument, error.expected, error.got, error.remedy) from None


def column_states(frame: Any, name: str) -> int | list[Any]:
    """Return the states of a column: its categories, its different values in order, or the largest number and one."""
    column = frame[name]
    kind = str(column.dtype).lower()
    if kind.startswith("category"):  # pandas
        return [_written(label) for label in column.cat.categories.tolist()]
    if kind.startswith(("categorical", "enum")):  # Polars
        return [str(label) for label in column.cat.get_categories().to_list()]
    present = {value for value in column.to_list() if not is_missing(value)}
    if not present:
        raise InputError("X", "columns with at least one value", f"none in {name!r}", "drop it")
    if all(isinstance(v, int | float) and not isinstance(v, bool) and v % 1 == 0 for v in present):
        return _numbered({int(v) for v in present}, name, len(frame))
    return sorted(present, key=lambda v: (type(v).__name__, v))


def _written(label: Any) -> str:
    """Return a category as text; pandas writes whole numbers as floats where values are missing."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _numbered(present: set[int], name: str, rows: int) -> int:
    """Return how many states a column of whole numbers has; they count from 0, and -1 is a missing value.

    Numbers without a zero, such as 1 and 2, or years, are rather names of states: taken for states they would bring
    further ones along, which no sample shows. Numbers up to more than half the rows, or in a column that is called so,
    are rather counts: taken for a variable, each row would count once.
    """
    is_count = name.lower() in COUNTS or max(present) >= max(FEW, rows / 2)
    if 0 in present and min(present) >= -1 and not is_count:
        return max(present) + 1
    few = sorted(present)
    got = ", ".join(map(str, few[:4])) + (", ..." if len(few) > 4 else "")
    remedy = f"if they are counts of rows, fit(X.drop(columns={name!r}), sample_weight=X[{name!r}]); "
    remedy += f"if they are names of states, X.astype({{{name!r}: str}})"
    remedy += "" if is_count else "; if numbers of states, count from 0"
    raise InputError("X", f"states from 0 on in {name!r} (-1: missing), or strings", f"{got}", remedy)


def refuse_unused_counts(frame: Any, names: Names | None) -> None:
    """Refuse a frame with a column of counts that is no variable of a graph, where no weights are given."""
    if names is None:
        return
    for name in columns_of(frame):
        numbers = [v for v in frame[name].to_list() if not is_missing(v)] if name.lower() in COUNTS else []
        if name not in names.variables and numbers and all(isinstance(v, int | float) for v in numbers):
            got = f"the column {name!r}, which is not used"
            remedy = f"sample_weight=X[{name!r}]; or X.drop(columns={name!r}), where each row counts once"
            raise InputError("X", "the counts of rows as sample_weight=", got, remedy)


def refuse_weights(frame: Any, sample_weight: Any) -> None:
    """Refuse a frame one of whose columns is the weights: it would be a variable of the model, too."""
    if sample_weight is None:
        return
    name = getattr(sample_weight, "name", None)
    columns = columns_of(frame)
    if not (isinstance(name, str) and name in columns):
        given = np.asarray(sample_weight)
        same = (c for c in columns if np.array_equal(given, np.asarray(frame[c].to_list(), object)))
        name = next(same, None) if given.ndim == 1 and len(set(given.tolist())) > 1 else None
    if name is not None:
        got = f"the column {name!r}, which is sample_weight"
        raise InputError("X", "columns that are all variables", got, f"X.drop(columns={name!r})")


def require_same_rows(frame: Any, sample_weight: Any) -> None:
    """Refuse weights with an index of rows that is not that of the frame: they would go to other rows."""
    rows: Any = getattr(frame, "index", None)
    given: Any = getattr(sample_weight, "index", None)
    if is_frame(frame) and hasattr(rows, "equals") and hasattr(given, "equals") and not rows.equals(given):
        remedy = "sample_weight.loc[X.index] has the order of X; sample_weight.to_numpy() goes by place"
        raise InputError("sample_weight", "the index of X", "another index", remedy)


def frame_values(frame: Any, names: Names | None) -> Array:
    """Return the values of a frame as objects (samples, variables); columns in the order of the names."""
    columns = columns_of(frame)
    wanted = list(columns if names is None else names.variables)
    lost = [name for name in wanted if name not in columns]
    if lost:
        got, remedy = f"no column {lost[0]!r}", nearest(lost[0], columns).replace("did you mean", "is it")
        raise UnknownNameError("X", "a column for each variable", got, remedy)
    values = np.empty((len(frame), len(wanted)), object)
    for i, name in enumerate(wanted):
        values[:, i] = frame[name].to_list()
    return values


def framed(values: Array, like: Any, names: Names | None) -> Any:
    """Return values as a frame of the kind of another one."""
    columns = columns_of(like) if names is None else list(names.variables)
    data = {name: values[:, i].tolist() for i, name in enumerate(columns)}
    return type(like)(data, index=like.index) if hasattr(like, "index") else type(like)(data)


def is_missing(value: Any) -> bool:
    """Tell whether an object stands for a missing value: None, NaN, pandas.NA."""
    return value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and value != value)
