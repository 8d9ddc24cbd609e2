"""Binary pairwise models as minimum cuts.

With x_i in {0, 1} and energies E = -score, a pairwise energy with values A, B, C, D at 00, 01, 10, 11 is

    E_ij  =  A + (C - A) x_i + (D - C) x_j + w (1 - x_i) x_j        w = B + C - A - D
          =  A + (B - A) x_j + (D - B) x_i + w x_i (1 - x_j)

It is *submodular* if w >= 0. The minimum of a sum of submodular energies is a minimum cut: (1 - x_i) x_j is an arc from
i to j of capacity w, and x_i = 1 on the side of the sink (Kolmogorov and Zabih 2004). A hard zero is an infinite
capacity: the first form serves an infinite B, the second an infinite C, and if both are infinite, x_i = x_j.

Roof duality (Hammer, Hansen and Simeone 1984; Kolmogorov and Rother 2007), for any w: each variable has a copy that
stands for its complement, and every energy is halved and shared between both. A pair with w < 0 joins a variable with
the complement of the other, which exchanges the roles of A, B, C, D, so that all capacities are positive. The minimum
cut is a lower bound on E; where a variable and its copy disagree, its label is *persistent*: some minimum of E has all
of these labels together. Persistent labels that replace those of any assignment never raise its energy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isinglass.errors import IsinglassError
from isinglass.inference.assignment import EPSILON, TERMS
from isinglass.inference.map.search import LARGE
from isinglass.inference.map.solver import missing
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray, IntArray, Mask

_BITS = 61  # of capacities; SimpleMaxFlow has 63
TINY = 1e-12  # the share of the largest of A, B, C, D by which w may be negative and still count as zero


@dataclass(frozen=True, eq=False)
class BinaryEnergy:
    """Energies of binary variables and pairs of them.

    Attributes
    ----------
    constant : float
    unary : array (variables,)
        What x_i = 1 costs more than x_i = 0.
    first, second : int arrays (pairs,)
    values : array (4, pairs)
        A, B, C, D; no row or column of a pair's table is infinite.
    """

    constant: float
    unary: FloatArray
    first: IntArray
    second: IntArray
    values: FloatArray

    @property
    def excess(self) -> FloatArray:
        """The w of each pair; inf where B or C is, -inf where A or D is."""
        A, B, C, D = self.values
        w: FloatArray = (B + C) - (A + D)
        return w

    @property
    def submodular(self) -> Mask:
        """Whether w >= 0, up to rounding, for each pair."""
        finite = np.where(np.isfinite(self.values), np.abs(self.values), 0.0)
        flags: Mask = self.excess >= -TINY * finite.max(axis=0, initial=0.0)
        return flags


def energy_of(potentials: Potentials) -> BinaryEnergy:
    """Return the energies of a model of binary variables whose factors have at most two variables."""
    graph = potentials.graph
    constant, unary = 0.0, np.zeros(graph.n_variables)
    first, second = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    values = [np.zeros((4, 0))]
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        if not len(group):
            continue
        if group.arity == 0:
            constant -= float(tables[ids].sum())
        elif group.arity == 1:
            rows = tables[ids]
            constant -= float(rows[:, 0].sum())
            unary += np.bincount(group.scopes[:, 0], rows[:, 0] - rows[:, 1], graph.n_variables)
        else:
            first.append(group.scopes[:, 0])
            second.append(group.scopes[:, 1])
            values.append(-tables.reshape(len(tables), 4).T[:, ids])
    return BinaryEnergy(constant, unary, np.concatenate(first), np.concatenate(second), np.concatenate(values, axis=1))


def minimum_cut(energy: BinaryEnergy, solver: str) -> tuple[IntArray, float]:
    """Return an assignment of least energy, and that energy as the flow proves it; all pairs must be submodular.

    Where w is negative by rounding, it counts as zero, and the energy that is proved is less by it.
    """
    n = len(energy.unary)
    if not n:
        return np.zeros(0, np.int64), energy.constant
    A, B, C, D = energy.values
    i, j, w = energy.first, energy.second, np.maximum(energy.excess, 0.0)
    forth = np.inf > C  # the first form, or the second
    low, both = np.where(forth, C, B), ~forth & (np.inf == B)
    low[both] = D[both]  # x_i = x_j: A and D - A go to x_i
    unary = energy.unary + np.bincount(i, np.where(forth, C - A, D - low), n)
    unary = unary + np.bincount(j, np.where(forth, D - C, low - A), n)
    nodes, source, sink = np.arange(n), np.full(n, n), np.full(n, n + 1)
    tails, heads = np.concatenate([source, nodes, i, j]), np.concatenate([nodes, sink, j, i])
    arcs = [np.maximum(unary, 0.0), np.maximum(-unary, 0.0), np.where(forth | both, w, 0.0), np.where(forth, 0.0, w)]
    states, flow = _flow(n, tails, heads, np.concatenate(arcs), solver)
    constant = energy.constant + float(A.sum()) + float(np.minimum(unary, 0.0).sum())
    least = constant + flow + float(np.minimum(energy.excess, 0.0).sum()) - _rounding(energy, unary)
    return states, least


def _flow(n: int, tails: IntArray, heads: IntArray, capacities: FloatArray, solver: str) -> tuple[IntArray, float]:
    """Return which nodes are not on the side of the source in a minimum cut, and a lower bound on its capacity.

    Nodes n and n + 1 are the source and the sink. The algorithm takes integers, so capacities are multiplied by a
    power of two, such that no sum overflows, and rounded down: the flow is at most the true one.
    """
    try:
        from ortools.graph.python.max_flow import SimpleMaxFlow
    except ImportError:
        raise missing("ortools", solver) from None
    finite = np.isfinite(capacities)
    exponent = _BITS - int(np.frexp(capacities[finite].sum())[1])
    whole = np.full(len(capacities), 2**_BITS)  # more than any cut without an infinite arc
    whole[finite] = np.ldexp(capacities[finite], exponent)
    graph = SimpleMaxFlow()
    graph.add_arcs_with_capacity(tails, heads, whole)
    status = graph.solve(n, n + 1)
    if status != graph.OPTIMAL:
        raise IsinglassError(f"{solver!r}: the maximum flow ended with {status}")
    states = np.ones(n, np.int64)
    near = np.asarray(graph.get_source_side_min_cut(), np.int64)
    states[near[near < n]] = 0
    return states, float(np.ldexp(float(graph.optimal_flow()), -exponent))


def _rounding(energy: BinaryEnergy, unary: FloatArray) -> float:
    """Bound the rounding of the sums that make capacities of large energies; else 0."""
    finite = energy.values[np.isfinite(energy.values)]
    largest = max(float(np.abs(finite).max(initial=0.0)), float(np.abs(unary).max(initial=0.0)))
    if largest <= LARGE:
        return 0.0
    sums = abs(energy.constant) + float(np.abs(finite).sum()) + float(np.abs(unary).sum())
    return EPSILON * TERMS * sums


def roof_dual(energy: BinaryEnergy, solver: str) -> tuple[IntArray, float]:
    """Return persistent labels (-1 where there is none) and a lower bound on the energy."""
    n = len(energy.unary)
    A, B, C, D = energy.values
    i, j, good = energy.first, energy.second, energy.submodular
    values = np.concatenate(
        [np.where(good, [A, B, C, D], [B, A, D, C]), np.where(good, [D, C, B, A], [C, D, A, B])], axis=1
    )
    doubled = BinaryEnergy(
        energy.constant + 0.5 * float(energy.unary.sum()),
        0.5 * np.concatenate([energy.unary, -energy.unary]),
        np.concatenate([i, i + n]),
        np.concatenate([np.where(good, j, j + n), np.where(good, j + n, j)]),
        0.5 * values,
    )
    states, bound = minimum_cut(doubled, solver)
    return np.where(states[:n] != states[n:], states[:n], -1), bound
