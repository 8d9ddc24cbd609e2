"""Steepest descent with line search.

    d_k = ∇f(x_k),   η_k ≈ argmin_η f(x_k - η d_k),   x_{k+1} = x_k - η_k d_k,

until ||d_k|| is small: the algorithm by which Andres teaches the learning of conditional graphical models (*Machine
Learning I*, TU Dresden). The minimum along the line is found up to |φ'(η)| ≤ curvature · |φ'(0)|; the first η that is
tried keeps the first-order change of the last step (Nocedal and Wright 2006, equation 3.60 and the text before it).
It is slow on ill-conditioned functions and here to compare with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from isinglass.learning.optimizers.base import Counted, StuckError, register
from isinglass.learning.optimizers.descent import NO_STEP, Descent, DescentState, next_state
from isinglass.learning.optimizers.line_search import Trial, WolfeSearch
from isinglass.learning.optimizers.state import State
from isinglass.learning.optimizers.vectors import dot, norm
from isinglass.typing import FloatArray
from isinglass.validation import number


@dataclass(frozen=True, eq=False)
class SteepestState(DescentState):
    """The state of steepest descent: `fall` is η ||d||² of the last step, the first-order fall."""

    fall: float = 0.0


@register
@dataclass(frozen=True)
class SteepestDescent(Descent[SteepestState]):
    """Steepest descent with line search.

    Parameters
    ----------
    tol, ftol, max_iter
        When to stop; see `isinglass.learning.optimizers.descent`.
    curvature : float
        How well each line is searched: the slope falls at least to this share, below 1.

    Examples
    --------
    >>> import numpy as np
    >>> scales = np.array([1.0, 4.0])
    >>> r = SteepestDescent(tol=1e-8, ftol=0).minimise(lambda x: (scales @ x**2 / 2, scales * x), [1.0, 1.0])
    >>> r.converged, bool(abs(r.x).max() < 1e-7)
    (True, True)
    """

    curvature: float = 0.1

    name: ClassVar[str] = "steepest"
    state_type: ClassVar[type[State]] = SteepestState

    def check(self, size: int) -> None:
        """Check the options."""
        super().check(size)
        number(self.curvature, "curvature", 1e-3, 1)

    def start(self, f: Counted, x: FloatArray) -> SteepestState:
        """Evaluate the start; the first step is at most of length one."""
        state = super().start(f, x)
        length = norm(state.gradient)
        return replace(state, fall=length * min(1.0, length))

    def step(self, f: Counted, state: SteepestState) -> SteepestState:
        """Search along the negative gradient."""
        direction = -state.gradient
        slope = -dot(direction, direction)
        origin = Trial(0.0, state.value, slope, state.x, state.gradient)
        search = WolfeSearch(min(1e-4, self.curvature / 2), self.curvature)
        found = search.run(f, origin, direction, state.fall / -slope)
        if found is None:
            raise StuckError(NO_STEP)
        after = replace(next_state(state, f, found), fall=found.step * -slope)
        if not self.is_better(after, state):
            raise StuckError(NO_STEP)
        return after
