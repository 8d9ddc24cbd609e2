"""A limit on the threads of BLAS and LAPACK.

With one thread, sums are taken in a fixed order. With several threads, the division of a product or a factorisation
depends on their number, which changes the last bits of the result. Also, threads wait for each other if the processors
are busy with other work.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from threading import Lock
from typing import Any


class _Limit:
    """The limit, which applies to the whole process, and the number of contexts that need it."""

    def __init__(self) -> None:
        self.lock, self.users, self.stack = Lock(), 0, ExitStack()


_LIMIT = _Limit()


def _unlock() -> None:
    """Give a forked process a lock of its own: a thread that held the old one is not there."""
    _LIMIT.lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread inside the context; the limit ends with the last of several overlapping contexts."""
    counted = False
    try:
        with _LIMIT.lock:
            if _LIMIT.users == 0:
                _LIMIT.stack.enter_context(_libraries().limit(limits=1, user_api="blas"))
            _LIMIT.users += 1
            counted = True  # Python handles no signal between these two lines
        yield
    finally:
        with _LIMIT.lock:
            _LIMIT.users -= counted
            if _LIMIT.users == 0:
                _LIMIT.stack.close()


@cache
def _libraries() -> Any:
    import numpy as np  # noqa: F401 (so that its BLAS is loaded and can be limited)
    import scipy.linalg.cython_lapack  # noqa: F401 (which may load another BLAS)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
