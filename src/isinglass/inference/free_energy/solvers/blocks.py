"""The block form of the primal algorithm: one region of beliefs at a time, all others fixed (Domke 2009, algorithm 2).

A block k has the beliefs of a connected set of variables and those of every link with one of them. Its step minimises

    g'd + d'Hd / 2,    H = 2 w / b,    subject to    A_k (b_k + d) = d_k - A_-k b_-k,

that is, links at the boundary keep their marginals on variables outside. As in algorithm 1 of the same author
(`solvers.primal`), from consistent beliefs that is half a Newton step, and beliefs that come out negative are set to
(10 c)^-2. One iteration visits every block once.

The fixed points are the same as without blocks: every variable is in a block with all of its links, and on a link the
multipliers of two blocks can differ only by a constant, so beliefs that no block changes are the minimum. The speed
depends on the overlap. The thesis uses blocks of 55 x 55 pixels with an overlap of 5. Here blocks are runs of 3025
variables in an order of small bandwidth, extended by all variables within 5 links. This saves memory: no system is
larger than that of a block, until the KKT residual is computed at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from isinglass.inference.free_energy.layout import Structure, lay_out
from isinglass.inference.free_energy.newton import Newton
from isinglass.inference.free_energy.problem import Problem, Shape
from isinglass.inference.free_energy.solvers.shared import kept_positive, require_positive
from isinglass.segments import ranges
from isinglass.typing import Array, IntArray, Mask

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SIZE, OVERLAP = 55 * 55, 5
ONE = np.zeros(1, np.int64)  # the only component of a block


def blocks(newton: Newton, tol: float, max_iter: int, size: int = SIZE, overlap: int = OVERLAP) -> None:
    """Minimise quadratic bounds block by block.

    With one block it is "primal" itself, and the remarks on small beliefs there hold here too. With many it is as fast
    where they overlap by two links or more (34 iterations for 20 x 20 variables in blocks of 100, 47 without overlap).
    """
    require_positive(newton.problem, "blocks")
    step, n = newton.step, newton.problem.n_components
    counts = (np.ones(len(step.p)), np.ones(len(step.q)))
    parts = list(_parts(newton.problem, size, overlap))
    for _ in range(max_iter):
        change = np.zeros(n)
        for part in parts:
            if not newton.converged[part.component]:
                change[part.component] = np.maximum(change[part.component], part.move(newton, counts))
        newton.iterations[~newton.converged] += 1
        newton.converged |= change <= tol / 20
        if newton.converged.all():
            break


class _Part(Newton):
    """A block as a problem of its own: beliefs come from a larger one, and variables at the boundary are fixed."""

    @classmethod
    def of(cls, problem: Problem, component: int, inside: IntArray) -> _Part:
        """Cut out variables of a component, all their links, and the other variables of these."""
        whole = problem.shape.blocks
        begin, end = whole.first_link[component], whole.first_link[component + 1]
        ends = whole.slot_variable[whole.first_slot[begin] : whole.first_slot[end]]
        owner = np.repeat(np.arange(begin, end), np.diff(whole.first_slot[begin : end + 1]))
        links = np.unique(owner[np.isin(ends, inside)])
        slots = ranges(whole.first_slot[links], np.diff(whole.first_slot)[links])
        variables = np.union1d(inside, whole.slot_variable[slots])
        part = cls(_cut(problem, variables, links, np.searchsorted(variables, whole.slot_variable[slots])))
        part.hold(component, ~np.isin(variables, inside))
        return part

    def hold(self, component: int, held: Mask) -> None:
        """Set the component that it is part of, and the variables that do not move."""
        blocks, pattern = self.problem.shape.blocks, self.problem.shape.layout.patterns[0]
        self.component, self.held, fixed = component, held, np.repeat(held, blocks.cards - 1)
        self.fixed = np.flatnonzero(fixed)
        one, two = pattern.unknowns()
        self.off_diagonal, self.diagonal = (
            np.flatnonzero((fixed[one] | fixed[two]) & (one >= 0)),
            pattern.diagonal[fixed],
        )

    def assemble(self, members: IntArray) -> None:
        """Put rows and columns of the unit matrix in the place of those of held variables."""
        super().assemble(members)
        self.values[self.off_diagonal] = 0
        self.values[self.diagonal] = 1

    def right_sides(self, members: IntArray, feasible: bool) -> None:
        """Ask for steps of zero of held variables."""
        self.step.t[self.held] = 0
        super().right_sides(members, feasible)
        self.x[self.fixed] = 0

    def move(self, whole: Newton, counts: tuple[Array, Array]) -> float:
        """Take one step; return how far the beliefs were from what its multipliers imply, or were set."""
        step, shape = self.step, self.problem.shape
        places = ((whole.step.p, shape.state_at), (whole.step.q, shape.entry_at))
        step.p[:], step.q[:] = (b[at] for b, at in places)
        self.direction(ONE, scale=2.0)
        change = float(self.gaps(ONE, 2.0)[0])
        for (b, at), new, count in zip(places, (step.p + step.dp, step.q + step.dq), counts, strict=True):
            b[at], low = kept_positive(new, count, at)
            change = np.maximum(change, b[low].max(initial=0.0))
        return change


def _cut(problem: Problem, variables: IntArray, links: IntArray, slot_variable: IntArray) -> Problem:
    """Return the part of a problem on variables and links; its places are those in the arrays of the whole."""
    from isinglass.kernels.numba.free_energy.newton import GENERAL

    whole = problem.shape.blocks
    arity, sizes = np.diff(whole.first_slot)[links], np.diff(whole.first_entry)[links]
    states = ranges(whole.first_state[variables], whole.cards[variables])
    entries = ranges(whole.first_entry[links], sizes)
    general = whole.kind[links] == GENERAL
    listed = zip(whole.first_digit[links][general], sizes[general], arity[general], strict=True)
    digits = [whole.digits[first : first + size * r].reshape(size, r) for first, size, r in listed]
    zeros = np.zeros(max(len(variables), len(links)), np.int64)
    structure = Structure(
        whole.cards[variables], zeros[: len(variables)], slot_variable, arity, sizes, general, digits,
        zeros[: len(links)], [], 1,
    )  # fmt: skip
    blocks, layout = lay_out(structure, True, "factorised")
    of_states, of_entries = np.zeros(len(states), np.int64), np.zeros(len(entries), np.int64)
    return Problem(
        problem.potentials, Shape(states, entries, of_states, of_entries, blocks, layout), problem.vp[states],
        problem.vq[entries], problem.wp[states], problem.wq[entries], np.zeros(1),
    )  # fmt: skip


def _parts(problem: Problem, size: int, overlap: int) -> Iterator[_Part]:
    """Cover the variables of each component with runs of an order of small bandwidth, widened by their neighbours."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    blocks = problem.shape.blocks
    n, links = len(blocks.cards), len(blocks.kind)
    if not n:
        return
    owner = np.repeat(np.arange(links), np.diff(blocks.first_slot))
    incidence = coo_array((np.ones(len(owner), np.int32), (owner, blocks.slot_variable)), (links, n)).tocsr()
    near = (incidence.T @ incidence).tocsr()
    component = np.repeat(np.arange(problem.n_components), np.diff(blocks.first_variable))
    order = np.asarray(reverse_cuthill_mckee(near, symmetric_mode=True), np.int64)
    order = order[np.argsort(component[order], kind="stable")]
    for c in range(problem.n_components):
        variables = order[blocks.first_variable[c] : blocks.first_variable[c + 1]]
        runs = np.array_split(variables, -(-len(variables) // size)) if len(variables) else []
        for run in runs:
            yield _Part.of(problem, c, _reached(near, run, overlap) if len(runs) > 1 else np.sort(run))


def _reached(near: csr_array, run: IntArray, links: int) -> IntArray:
    """Return the variables that at most so many links reach, sorted."""
    inside = np.zeros(near.shape[0], bool)
    inside[run] = True
    for _ in range(links):
        inside |= (near @ inside) > 0
    return np.flatnonzero(inside)
