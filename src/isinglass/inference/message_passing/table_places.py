"""Where derivatives by the tables of links are added up: each component's apart from those of the others.

A table that several components share gets the sum of theirs, in their order. So neither the number of threads nor the
loops that serve the others change a bit of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isinglass.graph.message_graph import Edges, edges_of
from isinglass.inference.message_passing.log_model import LinkModel
from isinglass.potentials import Potentials
from isinglass.segments import sum_at
from isinglass.typing import IntArray


class TablePlaces(NamedTuple):
    """Where each component adds up its derivatives by tables, apart from the others.

    Without tables that several components share, that is where the tables are.
    """

    table: IntArray  # (links,)
    edge_table: IntArray  # (edges,)
    size: int
    sources: IntArray | None  # (size,) the entry of psi, component after component; None: its own

    def sums(self, psi_bar: NDArray[Any], length: int) -> NDArray[Any]:
        """Add the derivatives of all components up, where the tables are."""
        return psi_bar if self.sources is None else sum_at(self.sources, psi_bar, length)


def table_places(potentials: Potentials, model: LinkModel) -> TablePlaces:
    """Return where derivatives by the tables of a model are added up; kept while its tables stay where they are."""
    table, edges = model.table, edges_of(potentials.graph)
    key = ("table places", len(model.psi))
    return potentials.graph.cached(
        key, lambda: _Kept(table, _table_places(edges, model)), lambda kept: kept.table is table
    ).places


class _Kept(NamedTuple):
    table: IntArray
    places: TablePlaces


def _table_places(edges: Edges, model: LinkModel) -> TablePlaces:
    """Find them; a table that components use about once each stays one: as many as there are links would be slow."""
    table, edge_table, psi = model.table, model.edge_table, len(model.psi)
    plain, owner = TablePlaces(table, edge_table, psi, None), np.zeros(psi, np.int64)
    owner[table] = edges.component
    if (owner[table] == edges.component).all():  # none is shared by several components
        return plain
    keys, first, number = np.unique(edges.component * psi + table, return_index=True, return_inverse=True)
    if 2 * len(keys) > len(table):
        return plain
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
    return TablePlaces(starts[number], of_edges, len(sources), sources)
