"""A pool of reusable arrays for messages.

New memory can cost more time than an iteration of message passing, because the operating system maps it page by page.
So a graph keeps the arrays of its last runs. A pool keeps up to LIMIT bytes; beyond that, all pools together may keep
an eighth of the memory. Threads may share a pool, and so may graphs. A pool that is shared by many graphs keeps the
latest arrays. Its lengths are rounded up, to one of eight lengths for each power of two, so that arrays of similar size
can replace each other.

An array may be returned with the name of its content, if it (or its border) still has its initial content. A run that
needs the same initial content gets this array and need not fill it.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Hashable
from functools import cache, lru_cache
from threading import RLock
from typing import ClassVar

import numpy as np

from isinglass.runtime.memory import available_memory
from isinglass.typing import Array, DType

LIMIT = 2**28


@cache
def common_limit() -> int:
    """Return the bytes that all pools together may keep beyond their own limits: an eighth of the memory."""
    return available_memory() // 8


class Loan:
    """Holds an array of a pool."""

    def __init__(self, array: Array) -> None:
        self.array = array


class Pool:
    """Free arrays by shape, dtype and content; if many graphs share the pool, flat arrays by rounded length.

    Parameters
    ----------
    limit : int
        The bytes that the pool may always keep; it may keep more if the other pools leave room.
    latest : bool
        What happens beyond the limit. True: the oldest arrays are dropped. False: the new array is dropped, unless the
        common limit leaves room.
    """

    everywhere: ClassVar[weakref.WeakSet[Pool]] = weakref.WeakSet()

    def __init__(self, limit: int = LIMIT, latest: bool = False) -> None:
        self.limit, self.latest = limit, latest
        self.free: dict[tuple[tuple[int, ...], str, Hashable], list[Array]] = {}
        self.lock = RLock()  # reentrant: the garbage collector may return an array while this thread takes one
        self.everywhere.add(self)

    @property
    def bytes(self) -> int:
        """The bytes of the free arrays; counted anew each time, so that an interruption cannot make it wrong."""
        return sum(len(some) * some[-1].nbytes for some in list(self.free.values()) if some)

    def take(self, shape: tuple[int, ...], dtype: DType) -> Array:
        """Return an uninitialised array."""
        size = math.prod(shape)
        room = (_room(size),) if self.latest else shape
        found = self._free_one(room, dtype, None)
        if found is None:
            found = np.empty(room, dtype)
        return found[:size].reshape(shape) if self.latest else found

    def take_with(
        self, content: Hashable, shape: tuple[int, ...], dtype: DType, fill: Callable[[Array], object]
    ) -> Array:
        """Return an array that was returned with this content; otherwise fill another one."""
        found = self._free_one(shape, dtype, content)
        if found is None:
            found = self.take(shape, dtype)
            fill(found)
        return found

    def holds(self, shape: tuple[int, ...], dtype: DType) -> bool:
        """Return whether an array of this shape is free; not for a pool of many graphs."""
        return bool(self.free.get((shape, dtype.str, None)))

    def _free_one(self, room: tuple[int, ...], dtype: DType, content: Hashable) -> Array | None:
        with self.lock:
            some = self.free.get((room, dtype.str, content))
            return some.pop() if some else None

    def give_back_with(self, owner: object, array: Array, content: Hashable = None) -> None:
        """Return the array to the pool when its owner, by then its only user, is deleted."""
        weakref.finalize(owner, self.give, array, content).atexit = False

    def lend(self, array: Array, content: Hashable = None) -> Loan:
        """Return a holder of an array; the array goes back to the pool when the holder is deleted."""
        loan = Loan(array)
        self.give_back_with(loan, array, content)
        return loan

    def give(self, array: Array, content: Hashable = None) -> None:
        """Return an unused array to the pool, with the name of its content, if that is known."""
        flat = self.latest and content is None
        kept = _whole(array) if flat else array
        if kept is None or not kept.size:  # allocating an empty array is cheaper than keeping it
            return
        with self.lock:
            while self.latest and self.free and self.bytes + kept.nbytes > self.limit:
                self.free.pop(next(iter(self.free)))
            if self._has_room(kept.nbytes):
                shape = (_length(kept.size),) if flat else kept.shape
                self.free.setdefault((shape, kept.dtype.str, content), []).append(kept)

    def _has_room(self, size: int) -> bool:
        beyond = self.bytes + size - self.limit
        if beyond <= 0 or self.latest:
            return beyond <= 0
        others = sum(max(pool.bytes - pool.limit, 0) for pool in list(self.everywhere) if pool is not self)
        return beyond + others <= common_limit()


@lru_cache(1024)
def _room(size: int) -> int:
    """Round a length up."""
    step = _step(size)
    return -(-size // step) * step


@lru_cache(1024)
def _length(size: int) -> int:
    """Round a length down."""
    return size // _step(size) * _step(size)


def _step(size: int) -> int:
    """Return what lengths near this one are multiples of."""
    return 1 << max(size.bit_length() - 4, 0)


def _whole(array: Array) -> Array | None:
    """Return the flat array of a pool that this array is a view of, or itself, flattened; None if it has gaps."""
    owner = array.base
    if not array.flags.c_contiguous:
        return None
    if isinstance(owner, np.ndarray) and owner.ndim == 1 and owner.dtype == array.dtype and _fills(array, owner):
        return owner
    return array.reshape(-1)


def _fills(array: Array, owner: Array) -> bool:
    """Return whether an array is the whole of its owner, except for what rounding has added."""
    return _length(owner.size) == _room(array.size) and owner.size >= array.size and _start(owner) == _start(array)


def _start(array: Array) -> int:
    """Return the address of an array."""
    address: int = array.__array_interface__["data"][0]
    return address
