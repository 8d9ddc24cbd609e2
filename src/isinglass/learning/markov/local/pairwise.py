"""Local scores of many samples of a pairwise model, as products of matrices.

With the indicators S (samples, all states of all variables) of complete samples, unary tables u and the symmetric
matrix W of all pair tables, zero where there is no pair, the local scores of every variable and state are

    s  =  u + S W,

and derivatives B by the scores become  S' B + (S' B)'  by the tables. S has one entry for each variable in a row. The
general layout of `isinglass.losses.pseudo` would hold an index for every sample, factor and state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.layout import first_states, state_blocks
from isinglass.learning.markov.objective import Task
from isinglass.learning.markov.samples import Samples
from isinglass.losses import Evaluation
from isinglass.potentials import Potentials, sum_tables
from isinglass.typing import Array, FloatArray, IntArray

Terms = Callable[[Array, IntArray], tuple[Array, Array]]
"""From local scores (rows, states) and labels to the terms of the rows and their derivatives."""

WORTH = 200_000  # pairs of samples and factors from which on matrices are used
DENSE = 0.05  # the least share of entries of W
ROWS = 2048  # samples at a time


class PairwiseScores:
    """The local scores of the samples of a pairwise model.

    Parameters
    ----------
    graph : FactorGraph
        Of one sample; factors of at most two variables.
    samples : Samples
        Complete.
    """

    def __init__(self, graph: FactorGraph, samples: Samples) -> None:
        self.graph, self.samples = graph, samples
        self.first = first_states(graph)
        self.size = int(self.first[-1])

    @classmethod
    def of(cls, task: Task) -> Self | None:
        """Return the scores where matrices are worth it; None for small, sparse, wider or incomplete problems."""
        graph, samples = task.model.graph, task.samples
        narrow = all(group.arity <= 2 for group in graph.groups)
        worth = len(samples.weights) * graph.n_factors >= WORTH
        entries = sum(2 * len(g) * g.table_size for g in graph.groups if g.arity == 2)
        dense = entries >= DENSE * float(graph.cards.sum()) ** 2
        fits = narrow and worth and dense and bool(samples.whole.all()) and graph.n_components == 1
        return cls(graph, samples) if fits else None

    def evaluate(self, potentials: Potentials, terms: Terms) -> Evaluation:
        """Return the sum of all terms, by the weights of samples, and its derivative by the log tables."""
        unary, pairs = self._matrices(potentials)
        value, slope, by_unary = 0.0, np.zeros((self.size, self.size)), np.zeros(self.size)
        for start in range(0, len(self.samples.weights), ROWS):
            states = self.samples.states[start : start + ROWS]
            shown = self._indicators(states)
            scores = unary + shown @ pairs
            found, bars = self._terms(scores, states, self.samples.weights[start : start + ROWS], terms)
            value += found
            slope += shown.T @ bars
            by_unary += bars.sum(axis=0)
        return Evaluation(np.asarray(value), self._tables(potentials, by_unary, slope + slope.T))

    def _terms(
        self, scores: FloatArray, states: IntArray, weights: FloatArray, terms: Terms
    ) -> tuple[float, FloatArray]:
        """Return the value and the derivatives of some samples."""
        total, bars = 0.0, np.empty_like(scores)
        for variables, entries in state_blocks(self.graph):
            k = entries.shape[1]
            values, slopes = terms(scores[:, entries].reshape(-1, k), states[:, variables].ravel())
            weight = np.repeat(weights, len(variables))
            total += float((weight * values).sum())
            bars[:, entries] = (weight[:, None] * slopes).reshape(len(states), len(variables), k)
        return total, bars

    def _indicators(self, states: IntArray) -> csr_array:
        n, width = states.shape
        columns = (states + self.first[:-1]).ravel()
        return csr_array((np.ones(n * width), columns, np.arange(n + 1) * width), shape=(n, self.size))

    def _matrices(self, potentials: Potentials) -> tuple[FloatArray, FloatArray]:
        """Return the unary tables of all states, and the matrix of pair tables."""
        unary, pairs = np.zeros(self.size), np.zeros((self.size, self.size))
        for group, tables, ids in zip(potentials.graph.groups, potentials.groups, potentials.table_ids, strict=True):
            if group.arity == 1:
                np.add.at(unary, self._places(group.scopes[:, 0], group.shape[0]), tables[ids])
            if group.arity == 2:
                rows, columns = (self._places(group.scopes[:, s], group.shape[s]) for s in range(2))
                np.add.at(pairs, (rows[:, :, None], columns[:, None, :]), tables[ids])
        return unary, pairs + pairs.T

    def _tables(self, potentials: Potentials, by_unary: FloatArray, slope: FloatArray) -> tuple[Array, ...]:
        """Return derivatives by the tables of each group."""
        found: list[Array] = []
        for group in potentials.graph.groups:
            if group.arity == 1:
                found.append(by_unary[self._places(group.scopes[:, 0], group.shape[0])])
            elif group.arity == 2:
                rows, columns = (self._places(group.scopes[:, s], group.shape[s]) for s in range(2))
                found.append(slope[rows[:, :, None], columns[:, None, :]])
            else:
                found.append(np.zeros((len(group), *group.shape)))
        return sum_tables(potentials, found)

    def _places(self, variables: IntArray, k: int) -> IntArray:
        return np.asarray(self.first[variables][:, None] + np.arange(k), np.int64)


def conditional_terms(scores: Array, labels: IntArray) -> tuple[Array, Array]:
    """Return minus the log-probability of labels given all other variables, and its derivatives by the local scores.

    Examples
    --------
    >>> conditional_terms(np.log([[1.0, 3.0]]), np.array([1]))[1].tolist()
    [[0.25, -0.25]]
    """
    rows = np.arange(len(labels))
    top = scores.max(axis=1, keepdims=True)
    mass = np.exp(scores - top)
    norm = mass.sum(axis=1, keepdims=True)
    slopes = mass / norm
    slopes[rows, labels] -= 1.0
    return np.log(norm[:, 0]) + top[:, 0] - scores[rows, labels], slopes
