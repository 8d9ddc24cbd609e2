"""The tree of maximum likelihood (Chow and Liu 1968).

    I(i, j) = sum_xy p_ij(x, y) log( p_ij(x, y) / (p_i(x) p_j(y)) )

The likelihood of a tree is that of independent variables, plus the mutual information of its edges. So the best tree is
a maximum spanning tree of the empirical mutual information.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.graph.builders import pairwise_graph
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.forests.disjoint_sets import root_of
from isinglass.learning.structure.learner import Observations, StructureLearner, register
from isinglass.typing import FloatArray
from isinglass.validation import number

ROUNDING = 1e-12  # nats


def mutual_information(data: Observations) -> FloatArray:
    """Return the empirical mutual information of all pairs, in nats, a symmetric matrix with zeros on its diagonal.

    Examples
    --------
    >>> X = np.array([[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]])
    >>> mutual_information(Observations(X, np.ones(4), np.array([2, 2, 2]))).round(4).tolist()
    [[0.0, 0.6931, 0.0], [0.6931, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    data = data.of_seen_states()
    first = np.concatenate([[0], np.cumsum(data.cards)])
    shown = np.zeros((len(data.states), int(first[-1])))
    shown[np.arange(len(data.states))[:, None], data.states + first[:-1]] = 1.0
    joint = (shown * (data.weights / data.total)[:, None]).T @ shown
    single = np.diag(joint)
    product = np.outer(single, single)
    ratio = np.divide(joint, product, out=np.ones_like(joint), where=joint > 0)
    terms = joint * np.log(ratio)
    found = np.add.reduceat(np.add.reduceat(terms, first[:-1], axis=0), first[:-1], axis=1)
    np.fill_diagonal(found, 0.0)
    return np.asarray((found + found.T) / 2, np.float64)


@register
@dataclass(frozen=True)
class ChowLiu(StructureLearner):
    """The tree of maximum likelihood: ``"chow-liu"``.

    Parameters
    ----------
    least : float, default=0
        Edges of at most this mutual information, in nats, are left out: a forest. What is below 1e-12 is rounding, and
        counts as none.
    """

    least: float = 0.0

    name: ClassVar[str] = "chow-liu"
    summary: ClassVar[str] = "the tree of maximum likelihood"

    def learn(self, data: Observations) -> FactorGraph:
        """Return the tree; of edges of equal information, the first."""
        information, least = mutual_information(data), number(self.least, "least", 0, np.inf)
        pairs = np.stack(np.triu_indices(len(data.cards), 1), axis=1)
        gains = information[pairs[:, 0], pairs[:, 1]]
        parent, edges = list(range(len(data.cards))), []
        for k in np.argsort(-gains, kind="stable").tolist():
            i, j = pairs[k].tolist()
            if gains[k] > max(least, ROUNDING) and root_of(parent, i) != root_of(parent, j):
                parent[root_of(parent, i)] = root_of(parent, j)
                edges.append((i, j))
        return pairwise_graph(len(data.cards), np.array(sorted(edges), np.int64).reshape(-1, 2), data.cards)
