"""What the optimizers that follow the whole function downhill share: their state and when they stop.

They stop, converged, when

    ||∇f(x)||₂ ≤ tol · max(1, min(||x||₂, √|f(x)|))         or
    0 < f(x_{k-1}) - f(x_k) ≤ ftol · max(1, |f(x_{k-1})|, |f(x_k)|),

and otherwise after `max_iter` steps or when no step is found. `tol = 0` or `ftol = 0` switches a test off. An optimizer
may ask for a smaller gradient (`Descent.least_gradient`). The root bounds what x would loosen by its own growth.

A function may fall for ever and have no minimum, as a likelihood of classes that are separable. Its gradient falls as
exp(-||x||), and passes any tolerance at a finite x. But at a minimum something holds each parameter back, and at twice
its size pushes with full weight, as does an example that contradicts a feature; else nothing does. So a run that would
have converged has not, if there are parameters without penalty that

    moved from x_j to 2 x_j leave f as flat as before,   and at x_j = 0 make it higher             (`Descent.growing`).

They are found by doubling all and dropping those that are pushed back, again and again: in about five evaluations.

At a kink f hardly decreases, although the gradient is large. So the second test asks for a gradient that is not steep,

    ||∇f(x)|| · max(1, ||x||)  ≤  STEEP · max(√ftol, 1e-5) · max(1, |f(x)|),

and a step from a steep point that lowers neither f nor the norm of the gradient is none. For a smooth f the left side
is about √ftol · |f| where f decreases by ftol · |f|, times the root of its relative curvature.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from isinglass.errors import ImpossibleLabelError, InputError
from isinglass.learning.optimizers.base import Counted, End, Optimizer, OptimResult, dot, norm
from isinglass.learning.optimizers.state import State
from isinglass.typing import FloatArray, Mask
from isinglass.validation import number, whole_number

NO_STEP = (
    "the line search found no better point: the function has kinks (use 'bcfw' or 'cutting-plane' for hinge losses) or "
    "jumps, tol is below rounding, or the gradient is wrong; raise tol"
)
ROUNDING = 256 * float(np.finfo(float).eps)  # a loss may be a difference of larger numbers, such as log Z and a score
SMALL, ROUNDS = 1e-3, 20  # of parameters that may grow: their least size beside the largest, and how often to choose
STEEP = 1e3  # the largest root of a relative curvature
FLAT = 1e-12  # a relative difference of values that is none
_LEAST_ROOT = 1e-5  # of ftol


@dataclass(frozen=True, eq=False)
class Trial:
    """A point on a line x + α d: α, the value φ(α) there, φ'(α), x + α d and the gradient."""

    step: float
    value: float
    slope: float
    x: FloatArray
    gradient: FloatArray


def evaluate(f: Counted, x: FloatArray, step: float, direction: FloatArray) -> Trial:
    """Evaluate `f`, with an infinite value wherever it is not finite; `f` is never asked at infinite points.

    A slope is finite only if the whole gradient is: an infinite or undefined term of a sum stays.
    """
    if np.isfinite(x).all():
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is a step too long
            value, gradient = f(x)
        slope = dot(gradient, direction)
        if math.isfinite(value) and math.isfinite(slope):
            return Trial(step, value, slope, x, gradient)
    return Trial(step, math.inf, math.nan, x, np.full_like(x, np.nan))


def attempt(f: Counted, x: FloatArray, step: float, direction: FloatArray) -> Trial:
    """Evaluate `f` at a step, which was too long where a label has belief zero."""
    try:
        return evaluate(f, x, step, direction)
    except ImpossibleLabelError:
        return Trial(step, math.inf, math.nan, x, np.full_like(x, np.nan))


def growth_message(parameter: str, value: float, remedy: str) -> str:
    """Say that parameters grow without end."""
    return (
        f"parameters still grow, most of all {parameter}, which is {value:.4g}: twice as large they are no worse, so "
        f"that the maximum may not exist (the objective may have no minimum); {remedy}"
    )


@dataclass(frozen=True, eq=False)
class DescentState(State):
    """A point with its value and gradient.

    Attributes
    ----------
    value : float
        With a penalty, if the optimizer has one.
    gradient : array (n,)
        Of the function itself, without a penalty.
    decrease : float
        How far the value fell in the last step, relative to max(1, its size); +inf at first.
    """

    value: float
    gradient: FloatArray
    decrease: float


D = TypeVar("D", bound=DescentState)


@dataclass(frozen=True)
class Descent(Optimizer[D], Generic[D]):
    """Base class; the options that say when to stop.

    Parameters
    ----------
    tol, ftol : float
        Bounds on the relative gradient norm and on the relative decrease; zero switches a test off.
    max_iter : int
    """

    tol: float = 1e-5
    ftol: float = 1e-10
    max_iter: int = 1000

    def check(self, size: int) -> None:
        """Check the options."""
        number(self.tol, "tol", 0, math.inf)
        number(self.ftol, "ftol", 0, math.inf)
        whole_number(self.max_iter, "max_iter")

    def start(self, f: Counted, x: FloatArray) -> D:
        """Evaluate the start, where the function must be finite."""
        trial = evaluate(f, x, 0.0, x)
        if trial.value == math.inf:
            raise InputError("x0", "a point where the function and its gradient are finite", "one where they are not")
        values = trial.value, trial.gradient, math.inf
        return self.state_type(self.name, x, 0, f.evaluations, *values)  # type: ignore[call-arg, return-value]

    def steepest(self, state: D) -> FloatArray:
        """Return the gradient to judge the state by (with a penalty: the subgradient of least norm)."""
        return state.gradient

    def least_gradient(self, state: D) -> float:
        """Return the norm of the gradient at which a run has converged: the tolerance times the length of x."""
        return self.tol * max(1.0, min(norm(state.x), math.sqrt(abs(state.value))))

    def penalty_at(self, x: FloatArray) -> float:
        """Return the penalty of the optimizer's own."""
        return 0.0

    def penalised(self, x: FloatArray) -> Mask:
        """Return which parameters are in that penalty."""
        return np.zeros(len(x), bool)

    def reported(self, f: Counted, found: OptimResult) -> OptimResult:
        """Return a result that is not converged where parameters grow without end."""
        assert isinstance(found.state, DescentState)
        if not found.converged or getattr(f.f, "has_minimum", False):
            return found
        grow = np.flatnonzero(self.growing(f, found.state))  # type: ignore[arg-type]
        if not len(grow):
            return replace(found, evaluations=f.evaluations)
        order = tuple(grow[np.argsort(-np.abs(found.x[grow]), kind="stable")].tolist())
        text = growth_message(f"number {order[0]}", found.x[order[0]], "add a penalty")
        return replace(found, converged=False, message=text, growing=order, evaluations=f.evaluations)

    def growing(self, f: Counted, state: D) -> Mask:
        """Return which parameters grow without end (see above)."""
        x, slope, rounding = state.x, self.steepest(state), ROUNDING * max(1.0, abs(state.value))
        x = np.where((np.asarray(getattr(f.f, "l2", 0.0)) > 0) | self.penalised(x), 0.0, x)
        size = float(np.abs(x).max(initial=0.0))
        grows = (np.abs(x) > SMALL * size) & slope.any()  # else it is a minimum to all digits, as of a hinge
        for _ in range(ROUNDS):
            if not grows.any():
                break
            step = np.where(grows, x, 0.0) * (max(1.0, size) / float(np.abs(x[grows]).max()))
            trial = attempt(f, state.x + step, 1.0, step)
            if trial.value == math.inf:
                break
            push = step * self.steepest(replace(state, x=trial.x, gradient=trial.gradient))
            if push.sum() <= max(-dot(step, slope), rounding):
                least = state.value - self.penalty_at(state.x) + FLAT * max(1.0, abs(state.value))
                return grows & (attempt(f, np.where(grows, 0.0, state.x), 1.0, step).value > least)
            grows &= ~(push >= push.max() / 10)
        return np.zeros(len(x), bool)

    def is_steep(self, state: D) -> bool:
        """Tell whether the gradient is so large that a small decrease is that of a kink."""
        relative = norm(self.steepest(state)) * max(1.0, norm(state.x)) / max(1.0, abs(state.value))
        return relative > STEEP * max(math.sqrt(self.ftol), _LEAST_ROOT)

    def is_better(self, after: D, before: D) -> bool:
        """Tell whether a step led to a better point: a lower value or, up to rounding, a smaller gradient."""
        if after.value < before.value or not self.is_steep(before):
            return True
        return norm(self.steepest(after)) < norm(self.steepest(before))

    def ended(self, state: D) -> End | None:
        """Look at gradient, decrease and number of steps, in this order."""
        length, least = norm(self.steepest(state)), self.least_gradient(state)
        if length <= least:
            scale = least / self.tol if self.tol > 0 else 1.0
            times = f" times the scale {scale:.3g}" if scale != 1 else ""
            return End(True, f"the gradient norm, {length:.3g}, is within tol = {self.tol:g}{times}")
        if 0 < state.decrease <= self.ftol and not self.is_steep(state):
            return End(True, f"the relative decrease, {state.decrease:.3g}, is within ftol = {self.ftol:g}")
        if state.iteration >= self.max_iter:
            return End(False, f"reached max_iter = {self.max_iter}")
        return None

    def outcome(self, state: D) -> tuple[FloatArray, float, FloatArray]:
        """Return the point, its value and its gradient."""
        return state.x, state.value, self.steepest(state)


def next_state(state: D, f: Counted, found: Trial) -> D:
    """Return the state at the point that a line search found."""
    decrease = (state.value - found.value) / max(1.0, abs(state.value), abs(found.value))
    after = replace(state, iteration=state.iteration + 1, evaluations=f.evaluations, decrease=decrease)
    return replace(after, x=found.x, value=found.value, gradient=found.gradient)
