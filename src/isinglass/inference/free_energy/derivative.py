"""The derivative of the minimum of a convex free energy with respect to its costs: one linear system, refined.

With g the derivative of a loss with respect to the beliefs and H = w / b, the derivative with respect to the costs is
the m that minimises g'm + m'Hm / 2 over all m that keep beliefs consistent: H m + g = A'y, A m = 0. On links u = A'y
are sums of one number for each state of a slot, and m = (u - g) / H.

If a link almost forbids two states together, the beliefs of its variables change together, and a system over variables
loses their difference in rounding. So the system uses beliefs of links that are at least a fraction s of those of their
variables. Rounding changes its solution by about 1e-16 / s, and s itself changes it by about 40 s (both measured, with
two states together in one of 1e22 cases): 1e-7 at best. This error is then corrected. With the true 1 / H and the u
found, m violates the constraints slightly. The violations, as residuals of the same system, give a correction. One
correction reduces an error of 1e-7 to 1e-14.

Beliefs at the floor of the minimisation are computed from multipliers, separately for variables and links, and are
determined by rounding. A link may then have a belief of 1e-14 in a state in which its variable has 1e-250. A system
with both is useless: its u reaches 1e170, and corrections grow. So no belief of a link may be more than twice that of
any of its variables. If a correction still grows, it is not applied, and is reported as the error.

Ties (see `inference.support`) are not refined.
"""

from __future__ import annotations

import numpy as np

from isinglass.inference.free_energy.newton import Newton
from isinglass.inference.free_energy.problem import LOWEST
from isinglass.segments import Largest, sum_at
from isinglass.typing import Array, FloatArray, IntArray, Mask

LEAST_SHARE = 1e-9  # of a link's belief in its variables', in the system
SMALL, EXCESS = 1e-6, 2.0  # belief of a variable, and what belief of a link is too large for it
PASSES = 4
DIVERGES = 10.0  # of a correction over the one before
BEYOND = 2.0  # of a derivative over its bound: more than rounding
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
        problem, step, shape = newton.problem, newton.step, newton.problem.shape
        self.of_states = Largest(shape.state_component, problem.n_components)
        self.of_entries = Largest(shape.entry_component, problem.n_components)
        if loose:
            return
        blocks, everything = shape.blocks, np.arange(problem.n_components)
        low, larger = np.where(p.real < LOWEST, LOWEST, p), np.empty_like(q)
        if low.real.min(initial=1.0) < SMALL:
            soften(blocks, everything, low, np.zeros_like(q), 1.0, larger)
            self.q = q = np.where(q.real > EXCESS * larger.real, larger, q)
        soften(blocks, everything, low, q, LEAST_SHARE, larger)
        if not (np.array_equal(low, step.p) and np.array_equal(larger, step.q)):  # else it is that of the last look
            step.p[:], step.q[:] = low, larger
            prepare(blocks, everything, problem.wp, problem.wq, problem.vp, problem.vq, 1.0, step)
            newton.factorise(everything)

    def along(self, by_p: Array, by_q: Array) -> tuple[Array, Array]:
        """Return m for derivatives g of a loss; `solve_residual` is then its relative error."""
        newton, step, problem = self.newton, self.newton.step, self.newton.problem
        shape, inverse, members = problem.shape, self.q / problem.wq, np.arange(problem.n_components)
        tied = np.diff(shape.layout.ties.first_tie) > 0
        m, u = np.zeros_like(self.p), np.zeros_like(self.q)
        self.solve_residual = np.zeros(problem.n_components)
        last = np.full((1 + (m.dtype.kind == "c"), problem.n_components), np.inf)
        for _ in range(self.passes):
            self._set_residuals(members, m, inverse * (u - by_q))
            step.by_p[:], step.by_q[:] = by_p * (self.p / step.p) + step.hessian * m, u
            newton.solve(members, feasible=True)
            change = self.of_states.parts(step.dp)
            grows: Mask = np.any(change > DIVERGES * last, axis=0)
            moving = np.bincount(members[~grows[members]], minlength=problem.n_components) > 0
            whole = moving.all()
            m += step.dp if whole else np.where(moving[shape.state_component], step.dp, 0)
            u += step.dq / step.inverse if whole else np.where(moving[shape.entry_component], step.dq / step.inverse, 0)
            last[:, members] = change[:, members]
            size = self.of_states.parts(m)
            share = (last / np.where(size > 0, size, 1)).max(axis=0)
            self.solve_residual[members] = (newton.solve_residual * share)[members]
            members = members[~(share <= REFINED)[members] & ~tied[members] & moving[members]]
            if not len(members):
                break
        of_links, rest = inverse * (u - by_q), ~(share <= REFINED) | tied
        if rest.any():
            self._judge(np.flatnonzero(rest & ~tied & (self.passes > 1)), last, by_p, by_q, size)
            self._compare_with_bound(by_p, by_q, m, of_links)
        return m, of_links

    def _judge(self, members: IntArray, change: FloatArray, by_p: Array, by_q: Array, size: FloatArray) -> None:
        """Count the last correction of components that are not refined as error, in units of m or, if larger, of g."""
        if not len(members):
            return
        unit = np.maximum(size, np.maximum(self.of_states.parts(by_p), self.of_entries.parts(by_q)))
        error = (change / np.where(unit > 0, unit, 1)).max(axis=0)
        self.solve_residual[members] = np.maximum(self.solve_residual, error)[members]

    def _compare_with_bound(self, by_p: Array, by_q: Array, m: Array, of_links: Array) -> None:
        """Give up components in which m exceeds |g| / min w.

        No larger m is possible: m'Hm is at most g'g / H, and H = w / b is at least the least weight.
        """
        problem, shape, n = self.newton.problem, self.newton.problem.shape, self.newton.problem.n_components
        least = min(problem.wp.min(initial=np.inf), problem.wq.min(initial=np.inf))
        if least <= 0:
            return
        both = ((by_p, shape.state_component), (by_q, shape.entry_component))
        squares = sum((g.real**2).sum() if n == 1 else sum_at(owner, g.real**2, n) for g, owner in both)
        most = np.maximum(self.of_states(m.real), self.of_entries(of_links.real))
        self.solve_residual[~(most <= BEYOND * np.sqrt(squares) / least)] = np.inf

    def _set_residuals(self, members: IntArray, m: Array, of_links: Array) -> None:
        """Write the violations of the constraints between variables and links as residuals."""
        from isinglass.kernels.numba.free_energy.newton import residuals

        residuals(self.newton.problem.shape.blocks, members, self.newton.step._replace(p=m, q=of_links), 0.0)
