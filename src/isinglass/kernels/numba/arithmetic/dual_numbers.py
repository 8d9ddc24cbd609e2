"""Numbers with a derivative, x + i x', where i² = 0.

    product     (x, x') (y, y')   =  (x y, x y' + x' y)
    quotient    (x, x') / (y, y') =  (q, (x' - q y') / y),   q = x / y
    exp, log    (e^x, e^x x'),  (log x, x' / x)

(Clifford 1873.) They are kept in complex numbers. Unlike the steps of complex arithmetic these are linear in the second
parts, so that derivatives need not be small, whatever their sizes. For real numbers they are the ordinary ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

PLAIN: Any = {"error_model": "numpy", "forceinline": True}


def times(x, y):
    """Return x y."""


def over(x, y):
    """Return x / y."""


def exp_of(x):
    """Return e^x."""


def log_of(x):
    """Return log x; that of zero is -inf, without a derivative."""


@overload(times, jit_options=PLAIN)
def _times(x, y):
    if isinstance(x, types.Complex):
        return lambda x, y: complex(x.real * y.real, x.real * y.imag + x.imag * y.real)
    return lambda x, y: x * y


@overload(over, jit_options=PLAIN)
def _over(x, y):
    def dual(x, y):
        q = x.real / y.real
        return complex(q, (x.imag - q * y.imag) / y.real)

    return dual if isinstance(x, types.Complex) else lambda x, y: x / y


@overload(exp_of, jit_options=PLAIN)
def _exp_of(x):
    def dual(x):
        e = np.exp(x.real)
        return complex(e, e * x.imag)

    return dual if isinstance(x, types.Complex) else lambda x: np.exp(x)


@overload(log_of, jit_options=PLAIN)
def _log_of(x):
    def dual(x):
        return complex(np.log(x.real), x.imag / x.real if x.real != 0 else 0.0)

    return dual if isinstance(x, types.Complex) else lambda x: np.log(x)
