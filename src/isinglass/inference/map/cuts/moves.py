"""Expansion moves (Boykov, Veksler and Zabih 2001) for pairwise models of many states.

An expansion of state k is the best of all assignments in which some variables have changed to k. It is a fusion move
(`fusion`); all k are tried in turn until none improves the score. With the energy V = -t of a pairwise table t, the
moves are exact if

    V(a, b) + V(k, k)  <=  V(a, k) + V(k, b)       for all a, b, k       (a *metric* fulfils it)

Otherwise roof duality is used instead of a minimum cut; the score still never decreases. No bound is computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.inference.map.cuts.binary import TINY
from isinglass.inference.map.cuts.fusion import PairModel
from isinglass.inference.map.cuts.graph_cut import require_pairwise
from isinglass.inference.map.icm import climb
from isinglass.inference.map.local_model import LocalModel
from isinglass.inference.map.reduction import Reduction
from isinglass.inference.map.search import Search
from isinglass.inference.map.solver import Solver, SolverFacts, register
from isinglass.typing import FloatArray, Mask
from isinglass.validation import whole_number


@register
@dataclass(frozen=True, eq=False)
class Expansion(Solver):
    """Expansion moves: an assignment that no expansion of a state improves.

    Parameters
    ----------
    moves : {"auto", "exact"}
        "auto" solves a move by a minimum cut if it is submodular, else by roof duality. "exact" refuses a model whose
        tables are not metrics.
    max_iter : int
        The maximal number of rounds over all states.
    start : int array (variables,), optional
        The initial assignment.
    seconds : float, optional
        Time limit.

    Examples
    --------
    >>> import isinglass as ig
    >>> rng = np.random.default_rng(0)
    >>> p = ig.Potentials.from_groups(ig.grid_graph(9, 9, 4), [rng.normal(size=(81, 4)), 0.5 * np.eye(4)[None]])
    >>> m = ig.map_assignment(p, "expansion")
    >>> round(m.score, 3), round(ig.map_assignment(p, "icm").score, 3), round(ig.map_assignment(p, "trws").bound, 3)
    (104.804, 103.729, 104.874)
    """

    moves: Literal["auto", "exact"] = "auto"
    max_iter: int = 100
    start: ArrayLike | None = None
    seconds: float | None = None

    name: ClassVar[str] = "expansion"
    facts: ClassVar[SolverFacts] = SolverFacts(
        "expansion moves: any number of variables change to one state",
        accepts="pairwise",
        proves="never",
        bound=False,
    )

    def check(self, reduction: Reduction) -> None:
        """Refuse factors of three variables and, with exact moves, tables that they cannot serve."""
        require_pairwise(reduction, self.name)
        if self.moves not in ("auto", "exact"):
            raise InputError("moves", '"auto" or "exact"', repr(self.moves))
        if self.moves == "auto":
            return
        p = reduction.potentials
        for group, tables, ids in zip(p.graph.groups, p.groups, p.table_ids, strict=True):
            bad = np.flatnonzero(_violates_metric(tables)[ids]) if group.arity == 2 else np.zeros(0, np.int64)
            if len(bad):
                got = f"another table in {reduction.factor_text(int(group.factors[bad[0]]))}"
                raise InputError("potentials", "energies that are a metric", got, 'use moves="auto" (roof duality)')

    def solve(self, search: Search, reduction: Reduction) -> None:
        """Climb, then make moves until a whole round brings nothing."""
        most = whole_number(self.max_iter, "max_iter", 1)
        local, model = LocalModel(search.potentials), PairModel(search)
        cards = search.potentials.graph.cards
        x = local.start() if self.start is None else reduction.restrict(self.start)
        climb(search, local, x, 1000)
        if search.score == -np.inf or search.left <= 0:
            return
        for k in range(most):
            before = search.score
            for state in range(int(cards.max())):
                free = (x != state) & (cards > state)
                if not free.any():
                    continue
                mixed = model.fuse(x.copy(), np.full(len(x), state), x, free)
                if search.offer(mixed):
                    x[:] = mixed
                if search.left <= 0:
                    break
            if search.score <= before + search.slack or search.ended("rounds", k + 1, most):
                break


def _violates_metric(tables: FloatArray) -> Mask:
    """Tell which tables are no metric: their states differ in number, or a triangle is too long."""
    if tables.shape[1] != tables.shape[2]:
        return np.ones(len(tables), bool)
    flat = np.abs(tables.reshape(len(tables), -1))
    rounding = TINY * np.where(flat < np.inf, flat, 0.0).max(axis=1, initial=0.0)
    same = np.einsum("tkk->tk", tables)[:, None, None, :]
    direct = tables[:, :, :, None]
    detour = tables[:, :, None, :] + tables.transpose(0, 2, 1)[:, None, :, :]
    with np.errstate(invalid="ignore"):
        lack = detour - (direct + same)
    flags: Mask = (~(lack <= rounding[:, None, None, None])).any(axis=(1, 2, 3))
    return flags
