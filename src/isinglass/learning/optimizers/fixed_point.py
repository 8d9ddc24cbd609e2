"""Fixed-point iterations: steps of an update that the objective itself has.

    x_{k+1} = U(x_k),

where U never raises the function: iterative proportional fitting, iterative scaling, expectation maximisation. There is
no line search; the run stops when the gradient is small (see `isinglass.learning.optimizers.descent`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from isinglass.errors import InputError
from isinglass.learning.optimizers.base import Counted, register
from isinglass.learning.optimizers.descent import Descent, DescentState, evaluate, next_state
from isinglass.learning.optimizers.state import State
from isinglass.typing import FloatArray
from isinglass.validation import number


@register
@dataclass(frozen=True)
class FixedPoint(Descent[DescentState]):
    """Steps of an objective's own `update`, a method from x to the next x.

    Parameters
    ----------
    tol, ftol, max_iter
        When to stop; see `isinglass.learning.optimizers.descent`. By default the decrease is not looked at: it is
        small long before a slow iteration has converged.
    scale : float
        The norm of the gradient is compared with tol times this, however long x is.

    Examples
    --------
    >>> import numpy as np
    >>> class Halving:
    ...     def __call__(self, x):
    ...         return float(x @ x), 2 * x
    ...
    ...     def update(self, x):
    ...         return x / 2
    >>> FixedPoint(tol=1e-3).minimise(Halving(), [1.0]).iterations
    11
    """

    ftol: float = 0.0
    scale: float = 1.0

    name: ClassVar[str] = "fixed-point"
    state_type: ClassVar[type[State]] = DescentState

    def check(self, size: int) -> None:
        """Check the options."""
        super().check(size)
        number(self.scale, "scale", 0, math.inf)

    def least_gradient(self, state: DescentState) -> float:
        """Return the norm of the gradient at which a run has converged."""
        return self.tol * self.scale

    def start(self, f: Counted, x: FloatArray) -> DescentState:
        """Evaluate the start."""
        if not hasattr(f.f, "update"):
            remedy = "use 'lbfgs'; methods such as 'ipf' choose this optimizer themselves"
            raise InputError("optimizer", "one that minimises any function", "'fixed-point'", remedy)
        return super().start(f, x)

    def step(self, f: Counted, state: DescentState) -> DescentState:
        """Update, and evaluate where that leads."""
        x = f.f.update(state.x.copy())  # type: ignore[attr-defined]
        return next_state(state, f, evaluate(f, x, 1.0, x))
