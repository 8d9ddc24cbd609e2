"""What exact inference by variable elimination would cost, before any of it is done."""

from __future__ import annotations

from collections.abc import Sequence

from isinglass.errors import MissingDependencyError
from isinglass.graph.elimination.order import EliminationOrder, elimination_order
from isinglass.graph.factor_graph import FactorGraph
from isinglass.typing import Array

TABLE_COPIES = 5  # of all log tables, that preparing them takes at most
STRUCTURE_BYTES = 160  # index arrays, for each variable, factor and slot


def exact_bytes(graph: FactorGraph, order: EliminationOrder, tables: Sequence[Array]) -> float:
    """Return the bytes that exact inference may take: messages and working tables, tables, beliefs, structure."""
    size = max((t.itemsize for t in tables), default=8)
    entries = sum(t.size for t in tables)
    beliefs = sum(len(g) * g.table_size for g in graph.groups) + int(graph.cards.sum())
    structure = STRUCTURE_BYTES * (graph.n_variables + graph.n_factors + len(graph.flat_scopes.variable))
    return size / 8 * order.bytes + size * (TABLE_COPIES * entries + beliefs) + structure


def exact_cost(graph: FactorGraph, clamped: Sequence[int], tables: Sequence[Array]) -> str:
    """Say what exact inference would cost. The first call for a graph searches an elimination order."""
    try:
        order = elimination_order(graph, clamped=tuple(clamped))
    except MissingDependencyError:
        return "width unknown (Numba is not installed)"
    return f"{order.width_text}: exact needs {order.bytes_text(exact_bytes(graph, order, tables))}"
