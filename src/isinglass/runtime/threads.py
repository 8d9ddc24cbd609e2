"""A parallel map over threads. The caller is one of the threads; a free thread takes the next task.

Which thread gets which task depends on timing. So each task writes to its own memory, and sums are taken in the order
of the tasks.

Compiled loops start parallel work hundreds of times a second, so the overhead must be small. All threads wait for work
at one queue. The caller does not wait for a thread that wakes up after the last task was taken.
"""

from __future__ import annotations

import atexit
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, copy_context
from functools import cache
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, ClassVar, Generic, TypeVar

from isinglass.runtime.blas import one_blas_thread

T = TypeVar("T")


class ThreadMap:
    """Call a function with several tuples of arguments on some threads; results are in the order of the tuples.

    If several calls raise an error, the first in this order is raised. After an error or Ctrl-C no further call is
    started. With `waits` the calls that are still running are waited for, so none of them writes to memory that is
    reused afterwards.

    Examples
    --------
    >>> ThreadMap(2)(pow, [(2, 3), (3, 2), (5, 1)])
    [8, 9, 5]
    """

    def __init__(self, threads: int, waits: bool = False) -> None:
        self.threads, self.waits = threads, waits
        self.helpers = _Helpers(threads - 1) if threads > 1 else None

    def __call__(
        self,
        function: Callable[..., T],
        arguments: Sequence[tuple[object, ...]],
        abandon: Callable[[], object] = lambda: None,
    ) -> list[T]:
        """Return what the function returns for each tuple; `abandon` tells calls that are running of an error."""
        if self.helpers is None or len(arguments) < 2:
            return [function(*one) for one in arguments]
        work = _Work(function, arguments, abandon)
        try:
            self.helpers.call(work, len(arguments) - 1)
            work.take()
            work.wait()
        except BaseException:
            work.end()
            if self.waits:
                work.wait()
            raise
        return work.found()

    @contextmanager
    def beside(self, function: Callable[..., object], arguments: Sequence[tuple[object, ...]]) -> Iterator[None]:
        """Let the other threads make calls while a block runs, and continue without them at its end.

        Calls that have not started by then are dropped. Running calls are not waited for: the function must make sure
        that they do no harm. If calls raised errors, the first is raised, unless the block raised its own.
        """
        if self.helpers is None or not arguments:
            yield
            return
        work = _Work(function, arguments)
        try:
            self.helpers.call(work, len(arguments))
            yield
        finally:
            work.left.clear()
        if work.errors:
            raise work.errors[min(work.errors)]

    def with_blas(self, function: Callable[..., T], arguments: Sequence[tuple[object, ...]]) -> list[T]:
        """Do the same for a function that calls BLAS or LAPACK, which are limited to one thread during the calls."""
        if self.helpers is None:
            return self(function, arguments)
        with one_blas_thread():
            return self(function, arguments)


@cache
def team(threads: int, waits: bool = True) -> ThreadMap:
    """Return a map with this number of threads. They are started once and shared by all callers; calls may be nested.

    Examples
    --------
    >>> team(2) is team(2), team(1)(abs, [(-1,)])
    (True, [1])
    """
    return ThreadMap(threads, waits)


class _Helpers:
    """Worker threads, which can take part in any work; they end with this object, or with the program."""

    everywhere: ClassVar[weakref.WeakSet[_Helpers]] = weakref.WeakSet()

    def __init__(self, most: int) -> None:
        self.most = most
        self.calls: SimpleQueue[tuple[Context, _Work[Any]] | None] = SimpleQueue()
        self.threads: list[Thread] = []
        self.lock = Lock()
        self.everywhere.add(self)
        weakref.finalize(self, _dismiss, self.calls, self.threads).atexit = False

    def call(self, work: _Work[Any], wanted: int) -> None:
        """Ask some of the threads to take part, each in a copy of the caller's context."""
        wanted = min(wanted, self.most)
        if len(self.threads) < wanted:
            self._start(wanted)
        for _ in range(wanted):
            self.calls.put((copy_context(), work))

    def _start(self, wanted: int) -> None:
        with self.lock:
            while len(self.threads) < wanted:
                thread = Thread(target=_serve, args=(self.calls,), daemon=True)
                thread.start()
                self.threads.append(thread)


def _serve(calls: SimpleQueue[tuple[Context, _Work[Any]] | None]) -> None:
    """Take part in work until there is a None."""
    while (call := calls.get()) is not None:
        context, work = call
        context.run(work.help)
        del call, context, work  # what they hold is not needed while this thread waits


def _dismiss(calls: SimpleQueue[tuple[Context, _Work[Any]] | None], threads: list[Thread]) -> None:
    for _ in threads:
        calls.put(None)


@atexit.register
def _end_all() -> None:
    """Wait for the threads: what they do must not outlive the interpreter."""
    for helpers in list(_Helpers.everywhere):
        _dismiss(helpers.calls, helpers.threads)
        for thread in helpers.threads:
            thread.join()


class _Work(Generic[T]):
    """A queue of calls, and their results.

    A thread enters before it takes a call. When the queue is empty, the threads that have entered and not yet left are
    still working; a thread that enters later finds nothing to do.
    """

    def __init__(
        self,
        function: Callable[..., T],
        arguments: Sequence[tuple[object, ...]],
        abandon: Callable[[], object] = lambda: None,
    ) -> None:
        self.function, self.abandon = function, abandon
        self.left = deque(enumerate(arguments))
        self.answers: dict[int, T] = {}
        self.errors: dict[int, BaseException] = {}
        self.entered: list[None] = []
        self.gone: list[None] = []
        self.signals: SimpleQueue[None] = SimpleQueue()  # one for each thread that has left

    def help(self) -> None:
        """Make calls in another thread than the caller's."""
        self.entered.append(None)
        self.take()
        self.gone.append(None)
        self.signals.put(None)

    def wait(self) -> None:
        """Wait until no call is running; the queue must be empty. After Ctrl-C it may be called again."""
        while len(self.gone) < len(self.entered):
            self.signals.get()

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
                self.end()

    def end(self) -> None:
        """Start no further call, and tell those that are running."""
        self.left.clear()
        self.abandon()

    def found(self) -> list[T]:
        """Return the results, or raise the first error."""
        if self.errors:
            raise self.errors[min(self.errors)]
        return [self.answers[i] for i in range(len(self.answers))]
