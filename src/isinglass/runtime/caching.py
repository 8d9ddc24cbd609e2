"""A cache of immutable values under keys, which threads may share.

Values are never changed once they are in a cache; they are replaced. (A pool of arrays, which must change, has its own
lock.) Reading takes no lock, because a dictionary lookup is atomic. Computing a value takes no lock either: it may take
seconds, and may need other caches. If two threads compute the same value at the same time, the first one is kept, and
both threads get it.
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
        The largest number of values; beyond it, the oldest one is dropped.

    Examples
    --------
    >>> cache = Cache(2)
    >>> cache.get("square", lambda: 9), cache.get("square", lambda: 16)
    (9, 9)
    """

    __slots__ = ("_lock", "_most", "_values")

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[Hashable, Any] = {}
        self._lock = RLock()  # which the same thread may take again: dropping a value can run anything

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable, make: Callable[[], T], fits: Callable[[T], bool] | None = None) -> T:
        """Return the value of `key`; compute it the first time, and again where the cached one does not fit."""
        found: T | _Missing = self._values.get(key, _MISSING)
        if isinstance(found, _Missing) or (fits is not None and not fits(found)):
            return self._kept(key, make(), fits)
        return found

    def _kept(self, key: Hashable, value: T, fits: Callable[[T], bool] | None) -> T:
        """Store a value, unless another thread was faster; return the stored one."""
        with self._lock:
            found: T | _Missing = self._values.get(key, _MISSING)
            if not isinstance(found, _Missing) and (fits is None or fits(found)):
                return found
            while len(self._values) >= self._most and key not in self._values:
                del self._values[next(iter(self._values))]
            self._values[key] = value
            return value
