"""The complete state of an optimizer between two iterations: plain numbers and arrays, saved without pickle.

An optimizer is a pure function from a state to the next one. Whoever keeps a state can therefore go on from it, in the
same process or after the file was read again, and gets the same bits. The file is one of `isinglass.io.arrays`, with
an array `state.<field>` for each field; lists of vectors are the rows of a matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from isinglass.errors import FileFormatError
from isinglass.io.arrays import read_arrays, write_arrays
from isinglass.io.files import PathLike, shown_path
from isinglass.typing import Array, FloatArray, JsonObject

Vectors = tuple[FloatArray, ...]
Numbers = FloatArray  # any number of them, where a vector has as many entries as x
S = TypeVar("S", bound="State")

SCHEMA, VERSION = "optimizer-state", 1
_KINDS = {
    "str": ("U", 0, "text"),
    "int": ("i", 0, "a whole number"),
    "float": ("f", 0, "a number"),
    "FloatArray": ("f", 1, "a vector"),
    "Numbers": ("f", 1, "a list of numbers"),
    "Vectors": ("f", 2, "a matrix"),
}


@dataclass(frozen=True, eq=False)
class State:
    """What all states have.

    Attributes
    ----------
    optimizer : str
        The name of the optimizer whose state this is.
    x : array (n,)
        The current point. Arrays of a state are never changed in place.
    iteration, evaluations : int
        Steps done and calls of the function since the very start.
    """

    optimizer: str
    x: FloatArray
    iteration: int
    evaluations: int

    @property
    def done(self) -> int:
        """How much of the limit of a run is done: iterations, or epochs."""
        return self.iteration

    @property
    def within_epoch(self) -> bool:
        """Whether more steps follow before all examples were seen."""
        return False

    def save(self, path: PathLike) -> None:
        """Write the state to a file, all or nothing."""
        write_entries(path, packed(self))

    @classmethod
    def load(cls: type[S], path: PathLike) -> S:
        """Read a state of this class."""
        return unpacked(cls, read_entries(path), path)


def write_entries(path: PathLike, arrays: Mapping[str, Array]) -> None:
    """Write the arrays of a state, and others beside them."""
    write_arrays(path, arrays, schema=SCHEMA, version=VERSION)


def read_entries(path: PathLike) -> dict[str, Array]:
    """Read them."""
    return read_arrays(path, schema=SCHEMA, version=VERSION).arrays


def packed(state: State) -> dict[str, Array]:
    """Return the state as named arrays."""
    arrays: dict[str, Array] = {}
    for field in fields(state):
        value = getattr(state, field.name)
        if isinstance(value, tuple):
            value = np.array(value) if value else np.zeros((0, len(state.x)))
        arrays[f"state.{field.name}"] = np.asarray(value)
    return arrays


def unpacked(cls: type[S], arrays: Mapping[str, Array], path: PathLike) -> S:
    """Build a state from named arrays; each is checked for its kind and length."""
    file = shown_path(path)
    size = len(checked_entry(arrays, "state.x", "FloatArray", file))
    values: JsonObject = {}
    for field in fields(cls):
        kind = str(field.type)
        array = checked_entry(arrays, f"state.{field.name}", kind, file)
        if array.ndim and array.shape[-1] != size and kind != "Numbers":
            expected = f"state.{field.name} with {size} entries a vector"
            raise FileFormatError(file, None, expected, f"shape {array.shape}")
        values[field.name] = _value(array, kind)
    return cls(**values)


def checked_entry(arrays: Mapping[str, Array], name: str, kind: str, file: str) -> Array:
    """Return an entry of a file that must hold a given kind of value."""
    letter, ndim, words = _KINDS[kind]
    array = arrays.get(name)
    if array is None:
        raise FileFormatError(file, None, f"an entry {name}", "none")
    if array.dtype.kind != letter or array.ndim != ndim:
        got = f"dtype {array.dtype} of shape {array.shape}"
        raise FileFormatError(file, None, f"{name} to be {words}", got)
    return array


def _value(array: Array, kind: str) -> Any:
    if kind == "Vectors":
        return tuple(np.array(row, np.float64) for row in array)  # vectors of their own, as in a run
    return np.array(array, np.float64) if kind in ("FloatArray", "Numbers") else array.item()
