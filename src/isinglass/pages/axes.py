"""Scales of charts: where a value is drawn, and which values are written beside an axis."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """A scale from values to places.

    Parameters
    ----------
    low, high : float
        The values at the ends.
    start, end : float
        Their places.
    log : bool
        Logarithmic; the values are above 0.

    Examples
    --------
    >>> axis = Axis(0.0, 10.0, 100.0, 300.0)
    >>> axis.place(5.0), axis.ticks()
    (200.0, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0])
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    @classmethod
    def around(cls, values: Sequence[float], start: float, end: float, *, log: bool = False, pad: float = 0.04) -> Axis:
        """Return an axis on which all values have a place, with a little room at the ends."""
        some = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
        low, high = min(some), max(some)
        if log:
            room = math.exp(pad * (math.log(high) - math.log(low))) if high > low else 2.0
            return cls(min(low, max(low / room, sys.float_info.min)), high * room, start, end, True)
        room = pad * (high - low) if high > low else 0.1 * abs(high) or 0.5
        return cls(low - room, high + room, start, end)

    def place(self, value: float) -> float:
        """Return where a value is drawn."""
        if self.log:
            share = (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Return round values between the ends."""
        if self.log:
            return _decades(self.low, self.high, most)
        step = _round_step((self.high - self.low) / most)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(k * step, 12) + 0.0 if step > 1e-9 else k * step for k in range(first, last + 1)]


def _round_step(least: float) -> float:
    """Return the least of 1, 2, 5 times a power of ten that is not far below a number."""
    scale = 10.0 ** math.floor(math.log10(least))
    return next(factor * scale for factor in (1, 2, 5, 10) if factor * scale >= 0.8 * least)


def _decades(low: float, high: float, most: int) -> list[float]:
    """Return powers of ten, fewer or with their multiples, as there is room."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = max(1, math.ceil((last - first) / most))
    factors = (1,) if last - first > 3 else (1, 2, 5) if last - first > 1 else (1, 2, 3, 5, 7)
    values = [factor * 10.0**k for k in range(first, last + 1, every) for factor in factors]
    return [value for value in values if low <= value <= high]


def tick_text(value: float) -> str:
    """Write the value of a tick.

    Examples
    --------
    >>> tick_text(0.25), tick_text(1e-07), tick_text(20000.0)
    ('0.25', '1e-7', '20000')
    """
    if value and not 1e-4 <= abs(value) < 1e6:
        mantissa, _, exponent = f"{value:.3g}".partition("e")
        return f"{mantissa}e{int(exponent)}" if exponent else mantissa
    return f"{value:.6g}"
