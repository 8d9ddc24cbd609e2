"""Proximal gradients for a smooth function plus a group lasso (Yuan and Lin 2006).

    F(x) = f(x) + sum_g c_g ||x_g||

A step moves against the gradient and shortens each group,

    x' = S( x - a grad f(x) ),      S(y)_g = max(0, 1 - a c_g / ||y_g||) y_g,

so that whole groups become exactly zero. F falls wherever the step a is short enough; the first a is that of Barzilai
and Borwein (1988), halved until F falls (Wright, Nowak and Figueiredo 2009).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.learning.optimizers.base import Counted, StuckError, dot, register
from isinglass.learning.optimizers.descent import NO_STEP, ROUNDING, Descent, DescentState, Trial, evaluate, next_state
from isinglass.learning.optimizers.state import State
from isinglass.typing import FloatArray, IntArray, Mask
from isinglass.validation import positive, real_numbers

SHORTEST, LONGEST, TRIALS = 1e-12, 1e12, 80
SUFFICIENT = 1e-4


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
    scale : float
        Of the prior: the penalty of a group of d parameters is sqrt(d) / scale times its norm.

    Examples
    --------
    >>> target = np.array([3.0, 4.0, 0.5, -2.0])
    >>> f = lambda x: (((x - target) ** 2).sum() / 2, x - target)
    >>> Proximal(groups=[0, 0, 1, -1], scale=2**0.5, tol=1e-10).minimise(f, np.zeros(4)).x.round(6)
    array([ 2.4,  3.2,  0. , -2. ])
    """

    groups: ArrayLike = ()
    scale: float = 1.0
    ftol: float = 0.0

    name: ClassVar[str] = "proximal"
    state_type: ClassVar[type[State]] = ProximalState

    def check(self, size: int) -> None:
        """Check the options."""
        super().check(size)
        positive(self.scale, "scale")
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
        slopes, length = self._slopes, state.length
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
        slopes, owner = self._slopes, self._owner(state.x)
        pull = np.divide(slopes, norms, out=np.zeros_like(norms), where=norms > 0)
        kept = state.gradient + np.append(pull, 0.0)[owner] * state.x
        at_zero = self._shrunk(state.gradient, slopes)
        return np.where(np.append(norms == 0, False)[owner], at_zero, kept)

    def penalised(self, x: FloatArray) -> Mask:
        """Return which parameters are in a group."""
        return self._owner(x) >= 0

    def penalty_at(self, x: FloatArray) -> float:
        """Return the penalty."""
        return float((self._slopes * self._norms(x)).sum())

    @property
    def _slopes(self) -> FloatArray:
        """The penalty of each group over its norm."""
        owner = np.asarray(self.groups, np.int64)
        return np.asarray(np.sqrt(np.bincount(owner[owner >= 0])) / self.scale, np.float64)

    def _owner(self, x: FloatArray) -> IntArray:
        return np.asarray(self.groups, np.int64) if np.size(self.groups) else np.full(len(x), -1)

    def _norms(self, x: FloatArray) -> FloatArray:
        owner = self._owner(x)
        return np.sqrt(np.bincount(owner[owner >= 0], x[owner >= 0] ** 2))

    def _shrunk(self, x: FloatArray, by: FloatArray) -> FloatArray:
        """Shorten each group by a length."""
        norms = self._norms(x)
        factor = np.maximum(0.0, 1.0 - np.divide(by, norms, out=np.full_like(norms, np.inf), where=norms > 0))
        return np.asarray(x * np.append(factor, 1.0)[self._owner(x)], np.float64)
