"""Names for choices: a registry maps a public name ("exact") to the class that implements it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from isinglass.errors import InputError

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """An ordered mapping from names to entries, with a helpful error for an unknown name.

    Examples
    --------
    >>> colours = Registry("colour")
    >>> _ = colours.register("red")(object())
    >>> colours["rad"]
    Traceback (most recent call last):
    ...
    isinglass.errors.InputError: colour: expected one of 'red', got 'rad'; did you mean 'red'?
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that files its argument under `name`."""

        def file(entry: T) -> T:
            if name in self._entries:
                raise InputError("name", f"a new {self.what}", f"{name!r}, which is taken")
            self._entries[name] = entry
            return entry

        return file

    def __getitem__(self, name: str) -> T:
        if name in self._entries:
            return self._entries[name]
        near = difflib.get_close_matches(str(name), self._entries, 1)
        remedy = f"did you mean {near[0]!r}?" if near else ""
        known = ", ".join(map(repr, self._entries))
        raise InputError(self.what, f"one of {known}", repr(name), remedy)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
