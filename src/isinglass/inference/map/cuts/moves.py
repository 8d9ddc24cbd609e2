"""Expansion and swap moves (Boykov, Veksler and Zabih 2001) for pairwise models of many states.

An expansion of state k is the best of all assignments in which some variables have changed to k. A swap of k and l is
the best in which variables at k or l have changed to l or k. Each is a fusion move (`fusion`); all k, or all pairs, are
tried in turn until none improves the score. With the energy V = -t of a pairwise table t, the moves are exact if

    expansion    V(a, b) + V(k, k)  <=  V(a, k) + V(k, b)       for all a, b, k       (a *metric* fulfils it)
    swap         V(a, a) + V(b, b)  <=  V(a, b) + V(b, a)       for all a, b          (a *semi-metric* fulfils it)

Otherwise roof duality is used instead of a minimum cut; the score still never decreases. No bound is computed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
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
from isinglass.typing import FloatArray, IntArray, Mask
from isinglass.validation import whole_number

Move = tuple[IntArray, IntArray, Mask]
"""Two assignments to mix, and the variables that may change."""


@dataclass(frozen=True, eq=False)
class _Moves(Solver):
    """What expansion and swap share: their options, their start, and the loop over the moves."""

    moves: Literal["auto", "exact"] = "auto"
    max_iter: int = 100
    start: ArrayLike | None = None
    seconds: float | None = None

    kind: ClassVar[str]  # of tables that a minimum cut serves

    @abstractmethod
    def broken(self, tables: FloatArray) -> Mask:
        """Tell which tables (tables, k, l) the minimum cut cannot serve."""

    @abstractmethod
    def round(self, x: IntArray, cards: IntArray) -> Iterator[Move]:
        """Yield one move after the other from x, which changes as they are made."""

    def check(self, reduction: Reduction) -> None:
        """Refuse factors of three variables and, with exact moves, tables that they cannot serve."""
        require_pairwise(reduction, self.name)
        if self.moves not in ("auto", "exact"):
            raise InputError("moves", '"auto" or "exact"', repr(self.moves))
        if self.moves == "auto":
            return
        p = reduction.potentials
        for group, tables, ids in zip(p.graph.groups, p.groups, p.table_ids, strict=True):
            bad = np.flatnonzero(self.broken(tables)[ids]) if group.arity == 2 else np.zeros(0, np.int64)
            if len(bad):
                got = f"another table in {reduction.factor_text(int(group.factors[bad[0]]))}"
                raise InputError("potentials", f"energies that are {self.kind}", got, 'use moves="auto" (roof duality)')

    def solve(self, search: Search, reduction: Reduction) -> None:
        """Climb, then make moves until a whole round brings nothing."""
        most = whole_number(self.max_iter, "max_iter", 1)
        local, model = LocalModel(search.potentials), PairModel(search.potentials, self.name)
        x = local.start() if self.start is None else reduction.restrict(self.start)
        climb(search, local, x, 1000)
        if search.score == -np.inf or search.left <= 0:
            return
        for k in range(most):
            before = search.score
            for first, second, free in self.round(x, search.potentials.graph.cards):
                mixed = model.fuse(first, second, x, free)
                if search.offer(mixed):
                    x[:] = mixed
                if search.left <= 0:
                    break
            if search.score <= before + search.slack or search.ended("rounds", k + 1, most):
                break


def _facts(summary: str) -> SolverFacts:
    return SolverFacts(summary, accepts="pairwise", proves="never", bound=False, needs="PyMaxflow")


@register
@dataclass(frozen=True, eq=False)
class Expansion(_Moves):
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

    name: ClassVar[str] = "expansion"
    kind: ClassVar[str] = "a metric"
    facts: ClassVar[SolverFacts] = _facts("expansion moves: any number of variables change to one state")

    def broken(self, tables: FloatArray) -> Mask:
        """Tell which tables are no metric: their states differ in number, or a triangle is too long."""
        if tables.shape[1] != tables.shape[2]:
            return np.ones(len(tables), bool)
        same = np.einsum("tkk->tk", tables)[:, None, None, :]
        direct = tables[:, :, :, None]
        detour = tables[:, :, None, :] + tables.transpose(0, 2, 1)[:, None, :, :]
        with np.errstate(invalid="ignore"):
            lack = detour - (direct + same)
        flags: Mask = (~(lack <= _rounding(tables)[:, None, None, None])).any(axis=(1, 2, 3))
        return flags

    def round(self, x: IntArray, cards: IntArray) -> Iterator[Move]:
        """Try every state; a variable that does not have it stays as it is."""
        for k in range(int(cards.max())):
            free = (x != k) & (cards > k)
            if free.any():
                yield x.copy(), np.full(len(x), k), free


@register
@dataclass(frozen=True, eq=False)
class Swap(_Moves):
    """Swap moves: an assignment that no exchange between two states improves.

    Parameters
    ----------
    moves : {"auto", "exact"}
        "auto" solves a move by a minimum cut if it is submodular, else by roof duality. "exact" refuses a model whose
        tables are not semi-metrics.
    max_iter : int
        The maximal number of rounds over all pairs of states.
    start : int array (variables,), optional
        The initial assignment.
    seconds : float, optional
        Time limit.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([3, 3], [(0,), (0, 1)]), [[0.0, 1.0, 0.5], np.eye(3)])
    >>> ig.map_assignment(p, "swap").states.tolist()
    [1, 1]
    """

    name: ClassVar[str] = "swap"
    kind: ClassVar[str] = "a semi-metric"
    facts: ClassVar[SolverFacts] = _facts("swap moves: variables at two states exchange them")

    def broken(self, tables: FloatArray) -> Mask:
        """Tell which tables are no semi-metric."""
        k = min(tables.shape[1:])
        square = tables[:, :k, :k]
        same = np.einsum("tkk->tk", square)
        with np.errstate(invalid="ignore"):
            lack = square + square.transpose(0, 2, 1) - (same[:, :, None] + same[:, None, :])
        flags: Mask = (~(lack <= _rounding(tables)[:, None, None])).any(axis=(1, 2))
        return flags

    def round(self, x: IntArray, cards: IntArray) -> Iterator[Move]:
        """Try every pair of states, with the variables that have one of them and could have the other."""
        most = int(cards.max())
        for k in range(most):
            for other in range(k + 1, most):
                free = ((x == k) | (x == other)) & (cards > other)
                if free.any():
                    yield np.full(len(x), k), np.full(len(x), other), free


def _rounding(tables: FloatArray) -> FloatArray:
    """Return what counts as zero, for each table."""
    flat = np.abs(tables.reshape(len(tables), -1))
    largest: FloatArray = TINY * np.where(flat < np.inf, flat, 0.0).max(axis=1, initial=0.0)
    return largest
