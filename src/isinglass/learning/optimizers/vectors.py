"""Arithmetic of long vectors, with the same bits for any number of threads.

NumPy adds pairwise, in one fixed order; a threaded BLAS splits a long product by the number of its threads. Here a
vector is added up in pieces that stay in a cache, and the pieces then, as NumPy does it. Of a long vector, compiled
loops (`isinglass.kernels.numba.arithmetic.vectors`) do the whole pieces, in one pass over memory.

Long vectors are shared out among the threads that the function which is minimised lends (`threads_of`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import pairwise
from typing import TypeVar

import numpy as np

from isinglass.runtime.threads import ThreadMap
from isinglass.typing import FloatArray

T = TypeVar("T")

PIECE = 2**15
_WORTH_THREAD = 2**19  # entries: a tenth of a millisecond, which it takes to wake a thread
_WORTH_CREW = 2**17
_ALONE = ThreadMap(1)
_LENT = ContextVar("_LENT", default=_ALONE)


@contextmanager
def threads_of(function: object) -> Iterator[None]:
    """Meanwhile, let long vectors use the threads of a function: its `spread`, if it has one."""
    spread = getattr(function, "spread", None)
    before = _LENT.set(spread if isinstance(spread, ThreadMap) else _ALONE)
    try:
        yield
    finally:
        _LENT.reset(before)


def dot(a: FloatArray, b: FloatArray) -> float:
    """Return aᵀb; what overflows is infinite or NaN.

    Examples
    --------
    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if len(a) <= PIECE:
            return float(np.add.reduce(a * b))  # np.sum takes as long again to come to this, and vectors may be short
        from isinglass.kernels.numba.arithmetic.vectors import LEAF, dots

        a, b = (np.require(v, requirements=("C", "W")) for v in (a, b))  # as the loop was compiled for
        rest = len(a) // PIECE * PIECE
        sums = np.empty((rest // PIECE, PIECE // LEAF))
        _shared(lambda first, last: dots(first, last, a, b, sums), len(sums), rest)
        last = [np.sum(a[rest:] * b[rest:])] if rest < len(a) else []
        return float(np.sum([*sums[:, 0], *last]))


def norm(a: FloatArray) -> float:
    """Return the Euclidean length."""
    return math.sqrt(dot(a, a))


def moved(x: FloatArray, step: float, direction: FloatArray) -> FloatArray:
    """Return x + step · direction; what overflows is infinite."""

    def move(x: FloatArray, direction: FloatArray, out: FloatArray) -> None:
        np.multiply(step, direction, out)
        np.add(x, out, out)

    return entrywise(move, x, direction)


def scaled(x: FloatArray, factor: float) -> FloatArray:
    """Return factor · x."""
    return entrywise(lambda x, out: np.multiply(factor, x, out), x)


def difference(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return a - b."""
    return entrywise(np.subtract, a, b)


def copied(x: FloatArray) -> FloatArray:
    """Return a vector of its own."""
    return entrywise(np.positive, x) if len(x) > PIECE else np.array(x, np.float64)


def entrywise(function: Callable[..., object], *vectors: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Return a function of vectors, entry by entry; what overflows is infinite.

    Parameters
    ----------
    function : callable
        From pieces of the vectors, and the same piece of the result, which it writes: a NumPy ufunc, for example.
    *vectors : arrays (n,)
    out : array (n,), optional
        Where the result is written; it may be one of the vectors.

    Examples
    --------
    >>> entrywise(np.subtract, np.array([3.0, 2.0]), np.array([1.0, 1.0]))
    array([2., 1.])
    """
    n = len(vectors[0])
    result = np.empty(n) if out is None else out
    if n > PIECE:
        _shared(partial(_entries, function, (*vectors, result)), n, n)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            function(*vectors, result)
    return result


def _entries(function: Callable[..., object], vectors: tuple[FloatArray, ...], first: int, last: int) -> None:
    """Call a function with pieces of vectors."""
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(first, last, PIECE):
            function(*(vector[i : min(i + PIECE, last)] for vector in vectors))


def finite(x: FloatArray) -> bool:
    """Whether every entry is a finite number."""
    if len(x) <= PIECE:
        return bool(np.isfinite(x).all())
    return all(_shared(lambda first, last: np.isfinite(x[first:last]).all(), len(x), len(x)))


def crew_for(entries: int) -> ThreadMap:
    """Return the threads that are worth their while for a loop over vectors that they go through together."""
    return _LENT.get() if entries >= _WORTH_CREW else _ALONE


def _shared(work: Callable[[int, int], T], count: int, entries: int) -> list[T]:
    """Do the work from 0 to `count`, a part on each thread; a part has enough entries for a thread to be woken."""
    spread = _LENT.get()
    parts = min(spread.threads, max(1, entries // _WORTH_THREAD))
    return spread(work, list(pairwise(count * i // parts for i in range(parts + 1))))
