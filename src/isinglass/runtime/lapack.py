"""LAPACK's banded Cholesky factorisation, in place, without the GIL, and on one thread.

SciPy's functions of the same names copy the matrix and hold the GIL, so that threads wait for each other. Here the
routines are called at the addresses that `scipy.linalg.cython_lapack` publishes for compiled callers. They work on
blocks of 32 columns, too little to share out: on two threads OpenBLAS takes four times as long as on one.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from numba.extending import get_cython_function_address

from isinglass.runtime.blas import one_blas_thread
from isinglass.runtime.interrupts import interruptible
from isinglass.typing import FloatArray

LONG = 1e9  # steps of a factorisation, a tenth of a second, above which Ctrl-C can interrupt it
_INT, _DOUBLE = ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_double)
_ARGUMENTS = {  # after the letter that says which triangle
    "dpbtrf": (_INT, _INT, _DOUBLE, _INT, _INT),
    "dpbtrs": (_INT, _INT, _INT, _DOUBLE, _INT, _DOUBLE, _INT, _INT),
}


def factorise_band(band: FloatArray) -> bool:
    """Replace a positive definite matrix by its lower Cholesky factor; tell whether it was one.

    Parameters
    ----------
    band : array (n, bandwidth + 1), C-contiguous
        Row j holds column j of the lower triangle, from the diagonal on.

    Examples
    --------
    >>> import numpy as np
    >>> band = np.array([[4.0, 2.0], [5.0, 0.0]])
    >>> factorise_band(band), band.tolist()
    (True, [[2.0, 1.0], [2.0, 0.0]])
    """
    n, width = band.shape
    long = n * float(width) ** 2 > LONG
    return interruptible(_factorise_band, band) if long else _factorise_band(band)


def _factorise_band(band: FloatArray) -> bool:
    n, width = band.shape
    status = ctypes.c_int()
    with one_blas_thread():
        _routine("dpbtrf")(b"L", _int(n), _int(width - 1), _address(band), _int(width), status)
    return status.value == 0


def solve_band(factor: FloatArray, x: FloatArray) -> None:
    """Solve with a factor in place.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([8.0, 12.0])
    >>> solve_band(np.array([[2.0, 1.0], [2.0, 0.0]]), x)
    >>> x.tolist()
    [1.0, 2.0]
    """
    n, width = factor.shape
    status = ctypes.c_int()
    with one_blas_thread():
        _routine("dpbtrs")(
            b"L", _int(n), _int(width - 1), _int(1), _address(factor), _int(width), _address(x), _int(n), status
        )


@cache
def _routine(name: str) -> Any:
    address = get_cython_function_address("scipy.linalg.cython_lapack", name)
    return ctypes.CFUNCTYPE(None, ctypes.c_char_p, *_ARGUMENTS[name])(address)


def _int(value: int) -> Any:
    return ctypes.c_int(value)


def _address(array: FloatArray) -> Any:
    return array.ctypes.data_as(_DOUBLE)
