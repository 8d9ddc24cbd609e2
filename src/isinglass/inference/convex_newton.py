"""Newton's method for convex free energies, on the system over variables only, each component by itself.

The equations of a step stand in `isinglass.kernels.numba.convex`, those of the update in `convex_steps`. Nothing proves
that the update converges; where it does not, a homotopy multiplies the costs v by a factor that grows to one, and
starts each time from the last beliefs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isinglass.inference.algorithm import Progress
from isinglass.inference.convex_problem import Problem
from isinglass.inference.convex_system import Factor, factor_for
from isinglass.validation import IntArray

RIDGES = (0.0, *(10.0**k for k in range(-14, 1)))
SOUND = 1e-6  # a larger ridge means that the matrix is not positive definite
RELATIVE = 1e-3  # the change of a small belief, in its own size, that is waited for
PATIENCE = 6  # iterations for that
GROWTH, LOOSE = 2.5, 3e-2  # of the homotopy's factor; the tolerance on its way


@dataclass(eq=False)
class Newton:
    """Beliefs of a problem on their way to the minimum, and the factorised system.

    Attributes
    ----------
    step : Step
        Beliefs, gradient, residuals and steps in flat arrays.
    residual, iterations, converged : arrays (components,)
    rescued : bool array (components,)
        Which components needed the homotopy.
    ridge : array (components,)
        What was added to the diagonal of the last system, relatively.
    """

    problem: Problem
    variables: NDArray[Any] | None = None
    factors: NDArray[Any] | None = None
    factor_of: list[Factor] = field(default_factory=list)

    def __post_init__(self) -> None:
        from isinglass.kernels.numba.convex import Room, Step

        problem, dtype = self.problem, self.problem.potentials.dtype
        blocks, layout, n = problem.shape.blocks, problem.shape.layout, problem.n_components
        p, q = problem.start(self.variables, self.factors)
        states, entries = len(p), len(q)
        self.step = Step(
            p, q, np.zeros(len(blocks.cards), np.int64), np.zeros(states, dtype), np.zeros(entries, dtype),
            np.zeros(int(blocks.first_work[-1]), dtype), np.zeros(states, dtype), np.zeros(entries, dtype),
            np.zeros(len(blocks.cards), dtype), np.zeros(int(blocks.slot_first[-1]), dtype), np.zeros(states, dtype),
            np.zeros(entries, dtype),
        )  # fmt: skip
        self.room = Room(*(np.zeros(size, dtype) for size in _room_sizes(blocks)))
        self.values = np.zeros(int(blocks.first_value[-1]), dtype)
        self.x = np.zeros(int(layout.first_unknown[-1]), dtype)
        self.multipliers = np.zeros(len(layout.ties.unknown), dtype)
        self.factor_of = [factor_for(pattern, dtype) for pattern in layout.patterns]
        self.report = np.zeros((n, 3))
        self.residual, self.ridge = np.full(n, np.inf), np.zeros(n)
        self.iterations, self.converged = np.zeros(n, np.int64), np.zeros(n, bool)
        self.rescued = np.zeros(n, bool)

    def direction(self, members: IntArray, scale: float = 1.0, factor: float = 1.0) -> None:
        """Find the step of components at their beliefs; `scale` is h, `factor` multiplies the costs."""
        from isinglass.kernels.numba.convex import prepare

        problem = self.problem
        vp, vq = (problem.vp, problem.vq) if factor == 1 else (factor * problem.vp, factor * problem.vq)
        prepare(problem.shape.blocks, members, problem.wp, problem.wq, vp, vq, scale, self.step)
        self.factorise(members)
        self.solve(members)

    def factorise(self, members: IntArray) -> None:
        """Factorise the systems of components; where rounding left them indefinite, with a ridge."""
        from isinglass.kernels.numba.convex import assemble
        from isinglass.kernels.numba.convex_ties import add_ties

        shape = self.problem.shape
        assemble(shape.blocks, members, self.step, self.values, self.room)
        if len(self.multipliers):
            add_ties(shape.blocks, shape.layout.ties, members, self.step, self.values, self.room.one)
        bounds = shape.blocks.first_value
        for c in members.tolist():
            values, diagonal = self.values[bounds[c] : bounds[c + 1]], shape.layout.patterns[c].diagonal
            kept = values[diagonal]
            for ridge in RIDGES:
                values[diagonal] = kept + ridge * np.abs(kept)
                self.ridge[c] = ridge
                if self.factor_of[c].factorise(values):
                    break
            else:
                self.ridge[c] = np.inf

    def solve(self, members: IntArray, feasible: bool = False) -> None:
        """Solve for the steps of components, with the gradient and the residuals as they are."""
        from isinglass.kernels.numba.convex import right_side, substitute
        from isinglass.kernels.numba.convex_ties import tie_right_sides

        blocks, layout = self.problem.shape.blocks, self.problem.shape.layout
        right_side(blocks, members, self.step, self.x, self.room)
        self.tie_residual = np.zeros(len(self.residual))
        if len(self.multipliers):
            before = self.multipliers * (not feasible)
            tie_right_sides(
                blocks, layout.ties, members, self.step, before, feasible, self.x, self.tie_residual, self.room.one,
            )  # fmt: skip
        for c in members.tolist():
            part = self.x[layout.first_unknown[c] : layout.first_unknown[c + 1]]
            if np.isfinite(self.ridge[c]):
                self.factor_of[c].solve(part)
            else:
                part[:] = np.nan
        substitute(blocks, members, self.x, self.step, self.room)

    def minimise(self, tol: float, max_iter: int, progress: Progress | None = None) -> None:
        """Iterate until every component has converged; those that have not, again by homotopy."""
        everything = np.arange(len(self.residual))
        self._iterate(everything, tol, max_iter, 1.0, progress)
        for c in np.flatnonzero(~self.converged).tolist():
            if np.isfinite(self.ridge[c]):
                self._homotopy(c, tol, max_iter)

    def _iterate(
        self, members: IntArray, tol: float, max_iter: int, factor: float, progress: Progress | None = None
    ) -> None:
        from isinglass.kernels.numba.convex_steps import measure_steps, move

        blocks, waited = self.problem.shape.blocks, np.zeros(len(self.residual), np.int64)
        self.converged[members] = False
        for t in range(max_iter):
            self.direction(members, 1.0, factor)
            measure_steps(blocks, members, self.step, self.report)
            size, relative = self.report[:, 0], self.report[:, 1]
            residual = np.maximum(self.report[:, 2], self.tie_residual)
            members = members[np.isfinite(size[members]) & np.isfinite(self.ridge[members])]
            self._keep_multipliers()
            self.residual[members] = np.maximum(size, residual)[members]
            self.iterations[members] += 1
            close = (size <= tol) & (residual <= tol)
            waited[members] += close[members]
            last = close & ((relative <= RELATIVE) | (waited > PATIENCE))
            move(blocks, members, self.step, last)
            self.converged[members] = last[members]
            members = members[~last[members]]
            if progress is not None:
                progress(f"iteration {t + 1}, residual {self.residual.max(initial=0.0):.1e}", (t + 1) / max_iter)
            if not len(members):
                break

    def _keep_multipliers(self) -> None:
        if len(self.multipliers):
            self.multipliers[:] = self.x[self.problem.shape.layout.ties.unknown]

    def _homotopy(self, c: int, tol: float, max_iter: int) -> None:
        """Start again with costs so small that beliefs are nearly uniform, and let them grow."""
        problem, member = self.problem, np.array([c])
        states, entries = (
            np.flatnonzero(a == c) for a in (problem.shape.state_component, problem.shape.entry_component)
        )
        p, q = problem.start()
        self.step.p[states], self.step.q[entries] = p[states], q[entries]
        self.rescued[c] = True
        cost = np.concatenate(
            [problem.vp[states].real / _size(problem.wp[states]), problem.vq[entries].real / problem.wq[entries]]
        )
        factor = min(1.0, 3.0 / max(float(np.ptp(cost)) if len(cost) else 0.0, 1e-9))
        while factor < 1:
            self._iterate(member, LOOSE, max_iter, factor)
            factor = min(1.0, GROWTH * factor)
        self._iterate(member, tol, max_iter, 1.0)


def _size(w: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum(np.abs(w), 0.1)


def _room_sizes(blocks: Any) -> tuple[int, ...]:
    """Return the sizes of the working memory of a link."""
    card = int(blocks.cards.max(initial=1))
    if not len(blocks.kind):
        return (1, 1, card, card, card, card)
    counts = np.add.reduceat(blocks.cards[blocks.slot_variable] - 1, blocks.first_slot[:-1])
    general = (counts + 1) * np.diff(blocks.first_entry)
    widest = int(counts.max()) + 1
    return (max(int(general.max()), card * card), widest * widest, max(card, widest), card, card, card)
