"""Ctrl-C during long calculations.

Python looks for signals between its own instructions, so a compiled loop cannot be interrupted before it returns. Loops
that could run for more than about a second are therefore cut into pieces (elimination orders, exact inference,
factorisations, iterations on grids). What cannot be cut, such as one call of LAPACK, runs in a thread while the caller
waits: waiting can be interrupted.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread, current_thread, main_thread
from typing import TypeVar

T = TypeVar("T")


def interruptible(function: Callable[..., T], *arguments: object) -> T:
    """Call a function that releases the GIL, so that Ctrl-C works while it runs.

    After Ctrl-C the function goes on in the background until it returns, and its result is dropped; so it must not
    write to anything that is used afterwards. Starting the thread takes some 0.1 ms. Only the main thread receives
    Ctrl-C: in others the function is called directly.

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
