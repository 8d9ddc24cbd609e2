"""Work that is shared out among threads: the caller is one of them, and each takes the next piece when it is done.

Which piece a thread gets depends on the clock; so a piece writes to places of its own, and what is added up is added in
the order of the pieces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Generic, TypeVar

from isinglass.runtime.blas import one_blas_thread

T = TypeVar("T")


class ThreadMap:
    """Call a function with several tuples of arguments, on some threads; answers come in the order of the tuples.

    Of several errors, the first in this order is raised.

    Examples
    --------
    >>> ThreadMap(2)(pow, [(2, 3), (3, 2), (5, 1)])
    [8, 9, 5]
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
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
        finally:
            work.left.clear()
        return work.found()

    def with_blas(self, function: Callable[..., T], arguments: Sequence[tuple[object, ...]]) -> list[T]:
        """Return the same, for a function that calls BLAS or LAPACK: they use no further threads meanwhile."""
        if self.pool is None:
            return self(function, arguments)
        with one_blas_thread():
            return self(function, arguments)


class _Work(Generic[T]):
    """A queue of calls, and what came of them."""

    def __init__(self, function: Callable[..., T], arguments: Sequence[tuple[object, ...]]) -> None:
        self.function = function
        self.left = deque(enumerate(arguments))
        self.answers: dict[int, T] = {}
        self.errors: dict[int, BaseException] = {}

    def take(self) -> None:
        """Do calls until none is left; none is begun after an error."""
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
        """Return the answers, or raise the first error."""
        if self.errors:
            raise self.errors[min(self.errors)]
        return [self.answers[i] for i in range(len(self.answers))]
