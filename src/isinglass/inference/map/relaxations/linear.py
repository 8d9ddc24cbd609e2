"""Linear and integer programming by HiGHS: the local relaxation, and a most probable assignment with a proof.

The program and the bound are in `program`, tighter ones in `cycles`. HiGHS is called through ``scipy.optimize``
(Huangfu and Hall 2018). The objective of the integer program is scaled so that the gap that HiGHS calls zero, 1e-6, is
below a score's rounding. In wide models (`search`) its tolerances are more than that, and its bound is no proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from isinglass.errors import ImpossibleEvidenceError
from isinglass.inference.evidence import impossible
from isinglass.inference.map.icm import climb
from isinglass.inference.map.local_model import LocalModel
from isinglass.inference.map.reduction import Reduction
from isinglass.inference.map.relaxations.cycles import Tightened, Triple, tightened, triangles, violated_cycles
from isinglass.inference.map.relaxations.program import Program, program_of
from isinglass.inference.map.relaxations.reparameterisation import Reparameterisation
from isinglass.inference.map.search import ROUNDING, Search
from isinglass.inference.map.solver import Solver, SolverFacts, register
from isinglass.potentials import Potentials
from isinglass.runtime.interrupts import interruptible
from isinglass.typing import FloatArray
from isinglass.validation import whole_number

if TYPE_CHECKING:
    from scipy.sparse import csr_array

GAP = 1e-6  # the difference of objective and bound that HiGHS calls zero
MOST_CYCLES = 200  # that one round of tightening adds
INFEASIBLE, SOLVED = 2, 0  # what SciPy calls the states of a program


@register
@dataclass(frozen=True)
class LinearProgram(Solver):
    """The local relaxation by linear programming; optimal if its solution is integral.

    Parameters
    ----------
    cycles : int
        The number of rounds of tightening. Each round adds clusters of three variables along cycles that the solution
        violates, and solves the program again. This closes many gaps of frustrated pairwise models, but the programs
        are larger.
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
    >>> p = ig.Potentials(ig.FactorGraph([2] * 3, [(0, 1), (1, 2), (0, 2)]), [-np.eye(2)] * 3)  # frustrated
    >>> ig.map_assignment(p, "lp").bound, round(ig.map_assignment(p, "lp", cycles=1).bound, 6)
    (0.0, -1.0)
    """

    cycles: int = 0
    seconds: float | None = None

    name: ClassVar[str] = "lp"
    facts: ClassVar[SolverFacts] = SolverFacts(
        "the local relaxation by linear programming (HiGHS)", accepts="any", proves="sometimes", bound=True
    )

    def solve(self, search: Search, reduction: Reduction) -> None:
        """Solve the program, and tighter ones; multipliers give the bound, the solution the assignment."""
        rounds = whole_number(self.cycles, "cycles")
        local = _first_answer(search)
        if local is None:
            return
        triples: list[Triple] = []
        for k in range(rounds + 1):
            model = tightened(search.potentials, triples)
            found = self._round(search, reduction, model, local)
            if search.ended("program", k + 1, rounds + 1) or found is None:
                return
            before = len(triples)
            for cycle in violated_cycles(model.potentials, found, MOST_CYCLES):
                triples += [triple for triple in triangles(cycle) if triple not in triples]
            if len(triples) == before:
                search.stopped = "converged"
                return

    def _round(self, search: Search, reduction: Reduction, model: Tightened, local: LocalModel) -> FloatArray | None:
        """Solve one program; return its solution."""
        program, graph = program_of(model.potentials), model.potentials.graph
        found = interruptible(_minimise, program, model.rows, _limits(search))
        if found.status == INFEASIBLE:
            raise ImpossibleEvidenceError(impossible(reduction.whole))
        if found.eqlin is not None and found.eqlin.marginals is not None:
            multipliers, own = -np.asarray(found.eqlin.marginals), len(program.right)
            bounding = Reparameterisation(model.moved(program.scores, multipliers[own:]))
            bounding.m[:] = multipliers[graph.n_variables : own]
            search.tighten(bounding.bound())
        if found.x is None:
            return None
        search.iterations += int(found.nit)
        climb(search, local, program.states(graph, found.x), 1000)
        return np.asarray(found.x)


def _first_answer(search: Search) -> LocalModel | None:
    """Offer what the model's own tables say; return the model, or None where that ends the search."""
    model = Reparameterisation(search.potentials)
    model.offer(search)
    return None if search.ended("program", 0, None) else model.local


def _limits(search: Search) -> dict[str, Any]:
    """Return the options of HiGHS that keep the time limit."""
    return {} if np.isinf(search.left) else {"time_limit": max(search.left, 0.0)}


def _minimise(program: Program, rows: csr_array, options: dict[str, Any]) -> Any:
    """Minimise minus the score, with further rows that are zero."""
    from scipy.optimize import linprog
    from scipy.sparse import vstack

    matrix = vstack([program.matrix, rows]).tocsr() if rows.shape[0] else program.matrix
    right = np.concatenate([program.right, np.zeros(rows.shape[0])])
    return linprog(-program.scores, A_eq=matrix, b_eq=right, bounds=(0, None), method="highs", options=options)


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
        found, program, scale = self._run(search)
        if found.status == INFEASIBLE:
            raise ImpossibleEvidenceError(impossible(reduction.whole))
        if found.x is not None:
            climb(search, local, program.states(search.potentials.graph, found.x), 1000)
        if found.mip_dual_bound is not None and np.isfinite(found.mip_dual_bound):
            bound = -float(found.mip_dual_bound) / scale + _constants(search.potentials)
            proved = found.status == SOLVED and bound <= search.score + 2 * search.slack and not search.wide
            margin = GAP * search.scale if search.wide else search.slack
            search.tighten(search.score if proved else bound + margin)
        search.iterations += int(found.mip_node_count or 0)
        search.ended("program", 1, None)

    def _run(self, search: Search) -> tuple[Any, Program, float]:
        from scipy.optimize import LinearConstraint

        program = program_of(search.potentials)
        states = int(search.potentials.graph.cards.sum())
        whole = np.zeros(len(program.scores))
        whole[:states] = 1
        scale = GAP / (ROUNDING * search.scale if search.wide else search.slack)
        options = {"mip_rel_gap": 0.0, **_limits(search)}
        constraint = LinearConstraint(program.matrix, program.right, program.right)
        found = interruptible(_branch, -scale * program.scores, whole, constraint, options)
        return found, program, scale


def _branch(costs: Any, whole: Any, constraint: Any, options: dict[str, Any]) -> Any:
    from scipy.optimize import Bounds, milp

    return milp(costs, integrality=whole, bounds=Bounds(0, 1), constraints=constraint, options=options)


def _constants(potentials: Potentials) -> float:
    """Add up the factors without variables, which the program does not have."""
    pairs = zip(potentials.graph.groups, potentials.groups, potentials.table_ids, strict=True)
    return sum(float(tables[ids].sum()) for group, tables, ids in pairs if group.arity == 0)
