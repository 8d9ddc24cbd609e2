"""A limit on the threads of BLAS and LAPACK.

On one thread they add in a fixed order. On several threads, the way in which a product or a factorisation is split
depends on their number, which changes the last bits; and they wait for each other where other processes are busy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from threading import Lock
from typing import Any


class _Limit:
    """The limit, which holds for the whole process, and how many asked for it."""

    def __init__(self) -> None:
        self.lock, self.users, self.stack = Lock(), 0, ExitStack()


_LIMIT = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread inside the context; the limit ends with the last of several overlapping contexts."""
    counted = False
    try:
        with _LIMIT.lock:
            if _LIMIT.users == 0:
                _LIMIT.stack.enter_context(_libraries().limit(limits=1, user_api="blas"))
            _LIMIT.users += 1
            counted = True  # Ctrl-C is not heard between these two
        yield
    finally:
        with _LIMIT.lock:
            _LIMIT.users -= counted
            if _LIMIT.users == 0:
                _LIMIT.stack.close()


@cache
def _libraries() -> Any:
    import numpy as np  # noqa: F401 (so that its BLAS is there to be limited)
    import scipy.linalg.cython_lapack  # noqa: F401 (which may have another)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
