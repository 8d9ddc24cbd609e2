"""From what users have, lists of dicts, of strings or arrays, to one sparse matrix (tokens, attributes), and labels.

A token is a row of numbers, a collection of strings (each an attribute with the value 1), or a dict (key to value: a
number counts as it is, a Boolean as 1 or nothing, text as the attribute "key=value"). Names are numbered once, in the
order in which they first occur; at prediction what was never seen is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix, issparse, vstack

from isinglass.errors import InputError, require
from isinglass.models.chain.layout import ByToken
from isinglass.models.checks import matrix, stacked
from isinglass.runtime.cached_property import cached_property
from isinglass.segments import starts
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import items

_FORM = "a list of sequences: arrays (length, features), or lists of dicts or of lists of strings"
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
_COLLECTIONS = (list, tuple, set, frozenset)
BIAS = "(bias)"


class _GrowingNames(dict[str, int]):
    """Numbers of names; what is not there gets the next one."""

    def __missing__(self, name: str) -> int:
        number = self[name] = len(self)
        return number


@dataclass(frozen=True, eq=False)
class Encoded:
    """Tokens of all sequences, with their attributes, and where each sequence begins (`ChainCRF.encode`).

    It knows what its columns are, so that an estimator with other attributes refuses it.
    """

    tokens: ByToken
    offsets: IntArray
    index: FeatureIndex

    @cached_property
    def X(self) -> csr_array:  # noqa: N802
        """The attributes (tokens, attributes)."""
        first, columns, values, step = self.tokens
        data = values if step else np.ones(len(columns))
        return csr_array((data, columns, first), shape=(len(first) - 1, self.index.n_attributes))

    def first(self, n: int) -> Encoded:
        """Return the first n sequences, or all."""
        offsets = self.offsets[: n + 1]
        first, columns, values, step = self.tokens
        rows = first[: int(offsets[-1]) + 1]
        end = int(rows[-1])
        return Encoded((rows, columns[:end], values[:end] if step else values, step), offsets, self.index)

    def contents(self) -> Iterable[Array]:
        """Return arrays that tell these tokens from others."""
        return self.X.data, self.X.indices, self.X.indptr, self.offsets

    def __repr__(self) -> str:
        n, tokens, attributes = len(self.offsets) - 1, len(self.tokens[0]) - 1, self.index.n_attributes
        return f"Encoded: {n} sequences, {tokens} tokens, {attributes} attributes"


@dataclass(frozen=True, eq=False)
class FeatureIndex:
    """What the columns are: names, or just a number of them; maybe a last one that is always 1.

    Attributes
    ----------
    names : dict of str to int, or None
        None for arrays.
    n_given : int
        Columns of arrays, or the number of names.
    bias : bool
    """

    names: dict[str, int] | None
    n_given: int
    bias: bool

    @classmethod
    def learn(cls, X: Any, bias: bool) -> tuple[FeatureIndex, Encoded]:
        """Number the attributes of training data."""
        sequences = _sequences(X)
        require(sequences, "X", "at least one sequence", "an empty list")
        if _is_named(sequences):
            return cls({}, 0, bias)._with_names_of(sequences)
        rows = _rows(sequences)
        index = cls(None, rows.shape[1], bias)
        return index, index._of_rows(rows, sequences)

    def grown(self, X: Any) -> tuple[FeatureIndex, Encoded]:
        """Lay out further training data; names that are new get the next numbers, before the constant."""
        if self.names is None or isinstance(X, Encoded) or not _is_named(sequences := _sequences(X)):
            return self, self.encode(X)
        return self._with_names_of(sequences)

    def _with_names_of(self, sequences: list[Any]) -> tuple[FeatureIndex, Encoded]:
        names = _GrowingNames(self.names or ())
        arrays = _named(sequences, partial(map, names.__getitem__))
        if set(map(type, names)) - {str}:
            odd = next(name for name in names if type(name) is not str)
            raise InputError("X", "attributes that are strings", f"{odd!r:.60}", "convert them with str")
        index = self if self.names and len(names) == self.n_given else FeatureIndex(dict(names), len(names), self.bias)
        return index, index._joined(*arrays)

    def __repr__(self) -> str:
        form = "columns" if self.names is None else "names"
        return f"FeatureIndex: {self.n_given} {form}{' and a constant' if self.bias else ''}"

    @property
    def n_attributes(self) -> int:
        """The number of columns."""
        return self.n_given + self.bias

    def titles(self) -> list[Any]:
        """Return what to call each column."""
        return [*(range(self.n_given) if self.names is None else self.names), *([BIAS] if self.bias else [])]

    def encode(self, X: Any) -> Encoded:
        """Lay out new data by the columns of the training data; what is laid out already stays as it is."""
        if isinstance(X, Encoded):
            self._require_own(X)
            return X
        sequences = _sequences(X)
        named = _is_named(sequences)
        if named is not (self.names is not None) and any(map(_length, sequences)):
            expected = "dicts or strings, as in fit" if self.names is not None else "arrays, as in fit"
            raise InputError("X", expected, "arrays" if self.names is not None else "dicts or strings")
        if self.names is not None:
            find = self.names.get
            return self._joined(*_named(sequences, lambda names: map(find, names, repeat(-1))))
        rows = _rows(sequences) if any(map(_length, sequences)) else csr_array((0, self.n_given))
        if rows.shape[1] != self.n_given:
            remedy = "give the same features as to fit, or fit anew"
            raise InputError("X", f"{self.n_given} features, as in fit", f"{rows.shape[1]}", remedy)
        return self._of_rows(rows, sequences)

    def _require_own(self, encoded: Encoded) -> None:
        """Refuse what was laid out by other columns."""
        other = encoded.index
        if other is self or (other.names, other.n_given, other.bias) == (self.names, self.n_given, self.bias):
            return
        got = f"one by {other.n_attributes} attributes of another estimator, or of another fit"
        expected = f"an encoding by this estimator's {self.n_attributes} attributes, as in fit"
        raise InputError("X", expected, got, "encode them again, or give the sequences themselves")

    def _of_rows(self, rows: Any, sequences: list[Any]) -> Encoded:
        X = csr_array(rows)
        X.eliminate_zeros()
        counts = np.diff(X.indptr)
        return self._joined(X.indices, X.data, counts, starts(list(map(_length, sequences))))

    def _joined(self, columns: Array, values: FloatArray | None, counts: IntArray, offsets: IntArray) -> Encoded:
        """Drop what is unknown or zero, and append the constant."""
        first, known = starts(counts), columns >= 0
        kept = known if values is None else known & (values != 0)
        if not kept.all():
            first, columns, values = starts(kept)[first], columns[kept], None if values is None else values[kept]
        if values is not None and (values == 1).all():
            values = None
        if self.bias:
            columns = np.insert(columns, first[1:], self.n_given)
            values = None if values is None else np.insert(values, first[1:], 1.0)
            first = first + np.arange(len(first))
        columns = np.require(columns, np.int32, ("C", "W"))  # as loops are compiled for
        return Encoded(
            (first, columns, np.ones(1) if values is None else values, int(values is not None)), offsets, self
        )


def _sequences(X: Any) -> list[Any]:
    """Return the sequences; those that are arrays of objects, such as dicts, as lists."""
    found = items(X, "X", _FORM)
    if not any(issubclass(kind, np.ndarray) for kind in set(map(type, found))):
        return found
    return [one.tolist() if isinstance(one, np.ndarray) and one.dtype == object else one for one in found]


def _length(sequence: Any) -> int:
    return int(sequence.shape[0]) if issparse(sequence) else len(sequence)


def _is_named(sequences: list[Any]) -> bool:
    """Tell dicts and strings from arrays of numbers, by the first token."""
    for i, one in enumerate(sequences):
        if issparse(one) or isinstance(one, np.ndarray):
            return False
        expected = "a sequence: an array, or a list of dicts or of lists of strings"
        alone = "one sequence alone is [x]" if isinstance(one, dict | str) else ""
        require(isinstance(one, list | tuple), f"X[{i}]", expected, type(one).__name__, alone)
        if len(one):
            remedy = "a token is a list of strings, a sequence a list of tokens"
            require(not isinstance(one[0], str), f"X[{i}]", "a list of tokens", "a list of strings", remedy)
            if isinstance(one[0], dict):
                return True
            if isinstance(one[0], _COLLECTIONS):
                first = next(iter(one[0]), None)
                if first is not None:
                    return not isinstance(first, _NUMBERS)
    return True


def _rows(sequences: list[Any]) -> Any:
    """Return the rows of all sequences in one matrix."""
    plain = all(isinstance(one, csr_array | csr_matrix) and one.dtype == np.float64 for one in sequences)
    if plain and len({one.shape[1] for one in sequences}) == 1:  # checked once for all
        return matrix(vstack(sequences, format="csr"), "X", "tokens, features")
    rows = [matrix(one, f"X[{i}]", "length, features") for i, one in enumerate(sequences) if _length(one)]
    require(rows, "X", "at least one token", "sequences without any", "leave them out")
    return stacked(rows, "X")


def _named(
    sequences: list[Any], numbers: Callable[[Iterable[str]], Iterable[int]]
) -> tuple[Array, Any, IntArray, IntArray]:
    """Return the numbers, values (None: all 1) of all attributes, how many a token has, and the offsets."""
    tokens = list(chain.from_iterable(sequences))
    kinds = set(map(type, tokens))
    counts = np.fromiter(map(len, tokens), np.int64, len(tokens)) if kinds <= {dict, *_COLLECTIONS} else None
    if counts is None or (dict in kinds and len(kinds) > 1):
        expected = "tokens that are all dicts, or all lists of strings"
        raise InputError("X", expected, ", ".join(sorted(kind.__name__ for kind in kinds)))
    names: Iterable[str] = chain.from_iterable(tokens)
    values = None
    if dict in kinds:
        given = list(chain.from_iterable(map(dict.values, tokens)))
        names, values = _pairs(list(names), given)
    total = int(counts.sum())
    try:
        columns = np.fromiter(numbers(names), np.int32, total)
    except TypeError:
        raise InputError("X", "attributes that are strings", "something else", "convert them with str") from None
    return columns, values, counts, starts(list(map(len, sequences)))


def _pairs(keys: list[Any], given: list[Any]) -> tuple[list[str], FloatArray]:
    """Turn keys and values of dicts into names and numbers."""
    kinds = set(map(type, given))
    odd = [kind for kind in kinds if not issubclass(kind, (str, *_NUMBERS))]
    if odd:
        remedy = "a value is text, a number, True or False"
        key = next(k for k, v in zip(keys, given, strict=True) if type(v) is odd[0])
        raise InputError("X", "dicts with plain values", f"{odd[0].__name__} for {key!r:.40}", remedy)
    if any(issubclass(kind, str) for kind in kinds):
        keys = [f"{k}={v}" if isinstance(v, str) else k for k, v in zip(keys, given, strict=True)]
        given = [1.0 if isinstance(v, str) else v for v in given]
    try:
        values = np.array(given, np.float64)
    except OverflowError:
        raise InputError("X", "numbers that a float can hold", "a larger integer", "rescale it") from None
    if not np.isfinite(values).all():
        bad = int(np.argmin(np.isfinite(values)))
        raise InputError("X", "finite numbers", f"{values[bad]} for {keys[bad]!r:.60}", "leave missing values out")
    return keys, values
