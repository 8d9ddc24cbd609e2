"""Numbers of names: attributes of tokens, in the order in which they first occur."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isinglass.runtime.threads import ThreadMap
from isinglass.segments import starts
from isinglass.typing import IntArray

_CHUNK = 2048  # tokens of a call
_RING = 32  # names that are under way
_ALONE = ThreadMap(1)
_NONE = np.empty(0, np.int64)
_LOCKED = getattr(sys, "_is_gil_enabled", lambda: True)()  # compiled loops read lists while nobody changes them


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
    r"""The numbers of names by their bytes, for many of them at once: those of tokens in sequences, all of them lists.

    It returns None for what is no such list, and where a name is no text, but has half a pair of surrogates.

    Examples
    --------
    >>> table = NameTable(["a", "b"])
    >>> [found.tolist() for found in table.find([[["b", "c"], [], ["a"]]])]
    [[1, -1, 0], [2, 0, 1]]
    >>> [found.tolist() for found in table.learn([[["c"], ["b", "c"]]])]
    [[2, 1, 2], [1, 2], [0]]
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        given = list(names)
        self.sound = _LOCKED  # so far
        self.text, self.begins = np.empty(0, np.uint8), np.empty(0, np.int64)
        self.slots, self.known = _slots(0), np.zeros(2, np.int64)
        self.sound = self.learn([[given]]) is not None

    def find(self, sequences: list[Any], spread: ThreadMap = _ALONE) -> tuple[NDArray[np.int32], IntArray] | None:
        """Return the numbers of the names of all tokens, -1 for others, and how many names a token has."""
        counts, size = _measured(sequences, texts=False)
        found = self._numbers(sequences, counts, _NONE, spread) if self.sound and size >= 0 else None
        return None if found is None else (found, counts)

    def learn(self, sequences: list[Any]) -> tuple[NDArray[np.int32], IntArray, IntArray] | None:
        """Do the same, but give numbers to new names, too; return also where among all names these first occur.

        There is then room in the table as if all names were new: better for one of `chunks` at a time.
        """
        counts, size = _measured(sequences, texts=True)
        if size < 0 or not self.sound:
            return None
        fresh, before = np.empty(int(counts.sum()), np.int64), int(self.known[0])
        self._make_room(len(fresh), size)
        found = self._numbers(sequences, counts, fresh, _ALONE)
        self.sound = found is not None
        return None if found is None else (found, counts, fresh[: int(self.known[0]) - before])

    def _numbers(
        self, sequences: list[Any], counts: IntArray, fresh: IntArray, spread: ThreadMap
    ) -> NDArray[np.int32] | None:
        from isinglass.kernels.numba.chains.names import number_names

        ends = starts(counts)[starts(list(map(len, sequences)))]
        found, table = np.empty(ends[-1], np.int32), (self.text, self.begins, self.slots, self.known)

        def number(first: int, last: int) -> bool:
            ring, out = np.empty((_RING, 5), np.uint64), found[ends[first] : ends[last]]
            return bool(number_names(first, last, id(sequences), id(list), *table, ring, out, fresh))

        runs = [(0, len(sequences))] if len(fresh) else chunks(sequences)  # places of new names are those in one call
        return found if all(spread(number, runs)) else None

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


def chunks(sequences: list[Any]) -> list[tuple[int, int]]:
    """Cut sequences into runs of so many tokens that it is worth a call."""
    offsets = starts(list(map(len, sequences)))
    cuts = np.searchsorted(offsets, np.arange(0, offsets[-1], _CHUNK)).tolist()
    return list(pairwise([*cuts, len(sequences)]))


def _measured(sequences: list[Any], texts: bool) -> tuple[IntArray, int]:
    """Return how many names each token has, and how many bytes all of them; -1 where some are not as they should be."""
    from isinglass.kernels.numba.chains.names import measure

    counts = np.empty(sum(map(len, sequences)), np.int64)
    size = measure(id(sequences), id(list), counts, texts)
    return (counts, size) if size is not None and size >= 0 else (_NONE, -1)


def _slots(names: int) -> NDArray[np.uint64]:
    """Return an empty table for so many names."""
    from isinglass.kernels.numba.chains.names import FREE

    return np.full((2 ** (2 * names + 1).bit_length(), 4), FREE, np.uint64)


def _move(old: NDArray[np.uint64], slots: NDArray[np.uint64]) -> None:
    """Move names to a larger table."""
    from isinglass.kernels.numba.chains.names import move_names

    move_names(old, slots)
