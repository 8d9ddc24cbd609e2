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
from typing import Any

import numpy as np

from isinglass.inference.assignment import EPSILON, TERMS
from isinglass.inference.map.search import LARGE
from isinglass.inference.map.solver import missing
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray, IntArray, Mask

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
    if not len(energy.unary):
        return np.zeros(0, np.int64), energy.constant
    graph = _new_graph(len(energy.unary), len(energy.first), solver)
    A, B, C, D = energy.values
    i, j, w = energy.first, energy.second, np.maximum(energy.excess, 0.0)
    n, forth = len(energy.unary), np.inf > C  # the first form, or the second
    if forth.all():
        unary = energy.unary + np.bincount(i, C - A, n) + np.bincount(j, D - C, n)
        graph.add_edges(i, j, w, np.zeros(len(w)))
    else:
        low, both = np.where(forth, C, B), ~forth & (np.inf == B)
        low[both] = D[both]  # x_i = x_j: A and D - A go to x_i
        unary = energy.unary + np.bincount(i, np.where(forth, C - A, D - low), n)
        unary = unary + np.bincount(j, np.where(forth, D - C, low - A), n)
        graph.add_edges(i, j, np.where(forth | both, w, 0.0), np.where(forth, 0.0, w))
    constant = energy.constant + float(A.sum()) + float(np.minimum(unary, 0.0).sum())
    graph.add_grid_tedges(np.arange(n), np.maximum(unary, 0.0), np.maximum(-unary, 0.0))
    flow = graph.maxflow()
    least = constant + flow + float(np.minimum(energy.excess, 0.0).sum()) - _flow_error(energy, unary, flow)
    return graph.get_grid_segments(np.arange(n)).astype(np.int64), least


def _flow_error(energy: BinaryEnergy, unary: FloatArray, flow: float) -> float:
    """Bound the rounding of a flow with large capacities, with an augmentation for each node and arc; else 0."""
    finite = energy.values[np.isfinite(energy.values)]
    largest = max(float(np.abs(finite).max(initial=0.0)), float(np.abs(unary).max(initial=0.0)))
    if largest <= LARGE:
        return 0.0
    sums = abs(energy.constant) + float(np.abs(energy.values[0]).sum()) + float(np.abs(unary).sum())
    return EPSILON * ((len(unary) + len(energy.first)) * (largest + abs(flow)) + TERMS * sums)


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


def _new_graph(nodes: int, arcs: int, solver: str) -> Any:
    """Return an empty graph of PyMaxflow; refuse if that is not installed."""
    try:
        import maxflow
    except ImportError:
        raise missing("PyMaxflow", solver) from None
    graph = maxflow.GraphFloat(nodes, arcs)
    graph.add_nodes(nodes)
    return graph
