"""The derivative of the minimum of a convex free energy by its costs: one linear system, refined.

With g the derivative of a loss by the beliefs and H = w / b, the derivative by the costs is the m that minimises g'm +
m'Hm / 2 over all m that keep beliefs consistent: H m + g = A'y, A m = 0. On links u = A'y are sums of one number for
each state of a slot, and m = (u - g) / H.

Where a link almost forbids two states together, the beliefs of its variables move as one. A system over variables then
loses their difference in rounding. So the system uses beliefs of links that are at least a fraction s of those of their
variables. Rounding changes its solution by about 1e-16 / s, and s itself changes it by about 40 s (both measured, with
two states together in one of 1e22 cases): 1e-7 at best. The error shows in numbers of moderate size: with the true
1 / H and the u that was found, m violates the constraints a little. The violations, as residuals of the same system,
give a correction. One correction takes an error of 1e-7 to 1e-14.

Ties (see `inference.support`) are not refined.
"""

from __future__ import annotations

import numpy as np

from isinglass.inference.free_energy.newton import Newton
from isinglass.inference.free_energy.problem import LOWEST
from isinglass.typing import Array, FloatArray, IntArray

LEAST_SHARE = 1e-9  # of a link's belief in its variables', in the system
PASSES = 4
REFINED = 1e-10  # of the last correction, relatively: the next would be as small again


class Derivative:
    """The system of derivatives at beliefs p and q of a problem.

    Parameters
    ----------
    newton : Newton
        Its step and factors are used and overwritten.
    p, q : arrays
        The beliefs at the minimum.
    loose : bool
        Use the system that was factorised last, and do not refine.
    """

    def __init__(self, newton: Newton, p: Array, q: Array, loose: bool = False) -> None:
        from isinglass.kernels.numba.free_energy.newton import prepare
        from isinglass.kernels.numba.free_energy.steps import soften

        self.newton, self.p, self.q, self.passes = newton, p, q, 1 if loose else PASSES
        if loose:
            return
        problem, step = newton.problem, newton.step
        blocks, everything = problem.shape.blocks, np.arange(problem.n_components)
        low, larger = np.where(p.real < LOWEST, LOWEST, p), np.empty_like(q)
        soften(blocks, everything, low, q, LEAST_SHARE, larger)
        if not (np.array_equal(low, step.p) and np.array_equal(larger, step.q)):  # else it is that of the last look
            step.p[:], step.q[:] = low, larger
            prepare(blocks, everything, problem.wp, problem.wq, problem.vp, problem.vq, 1.0, step)
            newton.factorise(everything)

    def along(self, by_p: Array, by_q: Array) -> tuple[Array, Array]:
        """Return m for derivatives g of a loss; `solve_residual` is then its relative error."""
        newton, step, problem = self.newton, self.newton.step, self.newton.problem
        inverse, members = self.q / problem.wq, np.arange(problem.n_components)
        tied = np.diff(problem.shape.layout.ties.first_tie) > 0
        m, u = np.zeros_like(self.p), np.zeros_like(self.q)
        self.solve_residual = np.zeros(problem.n_components)
        for _ in range(self.passes):
            self._set_residuals(members, m, inverse * (u - by_q))
            step.by_p[:], step.by_q[:] = by_p * (self.p / step.p) + step.hessian * m, u
            newton.solve(members, feasible=True)
            moving = np.bincount(members, minlength=problem.n_components)
            m += moving[problem.shape.state_component] * step.dp
            u += moving[problem.shape.entry_component] * (step.dq / step.inverse)
            share = self._shares(m)
            self.solve_residual[members] = (newton.solve_residual * share)[members]
            members = members[~(share <= REFINED)[members] & ~tied[members]]
            if not len(members):
                break
        return m, inverse * (u - by_q)

    def _set_residuals(self, members: IntArray, m: Array, of_links: Array) -> None:
        """Write the violations of the constraints between variables and links as residuals."""
        from isinglass.kernels.numba.free_energy.newton import residuals

        residuals(self.newton.problem.shape.blocks, members, self.newton.step._replace(p=m, q=of_links), 0.0)

    def _shares(self, m: Array) -> FloatArray:
        """Return the relative size of the last correction of each component: the larger of real and imaginary part."""
        owner, n = self.newton.problem.shape.state_component, self.newton.problem.n_components
        shares, dp = np.zeros(n), self.newton.step.dp
        for change, whole in ((dp.real, m.real), (dp.imag, m.imag))[: 1 + (m.dtype.kind == "c")]:
            most, size = np.zeros(n), np.zeros(n)
            np.maximum.at(most, owner, np.abs(change))
            np.maximum.at(size, owner, np.abs(whole))
            shares = np.maximum(shares, most / np.where(size > 0, size, 1))
        return shares
