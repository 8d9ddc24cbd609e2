"""Cycles that a solution of the local relaxation violates, and a tighter program with clusters of three variables.

Of two states s of i and t of j, let d be the share of disagreement, mu_ij([x_i = s] != [x_j = t]). In an assignment the
disagreements around a cycle are even in number, so that for every cycle C and every odd set F of its edges

    sum_{C - F} d + sum_F (1 - d)  >=  1

The most violated one is a shortest path in a graph with two copies of each node (i, s): edges within a copy have the
length d, edges between the copies 1 - d, and the path goes from one copy of a node to the other (Barahona and Mahjoub
1986; Sontag and Jaakkola 2007).

A violated cycle is triangulated. Each triangle becomes a cluster with a belief mu_abc of its own, which agrees with the
beliefs of its three pairs; that implies the inequalities of the cycle. The multipliers of this agreement move scores
between the tables of pairs and clusters,

    phi'_ab  =  phi_ab + sum_c lambda_abc,ab          phi'_abc  =  - sum_{pairs} lambda_abc,pair

which changes no score of an assignment. So the bound is again one of messages, on the moved tables
(`reparameterisation`), and true whatever the tolerances of the linear program are.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.layout import first_states
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

CUT = 1e-4  # a cycle that is violated by less is left
FRACTION = 1e-3  # beliefs nearer to 0 or 1 are no ends of violated edges
LONGEST = 24  # variables of a cycle
MOST_NODES = 4000  # whose cycles are searched for

Triple = tuple[int, int, int]
Pairs = dict[tuple[int, int], tuple[int, bool]]


class Tightened(NamedTuple):
    """A model with clusters, and the rows that make them agree with pairs.

    Attributes
    ----------
    potentials : Potentials
        The model, with tables of zeros for chords and clusters.
    rows : sparse array (rows, columns of the program)
    columns : list of int arrays
        The column of each entry of each factor's flat table; -1: a hard zero, or no link.
    """

    potentials: Potentials
    rows: csr_array
    columns: list[IntArray]

    def moved(self, scores: FloatArray, multipliers: FloatArray) -> Potentials:
        """Return the potentials after the multipliers of the rows moved scores between pairs and clusters."""
        shifted = scores - self.rows.T @ multipliers
        tables = []
        for table, columns in zip(self.potentials.log_tables, self.columns, strict=True):
            flat = np.where(columns >= 0, shifted[np.maximum(columns, 0)], -np.inf)
            tables.append(flat.reshape(table.shape) if table.ndim > 1 else table)
        return Potentials(self.potentials.graph, tables)


def tightened(potentials: Potentials, triples: list[Triple]) -> Tightened:
    """Return a model without evidence with a cluster for each triple of variables, and a table for each chord."""
    graph = potentials.graph
    chords = sorted({pair for triple in triples for pair in combinations(triple, 2)} - set(_pairs(graph)))
    scopes = [*(tuple(scope) for scope in graph.scopes), *chords, *triples]
    larger = FactorGraph(graph.cards, scopes)
    zeros = [np.zeros(larger.cards[list(scope)]) for scope in (*chords, *triples)]
    whole = Potentials(larger, [*potentials.log_tables, *zeros])
    columns = _columns(whole)
    return Tightened(whole, _agreement(whole, triples, columns), columns)


def _pairs(graph: FactorGraph) -> Pairs:
    """Return a factor of each pair of variables, and whether it lists the later variable first."""
    found: Pairs = {}
    for a, scope in enumerate(graph.scopes):
        if len(scope) == 2 and scope[0] != scope[1]:
            i, j = (int(v) for v in scope)
            found.setdefault((min(i, j), max(i, j)), (a, i > j))
    return found


def _columns(potentials: Potentials) -> list[IntArray]:
    """Return the columns of the factors' entries, as `program_of` numbers them."""
    graph = potentials.graph
    found: list[IntArray] = [np.full(1, -1)] * graph.n_factors
    width = int(first_states(graph)[-1])
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        possible = tables[ids].reshape(len(group), -1) > -np.inf
        places = np.full(possible.shape, -1)
        if group.arity >= 2:
            places[possible] = width + np.arange(int(possible.sum()))
            width += int(possible.sum())
        for factor, row in zip(group.factors.tolist(), places, strict=True):
            found[factor] = row
    return found


def _agreement(potentials: Potentials, triples: list[Triple], columns: list[IntArray]) -> csr_array:
    """Return the rows: the belief of a cluster, summed over one variable, less that of the pair."""
    from scipy.sparse import coo_array

    graph, pairs = potentials.graph, _pairs(potentials.graph)
    rows, places, values, height = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)], 0
    for t, triple in enumerate(triples):
        shape = tuple(graph.cards[list(triple)].tolist())
        own = columns[graph.n_factors - len(triples) + t]
        digits = np.unravel_index(np.arange(len(own)), shape)
        for a, b in combinations(range(3), 2):
            factor, flipped = pairs[triple[a], triple[b]]
            entries = columns[factor].reshape((shape[b], shape[a]) if flipped else (shape[a], shape[b]))
            entries = (entries.T if flipped else entries).ravel()
            rows += [height + digits[a] * shape[b] + digits[b], height + np.flatnonzero(entries >= 0)]
            places += [own, entries[entries >= 0]]
            values += [np.ones(len(own)), -np.ones(int((entries >= 0).sum()))]
            height += len(entries)
    width = 1 + max((int(row.max(initial=-1)) for row in columns), default=-1)
    width = max(width, int(first_states(graph)[-1]))
    return coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(places))), (height, width)).tocsr()


def violated_cycles(potentials: Potentials, solution: FloatArray, most: int) -> list[list[int]]:
    """Return the variables around cycles that a solution of the program violates, the most violated first."""
    from scipy.sparse.csgraph import dijkstra

    graph = potentials.graph
    first, columns = first_states(graph), _columns(potentials)
    states = solution[: int(first[-1])]
    nodes = np.flatnonzero(np.minimum(states, 1 - states) > FRACTION)
    if not len(nodes) or len(nodes) > MOST_NODES:
        return []
    owner = np.repeat(np.arange(graph.n_variables), graph.cards)[nodes]
    number = np.full(len(states), -1)
    number[nodes] = np.arange(len(nodes))
    lengths = _lengths(potentials, columns, solution, number, len(nodes))
    distance, before = dijkstra(lengths, indices=np.arange(len(nodes)), return_predecessors=True, limit=1.0)
    around = distance[np.arange(len(nodes)), len(nodes) + np.arange(len(nodes))]
    found: dict[frozenset[int], list[int]] = {}
    for k in np.argsort(around, kind="stable").tolist():
        if around[k] >= 1 - CUT or len(found) >= most:
            break
        path = [int(owner[v % len(nodes)]) for v in _path(before[k], k, len(nodes) + k)]
        if 3 <= len(path) <= LONGEST and len(set(path)) == len(path):
            found.setdefault(frozenset(path), path)
    return list(found.values())


def _lengths(
    potentials: Potentials, columns: list[IntArray], solution: FloatArray, number: IntArray, n: int
) -> csr_array:
    """Return the graph of two copies of each node."""
    from scipy.sparse import coo_array, csr_array

    graph, first = potentials.graph, first_states(potentials.graph)
    rows, places, values = [], [], []
    for (i, j), (factor, flipped) in _pairs(graph).items():
        entries = columns[factor]
        mu = np.where(entries >= 0, solution[np.maximum(entries, 0)], 0.0)
        k, m = int(graph.cards[i]), int(graph.cards[j])
        mu = mu.reshape(m, k).T if flipped else mu.reshape(k, m)
        apart = mu.sum(axis=1)[:, None] + mu.sum(axis=0) - 2 * mu  # of [x_i = s] and [x_j = t]
        s, t = np.nonzero((number[first[i] : first[i + 1]] >= 0)[:, None] & (number[first[j] : first[j + 1]] >= 0))
        rows.append(number[first[i] + s])
        places.append(number[first[j] + t])
        values.append(np.clip(apart[s, t], 0.0, 1.0))
    if not rows:
        return csr_array((2 * n, 2 * n))
    a, b, d = np.concatenate(rows), np.concatenate(places), np.concatenate(values) + 1e-12  # zeros would be no edges
    ends = np.concatenate([a, a + n, a, a + n]), np.concatenate([b, b + n, b + n, b])
    both = np.concatenate([d, d, 1 - d + 2e-12, 1 - d + 2e-12])
    one = coo_array((both, ends), (2 * n, 2 * n)).tocsr()
    return csr_array(one + one.T)


def _path(before: IntArray, start: int, end: int) -> Iterator[int]:
    """Yield the nodes from the end back to the one after the start."""
    while end != start:
        yield end
        end = int(before[end])


def triangles(cycle: list[int]) -> list[Triple]:
    """Return the triangles of a cycle, with chords from its first variable.

    Examples
    --------
    >>> triangles([3, 0, 1, 2])
    [(0, 1, 3), (1, 2, 3)]
    """
    found = [tuple(sorted((cycle[0], a, b))) for a, b in pairwise(cycle[1:])]
    return found  # type: ignore[return-value]
