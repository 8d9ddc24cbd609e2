"""A pool of arrays for messages: fresh memory costs more than an iteration, because the system maps it page by page.

A graph keeps the arrays that its last runs returned, at most LIMIT bytes of them. Threads may share it, and so may
graphs: a pool of many graphs keeps the latest arrays.
"""

from __future__ import annotations

import weakref
from threading import RLock

import numpy as np

from isinglass.typing import Array, DType

LIMIT = 2**28


class Loan:
    """Holds an array of a pool."""

    def __init__(self, array: Array) -> None:
        self.array = array


class Pool:
    """Free arrays by shape and dtype.

    Parameters
    ----------
    limit : int
        The most bytes that are kept.
    latest : bool
        Whether, beyond the limit, the arrays that came first make room; else the new one is let go.
    """

    def __init__(self, limit: int = LIMIT, latest: bool = False) -> None:
        self.limit, self.latest = limit, latest
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

    def lend(self, array: Array) -> Loan:
        """Return a holder of an array, which goes back to the pool when nobody has the holder any more."""
        loan = Loan(array)
        self.give_back_with(loan, array)
        return loan

    def give(self, array: Array) -> None:
        """Return an array that nobody uses any more to the pool."""
        with self.lock:
            while self.latest and self.free and self.bytes + array.nbytes > self.limit:
                self.free.pop(next(iter(self.free)))
            if self.bytes + array.nbytes <= self.limit:
                self.free.setdefault((array.shape, array.dtype.str), []).append(array)
