"""L-BFGS, OWL-QN for l1 penalties, and steepest descent, with a line search.

    x_{k+1} = x_k - α_k H_k ∇f(x_k)

H_k comes from the last `memory` pairs of steps s and changes y of the gradient (Nocedal and Wright 2006, algorithms 7.4
and 7.5, equation 7.20; Liu and Nocedal 1989); a pair is kept only if sᵀy > 0 beyond rounding. Without pairs H_k = I:
steepest descent. With pairs α = 1 is tried first; without, the step that changes f, to first order, as much as the last
one did (equation 3.60), and at first one of at most length one. If a search fails, the pairs are forgotten and steepest
descent is tried from the same point; if that fails, too, the run stops.

**Line search.** α fulfils the strong Wolfe conditions: with φ(α) = f(x + α d),

    φ(α) ≤ φ(0) + c₁ α φ'(0),      |φ'(α)| ≤ c₂ |φ'(0)|

(algorithms 3.5 and 3.6, cubic interpolation by equation 3.59). Values are compared up to their own rounding: near a
minimum, where φ does not resolve the decrease any more, the slopes still do. Where φ or its gradient is not finite, or
a label has belief zero, φ counts as +inf: the step was too long.

**OWL-QN** (Andrew and Gao, *Scalable training of L1-regularized log-linear models*, ICML 2007) minimises

    F(x) = f(x) + Σ_i c_i |x_i|,   c ≥ 0 for each coordinate

v = -⋄F(x) is the negative subgradient of least norm. The direction is p = π(H v; v), H from the pairs of f alone;
points are kept in the orthant ξ_i = sign(x_i), or sign(v_i) where x_i = 0:

    x' = π(x + α p; ξ),   F(x') ≤ F(x) - c₁ vᵀ(x' - x)

where π(a; b) puts zero wherever the signs of a and b differ, but for coordinates without penalty. A step that is too
long is shortened to the minimum of the parabola through F(x), F(x') and the slope -vᵀ(x' - x), a tenth of the step at
least and half of it at most. Without any penalty the algorithm is L-BFGS. With many parameters and few pairs H is close
to a multiple of the identity, and the signs of H v are less reliable than those of v: there π acts in all coordinates.
Close to the minimum, where a step lowers F by less than a share of 10⁻⁴, it acts in those at zero alone, as long as
vᵀp > 0: F is smooth away from zero, and on chain CRFs a third of the evaluations were left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError, require
from isinglass.learning.optimizers.base import Counted, StuckError, dot, norm, register
from isinglass.learning.optimizers.descent import (
    NO_STEP,
    ROUNDING,
    Descent,
    DescentState,
    Trial,
    attempt,
    next_state,
)
from isinglass.learning.optimizers.state import State, Vectors
from isinglass.removed import RemovedOptions
from isinglass.typing import FloatArray, Mask
from isinglass.validation import array_of, number, whole_number

_LEAST_CURVATURE = float(np.finfo(float).eps)
_MOST_TRIALS, _BISECT_EVERY = 40, 3  # of one search; intervals are halved at least so often
_SHORTEST, _LONGEST, _MOST_CUTS = 0.1, 0.5, 60  # OWL-QN: of the step before; the number of trials in one search
_SLOW = 1e-4  # OWL-QN: the relative decrease from which on the direction is cut at zero only


@dataclass(frozen=True, eq=False)
class LbfgsState(DescentState):
    """The complete state of L-BFGS, OWL-QN and steepest descent.

    Attributes
    ----------
    steps, changes : tuples of arrays (n,)
        The pairs s, y, oldest first, each divided by √(sᵀy).
    fall : float
        How far the last step went down, to first order.
    """

    steps: Vectors = ()
    changes: Vectors = ()
    fall: float = 0.0


@register
@dataclass(frozen=True)
class Lbfgs(Descent[LbfgsState]):
    """L-BFGS.

    Parameters
    ----------
    tol, ftol, max_iter
        When to stop; see `isinglass.learning.optimizers.descent`.
    memory : int
        The number of pairs that are kept; 0: steepest descent.
    sufficient, curvature : float
        The constants c₁ < c₂ of the Wolfe conditions.

    Examples
    --------
    >>> import numpy as np
    >>> def f(x):
    ...     return (x[0] - 1) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2, np.array(
    ...         [2 * (x[0] - 1) - 400 * x[0] * (x[1] - x[0] ** 2), 200 * (x[1] - x[0] ** 2)]
    ...     )
    >>> r = Lbfgs(tol=1e-8).minimise(f, [-1.2, 1.0])
    >>> r.x.round(6), r.converged
    (array([1., 1.]), True)
    """

    memory: int = 10
    sufficient: float = 1e-4
    curvature: float = 0.9

    name: ClassVar[str] = "lbfgs"
    state_type: ClassVar[type[State]] = LbfgsState

    def check(self, size: int) -> None:
        """Check the options."""
        super().check(size)
        whole_number(self.memory, "memory")
        number(self.curvature, "curvature", 0, 1)
        number(self.sufficient, "sufficient", 0, 1)
        got = f"sufficient = {self.sufficient:g}, curvature = {self.curvature:g}"
        require(0 < self.sufficient < self.curvature, "sufficient", "0 < sufficient < curvature < 1", got)

    def start(self, f: Counted, x: FloatArray) -> LbfgsState:
        """Evaluate the start."""
        state = super().start(f, x)
        length = norm(self.steepest(state))
        return replace(state, fall=length * min(1.0, length))

    def step(self, f: Counted, state: LbfgsState) -> LbfgsState:
        """Search along the quasi-Newton direction and, if that fails, along the negative gradient."""
        for tried in (state, replace(state, steps=(), changes=())) if state.steps else (state,):
            found = self.search(f, tried)
            if found is None:
                continue
            after = next_state(tried, f, found)
            if self.is_better(after, state):
                s, y = after.x - state.x, after.gradient - state.gradient
                return self.with_pair(replace(after, fall=-dot(self.steepest(state), s)), s, y)
        raise StuckError(NO_STEP)

    def search(self, f: Counted, state: LbfgsState) -> Trial | None:
        """Return the next point, None if there is none in the direction that the pairs give."""
        direction = inverse_times(state, -state.gradient)
        slope = dot(state.gradient, direction)
        if not -math.inf < slope < 0:
            return None
        origin = Trial(0.0, state.value, slope, state.x, state.gradient)
        return wolfe_search(f, origin, direction, first_step(state, slope), self.sufficient, self.curvature)

    def with_pair(self, state: LbfgsState, s: FloatArray, y: FloatArray) -> LbfgsState:
        """Return the state with the newest `memory` pairs, with this one if its curvature is positive."""
        product = dot(s, y)
        if not (self.memory and product > _LEAST_CURVATURE * dot(y, y)):
            return state
        s, y = s / math.sqrt(product), y / math.sqrt(product)
        return replace(state, steps=(*state.steps, s)[-self.memory :], changes=(*state.changes, y)[-self.memory :])


@register
@dataclass(frozen=True)
class SteepestDescent(Lbfgs):
    """Steepest descent with line search: L-BFGS without pairs, and with a more exact search.

    By this algorithm Andres teaches the learning of conditional graphical models (*Machine Learning I*, TU Dresden). It
    is slow on ill-conditioned functions and here to compare with.

    Parameters
    ----------
    tol, ftol, max_iter, memory, sufficient, curvature
        As for `Lbfgs`. The slope along a line falls at least to the share `curvature`.

    Examples
    --------
    >>> import numpy as np
    >>> scales = np.array([1.0, 4.0])
    >>> r = SteepestDescent(tol=1e-8, ftol=0).minimise(lambda x: (scales @ x**2 / 2, scales * x), [1.0, 1.0])
    >>> r.converged, bool(abs(r.x).max() < 1e-7)
    (True, True)
    """

    memory: int = 0
    curvature: float = 0.1

    name: ClassVar[str] = "steepest"


@register
@dataclass(frozen=True, eq=False)
class OwlQn(RemovedOptions, Lbfgs):
    """L-BFGS for ``f(x) + Σ_i l1_i |x_i|``.

    Parameters
    ----------
    tol, ftol, max_iter, memory
        As for `Lbfgs`; the gradient is the subgradient of least norm. With ``||x|| > max(1, |F|)^½`` the gradient must
        be smaller, ``||⋄F(x)|| ≤ tol max(1, |F|) / ||x||``: ``F - F* ≤ ||⋄F|| ||x - x*||`` is then small beside F, if f
        is convex.
    sufficient : float
        c₁, the share of the expected decrease that a step must give.
    curvature : float
        Used without penalty only.
    l1 : float or array (n,)
        The penalty, for all coordinates or each one; zero leaves a coordinate free.

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
        expected = f"finite numbers of at least 0, one or {size}"
        l1 = array_of(self.l1, "l1", expected)
        if l1.dtype.kind not in "iuf" or l1.shape not in {(), (size,)}:
            raise InputError("l1", expected, f"dtype {l1.dtype} of shape {l1.shape}")
        if not ((l1 >= 0) & (l1 < np.inf)).all():
            raise InputError("l1", expected, f"{l1[~((l1 >= 0) & (l1 < np.inf))].flat[0]}")

    def start(self, f: Counted, x: FloatArray) -> LbfgsState:
        """Evaluate the start."""
        state = super().start(f, x)
        return replace(state, value=state.value + self.penalty_at(x))

    def search(self, f: Counted, state: LbfgsState) -> Trial | None:
        """Search along the projected line; without penalty, as L-BFGS does."""
        penalised = self._weights(state.x) > 0
        if not penalised.any():
            return super().search(f, state)
        v = -self.steepest(state)
        newton = inverse_times(state, v)
        for where in (penalised & (state.x == 0), penalised) if state.decrease <= _SLOW else (penalised,):
            direction = _same_sign(newton, v, where)
            slope = -dot(v, direction)
            if -math.inf < slope < 0:
                return self._backtrack(f, state, v, direction, first_step(state, slope))
        return None

    def _backtrack(
        self, f: Counted, state: LbfgsState, v: FloatArray, direction: FloatArray, step: float
    ) -> Trial | None:
        """Shorten the step until the penalised function falls enough; the trial's value has the penalty."""
        orthant, penalised = np.where(state.x != 0, state.x, v), self._weights(state.x) > 0
        for _ in range(_MOST_CUTS):
            trial = attempt(f, _same_sign(_moved(state.x, step, direction), orthant, penalised), step, direction)
            if trial.value == math.inf:
                step *= _SHORTEST
                continue
            value, expected = trial.value + self.penalty_at(trial.x), -dot(v, trial.x - state.x)
            if expected < 0 and value <= state.value + self.sufficient * expected + ROUNDING * abs(state.value):
                return replace(trial, value=value)
            excess = value - state.value - expected
            step *= min(max(-expected / (2 * excess), _SHORTEST), _LONGEST) if excess > 0 else _LONGEST
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

    def penalised(self, x: FloatArray) -> Mask:
        """Return which parameters have an l1 penalty."""
        return self._weights(x) > 0

    def _weights(self, x: FloatArray) -> FloatArray:
        return np.broadcast_to(np.asarray(self.l1, np.float64), x.shape)

    def penalty_at(self, x: FloatArray) -> float:
        """Return the penalty."""
        return dot(self._weights(x), np.abs(x))


def _same_sign(a: FloatArray, b: FloatArray, where: Mask) -> FloatArray:
    """Return `a` with zeros where its sign is not that of `b` (π), in the coordinates `where`."""
    return np.where(where & (np.sign(a) != np.sign(b)), 0.0, a)


def _moved(x: FloatArray, step: float, direction: FloatArray) -> FloatArray:
    """Return x + step · direction; what overflows is infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return x + step * direction


def inverse_times(state: LbfgsState, v: FloatArray) -> FloatArray:
    """Return H v by the two-loop recursion; sᵀy = 1 in each pair."""
    q, room, shares = v.copy(), np.empty_like(v), []
    with np.errstate(all="ignore"):
        for s, y in zip(reversed(state.steps), reversed(state.changes), strict=True):
            shares.append(dot(s, q))
            q -= np.multiply(y, shares[-1], out=room)
        if state.changes:
            q /= dot(state.changes[-1], state.changes[-1])
        for s, y in zip(state.steps, state.changes, strict=True):
            q += np.multiply(s, shares.pop() - dot(y, q), out=room)
    return q


def first_step(state: LbfgsState, slope: float) -> float:
    """Return the α that is tried first, along a direction of this slope."""
    return 1.0 if state.steps else state.fall / -slope


def wolfe_search(
    f: Counted, origin: Trial, direction: FloatArray, first: float, sufficient: float, curvature: float
) -> Trial | None:
    """Return a point that fulfils the Wolfe conditions, trying α = `first`; None if none was found.

    `low` is the best point so far; once there is a `high`, a good step lies between them.
    """
    slack, low, high, step = ROUNDING * abs(origin.value), origin, None, first
    for left in reversed(range(_MOST_TRIALS)):
        trial = attempt(f, _moved(origin.x, step, direction), step, direction)
        if not trial.value <= min(origin.value + sufficient * step * origin.slope, low.value) + slack:
            high = trial
        elif abs(trial.slope) <= -curvature * origin.slope:
            return trial
        else:
            before, low = low, trial
            if trial.slope * (math.inf if high is None else high.step - before.step) >= 0:
                high = before
        if high is None:
            step = _longer(before, low)
        elif high.step == low.step:
            return None
        else:
            step = _inside(low, high, left % _BISECT_EVERY == 0)
    return None


def _longer(previous: Trial, trial: Trial) -> float:
    """Choose a longer step: 1.5 to 10 times the last, by the cubic if its minimum lies ahead."""
    best = cubic_minimum(previous, trial)
    factor = 4.0 if best is None or best <= trial.step else best / trial.step
    return min(max(factor, 1.5), 10.0) * trial.step


def _inside(low: Trial, high: Trial, halve: bool) -> float:
    """Choose a step inside an interval: near `low` if `high` is off the domain, else by interpolation."""
    width, best = high.step - low.step, cubic_minimum(low, high)
    if high.value == math.inf:
        return low.step + 0.1 * width
    if best is None or halve:
        return low.step + 0.5 * width
    return low.step + min(max((best - low.step) / width, 0.1), 0.9) * width


def cubic_minimum(a: Trial, b: Trial) -> float | None:
    """Return the minimum of the cubic through two values and slopes (equation 3.59), None if it has none.

    Examples
    --------
    >>> x = np.zeros(1)  # of φ(α) = (α - 2)²
    >>> cubic_minimum(Trial(0.0, 4.0, -4.0, x, x), Trial(1.0, 1.0, -2.0, x, x))
    2.0
    """
    width = b.step - a.step
    first = a.slope + b.slope - 3 * (b.value - a.value) / width
    radicand = first * first - a.slope * b.slope
    if not 0 <= radicand < math.inf:
        return None
    second = math.copysign(math.sqrt(radicand), width)
    divisor = b.slope - a.slope + 2 * second
    return b.step - width * (b.slope + second - first) / divisor if divisor else None
