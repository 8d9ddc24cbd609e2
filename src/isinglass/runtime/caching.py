"""A cache of immutable values by key, which threads may share.

Values in a cache are never changed, only replaced. (A pool of arrays, whose content changes, has its own lock.) Reading
takes no lock, because a dictionary lookup is atomic. Computing a value locks only its key, because it may take seconds
and may need other values of the cache. A thread that needs the same value waits for it; if the computation fails, the
waiting thread computes the value itself. A thread does not wait for a value that might not fit its needs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any, TypeVar

T = TypeVar("T")


class _Missing:
    """Marks a key that is not in the cache (None can be a value)."""


_MISSING = _Missing()


class Cache:
    """A cache of limited size.

    Parameters
    ----------
    most : int
        The maximal total size of its values; beyond it, the oldest values are dropped.

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
        self._lock = RLock()  # reentrant: dropping a value can run any code

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable, make: Callable[[], T], fits: Callable[[T], bool] | None = None, size: int = 1) -> T:
        """Return the value of `key`; compute it the first time, and again if the cached one does not fit."""
        found: T | _Missing = self._values.get(key, _MISSING)
        if not isinstance(found, _Missing) and (fits is None or fits(found)):
            return found
        if fits is not None:
            return self._kept(key, make(), fits, size)
        with self._lock:
            turn = self._making.setdefault(key, RLock())
        with turn:
            found = self._found(key, fits)  # from a thread that this one has waited for
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
        """Store a value, unless another thread has stored one already; return the stored value."""
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
