"""What was derived from something and is kept: immutable values under keys, shared by all threads.

Values are never changed once they are in a cache; they are replaced. (One that must change, a pool of arrays, has its
own lock.) Reading takes no lock, because looking a key up is one step of the interpreter. Making a value takes none
either, for it may take seconds, and may need other caches: where two threads make the same value at a time, the one
that comes first is kept, and both get that one.
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
    """The last values that were made.

    Parameters
    ----------
    most : int
        How many are kept: beyond, the oldest goes.

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
        """Return what is kept under `key`, making it the first time, or anew where what is kept does not fit."""
        found: T | _Missing = self._values.get(key, _MISSING)
        if isinstance(found, _Missing) or (fits is not None and not fits(found)):
            return self._kept(key, make(), fits)
        return found

    def _kept(self, key: Hashable, value: T, fits: Callable[[T], bool] | None) -> T:
        """Keep a value, unless another thread was faster; return the one that is kept."""
        with self._lock:
            found: T | _Missing = self._values.get(key, _MISSING)
            if not isinstance(found, _Missing) and (fits is None or fits(found)):
                return found
            while len(self._values) >= self._most and key not in self._values:
                del self._values[next(iter(self._values))]
            self._values[key] = value
            return value
