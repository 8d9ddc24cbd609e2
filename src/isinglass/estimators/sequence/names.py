"""Numbers of names: attributes of tokens, in the order in which they first occur."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from isinglass.typing import IntArray

_BATCH = 64  # names that are read before they are looked up
_SPARE = 8  # line ends after a text, so that it can be read in words
_END = ("\n" * _SPARE,)
_NONE = np.empty(0, np.int64)


class Names(dict[str, int]):
    """Numbers of names; what is not there has the number -1."""

    def __missing__(self, name: str) -> int:
        return -1


class GrowingNames(dict[str, int]):
    """Numbers of names; what is not there gets the next one."""

    def __missing__(self, name: str) -> int:
        number = self[name] = len(self)
        return number


class NameTable:
    r"""The numbers of names by their bytes, for many of them at once; names with line ends are not for it.

    Examples
    --------
    >>> table = NameTable(["a", "b"])
    >>> table.find(["b", "c", "a"], 3).tolist()
    [1, -1, 0]
    >>> [found.tolist() for found in table.learn(["c\nb", "c"], 3)]
    [[2, 1, 2], [0]]
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        given = list(names)
        self.sound = True  # so far
        self.text, self.begins = np.empty(0, np.uint8), np.empty(0, np.int64)
        self.slots, self.known = _slots(0), np.zeros(2, np.int64)
        found = self.learn(given, len(given))
        self.sound = found is not None and len(found[1]) == len(given)

    def find(self, lines: Iterable[str], count: int) -> NDArray[np.int32] | None:
        """Return the numbers of so many names, in lines of one or more; None where bytes do not tell them apart."""
        return self._numbers(_bytes(lines), count, _NONE) if self.sound else None

    def learn(self, lines: Iterable[str], count: int) -> tuple[NDArray[np.int32], IntArray] | None:
        """Return the numbers of so many names, new ones too, and where these first occur; None as for `find`."""
        text, before, fresh = _bytes(lines), int(self.known[0]), np.empty(count, np.int64)
        if text is not None:
            self._make_room(count, len(text))
        found = self._numbers(text, count, fresh) if self.sound else None
        self.sound = found is not None
        return None if found is None else (found, fresh[: int(self.known[0]) - before])

    def _numbers(self, text: NDArray[np.uint8] | None, count: int, fresh: IntArray) -> NDArray[np.int32] | None:
        from isinglass.kernels.numba.chains.names import number_names

        if text is None:
            return None
        found, batch = np.empty(count, np.int32), np.empty((_BATCH, 5), np.uint64)
        table = self.text, self.begins, self.slots, self.known
        there = number_names(text, len(text) - _SPARE, *table, batch, found, fresh)
        return found if there == count else None

    def _make_room(self, names: int, size: int) -> None:
        """Make room for so many further names of so many bytes."""
        count, used = self.known.tolist()
        if used + size > len(self.text):
            self.text = np.concatenate([self.text[:used], np.empty(used + size, np.uint8)])
        if count + names > len(self.begins):
            self.begins = np.concatenate([self.begins[:count], np.empty(count + names, np.int64)])
        if 2 * (count + names) > len(self.slots):
            old, self.slots = self.slots, _slots(count + names)
            _move(old, self.slots)


def _slots(names: int) -> NDArray[np.uint64]:
    """Return an empty table for so many names."""
    from isinglass.kernels.numba.chains.names import FREE

    return np.full((2 ** (2 * names + 1).bit_length(), 4), FREE, np.uint64)


def _move(old: NDArray[np.uint64], slots: NDArray[np.uint64]) -> None:
    """Move names to a larger table."""
    from isinglass.kernels.numba.chains.names import move_names

    move_names(old, slots)


def _bytes(lines: Iterable[str]) -> NDArray[np.uint8] | None:
    """Return lines with a line end after each, and some more after the last, as bytes; None for what is no text."""
    try:
        return np.frombuffer("\n".join(chain(lines, _END)).encode(), np.uint8)
    except UnicodeEncodeError:
        return None
