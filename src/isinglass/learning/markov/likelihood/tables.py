"""The tables that closed forms and proportional fitting match: empirical marginals of maximal scopes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.learning.markov.likelihood.maximum import LikelihoodObjective
from isinglass.learning.markov.objective import Groups, Task
from isinglass.typing import Array, FloatArray, Mask


def maximal_factors(graph: FactorGraph, among: Sequence[int] | None = None) -> list[int]:
    """Return the factors whose scope is in no other's: the generators of a hierarchical model; of equals the first.

    `among` are the factors that count, all by default.

    Examples
    --------
    >>> maximal_factors(FactorGraph([2] * 3, [(0,), (0, 1), (1, 0), (2,)]))
    [1, 3]
    """
    scopes = [frozenset(s) for s in graph.scopes]
    chosen = range(len(scopes)) if among is None else among
    holders: list[list[int]] = [[] for _ in range(graph.n_variables)]
    for a in chosen:
        for i in scopes[a]:
            holders[i].append(a)
    found = []
    for a in chosen:
        scope = scopes[a]
        rivals = min((holders[i] for i in scope), key=len) if scope else []
        if scope and not any(scope < scopes[b] or (scope == scopes[b] and b < a) for b in rivals):
            found.append(a)
    return found


@dataclass(frozen=True, eq=False)
class Margins:
    """The empirical marginals of maximal factors.

    Attributes
    ----------
    factors : list of int
    targets : dict of int to array
        The probability of each entry of a factor's table, in its shape.
    """

    graph: FactorGraph
    factors: list[int]
    targets: dict[int, FloatArray]

    def zeros(self) -> tuple[Mask, ...] | None:
        """Return which table entries have probability zero; None where there are none."""
        if all((target > 0).all() for target in self.targets.values()):
            return None
        empty = {a: target <= 0 for a, target in self.targets.items()}
        return tuple(np.asarray(mask, np.bool_) for mask in self.scattered(empty, np.bool_))

    def scattered(self, of_factors: dict[int, Array], dtype: type = float) -> Groups:
        """Return arrays of tables, one for each group, that are zero but for some factors."""
        groups: list[Array] = [np.zeros((len(g), *g.shape), dtype) for g in self.graph.groups]
        group, row = self.graph.place
        for a, table in of_factors.items():
            groups[group[a]][row[a]] = table
        return tuple(groups)


def margins_of(task: Task, seen: Groups, weight: float, name: str) -> Margins:
    """Return the margins that a model has to match."""
    graph = task.model.graph
    factors = maximal_factors(graph, task.model.free_factors.tolist())
    if not factors:
        raise InputError("graph", f"at least one factor for method={name!r}", "none")
    group, row = graph.place
    return Margins(graph, factors, {a: np.asarray(seen[group[a]][row[a]] / weight, float) for a in factors})


class TableObjective(LikelihoodObjective):
    """The likelihood of tables, with hard zeros where a margin is zero."""

    name = "ipf"

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.margins = margins_of(task, self.seen, self.weight, self.name)
        self.zeros = self.margins.zeros()
