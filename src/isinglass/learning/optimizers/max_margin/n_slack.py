"""Cutting planes with one slack for each example (Tsochantaridis et al. 2005; Murphy 2012, algorithm 19.3).

    F(x)  =  sum_j l2_j x_j² + sum_i R_i(x)

Each example i has a working set of planes below its own loss, R_i(x) >= a_ik . x + b_ik, the plane zero among them. The
next point minimises the penalty plus the sum over examples of the largest plane. The dual of that quadratic program has
a simplex for each example,

    max_alpha  sum_ik alpha_ik b_ik - sum_j S_j² / (4 l2_j),     S = sum_ik alpha_ik a_ik,      x_j = - S_j / (2 l2_j)

and is solved by exact maximisation over one simplex after the other (`simplex`) until its own duality gap is a fraction
of the gap of F. An iteration finds the plane that touches each R_i at x; it joins the working set where it is violated.
Planes that had no weight for a while are dropped, which the bound survives.

Fewer iterations than with one slack, each with a larger program: for few examples, or decoding that is expensive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.learning.optimizers.base import Counted, register
from isinglass.learning.optimizers.max_margin.gap import ExampleOptimizer, GapState, by_example, proved, require_planes
from isinglass.learning.optimizers.max_margin.simplex import maximise_on_simplex
from isinglass.learning.optimizers.state import Numbers, State, Vectors
from isinglass.typing import FloatArray, IntArray

IDLE = 20  # programs in which a plane may have no weight
ROUNDS = 200  # over all simplices, for one program
SHARE = 0.1  # of the gap of F that the gap of a program may be


@dataclass(frozen=True, eq=False)
class NSlackState(GapState):
    """The working sets, and the best point.

    Attributes
    ----------
    planes : tuple of arrays (n,); owner, offsets, weights, idle : arrays (planes,)
        a_ik, i, b_ik, alpha_ik, and for how many programs alpha_ik has been zero. The plane zero is not among them.
    """

    planes: Vectors
    owner: Numbers
    offsets: Numbers
    weights: Numbers
    idle: Numbers


@register
@dataclass(frozen=True, eq=False)
class NSlack(ExampleOptimizer[NSlackState]):
    """N-slack cutting planes, for sums of convex losses that are not negative; ends by its duality gap.

    It starts at zero, whatever the start is.

    Parameters
    ----------
    l2 : float or array (n,)
        The penalties that the function contains, all positive; an estimator sets them to its own.
    tol : float
        Stop when the duality gap is at most this, relative to the function.
    max_iter : int
        The most quadratic programs.
    """

    name: ClassVar[str] = "n-slack"
    state_type: ClassVar[type[State]] = NSlackState

    def start(self, f: Counted, x: FloatArray) -> NSlackState:
        """Evaluate at zero, with the plane zero for each example: it is below losses that are not negative."""
        zero, none = np.zeros(len(x)), np.zeros(0)
        require_planes(self.name, 10, len(x), by_example(f.f, self.name).n_examples)
        value, gradient = f(zero)
        dual = 0.0 if value >= 0 else -math.inf
        return NSlackState(
            self.name, zero, 0, f.evaluations, zero, value, gradient, dual, proved(f.f), (), none, none, none, none
        )  # fmt: skip

    def step(self, f: Counted, state: NSlackState) -> NSlackState:
        """Find the violated planes at x, evaluate there, and solve the program with them."""
        examples, penalty, x = by_example(f.f, self.name), self.penalty(len(state.x)), state.x
        values, slopes = examples.planes(x, np.arange(examples.n_examples))
        f.evaluations += 1
        value = float(values.sum()) + float(penalty @ (x * x))
        gradient = slopes.sum(axis=0) + 2 * penalty * x
        best = (x, value, gradient) if value <= state.value else (state.best, state.value, state.gradient)
        sets = _WorkingSets(state, penalty, examples.n_examples)
        sets.add(values, slopes, x)
        dual = max(state.dual, sets.solve(SHARE * max(best[1] - state.dual, 0.0)))
        idle = np.where(sets.weights > 0, 0.0, sets.idle + 1)
        keep = np.flatnonzero(idle <= IDLE)
        return NSlackState(
            self.name, sets.x, state.iteration + 1, f.evaluations, best[0], best[1], best[2], dual,
            state.proved * proved(f.f), tuple(sets.planes[keep]),
            sets.owner[keep].astype(np.float64), sets.offsets[keep], sets.weights[keep],
            idle[keep],
        )  # fmt: skip


class _WorkingSets:
    """The planes of all examples, sorted by example, and the quadratic program over them."""

    def __init__(self, state: NSlackState, penalty: FloatArray, n: int) -> None:
        self.h, self.n = 1.0 / (2 * penalty), n
        self.planes = np.array(state.planes) if state.planes else np.zeros((0, len(state.x)))
        self.owner, self.offsets = state.owner.astype(np.int64), state.offsets
        self.weights, self.idle = state.weights.copy(), state.idle
        self.total = self.weights @ self.planes

    @property
    def x(self) -> FloatArray:
        """Where the penalty plus the weighted planes is least."""
        found: FloatArray = -self.h * self.total
        return found

    def add(self, values: FloatArray, slopes: FloatArray, x: FloatArray) -> None:
        """Take in the planes that are above those of their example at x."""
        heights = np.zeros(self.n)
        np.maximum.at(heights, self.owner, self.planes @ x + self.offsets)
        new = np.flatnonzero(values > heights + 1e-12 * (1.0 + np.abs(values)))
        order = np.argsort(np.concatenate([self.owner, new]), kind="stable")
        self.planes = np.concatenate([self.planes, slopes[new]])[order]
        self.offsets = np.concatenate([self.offsets, values[new] - slopes[new] @ x])[order]
        self.weights = np.concatenate([self.weights, np.zeros(len(new))])[order]
        self.idle = np.concatenate([self.idle, np.zeros(len(new))])[order]
        self.owner = np.concatenate([self.owner, new])[order]

    def solve(self, tol: float) -> float:
        """Maximise the dual, until its own gap is at most `tol`; return a true lower bound."""
        ends = np.searchsorted(self.owner, np.arange(self.n + 1))
        blocks = [slice(a, b) for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True) if b > a]
        grams = [(self.planes[rows] * self.h) @ self.planes[rows].T for rows in blocks]
        for _ in range(ROUNDS):
            for rows, gram in zip(blocks, grams, strict=True):
                self._solve_block(rows, gram)
            self.total = self.weights @ self.planes
            if self._gap(ends) <= tol:
                break
        return self._dual()

    def _solve_block(self, rows: slice, gram: FloatArray) -> None:
        """Maximise over the simplex of one example; the plane zero is its first corner."""
        planes, before = self.planes[rows], self.weights[rows]
        pull = planes @ (self.h * (self.total - before @ planes))
        G = np.zeros((len(gram) + 1, len(gram) + 1))
        G[1:, 1:] = gram
        start = np.concatenate([[max(1.0 - float(before.sum()), 0.0)], before])
        weights = maximise_on_simplex(G, np.concatenate([[0.0], self.offsets[rows] - pull]), start)[1:]
        self.total = self.total + (weights - before) @ planes
        self.weights[rows] = weights

    def _dual(self) -> float:
        return float(self.weights @ self.offsets) - 0.5 * float(self.total @ (self.h * self.total))

    def _gap(self, ends: IntArray) -> float:
        """Return the program's value at x less its dual value."""
        heights = np.zeros(self.n)
        np.maximum.at(heights, self.owner, self.planes @ self.x + self.offsets)
        return float(heights.sum()) + 0.5 * float(self.total @ (self.h * self.total)) - self._dual()
