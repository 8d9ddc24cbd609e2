"""Newton's method for convex free energies, on the system over variables only, each component by itself.

The equations of a step are in `kernels.numba.free_energy.newton`, those of the update in `steps`. Nothing proves that
the update converges; where it does not, a homotopy multiplies the costs v by a factor that grows to one, and starts
each time from the last beliefs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from isinglass.inference.algorithm import Progress
from isinglass.inference.free_energy.linear.system import STEP, Factor, factor_for
from isinglass.inference.free_energy.problem import FLOOR, INSIDE, LOWEST, Problem, inside
from isinglass.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from isinglass.kernels.numba.free_energy.newton import Blocks

RIDGES = (0.0, *(10.0**k for k in range(-14, 1)))
SOUND = 1e-6  # a larger ridge means that the matrix is not positive definite
PATIENCE = 6  # iterations that small beliefs are waited for
GROWTH, LEAST_GROWTH, LEAST_FACTOR = 2.5, 1.001, 1e-9  # of the homotopy's factor
LOOSE, STAGE = 1e-3, 40  # tolerance and iterations of an intermediate stage
ROUNDING = 1e-12
CAP, POLISHING_CAP = 5.0, 40.0  # on the fall of a logarithm in one step
POLISHING = 40  # iterations
FAILURES = 10  # systems not solved well enough, after which a component is given up
DOUBT = 1e-7  # of what a belief may lack, where rounding has its share in it
CHECK = 100  # iterations from the interior at most
AGREEMENT = 20  # how far from them these may lead, in units of the tolerance


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
        The relative addition to the diagonal of the last system.
    solve_residual : array (components,)
        The relative residual of the last linear solve: zero for factorised systems.
    """

    problem: Problem
    variables: Array | None = None
    factors: Array | None = None
    factor_of: list[Factor] = field(default_factory=list)

    def __post_init__(self) -> None:
        from isinglass.kernels.numba.free_energy.newton import Room, Step

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
        sure = bool((problem.wp > 0).all())
        self.factor_of = [factor_for(pattern, dtype, sure) for pattern in layout.patterns]
        self.report = np.zeros((n, 4))
        self.residual, self.ridge, self.solve_residual = np.full(n, np.inf), np.zeros(n), np.zeros(n)
        self.iterations, self.converged = np.zeros(n, np.int64), np.zeros(n, bool)
        self.rescued = np.zeros(n, bool)
        self.most_ridge = 1.0 if sure else SOUND

    def direction(self, members: IntArray, scale: float = 1.0, factor: float = 1.0) -> None:
        """Find the step of components at their beliefs; `scale` is h, `factor` multiplies the costs."""
        from isinglass.kernels.numba.free_energy.newton import prepare

        problem = self.problem
        vp, vq = (problem.vp, problem.vq) if factor == 1 else (factor * problem.vp, factor * problem.vq)
        prepare(problem.shape.blocks, members, problem.wp, problem.wq, vp, vq, scale, self.step)
        self.factorise(members)
        self.solve(members)

    def assemble(self, members: IntArray) -> None:
        """Add up the matrices of components."""
        from isinglass.kernels.numba.free_energy.newton import assemble
        from isinglass.kernels.numba.free_energy.ties import add_ties

        shape = self.problem.shape
        assemble(shape.blocks, members, self.step, self.values, self.room)
        if len(self.multipliers):
            add_ties(shape.blocks, shape.layout.ties, members, self.step, self.values, self.room.one)

    def factorise(self, members: IntArray) -> None:
        """Factorise the systems of components; where rounding left them indefinite, with a ridge."""
        self.assemble(members)
        shape = self.problem.shape
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

    def right_sides(self, members: IntArray, feasible: bool) -> None:
        """Write the right-hand sides of components."""
        from isinglass.kernels.numba.free_energy.newton import right_side
        from isinglass.kernels.numba.free_energy.ties import tie_right_sides

        blocks, layout = self.problem.shape.blocks, self.problem.shape.layout
        right_side(blocks, members, self.step, self.x, self.room)
        self.tie_residual = np.zeros(len(self.residual))
        if len(self.multipliers):
            before = self.multipliers * (not feasible)
            tie_right_sides(
                blocks, layout.ties, members, self.step, before, feasible, self.x, self.tie_residual, self.room.one,
            )  # fmt: skip

    def solve(self, members: IntArray, feasible: bool = False) -> None:
        """Solve for the steps of components, with the gradient and the residuals as they are."""
        from isinglass.kernels.numba.free_energy.newton import substitute

        blocks, layout = self.problem.shape.blocks, self.problem.shape.layout
        self.right_sides(members, feasible)
        for c in members.tolist():
            part = self.x[layout.first_unknown[c] : layout.first_unknown[c + 1]]
            sound = np.isfinite(self.ridge[c])
            self.solve_residual[c] = self.factor_of[c].solve(part) if sound else 0.0
            if not (sound and np.isfinite(self.solve_residual[c])):
                part[:] = np.nan
        substitute(blocks, members, self.x, self.step, self.room)

    def minimise(self, tol: float, max_iter: int, rtol: float = np.inf, progress: Progress | None = None) -> None:
        """Iterate until every component has converged; those that have not, again by homotopy.

        Without a tolerance all iterations are taken, and nothing more.
        """
        self.iterate(np.arange(len(self.residual)), tol, max_iter, rtol, progress=progress)
        for c in np.flatnonzero(~self.converged & (self.solve_residual <= STEP) & (tol > 0)).tolist():
            self.homotopy(c, tol, max_iter, rtol)
        if rtol < np.inf:
            self._polish(max_iter, rtol)

    def iterate(
        self,
        members: IntArray,
        tol: float,
        max_iter: int,
        rtol: float = np.inf,
        factor: float = 1.0,
        polishing: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """Take steps until components have converged, have no step to take, or have used up their iterations."""
        from isinglass.kernels.numba.free_energy.steps import measure_steps, move, soften

        blocks, (waited, failed) = self.problem.shape.blocks, np.zeros((2, len(self.residual)), np.int64)
        floor = LOWEST if polishing else FLOOR
        self.converged[members] = False
        for t in range(max_iter):
            self.direction(members, 1.0, factor)
            measure_steps(blocks, members, self.step, self.report, floor, ROUNDING)
            size, residual = self.report[:, 0], np.maximum(self.report[:, 3], self.tie_residual)
            relative = self.report[:, 1] if polishing else np.maximum(self.report[:, 1], self.report[:, 2])
            members = members[np.isfinite(size[members]) & (self.ridge[members] <= self.most_ridge)]
            self.keep_multipliers()
            self.residual[members] = np.maximum(size, residual)[members]
            self.iterations[members] += 1
            close = (size <= tol) & (residual <= tol) & (self.solve_residual <= STEP)
            waited[members] += close[members]
            failed[members] += self.solve_residual[members] > STEP
            last = close & ((relative <= rtol) | ((waited > PATIENCE) & (not polishing)))
            move(blocks, members, self.step, last, floor, POLISHING_CAP if polishing else CAP)
            if polishing:
                soften(blocks, members, self.step.p, self.step.q, FLOOR, self.step.q)
            self.converged[members] = last[members]
            members = members[~last[members] & (failed[members] < FAILURES)]
            if progress is not None:
                progress(f"iteration {t + 1}, residual {self.residual.max(initial=0.0):.1e}", (t + 1) / max_iter)
            if not len(members):
                break

    def keep_multipliers(self) -> None:
        """Store the multipliers of ties; zero, to start again from, where a system was not solved."""
        if len(self.multipliers):
            found = self.x[self.problem.shape.layout.ties.unknown]
            self.multipliers[:] = np.where(np.isfinite(found), found, 0)

    def homotopy(self, c: int, tol: float, max_iter: int, rtol: float = np.inf) -> None:
        """Start with costs so small that beliefs are nearly uniform; let them grow by factors as large as succeed."""
        problem, member = self.problem, np.array([c])
        p, q = problem.start()
        beliefs = _Beliefs(self, c)
        beliefs.put(p[beliefs.states], q[beliefs.entries])
        kept, done, growth = beliefs.take(), 0.0, GROWTH
        wanted = 3.0 / max(beliefs.span(), 3.0)
        self.rescued[c] = True
        while growth > LEAST_GROWTH:
            last = wanted >= 1
            self.iterate(member, tol if last else LOOSE, max_iter if last else STAGE, rtol, min(wanted, 1.0))
            if self.converged[c]:
                if last:
                    return
                kept, done, growth = beliefs.take(), wanted, min(growth**1.5, GROWTH)
            else:
                beliefs.put(*kept)
                growth = growth**0.5
            wanted = min(1.0, done * growth) if done else wanted / 4
            if wanted < LEAST_FACTOR:
                return

    def _polish(self, max_iter: int, rtol: float) -> None:
        """Let beliefs at the floor fall to their true size; where that fails, restore them."""
        low = np.unique(self.problem.shape.state_component[self.step.p.real <= 2 * FLOOR])
        for c in low[self.converged[low]].tolist():
            beliefs, residual, member = _Beliefs(self, c), self.residual[c], np.array([c])
            kept, tol = beliefs.take(), max(10 * residual, ROUNDING)
            self.iterate(member, tol, min(max_iter, POLISHING), rtol, polishing=True)
            if not (self.converged[c] and self.violation(member)[c] <= tol):
                beliefs.put(*kept)
                self.residual[c], self.converged[c] = residual, True

    def violation(self, members: IntArray) -> FloatArray:
        """Return the KKT residual of components at their beliefs; the system is left factorised there."""
        from isinglass.kernels.numba.free_energy.steps import measure_steps

        self.direction(members)
        measure_steps(self.problem.shape.blocks, members, self.step, self.report, FLOOR, ROUNDING)
        found = np.maximum(self.report[:, [0, 3]].max(axis=1), self.tie_residual)
        return np.asarray(np.where(self.solve_residual <= STEP, found, np.inf))

    def gaps(self, members: IntArray, scale: float = 1.0, least: float = ROUNDING) -> FloatArray:
        """Return how far the beliefs of components are from what the last step's multipliers imply; `scale` is h.

        Smaller beliefs count as `least`.
        """
        from isinglass.kernels.numba.free_energy.steps import measure_gaps

        found = np.zeros(len(self.residual))
        measure_gaps(self.problem.shape.blocks, members, self.step, scale, least, found)
        return found

    def doubtful(self, tol: float) -> IntArray:
        """Return the converged components in which, by the last step's multipliers, a very small belief is to grow.

        That happens at a wrong corner, or by rounding.
        """
        everything = np.arange(len(self.residual))
        lacking = self.gaps(everything, least=FLOOR**2)
        return np.flatnonzero(self.converged & ~(lacking <= max(tol, DOUBT)))

    def confirm(self, members: IntArray, tol: float) -> None:
        """Mark components as not converged if steps from their beliefs, moved into the interior, lead elsewhere."""
        step, shape = self.step, self.problem.shape
        kept = [a.copy() for a in (step.p, step.q, self.iterations, self.residual)]
        for b, owner in ((step.p, shape.state_component), (step.q, shape.entry_component)):
            mine = np.isin(owner, members)
            b[mine] = inside(b[mine])
        self.iterate(members, tol, CHECK)
        distance = np.zeros(len(self.residual))
        for b, before, owner in ((step.p, kept[0], shape.state_component), (step.q, kept[1], shape.entry_component)):
            np.maximum.at(distance, owner, np.abs(b.real - before.real))
        self.converged[members] &= distance[members] <= AGREEMENT * max(tol, INSIDE)
        for a, before in zip((step.p, step.q, self.iterations, self.residual), kept, strict=True):
            a[:] = before


class _Beliefs:
    """The beliefs of one component."""

    def __init__(self, newton: Newton, c: int) -> None:
        shape = newton.problem.shape
        self.newton = newton
        self.states, self.entries = (np.flatnonzero(a == c) for a in (shape.state_component, shape.entry_component))

    def take(self) -> tuple[Array, Array]:
        """Return copies."""
        return self.newton.step.p[self.states], self.newton.step.q[self.entries]

    def put(self, p: Array, q: Array) -> None:
        """Set them."""
        self.newton.step.p[self.states], self.newton.step.q[self.entries] = p, q

    def span(self) -> float:
        """Return how far costs reach, in units of weights."""
        problem = self.newton.problem
        of_states = problem.vp.real[self.states] / np.maximum(np.abs(problem.wp[self.states]), 0.1)
        cost = np.concatenate([of_states, problem.vq.real[self.entries] / problem.wq[self.entries]])
        return float(np.ptp(cost)) if len(cost) else 0.0


def _room_sizes(blocks: Blocks) -> tuple[int, ...]:
    """Return the sizes of the working memory of a link."""
    card = int(blocks.cards.max(initial=1))
    if not len(blocks.kind):
        return (1, 1, card, card, card, card)
    counts = np.add.reduceat(blocks.cards[blocks.slot_variable] - 1, blocks.first_slot[:-1])
    general = (counts + 1) * np.diff(blocks.first_entry)
    widest = int(counts.max()) + 1
    return (max(int(general.max()), card * card), widest * widest, max(card, widest), card, card, card)
