"""The solver that chooses: exact methods if possible, cheapest first, else the best score and bound in the given time.

1. A submodular binary model: a minimum cut.
2. A model of small treewidth: a junction tree.
3. Any other binary pairwise model: roof duality; its persistent labels are fixed, and the steps below solve the rest.
4. TRW-S, for a bound and a first assignment; then iterated local search from that assignment, and annealing from random
   ones in ever longer runs.
5. Branch and bound, if there is time left and the model is small enough: toulbar2 if it is installed, else HiGHS.

Every step uses the best assignment and the best bound so far. The search ends as soon as score and bound are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar

import numpy as np

from isinglass.graph.elimination.order import elimination_order
from isinglass.inference.assignment import TERMS
from isinglass.inference.junction_tree.algorithm import Exact
from isinglass.inference.map.cuts.binary import energy_of, roof_dual
from isinglass.inference.map.cuts.graph_cut import offer_cut
from isinglass.inference.map.local_model import LocalModel
from isinglass.inference.map.local_search import Annealing, IteratedLocalSearch
from isinglass.inference.map.reduction import Reduction, reduced
from isinglass.inference.map.relaxations.linear import IntegerProgram
from isinglass.inference.map.relaxations.trws import TRWS
from isinglass.inference.map.search import Search
from isinglass.inference.map.solver import Solver, SolverFacts, register
from isinglass.inference.map.toulbar2 import Toulbar2
from isinglass.potentials import Potentials
from isinglass.validation import RandomState, generator

ENTRIES = 3e7  # table entries of a junction tree that count as cheap
ORDERED = 20_000  # variables up to which an elimination order is searched for
BRANCHED = 2e5  # table entries up to which branch and bound is tried
TRWS_SHARE, LOCAL_SHARE = 0.4, 0.5  # of the time that is left
ANNEALED = (200, 400, 800, 1600, 3200, 6400)  # sweeps of the runs of annealing


@register
@dataclass(frozen=True, eq=False)
class Auto(Solver):
    """Choose the solvers that suit the model; ``info.did`` says which were used.

    Parameters
    ----------
    seconds : float or None
        Time limit; None: search until optimality is proved, however long that takes.
    random_state : int, Generator or None
        The seed of the local search.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([3, 3], [(0,), (0, 1)]), [[0.0, 1.0, 0.5], np.eye(3)])
    >>> m = ig.map_assignment(p, "auto")
    >>> m.states.tolist(), m.optimal, m.info.did
    ([1, 1], True, 'junction tree')
    """

    seconds: float | None = 10.0
    random_state: RandomState = 0

    name: ClassVar[str] = "auto"
    facts: ClassVar[SolverFacts] = SolverFacts(
        "chooses: exact where it fits, then the cheapest proof, then the best score and bound in time",
        accepts="any",
        proves="sometimes",
        bound=True,
        stochastic=True,
    )

    def solve(self, search: Search, reduction: Reduction) -> None:
        """Try one solver after the other, the cheapest proof first."""
        binary = _is_binary(search.potentials)
        if binary and self._cut(search):
            return
        if self._exact(search):
            return
        if binary and self._roof(search, reduction):
            return
        self._iterate(search, reduction)

    def _cut(self, search: Search) -> bool:
        """Solve a submodular model."""
        energy = energy_of(search.potentials)
        if not energy.submodular.all():
            return False
        offer_cut(search, energy)
        search.did.append("minimum cut")
        return search.ended("cut", 1, None)

    def _exact(self, search: Search) -> bool:
        """Solve a model of small treewidth."""
        graph = search.potentials.graph
        if graph.n_variables > ORDERED and not graph.is_forest:
            return False
        exact = Exact()
        if elimination_order(graph).entries > ENTRIES or exact.shortage(search.potentials):  # the first saves seconds
            return False
        (found,) = exact.maximise(search.potentials, 1, search.progress)
        search.offer(found.states, found.score)
        search.tighten(found.score + search.error(4 * graph.n_factors))
        search.did.append("junction tree")
        return search.ended("junction tree", 1, None)

    def _roof(self, search: Search, reduction: Reduction) -> bool:
        """Fix persistent labels of a binary model, and search on with the rest."""
        labels, least = roof_dual(energy_of(search.potentials), search)
        search.tighten(-least + search.error(TERMS))
        decided = labels >= 0
        search.did.append(f"roof duality decided {int(decided.sum())} of {len(labels)} variables")
        if not decided.any():
            return False
        known = dict(zip(np.flatnonzero(decided).tolist(), labels[decided].tolist(), strict=True))
        rest = reduced(search.potentials.with_evidence(known))
        inner = Search(rest.potentials, None if self.seconds is None else max(search.left, 0.0), search.progress)
        try:
            if len(rest.kept):
                if not self._exact(inner):
                    self._iterate(inner, rest)
            else:
                inner.offer(np.zeros(0, np.int64))
                inner.tighten(inner.score)
        finally:
            if inner.states is not None:
                search.offer(rest.lift(inner.states))
                if not search.wide:  # else rounding may have decided labels
                    search.tighten(inner.bound)
                search.iterations += inner.iterations
                search.did.extend(inner.did)
        search.stopped = inner.stopped
        search.ended("roof duality", 1, None)
        return True

    def _iterate(self, search: Search, reduction: Reduction) -> None:
        """Run TRW-S, local search and branch and bound, until the search is closed or the time is over."""
        with search.share(TRWS_SHARE):
            TRWS().solve(search, reduction)
        if search.closed or search.states is None:
            return
        with search.share(LOCAL_SHARE):
            model, rng = LocalModel(search.potentials), generator(self.random_state)
            IteratedLocalSearch().improve(search, model, search.states.copy(), rng)
            for sweeps in ANNEALED:
                if search.left <= 0 or search.closed:
                    break
                Annealing(sweeps).improve(search, model, rng.integers(0, search.potentials.graph.cards), rng)
        search.did.append("iterated local search and annealing")
        entries = sum(group.table_size * len(group) for group in search.potentials.graph.groups)
        if search.ended("local search", 1, None) or entries > BRANCHED:
            return
        solver = Toulbar2() if find_spec("pytoulbar2") is not None else IntegerProgram()
        solver.solve(search, reduction)
        search.did.append("toulbar2" if isinstance(solver, Toulbar2) else "integer programming")


def _is_binary(potentials: Potentials) -> bool:
    graph = potentials.graph
    return bool((graph.cards == 2).all()) and all(group.arity <= 2 or not len(group) for group in graph.groups)
