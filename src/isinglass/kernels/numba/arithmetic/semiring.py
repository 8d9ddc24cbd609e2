"""Arithmetic in three semirings, chosen by an argument.

    SUM      = ()      values are linear; + and *
    LOG_SUM  = (0,)    values are logarithms; log-sum-exp and +
    LOG_MAX  = (1,)    values are logarithms; max and +

These are defined in `kernels.layout`; in the loops the argument is called `ring`. The length of a tuple is a constant
to the compiler: loops for linear values have no branches. Those for logarithms are compiled once, and ask which of the
two semirings it is where they add. Values are float64, or complex128 for derivatives by a complex step: comparisons
look at the real part. A hard zero is 0, or -inf.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.layout import SAFE
from isinglass.runtime.compilation.jit import apart, inner


@inner
def takes_largest(ring):
    """Tell whether sums are replaced by maxima."""
    return ring[0] == 1 if len(ring) > 0 else False


@inner
def is_zero(value, ring):
    """Tell whether a value is a hard zero."""
    return value.real == 0 if len(ring) == 0 else value.real == -np.inf


@inner
def product(one, two, ring):
    """Multiply two values."""
    return one * two if len(ring) == 0 else one + two


@inner
def underflows(result, one, two, ring):
    """Tell whether a product of two non-zero linear values left the safe range."""
    return len(ring) == 0 and result.real < SAFE and one.real != 0 and two.real != 0


@inner
def power(value, exponent, ring):
    """Raise to a power; a hard zero stays one."""
    if is_zero(value, ring):
        return value
    return value**exponent if len(ring) == 0 else value * exponent


@inner
def quotient(one, two, ring):
    """Divide; zero by zero is zero."""
    if is_zero(two, ring):
        return two
    return one / two if len(ring) == 0 else one - two


@apart
def log_add(one, two):
    """Log of the sum of two exponentials."""
    if one.real == -np.inf:
        return two
    if two.real == -np.inf:
        return one
    if one.real >= two.real:
        return one + np.log(1 + np.exp(two - one))
    return two + np.log(1 + np.exp(one - two))


@inner
def plus(one, two, ring):
    """Add two values: +, log-sum-exp, or the larger one."""
    if len(ring) == 0:
        return one + two
    if takes_largest(ring):
        return two if two.real > one.real else one
    return log_add(one, two)


@inner
def share(part, whole, ring):
    """Return part / whole as a linear number, zero where both are hard zeros; in LOG_MAX, one if they are equal."""
    if len(ring) == 0:
        return part / whole if whole.real != 0 else part
    if takes_largest(ring):
        return part * 0 + 1 if part.real == whole.real else part * 0
    return np.exp(part - whole)


@inner
def linear(value, ring):
    """Return a value as a linear number."""
    return value if len(ring) == 0 else np.exp(value)


@inner
def logarithm(value, ring):
    """Return the logarithm of a value."""
    return np.log(value) if len(ring) == 0 else value
