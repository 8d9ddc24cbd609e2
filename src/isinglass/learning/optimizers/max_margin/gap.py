"""What optimizers with a duality gap share: a convex function with a squared penalty, the best point, and a bound.

    F(x)  =  sum_j l2_j x_j² + R(x)        R convex, such as a sum of structured hinges

Planes below R prove a lower bound D on F, the dual value. The *duality gap* is the least F(x) so far less D; a run has
converged when the gap, relative to F, is at most `tol`. The gap is a proof where every evaluation maximised with a
proof (exactly, or over a relaxation). A function that knows says so (`proved`), and then the message does.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.learning.optimizers.base import Callback, Counted, End, Function, Optimizer, OptimResult
from isinglass.learning.optimizers.state import State
from isinglass.runtime.memory import available_memory, require_memory
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import bytes_text, number, whole_number

NO_PROOF = "it is no proof: not all maxima were exact"


@runtime_checkable
class ByExample(Protocol):
    """A function that is a sum over examples, and knows the plane that touches each of them."""

    @property
    def n_examples(self) -> int:
        """How many examples there are."""

    def planes(self, x: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the losses of some examples at x, without penalties, and their subgradients (rows, n)."""


@runtime_checkable
class Proving(Protocol):
    """A function that knows whether its values are proved."""

    @property
    def proved(self) -> bool:
        """Whether every maximum in it was found with a proof, in all evaluations so far."""


@runtime_checkable
class Bounded(Protocol):
    """A function that knows a bound on its values."""

    @property
    def least(self) -> float:
        """What it is never below, if all maxima in it are exact."""


@dataclass(frozen=True, eq=False)
class GapState(State):
    """The best point, and a lower bound.

    Attributes
    ----------
    best : array (n,); value : float; gradient : array (n,)
        The best point, the function there, and a subgradient.
    dual : float
        The best lower bound on the function.
    proved : int
        1 as long as every maximum was found with a proof, else 0.
    """

    best: FloatArray
    value: float
    gradient: FloatArray
    dual: float
    proved: int

    @property
    def gap(self) -> float:
        """The duality gap."""
        return self.value - self.dual


G = TypeVar("G", bound=GapState)


@dataclass(frozen=True, eq=False)
class GapOptimizer(Optimizer[G]):
    """Base class of optimizers that end by their duality gap.

    Parameters
    ----------
    l2 : float or array (n,)
        The penalties that the function contains, all positive; an estimator sets them to its own.
    tol : float
        Stop when the duality gap is at most this, relative to the function.
    max_iter : int
    """

    l2: float | ArrayLike = 0.0
    tol: float = 1e-3
    max_iter: int = 1000

    convex: ClassVar[bool] = True

    def check(self, size: int) -> None:
        """Check the options."""
        number(self.tol, "tol", 0, math.inf)
        whole_number(self.max_iter, "max_iter")
        require_positive(self.l2, size, self.name)

    def ended(self, state: G) -> End | None:
        """Look at the gap and at the number of iterations."""
        gap = float(state.gap) / max(abs(float(state.value)), sys.float_info.min)  # infinite, if the value is 0
        proof = "" if state.proved else f"; {NO_PROOF}"
        if gap <= self.tol:  # by rounding, it may be below zero
            return End(True, f"the relative duality gap, {max(gap, 0.0):.3g}, is within tol = {self.tol:g}{proof}")
        if state.iteration >= self.max_iter:
            return End(False, f"reached max_iter = {self.max_iter} with a relative duality gap of {gap:.3g}{proof}")
        return None

    def outcome(self, state: G) -> tuple[FloatArray, float, FloatArray]:
        """Return the best point."""
        return state.best, state.value, state.gradient

    def penalty(self, size: int) -> FloatArray:
        """Return the penalty of each entry."""
        return np.broadcast_to(np.asarray(self.l2, np.float64), size)


@dataclass(frozen=True, eq=False)
class ExampleOptimizer(GapOptimizer[G]):
    """Base class of those that look at single examples."""

    def minimise(
        self, f: Function, x0: ArrayLike | None = None, *, callback: Callback | None = None, state: State | None = None
    ) -> OptimResult:
        """Minimise a function with `planes`, such as the objective of an estimator; see `Optimizer.minimise`."""
        by_example(f, self.name)
        return self.drive(Counted(f), x0, callback, state)


def proved(f: object) -> int:
    """Return 0 if a function says that some of its values were not proved."""
    return int(f.proved) if isinstance(f, Proving) else 1


def least(f: object) -> float:
    """Return what a function is known never to be below, -inf if nothing is."""
    return float(f.least) if isinstance(f, Bounded) else -math.inf


def by_example(f: object, optimizer: str) -> ByExample:
    """Refuse a function that does not know its examples."""
    if not isinstance(f, ByExample):
        expected = f"the objective of an estimator, with `planes` of its examples, for {optimizer!r}"
        raise InputError("f", expected, type(f).__name__, "use 'cutting-plane', which needs values and gradients alone")
    return f


def require_planes(optimizer: str, planes: int, size: int, examples: int) -> None:
    """Refuse, before any work, planes that would not fit in memory."""
    needed = 8.0 * planes * examples * size
    what = f"{optimizer!r} needs {bytes_text(needed)}: a vector of {size} parameters for each of {examples} examples"
    require_memory(needed, available_memory(), what, "use 'cutting-plane' or 'pegasos'")


def require_positive(l2: float | ArrayLike, size: int, optimizer: str) -> None:
    """Refuse a penalty that is not positive for every parameter: the dual would not be bounded."""
    penalty = np.asarray(l2, np.float64)
    if penalty.shape not in ((), (size,)) or not ((penalty > 0) & (penalty < math.inf)).all():
        got = f"{penalty.min()}" if penalty.size else "none"
        raise InputError(
            "l2", f"a positive penalty of every parameter, for {optimizer!r}", got, "give l2 (and edge_l2)"
        )
