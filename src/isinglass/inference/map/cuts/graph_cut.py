"""Graph cuts: exact maximisation of binary pairwise models whose energies are submodular.

The problem is a minimum cut (`binary`; Greig, Porteous and Seheult 1989), which is found by a maximum flow. The flow
proves optimality: its value is a bound, and equals that of the cut (`kernels.numba.map.flow`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.errors import InputError
from isinglass.inference.assignment import TERMS
from isinglass.inference.map.cuts.binary import BinaryEnergy, energy_of, minimum_cut
from isinglass.inference.map.icm import climb
from isinglass.inference.map.local_model import LocalModel
from isinglass.inference.map.reduction import Reduction
from isinglass.inference.map.search import Search
from isinglass.inference.map.solver import Solver, SolverFacts, register


@register
@dataclass(frozen=True)
class GraphCut(Solver):
    """A most probable assignment of a binary, pairwise, submodular model, by a minimum cut.

    A log table is submodular (attractive) if ``t[0, 0] + t[1, 1] >= t[0, 1] + t[1, 0]``: neighbours prefer equal
    states.

    Parameters
    ----------
    seconds : float, optional
        Time limit; without time for the minimum cut, the assignment may be worse, and the bound is still valid.

    Examples
    --------
    >>> import isinglass as ig
    >>> rng = np.random.default_rng(0)
    >>> p = ig.Potentials.from_groups(ig.grid_graph(20, 20, 2), [rng.normal(size=(400, 2)), 0.5 * np.eye(2)[None]])
    >>> ig.map_assignment(p, "graph-cut").optimal
    True
    """

    seconds: float | None = None

    name: ClassVar[str] = "graph-cut"
    facts: ClassVar[SolverFacts] = SolverFacts(
        "a minimum cut: exact on binary submodular models",
        accepts="submodular",
        proves="always",
        bound=True,
    )

    def check(self, reduction: Reduction) -> None:
        """Refuse a model that is not binary, pairwise and submodular."""
        require_pairwise(reduction, self.name, states=2)

    def solve(self, search: Search, reduction: Reduction) -> None:
        """Cut."""
        energy = energy_of(search.potentials)
        _require_submodular(energy, reduction)
        offer_cut(search, energy)
        search.ended("cut", 1, 1)


def offer_cut(search: Search, energy: BinaryEnergy) -> None:
    """Offer the minimum cut of a submodular model and its bound; a local maximum, if the time is too short."""
    states, least, finished = minimum_cut(energy, search)
    search.offer(states)
    search.tighten(-least + search.error(TERMS))
    if not finished:
        climb(search, LocalModel(search.potentials), states, 1000)


def require_pairwise(reduction: Reduction, solver: str, states: int | None = None) -> None:
    """Refuse a model with a factor of more than two variables, or a variable of more states."""
    graph, remedy = reduction.potentials.graph, 'use "trws", "ilp" or "auto", which take every model'
    for group in graph.groups:
        if group.arity > 2 and len(group):
            got = f"{reduction.factor_text(int(group.factors[0]))} with {group.arity} free variables"
            raise InputError("potentials", f"factors of at most two variables, for {solver!r}", got, remedy)
    wide = np.flatnonzero(graph.cards > states) if states is not None else np.zeros(0, np.int64)
    if len(wide):
        i = int(reduction.kept[wide[0]])
        got = f"variable {i} with {graph.cards[wide[0]]}"
        raise InputError(
            "potentials", f"variables of {states} states, for {solver!r}", got, 'use "expansion" or "trws"'
        )


def _require_submodular(energy: BinaryEnergy, reduction: Reduction) -> None:
    bad = np.flatnonzero(~energy.submodular)
    if not len(bad):
        return
    pairs = [g.factors for g in reduction.potentials.graph.groups if g.arity == 2]
    factor = int(np.concatenate(pairs)[bad[0]])
    A, B, C, D = -energy.values[:, bad[0]]
    expected = 'submodular log tables, t[0, 0] + t[1, 1] >= t[0, 1] + t[1, 0], for "graph-cut"'
    got = f"{A:.4g} + {D:.4g} < {B:.4g} + {C:.4g} in {reduction.factor_text(factor)}"
    raise InputError("potentials", expected, got, 'use "qpbo" or "trws"')
