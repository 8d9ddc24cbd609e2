"""Cutting planes for a convex loss with a squared penalty: the one-slack method (Joachims, Finley and Yu 2009).

The function is F(x) = sum_j l2_j x_j² + R(x) with R convex, such as a sum of structured hinges. At each point x_k the
subgradient a_k of R gives a plane below it, R(x) >= a_k . x + b_k. The next point minimises the penalty plus the
largest plane (Murphy 2012, algorithm 19.4; for any convex R the bundle method of Teo, Vishwanathan, Smola and Le 2010).
The dual of that quadratic program is a small one on the simplex,

    max_alpha   sum_k alpha_k b_k - sum_j (sum_k alpha_k a_kj)² / (4 l2_j),        x_j = - sum_k alpha_k a_kj / (2 l2_j)

and its value is a lower bound on F. The difference to the least F(x_k) so far is the *duality gap*; a run has converged
when the gap, relative to F, is at most `tol`. The bound is a true one as long as the planes are below R: where the loss
maximises exactly. Planes that had no weight for a while are dropped, which the bound survives.

A few planes say little about R far away, and their minimiser may be far. So a step only goes a part of the way from the
best point to it: the part is halved after a step that was no improvement, and doubled after one that was. After some
halvings a step goes the whole way, so that the bound rises in any case.

A least F of zero is found and proved by planes only up to rounding, which is far from zero in relative terms. So the
bound begins with what the function knows (hinges are never negative), and if F is at that bound at zero, as it is for
the perceptron loss, the run ends there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.learning.optimizers.base import Counted, register
from isinglass.learning.optimizers.max_margin.gap import GapOptimizer, GapState, least, proved
from isinglass.learning.optimizers.max_margin.simplex import maximise_on_simplex
from isinglass.learning.optimizers.state import Numbers, State, Vectors
from isinglass.typing import FloatArray

LEAST = 0.05  # of the way to where the planes are lowest
IDLE = 50  # steps that a plane may have no weight


@dataclass(frozen=True, eq=False)
class CuttingPlaneState(GapState):
    """The planes so far, and the best point.

    Attributes
    ----------
    planes : tuple of arrays (n,); offsets, weights, idle : arrays (planes,)
        a_k, b_k, alpha_k, and for how many steps alpha_k has been zero.
    share : float
        How far the next step goes, from the best point to the one where the planes are lowest.
    """

    planes: Vectors
    offsets: Numbers
    weights: Numbers
    idle: Numbers
    share: float


@register
@dataclass(frozen=True, eq=False)
class CuttingPlane(GapOptimizer[CuttingPlaneState]):
    """One-slack cutting planes, for convex losses with a squared penalty; ends by its duality gap.

    Parameters
    ----------
    l2 : float or array (n,)
        The penalties that the function contains, all positive; an estimator sets them to its own.
    tol : float
        Stop when the duality gap is at most this, relative to the function.
    max_iter : int

    Examples
    --------
    >>> f = lambda x: (float(x @ x + np.abs(x - 1).sum()), 2 * x + np.sign(x - 1))
    >>> r = CuttingPlane(l2=1.0, tol=1e-6).minimise(f, [5.0, -3.0])
    >>> r.x.round(4).tolist(), r.converged
    ([0.5, 0.5], True)
    """

    name: ClassVar[str] = "cutting-plane"
    state_type: ClassVar[type[State]] = CuttingPlaneState

    def start(self, f: Counted, x: FloatArray) -> CuttingPlaneState:
        """Evaluate the start, which gives the first plane; zero is a better start than any other."""
        value, gradient = f(x)
        best, bound, zero = (x, value, gradient), least(f.f), np.zeros_like(x)
        if x.any() and bound > -math.inf:
            at_zero, slope = f(zero)
            best = (zero, at_zero, slope) if at_zero <= bound else best
        plane, offset = self._plane(x, value, gradient)
        offsets, one, planes = np.array([offset]), np.ones(1), (plane,)
        dual = max(self._dual(planes, offsets, one), bound)
        return CuttingPlaneState(
            self.name, x, 0, f.evaluations, *best, dual, proved(f.f), planes, offsets, one, np.zeros(1), 1.0
        )

    def step(self, f: Counted, state: CuttingPlaneState) -> CuttingPlaneState:
        """Minimise the penalty plus the largest plane, and evaluate there."""
        A, penalty = np.array(state.planes), self.penalty(len(state.x))
        weights = maximise_on_simplex((A / (2 * penalty)) @ A.T, state.offsets, state.weights)
        dual = max(state.dual, self._dual(state.planes, state.offsets, weights))
        lowest = -(weights @ A) / (2 * penalty)
        x = state.best + state.share * (lowest - state.best)
        value, gradient = f(x)
        shorter = state.share / 2 if state.share > LEAST else 1.0
        share = min(1.0, 2 * state.share) if value < state.value else shorter
        plane, offset = self._plane(x, value, gradient)
        best = (x, value, gradient) if value < state.value else (state.best, state.value, state.gradient)
        idle = np.where(weights > 0, 0.0, state.idle + 1)
        keep = np.flatnonzero(idle <= IDLE)
        return CuttingPlaneState(
            self.name, x, state.iteration + 1, f.evaluations, *best, dual, state.proved * proved(f.f),
            (*(state.planes[k] for k in keep), plane), np.append(state.offsets[keep], offset),
            np.append(weights[keep], 0.0), np.append(idle[keep], 0.0), share,
        )  # fmt: skip

    def _plane(self, x: FloatArray, value: float, gradient: FloatArray) -> tuple[FloatArray, float]:
        """Return a and b of the plane that touches the function without its penalty."""
        pull = self.penalty(len(x)) * x
        plane = gradient - 2 * pull
        return plane, value - float(pull @ x) - float(plane @ x)

    def _dual(self, planes: Vectors, offsets: FloatArray, weights: FloatArray) -> float:
        """Return the lower bound that weights on the simplex prove."""
        total = weights @ np.array(planes)
        return float(weights @ offsets) - float((total * total / (4 * self.penalty(len(total)))).sum())
