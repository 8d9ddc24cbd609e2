"""A parallel map over threads: the caller is one of them, and each thread takes the next piece when it is free.

Which thread gets which piece depends on timing. So each piece writes to its own memory, and sums are taken in the order
of the pieces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import cache
from typing import Generic, TypeVar

from isinglass.runtime.blas import one_blas_thread

T = TypeVar("T")


class ThreadMap:
    """Call a function with several tuples of arguments on some threads; results come in the order of the tuples.

    Of several errors, the first in this order is raised. After an error or Ctrl-C no call is begun. With `waits` those
    under way are waited for: then nobody writes to memory that is used for something else afterwards.

    Examples
    --------
    >>> ThreadMap(2)(pow, [(2, 3), (3, 2), (5, 1)])
    [8, 9, 5]
    """

    def __init__(self, threads: int, waits: bool = False) -> None:
        self.threads, self.waits = threads, waits
        self.pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def __call__(self, function: Callable[..., T], arguments: Sequence[tuple[object, ...]]) -> list[T]:
        """Return what the function returns for each tuple."""
        if self.pool is None or len(arguments) < 2:
            return [function(*one) for one in arguments]
        work = _Work(function, arguments)
        others = range(min(self.threads, len(arguments)) - 1)
        helpers = [self.pool.submit(copy_context().run, work.take) for _ in others]
        try:
            work.take()
            wait([helper for helper in helpers if not helper.cancel()])  # one that did not start is not waited for
        except BaseException:
            work.left.clear()
            if self.waits:
                wait([helper for helper in helpers if not helper.cancel()])
            raise
        return work.found()

    def with_blas(self, function: Callable[..., T], arguments: Sequence[tuple[object, ...]]) -> list[T]:
        """Do the same for a function that calls BLAS or LAPACK, which are limited to one thread meanwhile."""
        if self.pool is None:
            return self(function, arguments)
        with one_blas_thread():
            return self(function, arguments)


@cache
def team(threads: int) -> ThreadMap:
    """Return a map whose threads are started once and shared by all who ask for as many; calls may be nested.

    Examples
    --------
    >>> team(2) is team(2), team(1)(abs, [(-1,)])
    (True, [1])
    """
    return ThreadMap(threads, waits=True)


class _Work(Generic[T]):
    """A queue of calls, and their results."""

    def __init__(self, function: Callable[..., T], arguments: Sequence[tuple[object, ...]]) -> None:
        self.function = function
        self.left = deque(enumerate(arguments))
        self.answers: dict[int, T] = {}
        self.errors: dict[int, BaseException] = {}

    def take(self) -> None:
        """Make calls until none is left; after an error, none is started."""
        while True:
            try:
                i, one = self.left.popleft()
            except IndexError:
                return
            try:
                self.answers[i] = self.function(*one)
            except BaseException as error:
                self.errors[i] = error
                self.left.clear()

    def found(self) -> list[T]:
        """Return the results, or raise the first error."""
        if self.errors:
            raise self.errors[min(self.errors)]
        return [self.answers[i] for i in range(len(self.answers))]
