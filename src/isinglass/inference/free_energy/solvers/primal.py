"""Domke's (2009) algorithm 1: repeatedly minimise a quadratic bound on the energy.

The bound x log x <= x (log x0 - 1) + x² / x0 is minimised in place of the energy. Beliefs that come out negative are
set to (10 c)^-2, where c counts how often. From consistent beliefs such a step is exactly half a Newton step, so
convergence is linear.
"""

from __future__ import annotations

import numpy as np

from isinglass.inference.free_energy.newton import Newton
from isinglass.inference.free_energy.solvers.shared import kept_positive


def primal(newton: Newton, tol: float, max_iter: int) -> None:
    """Minimise quadratic bounds, one after the other.

    The change halves from step to step, so that any `tol` above rounding is reached, in about log2(1 / tol) iterations
    once no belief comes out negative. A belief may do so until (10 c)^-2 has fallen to its true size or below `tol`:
    30 iterations where all beliefs are above 1e-5, 400 at 1e-8, ten thousand for a `tol` of 1e-8 where some vanish.
    """
    step, problem = newton.step, newton.problem
    counts = [np.ones(len(b)) for b in (step.p, step.q)]
    owners = (problem.shape.state_component, problem.shape.entry_component)
    members = np.arange(problem.n_components)
    for _ in range(max_iter):
        newton.direction(members, scale=2.0)
        newton.keep_multipliers()
        change = newton.gaps(members, 2.0)
        for b, d, count, owner in zip((step.p, step.q), (step.dp, step.dq), counts, owners, strict=True):
            moving = np.flatnonzero(np.isin(owner, members))
            b[moving], low = kept_positive(b[moving] + d[moving], count, moving)
            np.maximum.at(change, owner[low], b[low])
        newton.iterations[members] += 1
        newton.converged[members] = change[members] <= tol / 5
        members = members[~newton.converged[members]]
        if not len(members):
            break
