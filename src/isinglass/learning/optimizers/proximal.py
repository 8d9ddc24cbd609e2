"""Proximal gradients for a smooth function plus a penalty on the length of groups of parameters.

    F(x) = f(x) + sum_g P(||x_g||),      P concave and rising, with P'(0) > 0

    norm         P(r) = c r                                                   the group lasso (Yuan and Lin 2006)
    horseshoe    P(r) = - log log(1 + t² / (r + e)²),     e = t / 1000        (Bhadra et al. 2019)

A step moves against the gradient and shortens each group by what P's tangent at its length asks,

    x' = S( x - a grad f(x) ),      S(y)_g = max(0, 1 - a P'(||x_g||) / ||y_g||) y_g,

so that whole groups become exactly zero. As P lies below its tangents, F falls wherever the step a is short enough; the
first a is that of Barzilai and Borwein (1988), halved until F falls (Wright, Nowak and Figueiredo 2009). The horseshoe
hardly shrinks long groups, and is not convex: where a run ends depends on where it starts. Its density has no finite
peak at zero; e cuts the peak off.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.learning.optimizers.base import Counted, StuckError, register
from isinglass.learning.optimizers.descent import NO_STEP, Descent, DescentState, next_state
from isinglass.learning.optimizers.line_search import ROUNDING, Trial, evaluate
from isinglass.learning.optimizers.state import State
from isinglass.learning.optimizers.vectors import dot
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import positive, real_numbers

CUT = 1e-3  # of the scale of a horseshoe: e above
SHORTEST, LONGEST, TRIALS = 1e-12, 1e12, 80
SUFFICIENT = 1e-4
KINDS = ("norm", "horseshoe")


@dataclass(frozen=True, eq=False)
class ProximalState(DescentState):
    """The state of proximal gradients: `length` is the step that is tried next."""

    length: float = 1.0


@register
@dataclass(frozen=True, eq=False)
class Proximal(Descent[ProximalState]):
    """Proximal gradients with a penalty on groups of parameters.

    Parameters
    ----------
    tol, ftol, max_iter
        When to stop; see `isinglass.learning.optimizers.descent`. The gradient is the subgradient of least norm.
    groups : int array (n,)
        The group of each parameter, from 0 on; -1: not penalised. Without any there is no penalty.
    penalty : "norm" or "horseshoe"
    scale : float
        Of the prior: the penalty of a group of d parameters is sqrt(d) / scale times its norm; or t of a horseshoe.

    Examples
    --------
    >>> target = np.array([3.0, 4.0, 0.5, -2.0])
    >>> f = lambda x: (((x - target) ** 2).sum() / 2, x - target)
    >>> Proximal(groups=[0, 0, 1, -1], scale=2**0.5, tol=1e-10).minimise(f, np.zeros(4)).x.round(6)
    array([ 2.4,  3.2,  0. , -2. ])
    """

    groups: ArrayLike = ()
    penalty: Literal["norm", "horseshoe"] = "norm"
    scale: float = 1.0
    ftol: float = 0.0

    name: ClassVar[str] = "proximal"
    state_type: ClassVar[type[State]] = ProximalState

    def check(self, size: int) -> None:
        """Check the options."""
        super().check(size)
        positive(self.scale, "scale")
        if self.penalty not in KINDS:
            raise InputError("penalty", " or ".join(map(repr, KINDS)), repr(self.penalty))
        given = real_numbers(self.groups, "groups", "whole numbers")  # a checkpoint holds them as floats
        if given.size and given.shape != (size,):
            raise InputError("groups", f"a group for each of {size} parameters", f"shape {given.shape}")
        if (given < -1).any() or (given != np.rint(given)).any():
            raise InputError("groups", "whole numbers from -1 on", f"{given.min():g} to {given.max():g}")

    def start(self, f: Counted, x: FloatArray) -> ProximalState:
        """Evaluate the start; the first step is at most of length one."""
        state = super().start(f, x)
        length = 1.0 / max(1.0, float(np.sqrt(dot(state.gradient, state.gradient))))
        return replace(state, value=state.value + self.penalty_at(x), length=length)

    def step(self, f: Counted, state: ProximalState) -> ProximalState:
        """Step, shorter until the penalised function falls."""
        slopes = self._slopes(self._norms(state.x))
        length = state.length
        for _ in range(TRIALS):
            x = self._shrunk(state.x - length * state.gradient, length * slopes)
            change = x - state.x
            trial = evaluate(f, x, length, change)
            value = trial.value + self.penalty_at(x)
            least = SUFFICIENT / (2 * length) * dot(change, change)
            if value <= state.value - least + ROUNDING * abs(state.value):
                return self._next(f, state, replace(trial, value=value))
            length /= 2
        raise StuckError(NO_STEP)

    def _next(self, f: Counted, state: ProximalState, found: Trial) -> ProximalState:
        """Return the state at a better point, with the step of Barzilai and Borwein for the next one."""
        change = found.x - state.x
        bend, square = dot(change, found.gradient - state.gradient), dot(change, change)
        length = min(max(square / bend, SHORTEST), LONGEST) if bend > 0 else min(2 * state.length, LONGEST)
        after = replace(next_state(state, f, found), length=length)
        if not self.is_better(after, state):
            raise StuckError(NO_STEP)
        return after

    def steepest(self, state: ProximalState) -> FloatArray:
        """Return the subgradient of least norm."""
        norms = self._norms(state.x)
        slopes, owner = self._slopes(norms), self._owner(state.x)
        pull = np.divide(slopes, norms, out=np.zeros_like(norms), where=norms > 0)
        kept = state.gradient + np.append(pull, 0.0)[owner] * state.x
        at_zero = self._shrunk(state.gradient, slopes)
        return np.where(np.append(norms == 0, False)[owner], at_zero, kept)

    def penalty_at(self, x: FloatArray) -> float:
        """Return the penalty."""
        norms = self._norms(x)
        if self.penalty == "norm":
            return float((np.sqrt(self._sizes) * norms).sum()) / self.scale
        return float(-np.log(np.log1p((self.scale / (norms + CUT * self.scale)) ** 2)).sum())

    def _slopes(self, norms: FloatArray) -> FloatArray:
        """Return P' at the norm of each group."""
        if self.penalty == "norm":
            return np.sqrt(self._sizes) / self.scale
        r = norms + CUT * self.scale
        rest = r * (r**2 + self.scale**2) * np.log1p((self.scale / r) ** 2)
        return np.asarray(2 * self.scale**2 / rest, np.float64)

    def _owner(self, x: FloatArray) -> IntArray:
        return np.asarray(self.groups, np.int64) if np.size(self.groups) else np.full(len(x), -1)

    @property
    def _sizes(self) -> FloatArray:
        owner = np.asarray(self.groups, np.int64)
        return np.bincount(owner[owner >= 0]).astype(np.float64)

    def _norms(self, x: FloatArray) -> FloatArray:
        owner = self._owner(x)
        return np.sqrt(np.bincount(owner[owner >= 0], x[owner >= 0] ** 2))

    def _shrunk(self, x: FloatArray, by: FloatArray) -> FloatArray:
        """Shorten each group by a length."""
        norms = self._norms(x)
        factor = np.maximum(0.0, 1.0 - np.divide(by, norms, out=np.full_like(norms, np.inf), where=norms > 0))
        return np.asarray(x * np.append(factor, 1.0)[self._owner(x)], np.float64)
