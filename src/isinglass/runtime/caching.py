"""A cache of immutable values under keys, which threads may share.

Values are never changed once they are in a cache; they are replaced. (A pool of arrays, which must change, has its own
lock.) Reading takes no lock, because a dictionary lookup is atomic. Computing a value takes a lock of its key alone: it
may take seconds, and may need other values. A thread that wants the same value meanwhile waits for it; where the
calculation fails, it computes the value itself. No thread waits for a value that might not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any, TypeVar

T = TypeVar("T")


class _Missing:
    """Marks what is not in a cache (None may be)."""


_MISSING = _Missing()


class Cache:
    """A cache of limited size.

    Parameters
    ----------
    most : int
        The largest sum of the sizes of its values; beyond it, the oldest ones are dropped.

    Examples
    --------
    >>> cache = Cache(2)
    >>> cache.get("square", lambda: 9), cache.get("square", lambda: 16)
    (9, 9)
    """

    __slots__ = ("_lock", "_making", "_most", "_sizes", "_total", "_values")

    def __init__(self, most: int) -> None:
        self._most, self._total = most, 0
        self._values: dict[Hashable, Any] = {}
        self._sizes: dict[Hashable, int] = {}
        self._making: dict[Hashable, RLock] = {}
        self._lock = RLock()  # which the same thread may take again: dropping a value can run anything

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable, make: Callable[[], T], fits: Callable[[T], bool] | None = None, size: int = 1) -> T:
        """Return the value of `key`; compute it the first time, and again where the cached one does not fit."""
        found: T | _Missing = self._values.get(key, _MISSING)
        if not isinstance(found, _Missing) and (fits is None or fits(found)):
            return found
        if fits is not None:
            return self._kept(key, make(), fits, size)
        with self._lock:
            turn = self._making.setdefault(key, RLock())
        with turn:
            found = self._found(key, fits)  # by a thread that this one has waited for
            if not isinstance(found, _Missing):
                return found
            try:
                return self._kept(key, make(), fits, size)
            finally:
                self._making.pop(key, None)

    def _found(self, key: Hashable, fits: Callable[[T], bool] | None) -> T | _Missing:
        """Return the value of `key` if it fits."""
        found: T | _Missing = self._values.get(key, _MISSING)
        return found if isinstance(found, _Missing) or fits is None or fits(found) else _MISSING

    def _kept(self, key: Hashable, value: T, fits: Callable[[T], bool] | None, size: int) -> T:
        """Store a value, unless another thread was faster; return the stored one."""
        with self._lock:
            found = self._found(key, fits)
            if not isinstance(found, _Missing):
                return found
            self._total += size - self._sizes.get(key, 0)
            self._values[key], self._sizes[key] = value, size
            while self._total > self._most and len(self._values) > 1:
                oldest = next(other for other in self._values if other != key)
                self._total -= self._sizes.pop(oldest)
                del self._values[oldest]
            return value
