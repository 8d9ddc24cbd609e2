"""Block-coordinate Frank-Wolfe for sums of convex losses with a squared penalty (Lacoste-Julien, Jaggi, Schmidt 2013).

The function is F(x) = sum_j l2_j x_j² + sum_i R_i(x), the R_i convex, such as structured hinges. Each example keeps one
plane below its loss, R_i(x) >= A_i . x + B_i, a convex combination of planes that touch it. Together they prove

    F(x)  >=  D  =  sum_i B_i - sum_j S_j² / (4 l2_j),        S = sum_i A_i,      x_j = - S_j / (2 l2_j)

A step takes the plane (a, b) that touches R_i at x, and moves the example's plane towards it, by the step that raises D
most:

    gamma  =  (b - B_i + x . (a - A_i))  /  sum_j (a - A_i)_j² / (2 l2_j),           cut to [0, 1]

D never falls. An iteration is one pass over the examples in random order. After pass t, F is evaluated at the mean of
the points, in which pass t has the weight 2 / (t + 2); the difference of the least F so far and D is the *duality gap*.
It is a true one where the loss maximises exactly. Chains have compiled passes of their own, with pairwise steps and
cached labellings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from isinglass.learning.optimizers.base import Counted, register
from isinglass.learning.optimizers.max_margin.gap import (
    ByExample,
    ExampleOptimizer,
    GapState,
    by_example,
    proved,
    require_planes,
)
from isinglass.learning.optimizers.state import Numbers, State, Vectors
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import whole_number


class Sweep(Protocol):
    """A compiled pass over all examples, which remembers their planes in one flat array."""

    def start(self) -> FloatArray:
        """Return the memory of the start, where every plane is zero."""

    def __call__(
        self, order: IntArray, memory: FloatArray, x: FloatArray, penalty: FloatArray
    ) -> tuple[FloatArray, FloatArray, float]:
        """Make a step for each example; return the memory, the sum of all A, and that of all B."""


@runtime_checkable
class Sweeping(Protocol):
    """A function that has a compiled pass over its examples, where `sweeps` is true."""

    @property
    def sweeps(self) -> bool:
        """Whether it has one."""

    @property
    def sweep(self) -> Sweep:
        """The pass."""


@dataclass(frozen=True, eq=False)
class FrankWolfeState(GapState):
    """The plane of each example, and the best point.

    Attributes
    ----------
    mean : array (n,)
        The mean of the points, those of later passes with more weight.
    seed : int
        What the order of the examples follows from.
    slopes : tuple of arrays (n,); offsets : array (examples,)
        A_i and B_i; none where the function has a pass of its own.
    memory : array
        What that pass remembers.
    """

    mean: FloatArray
    seed: int
    slopes: Vectors
    offsets: Numbers
    memory: Numbers


@register
@dataclass(frozen=True, eq=False)
class BlockFrankWolfe(ExampleOptimizer[FrankWolfeState]):
    """Block-coordinate Frank-Wolfe, for sums of convex losses with a squared penalty; ends by its duality gap.

    It starts at zero, whatever the start is: the plane of each example is zero at first.

    Parameters
    ----------
    l2 : float or array (n,)
        The penalties that the function contains, all positive; an estimator sets them to its own.
    tol : float
        Stop when the duality gap is at most this, relative to the function.
    max_iter : int
        The most passes over the examples.
    batch_size : int
        Examples whose planes are computed at the same point; more of them need more passes. Chains take one at a time.
    random_state : int
    """

    batch_size: int = 1
    random_state: int = 0

    name: ClassVar[str] = "bcfw"
    state_type: ClassVar[type[State]] = FrankWolfeState

    def check(self, size: int) -> None:
        """Check the options."""
        super().check(size)
        whole_number(self.random_state, "random_state")
        whole_number(self.batch_size, "batch_size", 1)

    def start(self, f: Counted, x: FloatArray) -> FrankWolfeState:
        """Begin with planes of zero, which are below losses that are not negative."""
        zero, sweep = np.zeros(len(x)), _sweep_of(f.f)
        n = 0 if sweep is not None else by_example(f.f, self.name).n_examples
        require_planes(self.name, 3, len(x), n)
        value, gradient = f(zero)
        memory = np.zeros(0) if sweep is None else sweep.start()
        return FrankWolfeState(
            self.name, zero, 0, f.evaluations, zero, value, gradient, 0.0 if value >= 0 else -math.inf,
            proved(f.f), zero,
            int(self.random_state), tuple(np.zeros((n, len(x)))), np.zeros(n), memory,
        )  # fmt: skip

    def step(self, f: Counted, state: FrankWolfeState) -> FrankWolfeState:
        """Pass once over all examples, and evaluate the function."""
        penalty = self.penalty(len(state.x))
        order = np.random.default_rng([state.seed, state.iteration]).permutation(by_example(f.f, self.name).n_examples)
        sweep, slopes, offsets, memory = _sweep_of(f.f), state.slopes, state.offsets, state.memory
        if sweep is not None:
            memory, total, offset = sweep(order, memory, state.x, penalty)
        else:
            slopes, offsets = self._passed(by_example(f.f, self.name), order, state, penalty)
            total, offset = np.sum(slopes, axis=0), float(offsets.sum())
        x, t = -total / (2 * penalty), state.iteration
        mean = (t * state.mean + 2 * x) / (t + 2)
        value, gradient = f(mean)
        dual = max(state.dual, offset - float((total * total / (4 * penalty)).sum()))
        better = value < state.value
        return FrankWolfeState(
            self.name, x, state.iteration + 1, f.evaluations, best=mean if better else state.best,
            value=min(value, state.value), gradient=gradient if better else state.gradient, dual=dual,
            proved=state.proved * proved(f.f),
            mean=mean, seed=state.seed, slopes=slopes, offsets=offsets, memory=memory,
        )  # fmt: skip

    def _passed(
        self, examples: ByExample, order: IntArray, state: FrankWolfeState, penalty: FloatArray
    ) -> tuple[Vectors, FloatArray]:
        """Return the planes after a step for each example."""
        A, B = np.array(state.slopes), state.offsets.copy()
        total = A.sum(axis=0)
        for begin in range(0, len(B), self.batch_size):
            rows = order[begin : begin + self.batch_size]
            x = -total / (2 * penalty)
            values, slopes = examples.planes(x, rows)
            _move(A, B, total, rows, values - slopes @ x, slopes, penalty)
        return tuple(A), B


def _sweep_of(f: object) -> Sweep | None:
    """Return the function's own pass over its examples, if it has one."""
    return f.sweep if getattr(f, "sweeps", False) and isinstance(f, Sweeping) else None


def _move(
    A: FloatArray, B: FloatArray, total: FloatArray, rows: IntArray, b: FloatArray, a: FloatArray, penalty: FloatArray
) -> None:
    """Move the planes of some examples towards new ones, one after the other, each by the best step; in place."""
    for k, i in enumerate(rows.tolist()):
        away = a[k] - A[i]
        scaled = away / (2 * penalty)
        gain = b[k] - B[i] - float(total @ scaled)  # x . away = - total . away / (2 l2)
        length = float(away @ scaled)
        if gain <= 0:
            continue
        gamma = min(1.0, gain / length) if length > 0 else 1.0
        A[i] += gamma * away
        B[i] += gamma * (b[k] - B[i])
        total += gamma * away
