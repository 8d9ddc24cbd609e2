"""Quadratic pseudo-Boolean optimisation: roof duality (Hammer, Hansen and Simeone 1984; Kolmogorov and Rother 2007).

A minimum cut of twice the model's size (`binary`) gives an upper bound on the score, that of the local relaxation, and
*persistent* labels for some of the variables: some most probable assignment has all of them. The others stay undecided,
or another solver completes them. Given persistent labels its bound holds for the whole model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.inference.algorithm import Algorithm
from isinglass.inference.assignment import TERMS
from isinglass.inference.map.cuts.binary import energy_of, roof_dual
from isinglass.inference.map.cuts.graph_cut import require_pairwise
from isinglass.inference.map.reduction import Reduction
from isinglass.inference.map.search import Search
from isinglass.inference.map.solver import Solver, SolverFacts, register, solve_part


@register
@dataclass(frozen=True)
class QPBO(Solver):
    """Roof duality: a bound and persistent labels for any binary pairwise model.

    Parameters
    ----------
    complete : str, Solver, Algorithm or None
        The solver for the variables without a persistent label. None: their state is -1, and the score is nan unless
        every variable has a label.
    seconds : float, optional
        Time limit.

    Examples
    --------
    >>> import isinglass as ig
    >>> tables = [[0.0, 0.1], [[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]], [0.0, 9.0]]
    >>> p = ig.Potentials(ig.FactorGraph([2] * 4, [(0,), (0, 1), (1, 2), (0, 2), (3,)]), tables)
    >>> m = ig.map_assignment(p, "qpbo", complete=None)
    >>> m.states.tolist(), round(m.bound, 6)
    ([-1, -1, -1, 1], 12.05)
    """

    complete: str | Solver | Algorithm | None = "trws"
    seconds: float | None = None

    name: ClassVar[str] = "qpbo"
    facts: ClassVar[SolverFacts] = SolverFacts(
        "roof duality: a bound and persistent labels of binary models",
        accepts="binary pairwise",
        proves="sometimes",
        bound=True,
    )

    def check(self, reduction: Reduction) -> None:
        """Refuse a model that is not binary and pairwise."""
        require_pairwise(reduction, self.name, states=2)

    def solve(self, search: Search, reduction: Reduction) -> None:
        """Cut the doubled graph; complete the rest."""
        labels, least = roof_dual(energy_of(search.potentials), search)
        search.tighten(-least + search.error(TERMS))
        decided = labels >= 0
        search.did.append(f"roof duality decided {int(decided.sum())} of {len(labels)} variables")
        if decided.all():
            search.offer(labels)
        elif self.complete is None:
            search.offer(labels, np.nan)
        else:
            known = dict(zip(np.flatnonzero(decided).tolist(), labels[decided].tolist(), strict=True))
            solve_part(search, known, self.complete)
        search.ended("cut", 1, 1)
