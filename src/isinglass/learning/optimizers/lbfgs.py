"""L-BFGS with a line search for the strong Wolfe conditions.

    x_{k+1} = x_k - α_k H_k ∇f(x_k)

with H_k from the last `memory` pairs of steps and gradient changes (Nocedal and Wright 2006, algorithm 7.5; Liu and
Nocedal 1989). α = 1 is tried first; without pairs, a step of at most length one. If a search fails, the pairs are
forgotten and steepest descent is tried from the same point; if that fails, too, the run stops.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from isinglass.errors import require
from isinglass.learning.optimizers.base import Counted, StuckError, register
from isinglass.learning.optimizers.curvature import Curvature
from isinglass.learning.optimizers.descent import NO_STEP, Descent, DescentState, next_state
from isinglass.learning.optimizers.line_search import Trial, WolfeSearch
from isinglass.learning.optimizers.state import State, Vectors
from isinglass.learning.optimizers.vectors import difference, dot, norm
from isinglass.runtime.cached_property import cached_property
from isinglass.typing import FloatArray
from isinglass.validation import number, whole_number


@dataclass(frozen=True, eq=False)
class LbfgsState(DescentState):
    """The complete state of L-BFGS and OWL-QN.

    Attributes
    ----------
    steps, changes : tuples of arrays (n,)
        The pairs s, y, oldest first.
    """

    steps: Vectors = ()
    changes: Vectors = ()

    @cached_property
    def curvature(self) -> Curvature:
        """What the pairs know."""
        return Curvature(self.steps, self.changes)

    def with_curvature(self, curvature: Curvature) -> LbfgsState:
        """Return the state with other pairs."""
        made = replace(self, steps=curvature.steps, changes=curvature.changes)
        vars(made)["curvature"] = curvature  # with the inner products that it has already
        return made


@register
@dataclass(frozen=True)
class Lbfgs(Descent[LbfgsState]):
    """L-BFGS.

    Parameters
    ----------
    tol, ftol, max_iter
        When to stop; see `isinglass.learning.optimizers.descent`.
    memory : int
        The number of pairs that are kept.
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
        whole_number(self.memory, "memory", 1)
        number(self.curvature, "curvature", 0, 1)
        number(self.sufficient, "sufficient", 0, 1)
        got = f"sufficient = {self.sufficient:g}, curvature = {self.curvature:g}"
        require(0 < self.sufficient < self.curvature, "sufficient", "0 < sufficient < curvature < 1", got)

    def step(self, f: Counted, state: LbfgsState) -> LbfgsState:
        """Search along the quasi-Newton direction and, if that fails, along the negative gradient."""
        for curvature in (state.curvature, Curvature((), ())) if state.steps else (state.curvature,):
            found = self.search(f, state, curvature)
            if found is None:
                continue
            after = next_state(state, f, found)
            if self.is_better(after, state):
                s, y = difference(after.x, state.x), difference(after.gradient, state.gradient)
                return after.with_curvature(curvature.with_pair(s, y, self.memory))
        raise StuckError(NO_STEP)

    def search(self, f: Counted, state: LbfgsState, curvature: Curvature) -> Trial | None:
        """Return the next point, None if there is none in the direction that the pairs give."""
        direction = curvature.inverse_times(state.gradient, -1.0)
        slope = dot(state.gradient, direction)
        if not -math.inf < slope < 0:
            return None
        origin = Trial(0.0, state.value, slope, state.x, state.gradient)
        return WolfeSearch(self.sufficient, self.curvature).run(f, origin, direction, first_step(curvature, direction))


def first_step(curvature: Curvature, direction: FloatArray) -> float:
    """Return the α that is tried first."""
    return 1.0 if curvature.steps else min(1.0, 1.0 / norm(direction))
