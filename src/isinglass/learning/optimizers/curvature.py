"""The inverse Hessian that L-BFGS keeps in pairs of vectors.

With s_k = x_{k+1} - x_k, y_k = ∇f_{k+1} - ∇f_k, ρ_k = 1 / s_kᵀy_k, the product H v is the two-loop recursion
(Nocedal and Wright 2006, algorithm 7.4), begun from H⁰ = (sᵀy / yᵀy) I of the newest pair (equation 7.20). A pair is
kept only if sᵀy > 0 beyond rounding, so that H is positive definite.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isinglass.learning.optimizers.state import Vectors
from isinglass.learning.optimizers.vectors import PIECE, crew_for, dot, scaled
from isinglass.runtime.cached_property import cached_property
from isinglass.typing import FloatArray

_LEAST_CURVATURE = float(np.finfo(float).eps)
_SHARE = 2**13  # numbers that a thread takes at a time


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
        product, square = dot(s, y), dot(y, y)
        if not product > _LEAST_CURVATURE * square:
            return self
        made = Curvature((*self.steps, s)[-memory:], (*self.changes, y)[-memory:])
        vars(made).update(products=(*self.products, product)[-memory:], square=square)
        return made

    @cached_property
    def square(self) -> float:
        """yᵀy of the newest pair."""
        return dot(self.changes[-1], self.changes[-1])

    def inverse_times(self, v: FloatArray, factor: float = 1.0) -> FloatArray:
        """Return factor · H v."""
        if not self.steps:
            return scaled(v, factor)
        if len(v) > PIECE:
            return self._by_crew(v, factor)
        q, shares, pairs = scaled(v, factor), [], list(zip(self.steps, self.changes, self.products, strict=True))
        with np.errstate(over="ignore", invalid="ignore"):
            for s, y, product in reversed(pairs):
                shares.append(dot(s, q) / product)
                q -= shares[-1] * y
            q *= self.products[-1] / self.square
            for s, y, product in pairs:
                q += (shares.pop() - dot(y, q) / product) * s
        return q

    def _by_crew(self, v: FloatArray, factor: float) -> FloatArray:
        """Do the same for long vectors, by threads that go through both loops together."""
        from isinglass.kernels.numba.arithmetic.together import OVER, STEP, new_crew
        from isinglass.kernels.numba.arithmetic.two_loops import two_loops
        from isinglass.kernels.numba.arithmetic.vectors import LEAF

        m, q, sums = len(self.steps), np.empty(len(v)), np.zeros((-(-len(v) // _SHARE), _SHARE // LEAF))
        spread = crew_for(len(v))
        threads = min(spread.threads, len(sums))
        crew, order, start = new_crew(threads), np.zeros(3, np.int64), np.array([factor])
        vectors = [np.ascontiguousarray(one, np.float64) for one in (*self.steps, *self.changes, v)]
        addresses = np.array([one.ctypes.data for one in vectors])
        pairs = np.ascontiguousarray(addresses[:-1].reshape(2, m).T)
        scale = self.products[-1] / self.square
        rest = addresses[-1], scale, pairs, np.array(self.products), np.empty(m)

        def work(leads: bool) -> None:
            try:
                two_loops(leads, crew, order, start, q, sums, *rest)
            finally:
                if leads:
                    crew[STEP] = OVER

        spread(work, [(i == 0,) for i in range(threads)])
        return q
