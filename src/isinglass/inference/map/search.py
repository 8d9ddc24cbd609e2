"""The state of a search: the best assignment so far, the best bound, and the remaining time.

A solver offers assignments and tightens the bound; both only improve. So a search that ends early, by its time limit or
by Ctrl-C, still returns a valid answer: every bound holds for all assignments.

The search is *closed* when the bound meets the score up to rounding. A score and a bound are sums of one number for
each factor, so their rounding is relative to

    scale  =  1 + sum_a max_{x_a} |phi_a(x_a)|      (over the finite entries)

and the two count as equal if they differ by no more than ``ROUNDING * scale``, and by no more than `COARSEST`.

Models with finite entries beyond `LARGE` are *wide*: there an entry that no good assignment has must not count. With
t_a the largest entry of phi_a, every assignment that scores at least s has  sum_a (t_a - phi_a(x_a)) <= sum_a t_a - s.
So the numbers that scores and bounds use add up to at most

    used  =  1 + sum_a |t_a| + (sum_a t_a - s)

which replaces the scale. Sums of n such numbers have rounding errors of at most n u used, with u the unit of rounding.
For wide models solvers add such errors to their bounds, and where that of a score is above `COARSEST` nothing is called
optimal.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np

from isinglass.inference.algorithm import Progress
from isinglass.inference.assignment import COARSEST, EPSILON, TERMS, centred, is_wide, tops_of
from isinglass.potentials import Potentials
from isinglass.runtime.cached_property import cached_property
from isinglass.typing import IntArray

ROUNDING = 1e-11
SURELY = 1.0 + 1e-6  # more than the rounding of a deficit

Stopped = Literal["optimal", "converged", "iterations", "seconds", "interrupted"]


class Search:
    """The state of a search for a most probable assignment.

    Parameters
    ----------
    potentials : Potentials
        What is solved; without evidence.
    seconds : float or None
        The time limit, counted from now.
    progress : callable (stage, fraction), optional

    Attributes
    ----------
    states : int array (variables,) or None
        The best assignment so far.
    score, bound : float
        Its score, and the least upper bound so far.
    iterations : int
        How many iterations, sweeps or moves the solver made.
    bounds : list of float
        Every bound that was given, in order.
    did : list of str
        What was done, for people.

    Examples
    --------
    >>> import isinglass as ig
    >>> search = Search(ig.Potentials(ig.FactorGraph([2], [(0,)]), [[0.0, 3.0]]))
    >>> search.offer(np.array([1])), search.closed
    (True, False)
    >>> search.tighten(3.0)
    >>> search.closed
    True
    """

    def __init__(self, potentials: Potentials, seconds: float | None = None, progress: Progress | None = None) -> None:
        self.potentials = potentials
        self.started = time.monotonic()
        self.seconds = seconds
        self.progress = progress
        self.states: IntArray | None = None
        self.score, self.bound = -np.inf, np.inf
        self.iterations = 0
        self.bounds: list[float] = []
        self.did: list[str] = []
        self.stopped: Stopped = "converged"

    @cached_property
    def scale(self) -> float:
        """The sum of the sizes of all tables (`scale_of`)."""
        return scale_of(self.potentials)

    @cached_property
    def wide(self) -> bool:
        """Whether the model has entries beyond `LARGE`."""
        return is_wide(self.potentials)

    @cached_property
    def _tops(self) -> tuple[float, float]:
        return tops_of(self.potentials)

    @property
    def used(self) -> float:
        """What the numbers that matter add up to, at most: those of assignments not worse than the best so far."""
        if not self.wide or not self.score > -np.inf:
            return self.scale
        total, size = self._tops
        return min(self.scale, 1.0 + size + max(total - self.score, 0.0))

    @property
    def slack(self) -> float:
        """How far a score may be below the bound and still count as equal to it."""
        return min(ROUNDING * self.used, COARSEST)

    @property
    def closed(self) -> bool:
        """Whether the best assignment is proved to be optimal."""
        return self.bound - self.score <= self.slack and self.score > -np.inf and not self._is_blurred

    @property
    def _is_blurred(self) -> bool:
        return self.wide and TERMS * EPSILON * self.used > COARSEST

    def error(self, operations: int) -> float:
        """Bound the rounding of a result of so many additions of the numbers that matter; 0 in moderate models."""
        return EPSILON * operations * self.used if self.wide else 0.0

    def narrowed(self) -> tuple[Potentials, float]:
        """Return tables without their largest entries, and the sum of these, for branch and bound.

        Entries that lack more than the whole best assignment so far are forbidden: no better one has them.
        """
        p, small = self.potentials, centred(self.potentials)
        if self.states is not None and self.score > -np.inf:
            least = SURELY * float(small.log_score(self.states))
            tables = [np.where(t < least, -np.inf, t) for t in small.groups]
            small = Potentials._build(p.graph, tables, list(p.table_ids), {})
        return small, self._tops[0]

    @property
    def elapsed(self) -> float:
        """Seconds since the search began."""
        return time.monotonic() - self.started

    @property
    def left(self) -> float:
        """Seconds that are left; inf without a limit."""
        return np.inf if self.seconds is None else self.seconds - self.elapsed

    @contextmanager
    def share(self, part: float) -> Iterator[None]:
        """Limit what runs inside to a part of the time that is left; without a time limit it has none either."""
        whole = self.seconds
        if whole is not None:
            self.seconds = self.elapsed + part * max(self.left, 0.0)
        try:
            yield
        finally:
            self.seconds = whole

    def offer(self, states: IntArray, score: float | None = None) -> bool:
        """Keep an assignment if it is the best so far; tell whether it is. The first one is always kept."""
        value = float(self.potentials.log_score(states)) if score is None else score
        if self.states is not None and not value > self.score:
            return False
        self.states, self.score = states.copy(), value
        return True

    def tighten(self, bound: float) -> None:
        """Take note of an upper bound on the score of every assignment."""
        self.bounds.append(bound)
        self.bound = min(self.bound, bound)

    def ended(self, stage: str, done: int, most: int | None) -> bool:
        """Report an iteration, and tell whether the search is over: closed, out of time, or at its last iteration."""
        self.iterations += 1
        if self.closed:
            self.stopped = "optimal"
        elif self.left <= 0:
            self.stopped = "seconds"
        elif most is not None and done >= most:
            self.stopped = "iterations"
        else:
            self.report(stage, done, most)
            return False
        return True

    def report(self, stage: str, done: int, most: int | None) -> None:
        """Call `progress` with the share of the iterations, or of the time, that is over."""
        if self.progress is not None:
            shares = [done / most if most else 0.0, self.elapsed / self.seconds if self.seconds else 0.0]
            self.progress(stage, min(1.0, max(shares)))


def table_size(potentials: Potentials) -> float:
    """Return the mean over all factors of the largest absolute entry of the log table; the unit of temperatures."""
    return max(scale_of(potentials) - 1.0, 1e-300) / max(potentials.graph.n_factors, 1)


def scale_of(potentials: Potentials) -> float:
    """Return 1 + sum_a max |phi_a|, over finite entries.

    Examples
    --------
    >>> import isinglass as ig
    >>> scale_of(ig.Potentials(ig.FactorGraph([2, 2], [(0,), (0, 1)]), [[-2.0, 1.0], [[0.0, -np.inf], [3.0, 0.0]]]))
    6.0
    """
    total = 1.0
    for tables, ids in zip(potentials.groups, potentials.table_ids, strict=True):
        if not len(ids):
            continue
        columns = np.abs(np.ascontiguousarray(tables.reshape(len(tables), -1).T))  # long rows reduce faster
        largest = np.where(columns < np.inf, columns, 0.0).max(axis=0, initial=0.0)
        total += float(largest[ids].sum())
    return total
