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
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.learning.optimizers.base import Callback, Counted, End, Function, Optimizer, OptimResult, register
from isinglass.learning.optimizers.max_margin.cutting_plane import require_positive
from isinglass.learning.optimizers.state import Numbers, State, Vectors
from isinglass.runtime.memory import available_memory, require_memory
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import bytes_text, number, whole_number


@runtime_checkable
class ByExample(Protocol):
    """A function that is a sum over examples, and knows the plane that touches each of them."""

    @property
    def n_examples(self) -> int:
        """How many examples there are."""

    def planes(self, x: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the losses of some examples at x, without penalties, and their subgradients (rows, n)."""


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
class FrankWolfeState(State):
    """The plane of each example, and the best point.

    Attributes
    ----------
    best : array (n,); value : float; gradient : array (n,)
        The best point, the function there, and a subgradient.
    dual : float
        The lower bound on the function.
    mean : array (n,)
        The mean of the points, those of later passes with more weight.
    seed : int
        What the order of the examples follows from.
    slopes : tuple of arrays (n,); offsets : array (examples,)
        A_i and B_i; none where the function has a pass of its own.
    memory : array
        What that pass remembers.
    """

    best: FloatArray
    value: float
    gradient: FloatArray
    dual: float
    mean: FloatArray
    seed: int
    slopes: Vectors
    offsets: Numbers
    memory: Numbers

    @property
    def gap(self) -> float:
        """The duality gap."""
        return self.value - self.dual


@register
@dataclass(frozen=True, eq=False)
class BlockFrankWolfe(Optimizer[FrankWolfeState]):
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

    l2: float | ArrayLike = 0.0
    tol: float = 1e-3
    max_iter: int = 1000
    batch_size: int = 1
    random_state: int = 0

    name: ClassVar[str] = "bcfw"
    state_type: ClassVar[type[State]] = FrankWolfeState
    convex: ClassVar[bool] = True

    def minimise(
        self, f: Function, x0: ArrayLike | None = None, *, callback: Callback | None = None, state: State | None = None
    ) -> OptimResult:
        """Minimise a function with `planes`, such as the objective of an estimator; see `Optimizer.minimise`."""
        _by_example(f)
        return self.drive(Counted(f), x0, callback, state)

    def check(self, size: int) -> None:
        """Check the options."""
        number(self.tol, "tol", 0, math.inf)
        whole_number(self.max_iter, "max_iter")
        whole_number(self.random_state, "random_state")
        whole_number(self.batch_size, "batch_size", 1)
        require_positive(self.l2, size, self.name)

    def start(self, f: Counted, x: FloatArray) -> FrankWolfeState:
        """Begin with planes of zero, which are below losses that are not negative."""
        zero, sweep = np.zeros(len(x)), _sweep_of(f.f)
        n = 0 if sweep is not None else _by_example(f.f).n_examples
        needed = 8.0 * 3 * n * len(x)
        what = f"{self.name!r} needs {bytes_text(needed)}: a vector of {len(x)} parameters for each of {n} examples"
        require_memory(needed, available_memory(), what, "use 'cutting-plane' or 'pegasos'")
        value, gradient = f(zero)
        memory = np.zeros(0) if sweep is None else sweep.start()
        return FrankWolfeState(
            self.name, zero, 0, f.evaluations, zero, value, gradient, 0.0 if value >= 0 else -math.inf, zero,
            int(self.random_state), tuple(np.zeros((n, len(x)))), np.zeros(n), memory,
        )  # fmt: skip

    def step(self, f: Counted, state: FrankWolfeState) -> FrankWolfeState:
        """Pass once over all examples, and evaluate the function."""
        penalty = np.broadcast_to(np.asarray(self.l2, np.float64), len(state.x))
        order = np.random.default_rng([state.seed, state.iteration]).permutation(_by_example(f.f).n_examples)
        sweep, slopes, offsets, memory = _sweep_of(f.f), state.slopes, state.offsets, state.memory
        if sweep is not None:
            memory, total, offset = sweep(order, memory, state.x, penalty)
        else:
            slopes, offsets = self._passed(_by_example(f.f), order, state, penalty)
            total, offset = np.sum(slopes, axis=0), float(offsets.sum())
        x, t = -total / (2 * penalty), state.iteration
        mean = (t * state.mean + 2 * x) / (t + 2)
        value, gradient = f(mean)
        dual = max(state.dual, offset - float((total * total / (4 * penalty)).sum()))
        better = value < state.value
        return FrankWolfeState(
            self.name, x, state.iteration + 1, f.evaluations, best=mean if better else state.best,
            value=min(value, state.value), gradient=gradient if better else state.gradient, dual=dual,
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

    def ended(self, state: FrankWolfeState) -> End | None:
        """Look at the gap and at the number of passes."""
        gap = state.gap / max(abs(state.value), np.finfo(float).tiny)
        if gap <= self.tol:
            return End(True, f"the relative duality gap, {gap:.3g}, is within tol = {self.tol:g}")
        if state.iteration >= self.max_iter:
            return End(False, f"reached max_iter = {self.max_iter} with a relative duality gap of {gap:.3g}")
        return None

    def outcome(self, state: FrankWolfeState) -> tuple[FloatArray, float, FloatArray]:
        """Return the best point."""
        return state.best, state.value, state.gradient


def _by_example(f: object) -> ByExample:
    """Refuse a function that does not know its examples."""
    if not isinstance(f, ByExample):
        expected = "the objective of an estimator, with `planes` of its examples, for 'bcfw'"
        raise InputError("f", expected, type(f).__name__, "use 'cutting-plane', which needs values and gradients alone")
    return f


def _sweep_of(f: object) -> Sweep | None:
    """Return the function's own pass over its examples, if it has one."""
    return f.sweep if isinstance(f, Sweeping) and f.sweeps else None


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
