"""Iterated conditional modes (Besag 1986): coordinate ascent on the score.

    x_i  <-  argmax_{x_i} sum_{a at i} phi_a(x_a)          one variable after the other

until no change of one variable raises the score. With ``blocks="trees"`` the steps are larger: a random set of
variables that induces a forest, usually more than half of them, is maximised exactly given the others. The score never
decreases. Hard zeros count as conflicts; an assignment with fewer conflicts is better, whatever its score.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.inference.map.local_model import LocalModel
from isinglass.inference.map.reduction import Reduction, reduced
from isinglass.inference.map.search import Search
from isinglass.inference.map.solver import Solver, SolverFacts, register
from isinglass.potentials import Potentials
from isinglass.typing import IntArray
from isinglass.validation import RandomState, generator, whole_number


def local_facts(summary: str) -> SolverFacts:
    """Return what is true of every local search."""
    return SolverFacts(summary, accepts="any", proves="never", bound=False, stochastic=True)


def starts_from(first: IntArray, restarts: int, search: Search, rng: np.random.Generator) -> Iterator[IntArray]:
    """Yield a first assignment, then random ones, until the time is over."""
    yield first
    for _ in range(restarts):
        if search.left <= 0:
            return
        yield rng.integers(0, search.potentials.graph.cards)


@register
@dataclass(frozen=True, eq=False)
class ICM(Solver):
    """Iterated conditional modes: a local maximum of the score.

    Parameters
    ----------
    blocks : {"variables", "trees"}
        What is maximised in one step: one variable, or a random forest of variables.
    restarts : int
        The number of random starts after the first; the best result is kept.
    max_iter : int
        The maximal number of sweeps for each start.
    patience : int
        With trees: a start ends after this number of forests in a row without an improvement.
    start : int array (variables,), optional
        The initial assignment; by default the best state of each variable under its unary factors.
    random_state : int, Generator or None
        The seed for restarts and trees.
    seconds : float, optional
        Time limit.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials.from_groups(ig.chain_graph(3, 2), [[[0.0, 1.0]] * 3, [[[2.0, 0.0], [0.0, 1.0]]]])
    >>> m = ig.map_assignment(p, "icm")
    >>> m.states.tolist(), m.score, m.optimal
    ([1, 1, 1], 5.0, False)
    """

    blocks: Literal["variables", "trees"] = "variables"
    restarts: int = 0
    max_iter: int = 1000
    patience: int = 5
    start: ArrayLike | None = None
    random_state: RandomState = 0
    seconds: float | None = None

    name: ClassVar[str] = "icm"
    facts: ClassVar[SolverFacts] = local_facts("iterated conditional modes: one variable, or one tree, at a time")

    def solve(self, search: Search, reduction: Reduction) -> None:
        """Climb from every start."""
        if self.blocks not in ("variables", "trees"):
            raise InputError("blocks", '"variables" or "trees"', repr(self.blocks))
        restarts, sweeps = whole_number(self.restarts, "restarts"), whole_number(self.max_iter, "max_iter", 1)
        patience = whole_number(self.patience, "patience", 1)
        model, rng = LocalModel(search.potentials), generator(self.random_state)
        first = model.start() if self.start is None else reduction.restrict(self.start)
        for x in starts_from(first, restarts, search, rng):
            climb(search, model, x, sweeps)
            if self.blocks == "trees" and np.isfinite(search.potentials.log_score(x)):
                climb_trees(search, model, x, sweeps, patience, rng)


def climb(search: Search, model: LocalModel, x: IntArray, most: int) -> None:
    """Sweep in place until nothing changes; offer the result, and what there is if the search is interrupted."""
    search.offer(x)
    try:
        for k in range(most):
            if not model.climb(x) or search.ended("sweeps", k + 1, None):
                break
    finally:
        search.offer(x)


def climb_trees(
    search: Search, model: LocalModel, x: IntArray, most: int, patience: int, rng: np.random.Generator
) -> None:
    """Maximise over random forests in place, until several in a row bring nothing; offer what was found."""
    score, idle = float(search.potentials.log_score(x)), 0
    for k in range(most):
        model.forest(x, rng)
        value = float(search.potentials.log_score(x))
        idle = 0 if value > score + search.slack else idle + 1
        score = max(score, value)
        search.offer(x, value)
        if idle >= patience or search.ended("forests", k + 1, None):
            break


def climbed(potentials: Potentials, states: IntArray) -> IntArray:
    """Return the better of two local maxima: from these states, and from the best state of each variable by itself."""
    small = reduced(potentials)
    search = Search(small.potentials)
    if len(small.kept):
        model = LocalModel(small.potentials)
        for x in (small.restrict(states), model.start()):
            climb(search, model, x, 1000)
    return states if search.states is None else small.lift(search.states)
