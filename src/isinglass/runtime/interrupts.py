"""Ctrl-C during long computations.

Python handles signals between its own instructions, so a compiled loop cannot be interrupted before it returns. Loops
that could run for more than about a second are therefore split into pieces (elimination orders, exact inference,
factorisations, iterations on grids). A call that cannot be split, such as one call of LAPACK, runs in a thread while
the caller waits, and waiting can be interrupted. If a library calls back into Python, as LLVM does, an interrupt during
the callback is lost or becomes another error; `not_lost` raises it again.

A fit or a search that is interrupted returns the best result so far. In an experiment with many fits, this would only
skip to the next one. There, Ctrl-C ends all of them (`ending_all`).
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import TypeVar

T = TypeVar("T")
_ends_all: ContextVar[bool] = ContextVar("ends_all", default=False)


@contextmanager
def ending_all() -> Iterator[None]:
    """Let Ctrl-C end a whole block: fits and searches inside do not return their best result so far.

    Examples
    --------
    >>> with ending_all():
    ...     keeps_best()
    False
    >>> keeps_best()
    True
    """
    before = _ends_all.set(True)
    try:
        yield
    finally:
        _ends_all.reset(before)


def keeps_best() -> bool:
    """Return whether an interrupted fit or search returns its best result so far."""
    return not _ends_all.get()


@contextmanager
def not_lost() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end of a block, or in place of its error, if Ctrl-C was lost inside it.

    Signal handlers of the user are not replaced. In threads other than the main thread it does nothing, because only
    the main thread receives Ctrl-C.

    Examples
    --------
    >>> with not_lost():
    ...     pass
    """
    usual = signal.default_int_handler
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not usual:
        yield
        return
    heard: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        usual(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except Exception as error:
        if heard:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, usual)
    if heard:
        raise KeyboardInterrupt


def interruptible(function: Callable[..., T], *arguments: object) -> T:
    """Call a function that releases the GIL, so that Ctrl-C works while it runs.

    After Ctrl-C the function continues in the background until it returns, and its result is dropped. So it must not
    write to memory that is used afterwards. Starting the thread takes about 0.1 ms. Only the main thread receives
    Ctrl-C; in other threads the function is called directly.

    Examples
    --------
    >>> interruptible(pow, 2, 10)
    1024
    """
    if current_thread() is not main_thread():
        return function(*arguments)
    answer: Future[T] = Future()
    Thread(target=_answer, args=(answer, function, arguments), daemon=True).start()
    return answer.result()


def _answer(answer: Future[T], function: Callable[..., T], arguments: tuple[object, ...]) -> None:
    try:
        answer.set_result(function(*arguments))
    except BaseException as error:
        answer.set_exception(error)
