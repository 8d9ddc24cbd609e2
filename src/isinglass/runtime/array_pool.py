"""Arrays for tapes, used again: new memory costs more than an iteration, because the system hands it out page by page.

A graph keeps a pool of the arrays that its last tapes gave back, at most LIMIT bytes of them. Threads may share it.
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
        """What the free arrays take; counted anew, so that no interruption can make it wrong."""
        return sum(len(some) * some[0].nbytes for some in (self.free[key] for key in list(self.free)) if some)

    def take(self, shape: tuple[int, ...], dtype: DType) -> Array:
        """Return an array with anything in it."""
        with self.lock:
            some = self.free.get((shape, dtype.str))
            if some:
                return some.pop()
        return np.empty(shape, dtype)

    def give_back_with(self, owner: object, array: Array) -> None:
        """Take the array back when its owner, the only one who uses it by then, is gone."""
        weakref.finalize(owner, self._give, array).atexit = False

    def _give(self, array: Array) -> None:
        with self.lock:
            if self.bytes + array.nbytes <= LIMIT:
                self.free.setdefault((array.shape, array.dtype.str), []).append(array)
