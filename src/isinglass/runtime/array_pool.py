"""A pool of arrays for messages: fresh memory costs more than an iteration, because the system maps it page by page.

A graph keeps the arrays that its last runs returned, at most LIMIT bytes of them. Threads may share it.
"""

from __future__ import annotations

import weakref
from threading import RLock

import numpy as np

from isinglass.typing import Array, DType

LIMIT = 2**28


class Pool:
    """Free arrays by shape and dtype."""

    def __init__(self) -> None:
        self.free: dict[tuple[tuple[int, ...], str], list[Array]] = {}
        self.lock = RLock()  # the garbage collector may give something back while this thread takes something

    @property
    def bytes(self) -> int:
        """The size of the free arrays; counted again each time, so that an interruption cannot make it wrong."""
        return sum(len(some) * some[0].nbytes for some in (self.free[key] for key in list(self.free)) if some)

    def take(self, shape: tuple[int, ...], dtype: DType) -> Array:
        """Return an array that is not initialised."""
        with self.lock:
            some = self.free.get((shape, dtype.str))
            if some:
                return some.pop()
        return np.empty(shape, dtype)

    def give_back_with(self, owner: object, array: Array) -> None:
        """Return the array to the pool when its owner, by then its only user, is deleted."""
        weakref.finalize(owner, self.give, array).atexit = False

    def give(self, array: Array) -> None:
        """Return an array that nobody uses any more to the pool."""
        with self.lock:
            if self.bytes + array.nbytes <= LIMIT:
                self.free.setdefault((array.shape, array.dtype.str), []).append(array)
