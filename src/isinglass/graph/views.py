"""Sequences whose items are made when they are asked for: scopes, tables, beliefs."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar, overload

import numpy as np

from isinglass.errors import InputError

T = TypeVar("T")
_SHOWN = 3  # items in a repr


class View(Sequence[T]):
    """A read-only sequence; subclasses say how long it is and make item i, 0 <= i < length.

    Examples
    --------
    >>> class Squares(View[int]):
    ...     def __len__(self) -> int:
    ...         return 4
    ...
    ...     def item(self, i: int) -> int:
    ...         return i * i
    >>> Squares()[-1], Squares()[1:3], Squares()
    (9, [1, 4], Squares of length 4: 0, 1, 4, ...)
    """

    @abstractmethod
    def item(self, i: int) -> T:
        """Make item i."""

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self.item(i) for i in range(*index.indices(len(self)))]
        try:
            number = operator.index(index)
        except TypeError:
            raise InputError("index", "the number of an item, or a slice", f"{index!r:.60}") from None
        if not -len(self) <= number < len(self):
            raise IndexError(f"{number} is out of range: there are {len(self)}")
        return self.item(number % len(self))

    def __repr__(self) -> str:
        """Show the first items."""
        with np.printoptions(precision=4, threshold=16, edgeitems=2, suppress=True):
            shown = [" ".join(str(item).split()) for item in self[:_SHOWN]]
        shown += ["..."] if len(self) > _SHOWN else []
        return f"{type(self).__name__} of length {len(self)}" + (": " if shown else "") + ", ".join(shown)
