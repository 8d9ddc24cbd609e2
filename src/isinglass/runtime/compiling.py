"""Who is told when loops are compiled: a progress bar, for example, as that takes seconds and happens once.

This module does not import Numba, so that programs may ask to be told before they know whether they need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[int], None]

_listeners: list[Listener] = []


@contextmanager
def telling(listener: Listener) -> Iterator[None]:
    """Call a function at the beginning and the end of each compilation in this process, in the thread that compiles.

    At the beginning it gets the number of the loop, counted from one, and at the end zero. Loops that are found in the
    cache do not count, nor do those that become a part of others.

    Examples
    --------
    >>> with telling(lambda number: print(number)):
    ...     tell(7)
    7
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell(number: int) -> None:
    """Tell all who asked."""
    for listener in tuple(_listeners):
        listener(number)


def words(number: int) -> str:
    """Say how many loops were compiled, the one under way among them.

    Examples
    --------
    >>> words(7)
    'compiling, once: 7 loops so far'
    """
    return f"compiling, once: {number} {'loop' if number == 1 else 'loops'} so far"
