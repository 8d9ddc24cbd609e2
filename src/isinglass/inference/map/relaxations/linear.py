"""Linear and integer programming by HiGHS: the local relaxation, and a most probable assignment with a proof.

The program and the bound are in `program`. HiGHS is called through ``scipy.optimize`` (Huangfu and Hall 2018). The
objective of the integer program is scaled so that the gap that HiGHS calls zero, 1e-6, is below a score's rounding.
Where entries that matter (`Search.narrowed`) are large, its tolerances are more than that, and its bound is no proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from isinglass.errors import ImpossibleEvidenceError
from isinglass.inference.assignment import TERMS, is_wide
from isinglass.inference.evidence import impossible
from isinglass.inference.map.icm import climb
from isinglass.inference.map.local_model import LocalModel
from isinglass.inference.map.reduction import Reduction
from isinglass.inference.map.relaxations.program import Program, program_of
from isinglass.inference.map.relaxations.reparameterisation import Reparameterisation
from isinglass.inference.map.search import ROUNDING, Search, scale_of
from isinglass.inference.map.solver import Solver, SolverFacts, register
from isinglass.runtime.interrupts import interruptible

GAP = 1e-6  # the difference of objective and bound that HiGHS calls zero
INFEASIBLE, SOLVED = 2, 0  # what SciPy calls the states of a program


@register
@dataclass(frozen=True)
class LinearProgram(Solver):
    """The local relaxation by linear programming; optimal if its solution is integral.

    Parameters
    ----------
    seconds : float, optional
        Time limit.

    Examples
    --------
    >>> import isinglass as ig
    >>> rng = np.random.default_rng(1)
    >>> p = ig.Potentials.from_groups(ig.grid_graph(4, 4, 3), [rng.normal(size=(16, 3)), 0.3 * np.eye(3)[None]])
    >>> m = ig.map_assignment(p, "lp")
    >>> m.optimal, bool(abs(m.score - ig.map_assignment(p, "exact").score) < 1e-9)
    (True, True)
    """

    seconds: float | None = None

    name: ClassVar[str] = "lp"
    facts: ClassVar[SolverFacts] = SolverFacts(
        "the local relaxation by linear programming (HiGHS)", accepts="any", proves="sometimes", bound=True
    )

    def solve(self, search: Search, reduction: Reduction) -> None:
        """Solve the program: multipliers give the bound, the solution the assignment."""
        local = _first_answer(search)
        if local is None:
            return
        program, graph = program_of(search.potentials), search.potentials.graph
        found = interruptible(_minimise, program, _limits(search))
        if found.status == INFEASIBLE:
            raise ImpossibleEvidenceError(impossible(reduction.whole))
        if found.eqlin is not None and found.eqlin.marginals is not None:
            bounding = Reparameterisation(search.potentials)
            bounding.m[:] = -np.asarray(found.eqlin.marginals)[graph.n_variables :]
            search.tighten(bounding.bound())
        if found.x is not None:
            search.iterations += int(found.nit)
            climb(search, local, program.states(graph, found.x), 1000)
        search.ended("program", 1, 1)


def _first_answer(search: Search) -> LocalModel | None:
    """Offer what the model's own tables say; return the model, or None where that ends the search."""
    model = Reparameterisation(search.potentials)
    model.offer(search)
    return None if search.ended("program", 0, None) else model.local


def _limits(search: Search) -> dict[str, Any]:
    """Return the options of HiGHS that keep the time limit."""
    return {} if np.isinf(search.left) else {"time_limit": max(search.left, 0.0)}


def _minimise(program: Program, options: dict[str, Any]) -> Any:
    """Minimise minus the score."""
    from scipy.optimize import linprog

    return linprog(
        -program.scores, A_eq=program.matrix, b_eq=program.right, bounds=(0, None), method="highs", options=options
    )


@register
@dataclass(frozen=True)
class IntegerProgram(Solver):
    """A most probable assignment by branch and bound on the local relaxation.

    Parameters
    ----------
    seconds : float, optional
        Time limit; the best assignment so far and the bound so far are returned.

    Examples
    --------
    >>> import isinglass as ig
    >>> rng = np.random.default_rng(0)
    >>> p = ig.Potentials.from_groups(ig.grid_graph(4, 4, 2), [rng.normal(size=(16, 2)), rng.normal(size=(24, 2, 2))])
    >>> ig.map_assignment(p, "ilp").optimal
    True
    """

    seconds: float | None = None

    name: ClassVar[str] = "ilp"
    facts: ClassVar[SolverFacts] = SolverFacts(
        "integer programming (HiGHS): exact, by branch and bound", accepts="any", proves="always", bound=True
    )

    def solve(self, search: Search, reduction: Reduction) -> None:
        """Solve the program; without time, what the model's own tables say."""
        local = _first_answer(search)
        if local is None:
            return
        small, top = search.narrowed()
        program, size, wide = program_of(small), scale_of(small), is_wide(small)
        scale = GAP / (ROUNDING * size if wide else search.slack)
        found = interruptible(_branch, program, int(small.graph.cards.sum()), scale, _limits(search))
        if found.status == INFEASIBLE:
            raise ImpossibleEvidenceError(impossible(reduction.whole))
        if found.x is not None:
            climb(search, local, program.states(small.graph, found.x), 1000)
        if found.mip_dual_bound is not None and np.isfinite(found.mip_dual_bound):
            bound = top - float(found.mip_dual_bound) / scale + search.error(TERMS)
            proved = found.status == SOLVED and bound <= search.score + 2 * search.slack and not wide
            search.tighten(
                search.score + search.error(TERMS) if proved else bound + (GAP * size if wide else search.slack)
            )
        search.iterations += int(found.mip_node_count or 0)
        search.ended("program", 1, None)


def _branch(program: Program, states: int, scale: float, limits: dict[str, Any]) -> Any:
    """Minimise minus the score, scaled, with integers for the states of variables."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    whole = np.zeros(len(program.scores))
    whole[:states] = 1
    possible = program.scores > -np.inf
    costs, options = -scale * np.where(possible, program.scores, 0.0), {"mip_rel_gap": 0.0, **limits}
    constraint = LinearConstraint(program.matrix, program.right, program.right)
    return milp(costs, integrality=whole, bounds=Bounds(0, possible), constraints=constraint, options=options)
