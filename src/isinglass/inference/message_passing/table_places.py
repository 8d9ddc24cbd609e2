"""Where derivatives by the tables of links are added up: apart for each component, or for each group of components.

A table that several components share gets the sum of theirs, in their order. A thread works on whole groups, so the
number of threads does not change a bit of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isinglass.graph.message_graph import edges_of
from isinglass.inference.message_passing.log_model import LinkModel
from isinglass.kernels.layout import Edges
from isinglass.potentials import Potentials
from isinglass.segments import sum_at
from isinglass.typing import Array, IntArray

GROUPS = 24  # of components, at most: no more threads can share the work


class TablePlaces(NamedTuple):
    """Where each component, or group of components, adds up its derivatives by tables, apart from the others.

    Without tables that several components share, that is where the tables are.
    """

    table: IntArray  # (links,)
    edge_table: IntArray  # (edges,)
    size: int
    sources: IntArray | None  # (size,), or less if it repeats: the entry of psi, owner after owner; None: its own

    def sums(self, psi_bar: Array, length: int) -> Array:
        """Add the derivatives of all components up, where the tables are."""
        if self.sources is None:
            return psi_bar
        rows = psi_bar.reshape(-1, len(self.sources))
        return sum_at(self.sources, rows.sum(axis=0) if len(rows) > 1 else rows[0], length)


def table_places(potentials: Potentials, model: LinkModel) -> TablePlaces:
    """Return where derivatives by the tables of a model are added up; kept while its tables stay where they are."""
    table, edges = model.table, edges_of(potentials.graph)
    key = ("table places", len(model.psi))
    return potentials.graph.cached(
        key,
        lambda: _Kept(table, _table_places(edges, model, potentials.graph.n_components)),
        lambda kept: kept.table is table,
    ).places


def component_groups(edges: Edges, n: int) -> IntArray:
    """Return where groups of components begin, of about equal work, and the end of the last: at most GROUPS of them."""
    if n <= GROUPS:
        return np.arange(n + 1)
    work = np.cumsum(np.bincount(edges.component, edges.size, n))
    cuts = np.searchsorted(work, work[-1] * np.arange(1, GROUPS) / GROUPS) + 1
    return np.unique(np.concatenate([[0], cuts.clip(0, n), [n]]))


class _Kept(NamedTuple):
    table: IntArray
    places: TablePlaces


def _table_places(edges: Edges, model: LinkModel, n_components: int) -> TablePlaces:
    """Find them; tables that components use about once each are kept by groups: as many as links would be slow."""
    table, edge_table, psi, owner = model.table, model.edge_table, len(model.psi), edges.component
    last = np.zeros(psi, np.int64)
    last[table] = owner
    if (last[table] == owner).all():  # none is shared by several components
        return TablePlaces(table, edge_table, psi, None)
    keys, first, number = np.unique(owner * psi + table, return_index=True, return_inverse=True)
    if 2 * len(keys) > len(table):
        bounds = component_groups(edges, n_components)
        owner = np.searchsorted(bounds, owner, side="right") - 1
        keys, first, number = np.unique(owner * psi + table, return_index=True, return_inverse=True)
    size, pairs = edges.size[first], np.diff(edges.first_slot)[first] == 2
    ends = np.cumsum(size + size * pairs)
    starts = ends - size - size * pairs
    exchanged = edge_table != table[edges.edge_link]
    of_edges = starts[number][edges.edge_link] + exchanged * edges.size[edges.edge_link]
    turned = edge_table[edges.slot_edge[edges.first_slot[first]]]  # where the exchanged copy is, of a pair
    sources = np.zeros(int(ends[-1]), np.int64)
    for some, to, at in ((slice(None), starts, table[first]), (pairs, starts + size, turned)):
        lengths = size[some]
        inside = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        sources[np.repeat(to[some], lengths) + inside] = np.repeat(at[some], lengths) + inside
    return TablePlaces(starts[number], of_edges, len(sources), _period(sources, len(np.unique(owner))))


def _period(sources: IntArray, owners: int) -> IntArray:
    """Return the entries of the first owner, if all owners have the same ones; else those of all."""
    if len(sources) % owners:
        return sources
    rows = sources.reshape(owners, -1)
    return rows[0] if (rows == rows[0]).all() else sources
