"""The concave-convex procedure, for hinge losses with hidden labels: latent structural SVMs (Yu and Joachims 2009).

    F(x)  =  sum_j l2_j x_j² + sum_i max_{y, h} [...]  -  sum_i max_h s_i(y_i, h)          (Murphy 2012, eq. 19.118)

is a difference of convex functions. A step completes the hidden labels by their best states h_i at x_t (eq. 19.119)
and minimises the convex function G_t that has s_i(y_i, h_i) in place of the last maximum (eq. 19.120; algorithm 19.5).
G_t is at least F and equal to F at x_t, so that

    F(x_{t+1})  <=  G_t(x_{t+1})  <=  G_t(x_t)  =  F(x_t)

G_t is minimised by an optimizer with a duality gap, until the gap is smaller than the decrease F(x_t) - G_t so far: the
step then has at least half of the decrease that there is. The run has converged when the bound of G_t says that no step
with these completions could decrease F by more than `tol`, relative to F. That is a stationary point, not a minimum
over all completions. With an inexact solver a step that would raise F is not made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.learning.optimizers.base import (
    OPTIMIZERS,
    Callback,
    Counted,
    End,
    Function,
    OptimResult,
    Progress,
    StuckError,
    make_optimizer,
    register,
)
from isinglass.learning.optimizers.max_margin.gap import GapOptimizer, GapState, proved
from isinglass.learning.optimizers.state import State
from isinglass.typing import FloatArray
from isinglass.validation import whole_number


@runtime_checkable
class Completing(Protocol):
    """A function that knows its hidden labels."""

    def completed(self, x: FloatArray) -> Self:
        """Return the function with the hidden labels that are best at x, whatever its argument."""


@dataclass(frozen=True, eq=False)
class CccpState(GapState):
    """The best point; there is no lower bound on the function itself.

    Attributes
    ----------
    left : float
        The most that the last step could have decreased the function, by the bound of its convex function.
    """

    left: float


@register
@dataclass(frozen=True, eq=False)
class Cccp(GapOptimizer[CccpState]):
    """The concave-convex procedure, for hinge losses with hidden labels (-1) and a squared penalty.

    Parameters
    ----------
    l2 : float or array (n,)
        The penalties that the function contains, all positive; an estimator sets them to its own.
    tol : float
        Stop when no step with the present completions could decrease the function by more, relative to it.
    max_iter : int
        The most completions of the hidden labels.
    inner : {"cutting-plane", "bcfw"}
        What minimises given the completions.
    inner_iter : int
        Its most iterations, for each completion.
    """

    inner: str = "cutting-plane"
    inner_iter: int = 1000

    name: ClassVar[str] = "cccp"
    state_type: ClassVar[type[State]] = CccpState
    latent: ClassVar[bool] = True

    def check(self, size: int) -> None:
        """Check the options."""
        super().check(size)
        whole_number(self.inner_iter, "inner_iter", 1)
        able = [n for n, cls in OPTIMIZERS.items() if issubclass(cls, GapOptimizer) and not cls.latent]
        if self.inner not in able:
            raise InputError("inner", f"one of {', '.join(map(repr, able))}", repr(self.inner))

    def minimise(
        self, f: Function, x0: ArrayLike | None = None, *, callback: Callback | None = None, state: State | None = None
    ) -> OptimResult:
        """Minimise a function with `completed`, such as the objective of an estimator; see `Optimizer.minimise`."""
        if not isinstance(f, Completing):
            expected = f"the objective of an estimator, which can complete hidden labels, for {self.name!r}"
            raise InputError("f", expected, type(f).__name__, "use 'lbfgs'")
        return self.drive(Counted(f), x0, callback, state)

    def start(self, f: Counted, x: FloatArray) -> CccpState:
        """Evaluate the start."""
        value, gradient = f(x)
        return CccpState(self.name, x, 0, f.evaluations, x, value, gradient, -math.inf, proved(f.f), math.inf)

    def step(self, f: Counted, state: CccpState) -> CccpState:
        """Complete the hidden labels, and minimise given these."""
        function: Any = f.f
        assert isinstance(function, Completing)
        upper: Any = function.completed(state.x)
        found = self._inner(upper, state)
        assert isinstance(found.state, GapState)
        f.evaluations += found.evaluations
        value, gradient = f(found.x)
        best = (found.x, value, gradient) if value < state.value else (state.x, state.value, state.gradient)
        sure = state.proved * found.state.proved * proved(function)
        left = state.value - found.state.dual
        after = CccpState(self.name, best[0], state.iteration + 1, f.evaluations, *best, -math.inf, sure, left)
        if value >= state.value and self.ended(after) is None:
            raise StuckError(f"no decrease with completions at this point; {found.message}", after)
        return after

    def _inner(self, upper: Any, state: CccpState) -> OptimResult:
        """Minimise the convex function, until its gap is below the decrease."""
        inner = make_optimizer(self.inner, l2=self.l2, tol=self.tol / 2, max_iter=self.inner_iter)

        def enough(progress: Progress) -> bool:
            assert isinstance(progress.state, GapState)
            return progress.state.gap < state.value - progress.state.value

        found = inner.minimise(upper, state.x, callback=enough)
        if found.message == "interrupted":
            raise KeyboardInterrupt
        return found

    def ended(self, state: CccpState) -> End | None:
        """Look at what a further step could bring, and at the number of steps."""
        left = state.left / max(abs(state.value), np.finfo(float).tiny)
        proof = "" if state.proved else "; that is no proof: not all maxima were exact"
        if left <= self.tol:
            text = f"with these completions a step could decrease the function by {max(left, 0.0):.3g} at most"
            return End(True, f"{text}, within tol = {self.tol:g}{proof}")
        if state.iteration >= self.max_iter:
            return End(False, f"reached max_iter = {self.max_iter} completions of the hidden labels")
        return None
