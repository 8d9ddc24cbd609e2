"""One way to compile an inner loop: Numba with a cache on disk and plain IEEE arithmetic.

No fast-math: a sum is the same to the last bit however a loop was compiled, and a hard zero's -inf keeps its meaning.

Only modules that hold inner loops import this one, and they are imported when first needed, so that
``import isinglass`` neither waits for Numba nor needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isinglass.errors import MissingDependencyError

Function = Callable[..., Any]


def compiled(function: Function) -> Function:
    """Compile a loop that allocates no arrays; later processes find it in the cache.

    It runs without Numba's reference counts, whose atomic operations at every call would take most of the time.
    """
    return _jit(function, _nrt=False)


def inner(function: Function) -> Function:
    """Compile a loop that only other compiled ones call: it has no entry from Python, and compiles faster."""
    return _jit(function, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def allocating(function: Function) -> Function:
    """Compile a loop that allocates arrays."""
    return _jit(function)


def _jit(function: Function, **options: bool) -> Function:
    try:
        import numba
    except ImportError as error:
        raise MissingDependencyError(
            "this calculation needs Numba, which is not installed: pip install numba"
        ) from error
    njit: Any = numba.njit
    kernel: Function = njit(cache=True, error_model="numpy", nogil=True, **options)(function)
    return kernel
