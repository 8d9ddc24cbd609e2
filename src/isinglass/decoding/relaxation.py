"""Decisions made differentiable: a distribution over states for each output, with its way back to the beliefs.

The relaxation of an argmax of beliefs is the soft argmax (Stoyanov, Ropson and Eisner 2011, section 5.1)

    q(x)  =  b(x)^(1/t) / sum_x' b(x')^(1/t),         t > 0,

which is the beliefs at t = 1 and the most believed state in the limit t -> 0. With q' = dL/dq,

    dL/db(x)  =  q(x) / (t b(x)) (q'(x) - sum_x' q(x') q'(x'))
    dL/dt     =  - sum_x q'(x) q(x) (log b(x) - sum_x' q(x') log b(x')) / t².

All is analytic, so that complex beliefs of a complex step pass through. A belief of zero stays zero: its derivative is
taken as zero, also for t > 1, where it is infinite, and below `LEAST_NORMAL`, where 1 / b overflows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isinglass.errors import InputError
from isinglass.typing import Array, Mask
from isinglass.validation import positive

LEAST = 1e-100  # temperature, so that its square is a number
LEAST_NORMAL = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class Relaxed:
    """A relaxed decision.

    Attributes
    ----------
    outputs : bool array (variables,)
        The variables that are decided on.
    shares : flat array
        q, laid out like the beliefs of variables; zero for variables that are none of the outputs.
    back : callable
        From derivatives by `shares`, flat, to those by the beliefs, flat, and those by the temperature, one for each
        variable.
    """

    outputs: Mask
    shares: Array
    back: Callable[[Array], tuple[Array, Array]]


def checked_temperature(temperature: float) -> float:
    """Refuse what is no positive number.

    Examples
    --------
    >>> checked_temperature(0)
    Traceback (most recent call last):
    ...
    isinglass.errors.InputError: temperature: expected a positive number, got 0; decoders decide hard by themselves
    """
    found = positive(temperature, "temperature", "decoders decide hard by themselves")
    if not LEAST <= found <= 1 / LEAST:
        raise InputError("temperature", f"a number from {LEAST:g} to {1 / LEAST:g}", f"{found:g}")
    return found


def soft_argmax(beliefs: Array, temperature: float) -> Array:
    """Return b^(1/t), normalised, for beliefs (n, states).

    Examples
    --------
    >>> soft_argmax(np.array([[0.2, 0.8]]), 0.5).round(4).tolist()
    [[0.0588, 0.9412]]
    """
    logs = logarithms(beliefs)
    top = logs.real.max(axis=1, keepdims=True, initial=-np.inf)
    powers = np.exp((logs - np.where(np.isfinite(top), top, 0.0)) / temperature)
    shares: Array = powers / powers.sum(axis=1, keepdims=True)
    return shares


def soft_argmax_back(beliefs: Array, shares: Array, bars: Array, temperature: float) -> tuple[Array, Array]:
    """Return derivatives by the beliefs (n, states) and by the temperature (n,), given those by the shares."""
    centred = bars - (shares * bars).sum(axis=1, keepdims=True)
    logs = np.where(beliefs.real > 0, logarithms(beliefs), 0.0)
    by_temperature = -(centred * shares * logs).sum(axis=1) / temperature**2
    if temperature == 1:
        by_beliefs = centred / beliefs.sum(axis=1, keepdims=True)
    else:
        normal = beliefs.real >= LEAST_NORMAL
        by_beliefs = np.where(normal, centred * shares / np.where(normal, beliefs, 1.0), 0.0)
    return by_beliefs / temperature, by_temperature


def logarithms(beliefs: Array) -> Array:
    """Return log b, -inf for a belief of zero, real or complex."""
    safe = np.where(beliefs.real > 0, beliefs, 1.0)
    return np.where(beliefs.real > 0, np.log(safe), -np.inf)
