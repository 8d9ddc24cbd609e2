"""Where derivatives with respect to the tables of links are summed: by component, or by group of components.

If several components share a table, its derivative is the sum of theirs, in a fixed order; the same holds for the
blocks of a large component. A thread works on whole groups or on a block, so the result has the same bits for any
number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.message_graph import edges_of
from isinglass.inference.message_passing.model.log_model import LinkModel
from isinglass.inference.message_passing.shares import Share, component_groups, shares_of
from isinglass.kernels.layout import Edges
from isinglass.potentials import Potentials
from isinglass.segments import sum_at
from isinglass.typing import Array, IntArray

CACHE_LINES = 16  # entries that keep what two threads write in different lines of a cache


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
        lambda: _Kept(table, _table_places(edges, model, potentials.graph)),
        lambda kept: kept.table is table,
    ).places


class _Kept(NamedTuple):
    table: IntArray
    places: TablePlaces


def _table_places(edges: Edges, model: LinkModel, graph: FactorGraph) -> TablePlaces:
    """Find them; tables that components use about once each are kept by groups: as many as links would be slow."""
    table, edge_table, psi, owner = model.table, model.edge_table, len(model.psi), edges.component
    n_components, blocks = graph.n_components, [share for share in shares_of(graph) if share.inner]
    if blocks:
        return _by_blocks(edges, model, blocks)
    last = np.zeros(psi, np.int64)
    last[table] = owner
    if (last[table] == owner).all():  # none is shared by several components
        return TablePlaces(table, edge_table, psi, None)
    keys, first, number = np.unique(owner * psi + table, return_index=True, return_inverse=True)
    if 2 * len(keys) > len(table):
        bounds = component_groups(edges, n_components)
        owner = np.searchsorted(bounds, owner, side="right") - 1
        keys, first, number = np.unique(owner * psi + table, return_index=True, return_inverse=True)
    starts, sources = _copies(edges, model, first)
    of_edges = starts[number][edges.edge_link] + _exchanged(edges, model)
    return TablePlaces(starts[number], of_edges, len(sources), _period(sources, len(np.unique(owner))))


def _exchanged(edges: Edges, model: LinkModel) -> IntArray:
    """Return how far behind the copy of a table the exchanged one begins that an edge uses."""
    turned: IntArray = (model.edge_table != model.table[edges.edge_link]) * edges.size[edges.edge_link]
    return turned


def _copies(edges: Edges, model: LinkModel, links: IntArray, apart: IntArray | int = 0) -> tuple[IntArray, IntArray]:
    """Lay out copies of the tables of some links; return where they begin, and the entry of psi of each of theirs.

    Behind each there is room for `apart` entries, to which nothing is added.
    """
    size, pairs = edges.size[links], np.diff(edges.first_slot)[links] == 2
    ends = np.cumsum(size + size * pairs + apart)
    starts = ends - size - size * pairs - apart
    turned = model.edge_table[edges.slot_edge[edges.first_slot[links]]]  # where the exchanged copy is, of a pair
    sources = np.zeros(int(ends[-1]), np.int64)
    for some, to, at in ((slice(None), starts, model.table[links]), (pairs, starts + size, turned)):
        lengths = size[some]
        inside = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        sources[np.repeat(to[some], lengths) + inside] = np.repeat(at[some], lengths) + inside
    return starts, sources


def _by_blocks(edges: Edges, model: LinkModel, blocks: list[Share]) -> TablePlaces:
    """Find the places where some components have blocks: a copy for the links of each, and one for its variables."""
    table, psi = model.table, len(model.psi)
    if len(np.unique(table)) == len(table):  # each link has its own
        return TablePlaces(table, model.edge_table, psi, None)
    of_link, of_variable = edges.component.copy(), edges.variable_component.copy()
    for name, (span, _) in enumerate(blocks, start=int(of_variable.max()) + 1):
        of_link[span.first_link : span.last_link] = name
        of_variable[span.first_variable : span.last_variable] = name
    owner = np.concatenate([of_link, np.repeat(of_variable, np.diff(edges.first_edge))])
    link = np.concatenate([np.arange(len(table)), edges.edge_link])
    _, first, number = np.unique(owner * psi + table[link], return_index=True, return_inverse=True)
    new_owner = np.diff(owner[first], append=-1) != 0
    starts, sources = _copies(edges, model, link[first], CACHE_LINES * new_owner)
    places = starts[number]
    return TablePlaces(places[: len(table)], places[len(table) :] + _exchanged(edges, model), len(sources), sources)


def _period(sources: IntArray, owners: int) -> IntArray:
    """Return the entries of the first owner, if all owners have the same ones; else those of all."""
    if len(sources) % owners:
        return sources
    rows = sources.reshape(owners, -1)
    return rows[0] if (rows == rows[0]).all() else sources
