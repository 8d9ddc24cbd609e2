"""The search for the best product of cost and margin, over a multiplier (Sarawagi and Gupta 2008).

With m(x) = 1 + s(x) - s(y) and costs Delta(x) >= 0, slack rescaling asks for

    max_x  Delta(x) m(x)

A decoder finds, for a multiplier lambda >= 0, the largest B(lambda) of m(x) + lambda Delta(x). Every x fulfils

    m(x)  <=  B_k - lambda_k Delta(x)          for all multipliers lambda_k that were tried, so

    Delta(x) m(x)  <=  U  =  max_{0 <= D <= top} min_k D (B_k - lambda_k D)

a concave function of D. The next multiplier is m / D at its maximum, where the product has this slope. U falls until it
is the product of an assignment, or until it lies between two assignments of the convex hull. Then the n best
assignments at the last multiplier decide: all others are at most as good as the last of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isinglass.typing import FloatArray, IntArray, Mask

ROUNDS = 25  # multipliers, at most
CLOSED = 1e-9  # relative: a product that is so close to its bound counts as the best
LEVELS = 4096  # whole costs up to which each is looked at


class Decoded(NamedTuple):
    """The best assignment of each component at some multipliers.

    Attributes
    ----------
    states : int array (variables,)
    margins, costs : arrays (components,)
        m(x) and Delta(x).
    limits : array (components,)
        An upper bound on m + lambda Delta of every assignment; inf where nothing is proved.
    """

    states: IntArray
    margins: FloatArray
    costs: FloatArray
    limits: FloatArray


Decode = Callable[[FloatArray], Decoded]
"""From a multiplier for each component to the best assignments."""

Best = Callable[[int, float, int], tuple[IntArray, FloatArray, FloatArray]]
"""From a component, a multiplier and n: the n best (n or fewer, variables of it), their margins and their costs."""


@dataclass
class Products:
    """The best products so far, and what is known of all others.

    Attributes
    ----------
    owner : int array (variables,)
        The component of each variable.
    states : int array (variables,)
        The best assignment of each component; at first the right labels, whose product is zero.
    top : array (components,)
        The largest possible cost.
    whole : bool
        Whether all costs are whole numbers.
    """

    owner: IntArray
    states: IntArray
    top: FloatArray
    whole: bool

    def __post_init__(self) -> None:
        n = len(self.top)
        self.values, self.costs, self.bounds = np.zeros(n), np.zeros(n), np.full(n, np.inf)
        self.slopes, self.limits, self.reached = np.zeros((0, n)), np.zeros((0, n)), np.zeros((0, n))

    @property
    def open(self) -> Mask:
        """Components whose best product is not proved."""
        return self.bounds > self.values + CLOSED * (1.0 + np.abs(self.values))

    def search(self, decode: Decode) -> None:
        """Try multipliers until every product is proved, or none tells more."""
        multipliers, guide = np.zeros(len(self.top)), np.full(len(self.top), np.inf)
        for _ in range(ROUNDS):
            self._add(multipliers, decode(multipliers))
            self.bounds = np.minimum(self.bounds, _highest(self.slopes, self.limits, self.top, self.whole)[0])
            height, place = _highest(self.slopes, self.reached, self.top, self.whole)
            falls = height < guide - CLOSED * (1.0 + np.abs(height))
            if not (self.open & falls & (height > self.values)).any():
                break
            guide = height
            multipliers = np.where(place > 0, height / np.where(place > 0, place, 1.0) ** 2, multipliers)

    def refine(self, best: Best, most: int) -> None:
        """List the best assignments of the components that are still open."""
        for c in np.flatnonzero(self.open).tolist():
            n = 8
            while self.open[c] and n <= most:
                self._list(c, best, n)
                n *= 4

    def _list(self, c: int, best: Best, n: int) -> None:
        """Look at the n best of a component, at its last multiplier."""
        multiplier = float(self.slopes[-1, c])
        states, margins, costs = best(c, multiplier, n)
        k = int(np.argmax(margins * costs))
        if margins[k] * costs[k] > self.values[c]:
            self.values[c], self.costs[c] = margins[k] * costs[k], costs[k]
            self.states[self.owner == c] = states[k]
        if len(states) < n:  # these are all there are
            self.bounds[c] = self.values[c]
            return
        last = float((margins + multiplier * costs).min())
        slopes, limits = np.append(self.slopes[:, c], multiplier), np.append(self.limits[:, c], last)
        others = _highest(slopes[:, None], limits[:, None], self.top[[c]], self.whole)[0][0]
        self.bounds[c] = min(self.bounds[c], max(others, self.values[c]))

    def _add(self, multipliers: FloatArray, found: Decoded) -> None:
        products = found.margins * found.costs
        better = products > self.values
        self.states = np.where(better[self.owner], found.states, self.states)
        self.values, self.costs = np.where(better, products, self.values), np.where(better, found.costs, self.costs)
        self.slopes = np.vstack([self.slopes, multipliers])
        self.limits = np.vstack([self.limits, found.limits])
        self.reached = np.vstack([self.reached, found.margins + multipliers * found.costs])


def _highest(slopes: FloatArray, limits: FloatArray, top: FloatArray, whole: bool) -> tuple[FloatArray, FloatArray]:
    """Return max_D min_k D (B_k - lambda_k D), at least 0, and its place D, for each component (columns).

    Examples
    --------
    >>> U, D = _highest(np.array([[0.0], [1.0]]), np.array([[3.0], [4.0]]), np.array([10.0]), False)
    >>> U.tolist(), D.tolist()
    ([4.0], [2.0])
    """
    places = np.arange(int(top.max(initial=0.0)) + 1.0)[:, None] if whole and top.max(initial=0.0) <= LEVELS else None
    if places is None:
        places = _corners(slopes, limits, top)
    places = np.minimum(places, top)
    heights = np.full(places.shape, np.inf)
    for slope, limit in zip(slopes, limits, strict=True):
        with np.errstate(invalid="ignore"):
            heights = np.minimum(heights, np.where(places > 0, places * (limit - slope * places), 0.0))
    where, columns = np.argmax(heights, axis=0), np.arange(len(top))
    return np.maximum(heights[where, columns], 0.0), places[where, columns]


def _corners(slopes: FloatArray, limits: FloatArray, top: FloatArray) -> FloatArray:
    """Return where the largest value may lie: maxima of single parabolas, their crossings, and the largest cost."""
    with np.errstate(divide="ignore", invalid="ignore"):
        peaks = limits / (2 * slopes)
        crossings = (limits[:, None] - limits) / (slopes[:, None] - slopes)
    found = np.concatenate([peaks, crossings.reshape(-1, len(top)), top[None]])
    return np.where(np.isfinite(found) & (found > 0), found, 0.0)
