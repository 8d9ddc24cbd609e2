"""Fields of dataclasses that are computed when they are first asked for.

A class marks the field, and its makers may then give a function instead of the value:

    @dataclass(frozen=True)
    class Found:
        value: Array

    defer(Found, "value")
    found = Found(deferred(lambda: np.ones(3)))

Everything else stays as it was: the value can be given itself, and is read as ``found.value``. Only `twin` copies an
object without computing anything; `dataclasses.replace` asks for every field. The value is computed once, for all
threads and twins: whoever asks meanwhile waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import TypeVar, cast

T = TypeVar("T")


class _Promise:
    """A function that makes a value, and the value when it is made."""

    def __init__(self, function: Callable[[], object]) -> None:
        self.function: Callable[[], object] | None = function
        self.value: object = None
        self.lock = RLock()

    def make(self) -> object:
        """Return the value."""
        with self.lock:
            if self.function is not None:
                self.value = self.function()
                self.function = None  # and what it holds
        return self.value


class _Field:
    """Reads a field of an object, whose value it makes first, if there is only a promise of it."""

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
    """Let fields of a dataclass be computed when they are first asked for."""
    for name in names:
        setattr(cls, name, _Field(name))


def deferred(make: Callable[[], T]) -> T:
    """Return what stands for a value in such a field until it is asked for."""
    return cast("T", _Promise(make))


def twin(one: T, **changes: object) -> T:
    """Return a copy with other values in some fields; what is not computed yet is not computed.

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
