"""L-BFGS and conjugate gradients on the Lagrange dual (see `solvers.shared`): they need gradients A b - d only."""

from __future__ import annotations

import numpy as np

from isinglass.inference.free_energy.newton import Newton
from isinglass.inference.free_energy.problem import FLOOR
from isinglass.inference.free_energy.solvers.shared import (
    LARGEST_LOGARITHM,
    constraint_matrix,
    dual_start,
    log_beliefs,
    require_positive,
)
from isinglass.typing import FloatArray, JsonObject


def lbfgs(newton: Newton, tol: float, max_iter: int) -> None:
    """L-BFGS on the dual, all components at once."""
    options = {"maxfun": 2 * max_iter, "ftol": 0.0, "maxcor": 20}
    _maximise(newton, "lbfgs", "L-BFGS-B", tol, max_iter, options)


def cg(newton: Newton, tol: float, max_iter: int) -> None:
    """Conjugate gradients (Polak and Ribière) on the dual, all components at once."""
    _maximise(newton, "cg", "CG", tol, max_iter, {})


def _maximise(newton: Newton, name: str, method: str, tol: float, max_iter: int, options: JsonObject) -> None:
    """Maximise the dual by a method of SciPy.

    Near the maximum g is flat: its values determine lambda only to the square root of the rounding error, and a line
    search fails at residuals of about 1e-8. So it restarts from where it stopped, with values measured from there,

        g(lambda) - g(lambda + delta)  =  sum w b (e^r - 1 - r) + delta'(d - A b),    r = -A'delta / w,

    whose rounding is relative to the difference. Residuals of 1e-11 are reached, on small graphs in 50 iterations where
    all weights are about one, in 1400 with a weight of .01 for variables.
    """
    from scipy.optimize import minimize

    problem, blocks = newton.problem, newton.problem.shape.blocks
    require_positive(problem, name)
    w, constraints = np.concatenate([problem.wp, problem.wq]), constraint_matrix(problem)
    right = np.zeros(constraints.shape[0])
    right[: len(blocks.cards)] = 1
    multipliers, used = dual_start(problem), 0
    while used < max_iter:
        b = np.exp(log_beliefs(problem, constraints, multipliers))
        slack = right - constraints @ b
        if np.abs(slack).max(initial=0.0) <= tol / 100:
            break

        def fall(delta: FloatArray, b: FloatArray = b, slack: FloatArray = slack) -> tuple[float, FloatArray]:
            r = np.minimum(-(constraints.T @ delta) / w, LARGEST_LOGARITHM)
            growth = np.expm1(r)
            return float(w @ (b * (growth - r)) + delta @ slack), slack - constraints @ (b * growth)

        given = {**options, "maxiter": max_iter - used, "gtol": tol / 100}
        found = minimize(fall, np.zeros(len(right)), jac=True, method=method, options=given)
        multipliers, used = multipliers + found.x, used + int(found.nit)
        if not found.fun < 0:
            break
    b = np.maximum(np.exp(log_beliefs(problem, constraints, multipliers)), FLOOR)
    newton.step.p[:], newton.step.q[:] = b[: len(problem.wp)], b[len(problem.wp) :]
    newton.iterations[:], newton.converged[:] = used, True
