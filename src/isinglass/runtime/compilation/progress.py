"""Who is told when loops are compiled: a progress bar, for example, as that takes seconds and happens once.

How many loops a piece of work needs is known before only by experience: it was counted for the usual ones
(`loop_counts`). The loops that are found in the cache count there, too: another process may compile some meanwhile, and
what was compiled yesterday needs no more time. Where nothing was counted, or more loops come than were expected, the
words say how many were compiled so far.

Where nobody asked, and somebody sits before a terminal or a notebook, one line on stderr explains why it takes so long:
after two seconds of compilation, once in a process.

This module does not import Numba, so that programs may ask to be told before they know whether they need it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from isinglass.runtime.compilation.loop_counts import ALWAYS, USUALLY

Listener = Callable[[str], None]

PATIENCE = 2.0  # seconds of compilation without a word
LINE = "isinglass: compiling inner loops, once on this machine; later runs load them (`isinglass warmup` compiles all)"

_listeners: list[Listener] = []
_works: list[Work] = []


class Count:
    """Loops of this process: those that it compiled, and all that it got ready, compiled or loaded."""

    compiled = ready = 0


class Waiting:
    """Seconds of compilation that nobody was told of, when the present one began, and whether the line was said."""

    seconds, since, told = 0.0, 0.0, False


class Work:
    """A piece of work: its name in the table of counts, and how many loops were ready when it began."""

    def __init__(self, name: str) -> None:
        self.name, self.before = name, Count.ready


@contextmanager
def working(name: str) -> Iterator[None]:
    """Name what is done in a block, so that words can say how many loops that takes; the outermost block counts."""
    work = Work(name)
    _works.append(work)
    try:
        yield
    finally:
        _works.remove(work)


@contextmanager
def telling(listener: Listener) -> Iterator[None]:
    """Call a function at the beginning and the end of each compilation in this process, in the thread that compiles.

    At the beginning it gets words about it, and at the end an empty text. Nothing is said of loops that are found in
    the cache, nor of those that become a part of others.

    Examples
    --------
    >>> with telling(lambda text: print(text)):
    ...     tell("compiling")
    compiling
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def printing(wanted: bool) -> Iterator[None]:
    """Print the words, where that is wanted."""
    if not wanted:
        yield
        return
    with telling(lambda text: print(text, flush=True) if text else None):
        yield


def tell(text: str) -> None:
    """Tell all who asked; if there are none, see to it that nobody wonders."""
    if not _listeners:
        _explain(text)
    for listener in tuple(_listeners):
        listener(text)


def _explain(text: str) -> None:
    """Count the seconds between the beginning and the end of a compilation; say the line when they are many."""
    now = time.monotonic()
    if text:
        Waiting.since = now
        return
    Waiting.seconds += now - (Waiting.since or now)
    Waiting.since = 0.0
    if Waiting.seconds > PATIENCE and not Waiting.told and _watched():
        Waiting.told = True
        print(LINE, file=sys.stderr, flush=True)


def _watched() -> bool:
    """Tell whether stderr is a terminal or a notebook."""
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


def begins() -> None:
    """Count a loop that is compiled from now on, and tell of it."""
    Count.compiled += 1
    tell(words(Count.compiled, Count.ready + 1))


def words(compiled: int, ready: int) -> str:
    """Say how many loops were compiled, and how many are ready, the one under way among them.

    Examples
    --------
    >>> words(7, 7)
    'compiling, once: 7 loops so far'
    """
    if _works:
        name, number = _works[0].name, ready - _works[0].before
        if number <= ALWAYS.get(name, 0):
            return f"compiling, once: {number} of {ALWAYS[name]}"
        if number <= USUALLY.get(name, 0):
            return f"compiling, once: {number} of about {USUALLY[name]}"
    return f"compiling, once: {compiled} {'loop' if compiled == 1 else 'loops'} so far"
