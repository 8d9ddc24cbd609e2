"""The inverse Hessian that L-BFGS keeps in pairs of vectors.

With s_k = x_{k+1} - x_k, y_k = ∇f_{k+1} - ∇f_k, ρ_k = 1 / s_kᵀy_k, the product H v is the two-loop recursion
(Nocedal and Wright 2006, algorithm 7.4), begun from H⁰ = (sᵀy / yᵀy) I of the newest pair (equation 7.20). A pair is
kept only if sᵀy > 0 beyond rounding, so that H is positive definite.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from isinglass.learning.optimizers.state import Vectors
from isinglass.learning.optimizers.vectors import add_and_dot, dot, entrywise, scaled
from isinglass.typing import FloatArray

_LEAST_CURVATURE = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Curvature:
    """Pairs (s, y), oldest first.

    Examples
    --------
    >>> empty = Curvature((), ())
    >>> empty.inverse_times(np.array([1.0, 2.0]))
    array([1., 2.])
    >>> one = empty.with_pair(np.array([1.0, 0.0]), np.array([4.0, 0.0]), memory=5)
    >>> one.inverse_times(np.array([4.0, 4.0]))
    array([1., 1.])
    """

    steps: Vectors
    changes: Vectors

    @cached_property
    def products(self) -> tuple[float, ...]:
        """sᵀy of each pair."""
        return tuple(map(dot, self.steps, self.changes))

    def with_pair(self, s: FloatArray, y: FloatArray, memory: int) -> Curvature:
        """Return the newest `memory` pairs, with this one if its curvature is positive."""
        product = dot(s, y)
        if not product > _LEAST_CURVATURE * dot(y, y):
            return self
        made = Curvature((*self.steps, s)[-memory:], (*self.changes, y)[-memory:])
        vars(made)["products"] = (*self.products, product)[-memory:]
        return made

    def inverse_times(self, v: FloatArray, factor: float = 1.0) -> FloatArray:
        """Return factor · H v."""
        q = scaled(v, factor)
        if not self.steps:
            return q
        pairs = list(zip(self.steps, self.changes, self.products, strict=True))
        factors, along = [], dot(self.steps[-1], q)
        for k, (_, y, curvature) in reversed(list(enumerate(pairs))):
            factors.append(along / curvature)
            along = add_and_dot(q, -factors[-1], y, self.steps[max(k - 1, 0)])
        _, y, curvature = pairs[-1]
        scale = curvature / dot(y, y)
        entrywise(lambda q, out: np.multiply(scale, q, out), q, out=q)
        along = dot(self.changes[0], q)
        for k, (s, _, curvature) in enumerate(pairs):
            after = self.changes[min(k + 1, len(pairs) - 1)]
            along = add_and_dot(q, factors[-1 - k] - along / curvature, s, after)
        return q
