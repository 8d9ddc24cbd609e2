"""A line search for the strong Wolfe conditions.

Along x + α d, with φ(α) = f(x + α d) and φ'(0) < 0, find α with

    φ(α) ≤ φ(0) + c₁ α φ'(0)          (sufficient decrease)
    |φ'(α)| ≤ c₂ |φ'(0)|              (curvature)

Nocedal and Wright, *Numerical Optimization*, 2nd edition 2006: algorithms 3.5 (bracket) and 3.6 (zoom) with the
cubic interpolation of equation 3.59.

Values are compared up to their own rounding, ROUNDING · |φ(0)|: near a minimum, where φ does not resolve the
decrease any more, the slopes still do. Where φ or its gradient is not finite, or a label has belief zero, φ counts as
+inf: the step was too long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from isinglass.errors import ImpossibleLabelError
from isinglass.learning.optimizers.base import Counted
from isinglass.learning.optimizers.vectors import dot, finite, moved
from isinglass.typing import FloatArray

ROUNDING = 256 * float(np.finfo(float).eps)  # a loss may be a difference of larger numbers, such as log Z and a score
_BISECT_EVERY = 3  # zoom halves the interval at least so often, whatever the interpolation says


@dataclass(frozen=True, eq=False)
class Trial:
    """A point on the line: α, φ(α), φ'(α), x + α d and the gradient there."""

    step: float
    value: float
    slope: float
    x: FloatArray
    gradient: FloatArray


@dataclass(frozen=True)
class WolfeSearch:
    """The constants c₁ < c₂ < 1 and the largest number of evaluations of one search."""

    sufficient: float
    curvature: float
    max_evaluations: int = 40

    def run(self, f: Counted, origin: Trial, direction: FloatArray, first: float) -> Trial | None:
        """Search from `origin` (α = 0), trying α = `first`; None if no point was found."""
        return _Line(self, f, origin, direction).bracket(first)


class _Line:
    """One search along one line."""

    def __init__(self, search: WolfeSearch, f: Counted, origin: Trial, direction: FloatArray) -> None:
        self.search, self.f, self.origin, self.direction = search, f, origin, direction
        self.slack = ROUNDING * abs(origin.value)
        self.left = search.max_evaluations

    def at(self, step: float) -> Trial:
        """Evaluate at α = `step`; an infinite value stands for whatever is not finite."""
        self.left -= 1
        return attempt(self.f, moved(self.origin.x, step, self.direction), step, self.direction)

    def too_high(self, trial: Trial, low: Trial) -> bool:
        """Whether the minimum lies before the trial: no sufficient decrease, or above the best so far."""
        bound = self.origin.value + self.search.sufficient * trial.step * self.origin.slope + self.slack
        return not (trial.value <= bound and trial.value <= low.value + self.slack)

    def flat(self, trial: Trial) -> bool:
        """Whether the curvature condition holds."""
        return abs(trial.slope) <= -self.search.curvature * self.origin.slope

    def bracket(self, first: float) -> Trial | None:
        """Lengthen the step until an interval holds a good one (algorithm 3.5)."""
        previous, step = self.origin, first
        while self.left > 0 and math.isfinite(step):
            trial = self.at(step)
            if self.too_high(trial, previous):
                return self.zoom(previous, trial)
            if self.flat(trial):
                return trial
            if trial.slope >= 0:
                return self.zoom(trial, previous)
            previous, step = trial, _longer(previous, trial)
        return None

    def zoom(self, low: Trial, high: Trial) -> Trial | None:
        """Shrink an interval that holds a good step; `low` is its better end (algorithm 3.6)."""
        while self.left > 0 and low.step != high.step:
            trial = self.at(self.inside(low, high))
            if self.too_high(trial, low):
                high = trial
                continue
            if self.flat(trial):
                return trial
            if trial.slope * (high.step - low.step) >= 0:
                high = low
            low = trial
        return None

    def inside(self, low: Trial, high: Trial) -> float:
        """Choose a step inside the interval: near `low` if `high` is off the domain, else by interpolation."""
        width = high.step - low.step
        if high.value == math.inf:
            return low.step + 0.1 * width
        best = cubic_minimum(low, high)
        if best is None or self.left % _BISECT_EVERY == 0:
            return low.step + 0.5 * width
        return low.step + min(max((best - low.step) / width, 0.1), 0.9) * width


def _longer(previous: Trial, trial: Trial) -> float:
    """Choose a longer step: 1.5 to 10 times the last, by the cubic if its minimum lies ahead."""
    best = cubic_minimum(previous, trial)
    factor = 4.0 if best is None or best <= trial.step else best / trial.step
    return min(max(factor, 1.5), 10.0) * trial.step


def attempt(f: Counted, x: FloatArray, step: float, direction: FloatArray) -> Trial:
    """Evaluate `f` at a step, which was too long where a label has belief zero."""
    try:
        return evaluate(f, x, step, direction)
    except ImpossibleLabelError:
        return Trial(step, math.inf, math.nan, x, np.full_like(x, np.nan))


def evaluate(f: Counted, x: FloatArray, step: float, direction: FloatArray) -> Trial:
    """Evaluate `f`, with an infinite value wherever it is not finite; `f` is never asked at infinite points.

    A slope is finite only if the whole gradient is: an infinite or undefined term of a sum stays.
    """
    if finite(x):
        value, gradient = f(x)
        slope = dot(gradient, direction)
        if math.isfinite(value) and math.isfinite(slope):
            return Trial(step, value, slope, x, gradient)
    return Trial(step, math.inf, math.nan, x, np.full_like(x, np.nan))


def cubic_minimum(a: Trial, b: Trial) -> float | None:
    """Return the minimum of the cubic through two values and slopes (equation 3.59), None if it has none.

    Examples
    --------
    >>> x = np.zeros(1)  # of φ(α) = (α - 2)²
    >>> cubic_minimum(Trial(0.0, 4.0, -4.0, x, x), Trial(1.0, 1.0, -2.0, x, x))
    2.0
    """
    width = b.step - a.step
    first = a.slope + b.slope - 3 * (b.value - a.value) / width
    radicand = first * first - a.slope * b.slope
    if not 0 <= radicand < math.inf:
        return None
    second = math.copysign(math.sqrt(radicand), width)
    divisor = b.slope - a.slope + 2 * second
    return b.step - width * (b.slope + second - first) / divisor if divisor else None
