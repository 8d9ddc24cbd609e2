"""Fields of dataclasses that are computed at first use.

The class marks the field with `defer`. An object can then be created with a function instead of the value:

    @dataclass(frozen=True)
    class Found:
        value: Array

    defer(Found, "value")
    found = Found(deferred(lambda: np.ones(3)))

The value can still be given directly, and is always read as ``found.value``. To copy an object without computing
anything use `twin`; `dataclasses.replace` reads every field. The value is computed once for all threads and twins;
another thread that reads it at the same time waits.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import TypeVar, cast

T = TypeVar("T")


class _Promise:
    """A function that computes a value, and the value once it is computed."""

    def __init__(self, function: Callable[[], object]) -> None:
        self.function: Callable[[], object] | None = function
        self.value: object = None
        self.lock = RLock()

    def make(self) -> object:
        """Return the value."""
        with self.lock:
            if self.function is not None:
                self.value = self.function()
                self.function = None  # frees what it refers to
        return self.value


class _Field:
    """A descriptor that reads a field, and computes its value first if it is only a promise."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, owner: object, cls: type) -> object:
        if owner is None:
            raise AttributeError(self.name)
        held = owner.__dict__[self.name]
        if isinstance(held, _Promise):
            held = owner.__dict__[self.name] = held.make()
        return held

    def __set__(self, owner: object, value: object) -> None:
        owner.__dict__[self.name] = value


def defer(cls: type, *names: str) -> None:
    """Let fields of a dataclass be computed at first use."""
    for name in names:
        setattr(cls, name, _Field(name))


def deferred(make: Callable[[], T]) -> T:
    """Return a placeholder for the value of such a field, from a function that computes it."""
    return cast("T", _Promise(make))


def twin(one: T, **changes: object) -> T:
    """Return a copy with other values in some fields; deferred fields are not computed.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Found:
    ...     value: int
    ...     name: str
    >>> defer(Found, "value")
    >>> found = twin(Found(deferred(lambda: print("now") or 5), "a"), name="b")
    >>> found.name
    'b'
    >>> found.value, found.value
    now
    (5, 5)
    """
    copy = object.__new__(type(one))
    copy.__dict__.update({**one.__dict__, **changes})
    return copy
