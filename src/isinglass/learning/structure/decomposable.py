"""Greedy search for a chordal graph, one edge at a time (Lauritzen 1996, section 4.4; Deshpande et al. 2001).

A chordal graph stays chordal with a new edge (i, j) if the common neighbours S of i and j separate them. Then the
maximum of the log-likelihood grows by

    n I(i, j | S) = sum n(x) log( n(x_ijS) n(x_S) / (n(x_iS) n(x_jS)) ),

and the model by (k_i - 1)(k_j - 1) prod_S k parameters. The edge with the best gain, less a penalty for each parameter,
is added until there is none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Literal

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.semantics.adjacency import reachable
from isinglass.graph.semantics.chordal import cardinality_order, chordal_cliques
from isinglass.learning.structure.learner import Observations, StructureLearner, register
from isinglass.typing import FloatArray
from isinglass.validation import whole_number

CRITERIA = ("bic", "aic")
Scope = tuple[int, ...]


@register
@dataclass(frozen=True)
class GreedyDecomposable(StructureLearner):
    """Edges added to a chordal graph by their gain: ``"greedy"``.

    Parameters
    ----------
    criterion : "bic" or "aic", default="bic"
        The penalty for each parameter: half the logarithm of the number of samples, or one.
    largest : int, default=4
        The most variables of a clique.
    """

    criterion: Literal["bic", "aic"] = "bic"
    largest: int = 4

    name: ClassVar[str] = "greedy"
    summary: ClassVar[str] = "edges added to a chordal graph while a criterion falls"

    def learn(self, data: Observations) -> FactorGraph:
        """Return a chordal graph with a factor for each maximal clique, and each variable."""
        if self.criterion not in CRITERIA:
            raise InputError("criterion", " or ".join(map(repr, CRITERIA)), repr(self.criterion))
        largest, n = whole_number(self.largest, "largest", 2), len(data.cards)
        near: list[set[int]] = [set() for _ in range(n)]
        known: dict[tuple[Scope, int, int], float] = {}
        while (best := self._best(data, near, largest, known)) is not None:
            i, j = best
            near[i].add(j)
            near[j].add(i)
        frozen = [frozenset(others) for others in near]
        cliques = sorted(chordal_cliques(frozen, cardinality_order(frozen)))
        return FactorGraph(data.cards, [*((i,) for i in range(n)), *(c for c in cliques if len(c) > 1)])

    def _best(
        self, data: Observations, near: list[set[int]], largest: int, known: dict[tuple[Scope, int, int], float]
    ) -> tuple[int, int] | None:
        """Return the edge with the largest gain above zero."""
        best, most = None, 1e-9
        frozen = [frozenset(others) for others in near]
        for i, j in combinations(range(len(near)), 2):
            both = frozen[i] & frozen[j]
            if j in near[i] or len(both) + 2 > largest or j in reachable(frozen, [i], both):
                continue
            key = (tuple(sorted(both)), i, j)
            if key not in known:
                known[key] = self._gain(data, *key)
            if known[key] > most:
                best, most = (i, j), known[key]
        return best

    def _gain(self, data: Observations, given: Scope, i: int, j: int) -> float:
        """Return how much the criterion gains by an edge, given the separator of its ends."""
        table = data.counts((i, j, *given))
        cards = data.cards
        size = math.prod(int(cards[k]) for k in given)
        parameters = (int(cards[i]) - 1) * (int(cards[j]) - 1) * size
        penalty = parameters * (math.log(data.total) / 2 if self.criterion == "bic" else 1.0)
        parts = [_entropy_sum(t) for t in (table, table.sum(axis=(0, 1)), table.sum(axis=1), table.sum(axis=0))]
        return parts[0] + parts[1] - parts[2] - parts[3] - penalty


def _entropy_sum(counts: FloatArray) -> float:
    """Return sum n log n."""
    values = np.asarray(counts, float)
    return float((values * np.log(values, out=np.zeros_like(values), where=values > 0)).sum())
