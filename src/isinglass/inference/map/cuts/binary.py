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
from typing import NamedTuple

import numpy as np

from isinglass.errors import MemoryLimitError
from isinglass.inference.assignment import EPSILON, LARGE, TERMS
from isinglass.inference.map.search import Search
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray, IntArray, Mask

TINY = 1e-12  # the share of the largest of A, B, C, D by which w may be negative and still count as zero
PIECE = 20_000_000  # steps of a flow between two moments at which Ctrl-C is heard, about a tenth of a second


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


class Cut(NamedTuple):
    """A cut, and what its flow proves.

    Attributes
    ----------
    states : int array (variables,)
        1 for what reaches the sink.
    least : float
        A lower bound on the energy of every assignment.
    finished : bool
        Whether the cut is minimal; otherwise the time was over.
    """

    states: IntArray
    least: float
    finished: bool


def minimum_cut(energy: BinaryEnergy, search: Search) -> Cut:
    """Find an assignment of least energy in the time that is left; all pairs must be submodular.

    Where w is negative by rounding, it counts as zero, and the energy that is proved is less by it.
    """
    if not len(energy.unary):
        return Cut(np.zeros(0, np.int64), energy.constant, True)
    A, B, C, D = energy.values
    i, j, w = energy.first, energy.second, np.maximum(energy.excess, 0.0)
    n, forth = len(energy.unary), np.inf > C  # the first form, or the second
    if forth.all():
        unary = energy.unary + np.bincount(i, C - A, n) + np.bincount(j, D - C, n)
        tails, heads = i, j
    else:
        low, both = np.where(forth, C, B), ~forth & (np.inf == B)
        low[both] = D[both]  # x_i = x_j: A and D - A go to x_i, and there is an arc each way
        unary = energy.unary + np.bincount(i, np.where(forth, C - A, D - low), n)
        unary = unary + np.bincount(j, np.where(forth, D - C, low - A), n)
        tails = np.concatenate([np.where(forth, i, j), i[both]])
        heads = np.concatenate([np.where(forth, j, i), j[both]])
        w = np.concatenate([w, w[both]])
    flows, level, finished = _maximum_flow(tails, heads, w, unary, search)
    left = unary + np.bincount(heads, flows, n) - np.bincount(tails, flows, n)
    least = energy.constant + float(A.sum()) + float(np.minimum(energy.excess, 0.0).sum())
    least += float(np.minimum(left, 0.0).sum()) - _rounding(energy, flows, n)
    return Cut((level < 0).astype(np.int64), least, finished)


def _maximum_flow(
    tails: IntArray, heads: IntArray, capacities: FloatArray, unary: FloatArray, search: Search
) -> tuple[FloatArray, Array, bool]:
    """Return the flow of each arc, the level of each node (negative if it reaches the sink), and whether that is all.

    A node's arc is from the source if `unary` is positive, else to the sink.
    """
    from isinglass.kernels.numba.map.flow import Flow, connect, flow_on

    n, arcs = len(unary), 2 * len(tails)
    if arcs > np.iinfo(np.int32).max:
        raise MemoryLimitError(f'a cut of {len(tails)} arcs is too large: use "trws"')
    flow = Flow(
        first=np.zeros(n + 1, np.int64),
        head=np.empty(arcs, np.int32),
        sister=np.empty(arcs, np.int32),
        residual=np.empty(arcs),
        excess=unary.copy(),
        level=np.zeros(n, np.int32),
        parent=np.zeros(n, np.int32),
        current=np.zeros(n, np.int32),
        queue=np.empty((4, n), np.int32),
        filled=np.zeros(4, np.int64),
        orphans=np.full(n + 2, -1, np.int32),
        after=np.empty(n, np.int32),
        loose=np.empty(n, np.int32),
        wave=np.empty(n, np.int32),
        depth=np.zeros(2, np.int64),
        at=np.zeros(4, np.int64),
    )
    back = np.empty(len(tails), np.int64)
    connect(tails, heads, capacities, back, flow)
    while not (finished := bool(flow_on(flow, PIECE))) and search.left > 0:
        pass
    return np.minimum(flow.residual[back], capacities), flow.level, finished


def _rounding(energy: BinaryEnergy, flows: FloatArray, n: int) -> float:
    """Bound the rounding of what a flow proves, where numbers are large; else 0.

    Every term enters a sum for each of its variables, of at most as many terms as a variable has pairs, and a few more.
    """
    finite = np.abs(energy.values[np.isfinite(energy.values)])
    if max(float(finite.max(initial=0.0)), float(np.abs(energy.unary).max(initial=0.0))) <= LARGE:
        return 0.0
    most = np.bincount(energy.first, minlength=n) + np.bincount(energy.second, minlength=n)
    size = abs(energy.constant) + float(np.abs(energy.unary).sum()) + float(finite.sum()) + float(flows.sum())
    return 2 * EPSILON * (float(most.max()) + TERMS) * size


def roof_dual(energy: BinaryEnergy, search: Search) -> tuple[IntArray, float]:
    """Return persistent labels (-1 where there is none, or if the time is over) and a lower bound on the energy."""
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
    states, bound, finished = minimum_cut(doubled, search)
    return np.where(finished & (states[:n] != states[n:]), states[:n], -1), bound
