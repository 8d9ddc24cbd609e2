"""Fusion moves: the best mixture of two assignments (Lempitsky, Rother, Roth and Blake 2010).

Given assignments x and y of a pairwise model, each variable takes its state from x (z_i = 0) or from y (z_i = 1). The
score of the mixture is that of a binary pairwise model in z. If it is submodular, a minimum cut finds the best mixture;
else roof duality finds persistent labels, and the variables without one keep their current state. In both cases the
score never falls below that of the current assignment.
"""

from __future__ import annotations

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.map.cuts.binary import BinaryEnergy, energy_of, minimum_cut, roof_dual
from isinglass.inference.map.reduction import reduced
from isinglass.inference.map.search import Search
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray, IntArray, Mask


class PairModel:
    """The potentials and pairs of a pairwise model, for fusion moves.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([3, 3], [(0,), (0, 1)]), [[0.0, 1.0, 0.0], np.eye(3)])
    >>> model = PairModel(Search(p))
    >>> x, y = np.array([0, 0]), np.array([1, 1])
    >>> model.fuse(x, y, x, np.array([True, True])).tolist()
    [1, 1]
    """

    def __init__(self, search: Search) -> None:
        self.search = search
        potentials, graph = search.potentials, search.potentials.graph
        self.unary = [
            (group.scopes[:, 0], tables, ids)
            for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True)
            if group.arity == 1
        ]
        self.pairs = [
            (group.scopes, tables, ids)
            for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True)
            if group.arity == 2
        ]
        self.n = graph.n_variables

    def fuse(self, x: IntArray, y: IntArray, current: IntArray, free: Mask) -> IntArray:
        """Return the best mixture of x and y over the free variables; the others, and the undecided, stay current."""
        number = np.cumsum(free) - 1
        unary = np.zeros((int(free.sum()), 2))
        for variables, tables, ids in self.unary:
            at = free[variables]
            i, t = variables[at], ids[at]
            gains = np.stack([tables[t, x[i]], tables[t, y[i]]], axis=1)
            for k in range(2):
                unary[:, k] += np.bincount(number[i], gains[:, k], len(unary))
        first, second, values = self._pairs(x, y, current, free, number, unary)
        z = self._solve(unary, first, second, values, (current != x)[free].astype(np.int64))
        mixed = current.copy()
        mixed[free] = np.where(z == 1, y[free], x[free])
        return mixed

    def _pairs(
        self, x: IntArray, y: IntArray, current: IntArray, free: Mask, number: IntArray, unary: FloatArray
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the pairs of free variables with their scores (pairs, 2, 2); add pairs with one free to `unary`."""
        first, second = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        values = [np.zeros((0, 2, 2))]
        for scopes, tables, ids in self.pairs:
            i, j = scopes.T
            for here, there, place in ((i, j, 0), (j, i, 1)):
                at = free[here] & ~free[there]
                for k, states in enumerate((x, y)):
                    pair = (states[here[at]], current[there[at]])
                    gain = tables[(ids[at], *(pair if place == 0 else pair[::-1]))]
                    unary[:, k] += np.bincount(number[here[at]], gain, len(unary))
            both = free[i] & free[j]
            i, j, t = i[both], j[both], ids[both]
            first.append(number[i])
            second.append(number[j])
            table = [[tables[t, a, b] for b in (x[j], y[j])] for a in (x[i], y[i])]
            values.append(np.array(table).reshape(2, 2, -1).transpose(2, 0, 1))
        return np.concatenate(first), np.concatenate(second), np.concatenate(values)

    def _solve(
        self, unary: FloatArray, first: IntArray, second: IntArray, values: FloatArray, keep: IntArray
    ) -> IntArray:
        """Maximise the binary model; undecided variables are as in `keep`, which has a finite score."""
        if not (np.isfinite(unary).all() and np.isfinite(values).all()):
            graph = FactorGraph.from_groups(
                np.full(len(unary), 2), [np.arange(len(unary))[:, None], np.stack([first, second], axis=1)]
            )
            small = reduced(Potentials.from_groups(graph, [unary, values]))
            states = _best(energy_of(small.potentials), small.restrict(keep), self.search)
            return small.lift(states)
        flat = -values.reshape(len(values), 4).T
        energy = BinaryEnergy(-float(unary[:, 0].sum()), unary[:, 0] - unary[:, 1], first, second, flat)
        return _best(energy, keep, self.search)


def _best(energy: BinaryEnergy, keep: IntArray, search: Search) -> IntArray:
    if energy.submodular.all():
        return minimum_cut(energy, search).states
    labels, _ = roof_dual(energy, search)
    return np.where(labels >= 0, labels, keep)
