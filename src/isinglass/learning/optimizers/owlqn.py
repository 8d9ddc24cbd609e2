"""OWL-QN: L-BFGS for a smooth function plus an l1 penalty.

    F(x) = f(x) + Σ_i c_i |x_i|,   c ≥ 0 for each coordinate

Andrew and Gao, *Scalable training of L1-regularized log-linear models*, ICML 2007. v = -⋄F(x) is the negative
subgradient of least norm. The direction is p = π(H v; v), H from the pairs of f alone; points are kept in the orthant
ξ_i = sign(x_i), or sign(v_i) where x_i = 0:

    x' = π(x + α p; ξ),   F(x') ≤ F(x) - γ vᵀ(x' - x)

where π(a; b) puts zero wherever the signs of a and b differ. Coordinates without penalty have no kink and are left as
they are by π. α = 1 is tried first. A step that is too long is shortened to the minimum of the parabola through F(x),
F(x') and the slope -vᵀ(x' - x), a tenth of the step at least and half of it at most. Without any penalty the algorithm
is L-BFGS, bit for bit (with its line search and as many pairs).

Where π acts on the direction matters. With many parameters and few pairs H is close to a multiple of the identity, and
the signs of H v are less reliable than those of v: on chain CRFs with 10⁴ to 10⁵ weights the published form, π in all
coordinates, was far ahead in the first hundred evaluations. Close to the minimum it is slow, because F is smooth away
from zero and to cut H v there spoils it; π in the coordinates that are at zero then ended in a third of the
evaluations. The first is used while a step lowers F by more than a share of 10⁻⁴, the second after that, for as long
as vᵀp > 0. More than 6 pairs did not help.

The run stops, converged, when

    ||⋄F(x)||₂ ≤ tol · min(r, max(1, |F(x)|) / r),   r = max(1, ||x||₂),

or by the decrease, as for L-BFGS. F is convex where f is, so that F(x) - F(x*) ≤ ||⋄F(x)|| ||x - x*||: the second
bound makes sure that what is left to gain is small beside F itself, however large x is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError, require
from isinglass.learning.optimizers.base import Counted, register
from isinglass.learning.optimizers.curvature import Curvature
from isinglass.learning.optimizers.lbfgs import Lbfgs, LbfgsState, first_step
from isinglass.learning.optimizers.line_search import ROUNDING, Trial, attempt
from isinglass.learning.optimizers.vectors import dot, moved, norm
from isinglass.typing import FloatArray, Mask
from isinglass.validation import array_of

_SHORTEST, _LONGEST, _MOST_TRIALS = 0.1, 0.5, 60  # of the step before; the number of trials in one search
_SLOW = 1e-4  # the relative decrease from which on the direction is cut at zero only


@register
@dataclass(frozen=True, eq=False)
class OwlQn(Lbfgs):
    """L-BFGS for f(x) + Σ_i l1_i |x_i|.

    Parameters
    ----------
    tol, ftol, max_iter, memory
        As for `Lbfgs`; the gradient is the subgradient of least norm, and `tol` is also relative to F (see above).
    sufficient : float
        γ, the share of the expected decrease that a step must give.
    curvature : float
        Used without penalty only.
    l1 : float or array (n,)
        The penalty, for all coordinates or each one; zero leaves a coordinate free.
    align : {"auto", "all", "zeros"}
        Where π acts on the direction: in all coordinates, as published, in those at zero, or first the one, then the
        other (see above).

    Examples
    --------
    >>> target = np.array([3.0, 0.5, -2.0])
    >>> f = lambda x: (((x - target) ** 2).sum() / 2, x - target)
    >>> r = OwlQn(l1=[1.0, 1.0, 0.0], tol=1e-10).minimise(f, np.zeros(3))
    >>> r.x.round(9)
    array([ 2.,  0., -2.])
    """

    memory: int = 6
    l1: ArrayLike = 1.0
    align: str = "auto"

    name: ClassVar[str] = "owlqn"
    sparse: ClassVar[bool] = True

    def __eq__(self, other: object) -> bool:
        """Compare the options, the penalty entry by entry."""
        return isinstance(other, OwlQn) and self._key() == other._key() and np.array_equal(self.l1, other.l1)

    def __hash__(self) -> int:
        """Hash the options other than the penalty."""
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return tuple(getattr(self, field.name) for field in fields(self) if field.name != "l1")

    def check(self, size: int) -> None:
        """Check the options."""
        super().check(size)
        require(self.align in {"auto", "zeros", "all"}, "align", "'auto', 'zeros' or 'all'", repr(self.align))
        expected = f"finite numbers of at least 0, one or {size}"
        l1 = array_of(self.l1, "l1", expected)
        if l1.dtype.kind not in "iuf" or l1.shape not in {(), (size,)}:
            raise InputError("l1", expected, f"dtype {l1.dtype} of shape {l1.shape}")
        if not ((l1 >= 0) & (l1 < np.inf)).all():
            raise InputError("l1", expected, f"{l1[~((l1 >= 0) & (l1 < np.inf))].flat[0]}")

    def start(self, f: Counted, x: FloatArray) -> LbfgsState:
        """Evaluate the start."""
        state = super().start(f, x)
        return replace(state, value=state.value + self._penalty(x))

    def search(self, f: Counted, state: LbfgsState, curvature: Curvature) -> Trial | None:
        """Search along the projected line; without penalty, as L-BFGS does."""
        penalised = self._weights(state.x) > 0
        if not penalised.any():
            return super().search(f, state, curvature)
        v = -self.steepest(state)
        direction = self._direction(state, curvature.inverse_times(v), v)
        if direction is None:
            return None
        orthant = np.where(state.x != 0, state.x, v)
        return self._backtrack(f, state, direction, orthant, first_step(curvature, direction))

    def _direction(self, state: LbfgsState, newton: FloatArray, v: FloatArray) -> FloatArray | None:
        """Return π(H v; v), in the coordinates that are at zero only if that goes downhill."""
        penalised = self._weights(state.x) > 0
        smooth = self.align == "zeros" or (self.align == "auto" and state.decrease <= _SLOW)
        for where in (penalised & (state.x == 0), penalised) if smooth else (penalised,):
            direction = _same_sign(newton, v, where)
            if 0 < dot(v, direction) < math.inf:
                return direction
        return None

    def _backtrack(
        self, f: Counted, state: LbfgsState, direction: FloatArray, orthant: FloatArray, step: float
    ) -> Trial | None:
        """Shorten the step until the penalised function falls enough; the trial's value has the penalty."""
        subgradient, penalised = self.steepest(state), self._weights(state.x) > 0
        for _ in range(_MOST_TRIALS):
            trial = attempt(f, _same_sign(moved(state.x, step, direction), orthant, penalised), step, direction)
            if trial.value == math.inf:
                step *= _SHORTEST
                continue
            value = trial.value + self._penalty(trial.x)
            expected = dot(subgradient, trial.x - state.x)
            if expected < 0 and value <= state.value + self.sufficient * expected + ROUNDING * abs(state.value):
                return replace(trial, value=value)
            step *= _shorter(value - state.value, expected)
        return None

    def least_gradient(self, state: LbfgsState) -> float:
        """Return the norm of the subgradient at which a run has converged; without penalty, as for L-BFGS."""
        least = super().least_gradient(state)
        if not (self._weights(state.x) > 0).any():
            return least
        return min(least, self.tol * max(1.0, abs(state.value)) / max(1.0, norm(state.x)))

    def steepest(self, state: LbfgsState) -> FloatArray:
        """Return ⋄F, the subgradient of least norm."""
        g, weights = state.gradient, self._weights(state.x)
        at_zero = np.sign(g) * np.maximum(np.abs(g) - weights, 0.0)
        return np.where(state.x != 0, g + weights * np.sign(state.x), at_zero)

    def _weights(self, x: FloatArray) -> FloatArray:
        return np.broadcast_to(np.asarray(self.l1, np.float64), x.shape)

    def _penalty(self, x: FloatArray) -> float:
        return dot(self._weights(x), np.abs(x))


def _shorter(change: float, expected: float) -> float:
    """Return the share of a step to try next, from the change of F and the one that its slope promised (below 0).

    Examples
    --------
    >>> _shorter(change=1.0, expected=-1.0), _shorter(change=1e9, expected=-1.0)
    (0.25, 0.1)
    """
    excess = change - expected
    return min(max(-expected / (2 * excess), _SHORTEST), _LONGEST) if excess > 0 else _LONGEST


def _same_sign(a: FloatArray, b: FloatArray, where: Mask) -> FloatArray:
    """Return `a` with zeros where its sign is not that of `b` (π), in the coordinates `where`."""
    return np.where(where & (np.sign(a) != np.sign(b)), 0.0, a)
