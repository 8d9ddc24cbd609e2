"""Newton's method on the Lagrange dual (see `solvers.shared`).

Along the step rho = d / b, log b moves by t rho, and g grows by sum w b (t rho (1 + rho) - (e^{t rho} - 1)).
"""

from __future__ import annotations

import numpy as np

from isinglass.inference.free_energy.newton import Newton
from isinglass.inference.free_energy.problem import LOWEST, Problem
from isinglass.inference.free_energy.solvers.shared import constraint_matrix, dual_start, log_beliefs, require_positive
from isinglass.segments import sum_at
from isinglass.typing import Array, FloatArray, IntArray

Pair = tuple[Array, Array]  # of states of variables, and of entries of links

ARMIJO = 1e-4
SHORTEST = 1e-8
LARGEST_EXPONENT = 30.0
FASTEST = 1e50  # step of a logarithm, whose square times the lowest belief is nothing


def dual(newton: Newton, tol: float, max_iter: int) -> None:
    """Newton's method on the dual, with a line search for each component; quadratic, down to rounding (1e-14)."""
    step, problem = newton.step, newton.problem
    require_positive(problem, "dual")
    b = np.maximum(np.exp(log_beliefs(problem, constraint_matrix(problem), dual_start(problem))), LOWEST)
    step.p[:], step.q[:] = b[: len(step.p)], b[len(step.p) :]
    owners = (problem.shape.state_component, problem.shape.entry_component)
    members = np.arange(problem.n_components)
    for _ in range(max_iter):
        newton.direction(members)
        newton.keep_multipliers()
        change = newton.gaps(members)
        members = members[np.isfinite(change[members])]  # else a system was not solved
        rho = _log_steps(step.dp, step.p), _log_steps(step.dq, step.q)
        length = _line_search(problem, (step.p, step.q), rho, owners)
        for b, r, owner in zip((step.p, step.q), rho, owners, strict=True):
            moving = np.isin(owner, members)
            b[moving] = np.maximum(b * np.exp(np.minimum(length[owner] * r, LARGEST_EXPONENT)), LOWEST)[moving]
        newton.iterations[members] += 1
        newton.converged[members] = (change[members] <= tol) & (length[members] == 1)
        members = members[~newton.converged[members]]
        if not len(members):
            break


def _log_steps(d: Array, b: Array) -> Array:
    """Return steps of logarithms, none where there is no step."""
    return np.asarray(np.clip(np.where(np.isfinite(d), d, 0) / b, -FASTEST, FASTEST))


def _line_search(problem: Problem, beliefs: Pair, rho: Pair, owners: tuple[IntArray, IntArray]) -> FloatArray:
    """Halve the steps of components until the dual grows enough."""
    n, weights = problem.n_components, (problem.wp, problem.wq)
    steepest = np.full(n, 1e-300)
    for r, owner in zip(rho, owners, strict=True):
        np.maximum.at(steepest, owner, r)
    length = np.minimum(1.0, LARGEST_EXPONENT / steepest)
    curve = sum(sum_at(o, w * b * r * r, n) for w, b, r, o in zip(weights, beliefs, rho, owners, strict=True))
    while True:
        grown = np.zeros(n)
        for w, b, r, o in zip(weights, beliefs, rho, owners, strict=True):
            grown = grown + sum_at(o, w * b * (length[o] * r * (1 + r) - np.expm1(length[o] * r)), n)
        short = (grown < ARMIJO * length * curve) & (curve > 1e-20) & (length > SHORTEST)
        if not short.any():
            return length
        length[short] /= 2
