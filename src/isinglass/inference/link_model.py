"""A model as message passing sees it: potentials of variables, tables of links, and what they have in common.

Factors of arity one, and the evidence, are added to their variable's potential; constants go to log Z. Every potential
and table is scaled to a largest logarithm of zero, and what was taken out is kept, component by component.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isinglass.graph.edges import Edges, edges_of
from isinglass.graph.factor_graph import FactorGraph, iter_groups
from isinglass.inference.result import first_states
from isinglass.potentials import Potentials
from isinglass.validation import IntArray

if TYPE_CHECKING:
    from isinglass.kernels.numba.passes import Values
    from isinglass.kernels.numba.ring import Ring


_LOWEST = np.log(1e-290)


@dataclass(frozen=True, eq=False)
class LinkModel:
    """Log potentials of variables and effective log tables of links, each with a largest entry of zero."""

    phi: NDArray[Any]
    psi: NDArray[Any]
    table: IntArray
    counting: NDArray[np.float64]
    constant: NDArray[Any]  # (components,) what was taken out
    low: NDArray[np.bool_]  # (components,) whether an entry is too small for a linear value

    @classmethod
    def of(cls, potentials: Potentials, counting: NDArray[np.float64]) -> LinkModel:
        """Take a model apart; tables are divided by the counting numbers of their links."""
        graph, edges = potentials.graph, edges_of(potentials.graph)
        taken = np.zeros(graph.n_factors, potentials.dtype)  # summed in factor order, whatever the groups are
        constant = np.zeros(graph.n_components, potentials.dtype)
        low = np.zeros(graph.n_components, bool)
        phi = _own_potentials(potentials, edges, constant, taken)
        psi, table = _effective_tables(potentials, edges, counting, taken)
        np.add.at(constant, graph.factor_component, taken)
        tiny = (phi.real < _LOWEST) & (phi.real > -np.inf)
        low[np.repeat(edges.variable_component, edges.cards)[tiny]] = True
        short = (psi.real < _LOWEST) & (psi.real > -np.inf)
        starts = np.concatenate([[0], np.cumsum(short)])
        low[edges.component[starts[table + edges.size] > starts[table]]] = True
        return cls(phi, psi, table, counting, constant, low)

    def values(self, ring: Ring) -> Values:
        """Return the numbers in the representation of a ring."""
        from isinglass.kernels.numba.passes import Values

        if len(ring):
            return Values(self.phi, self.psi, self.table, self.counting)
        return Values(np.exp(self.phi), np.exp(self.psi), self.table, self.counting)


def _own_potentials(potentials: Potentials, edges: Edges, constant: NDArray[Any], taken: NDArray[Any]) -> NDArray[Any]:
    """Add the factors of arity one and the evidence; take out each variable's largest entry."""
    graph = potentials.graph
    phi = np.zeros(edges.first_state[-1], potentials.dtype)
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        if group.arity == 1:
            np.add.at(phi, unary_places(graph, group.scopes, group.shape[0]).ravel(), tables[ids].ravel())
        elif group.arity == 0:
            taken[group.factors] = tables[ids]
    for variable, state in potentials.evidence.items():
        others = np.arange(edges.first_state[variable], edges.first_state[variable + 1])
        phi[others[others != edges.first_state[variable] + state]] = -np.inf
    if len(phi):
        tops = np.maximum.reduceat(phi.real, edges.first_state[:-1])
        np.add.at(constant, edges.variable_component, tops)
        phi -= np.repeat(np.where(tops > -np.inf, tops, 0.0), edges.cards)
    return phi


def _effective_tables(
    potentials: Potentials, edges: Edges, counting: NDArray[np.float64], taken: NDArray[Any]
) -> tuple[NDArray[Any], IntArray]:
    """Scale tables to a largest entry of zero and divide by the counting number; keep them shared if all are one."""
    graph = potentials.graph
    link_of = _link_of(graph, edges)
    table = np.zeros(len(edges.link_factor), np.int64)
    parts: list[NDArray[Any]] = [np.zeros(0, potentials.dtype)]
    offset = 0
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        if group.arity < 2 or not len(group):
            continue
        rows = tables.reshape(len(tables), -1)
        tops = np.maximum.reduce(np.ascontiguousarray(rows.real.T))  # much faster than along short rows
        scaled = rows - np.where(tops > -np.inf, tops, 0.0)[:, None]
        links = link_of[group.factors]
        taken[group.factors] = tops[ids]
        if (counting[links] != 1).any():
            scaled, ids = scaled[ids], np.arange(len(links))
            np.divide(scaled, counting[links][:, None], out=scaled, where=scaled.real > -np.inf)
        table[links] = offset + ids * group.table_size
        parts.append(scaled.ravel())
        offset += scaled.size
    return np.concatenate(parts), table


def unary_places(graph: FactorGraph, scopes: IntArray, card: int) -> IntArray:
    """Return where the states of the variables of factors of arity one are in a flat vector, (factors, card)."""
    places: IntArray = first_states(graph)[scopes[:, 0]][:, None] + np.arange(card)
    return places


def share_unary_beliefs(graph: FactorGraph, variables: NDArray[Any], factors: NDArray[Any]) -> None:
    """Give factors of arity one their variable's belief, and constants theirs."""
    for group, part in iter_groups(graph):
        if group.arity == 0:
            factors[part] = 1
        elif group.arity == 1:
            factors[part] = variables[unary_places(graph, group.scopes, group.shape[0])].ravel()


def move_unary_bars(graph: FactorGraph, factors_bar: NDArray[Any], variables_bar: NDArray[Any]) -> None:
    """Add derivatives by the beliefs of factors of arity one to those by their variables' beliefs, which they are."""
    for group, part in iter_groups(graph):
        if group.arity == 1:
            bars = factors_bar[part]
            np.add.at(variables_bar, unary_places(graph, group.scopes, group.shape[0]).ravel(), bars.ravel())


def table_gradients(
    potentials: Potentials, phi_bar: NDArray[Any], link_bar: NDArray[Any], first_bar: IntArray, z_bar: NDArray[Any]
) -> tuple[NDArray[Any], ...]:
    """Sum derivatives by potentials of variables and tables of links (link by link) to those by distinct tables."""
    graph = potentials.graph
    link_of = _link_of(graph, edges_of(graph))
    groups = []
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        bar = np.zeros((len(tables), group.table_size), phi_bar.dtype)
        if group.arity == 0:
            np.add.at(bar, ids, z_bar[graph.factor_component[group.factors]][:, None])
        elif group.arity == 1:
            np.add.at(bar, ids, phi_bar[unary_places(graph, group.scopes, group.shape[0])])
        else:
            at = first_bar[link_of[group.factors]][:, None] + np.arange(group.table_size)
            np.add.at(bar, ids, link_bar[at])
        groups.append(bar.reshape(tables.shape))
    return tuple(groups)


def _link_of(graph: FactorGraph, edges: Edges) -> IntArray:
    """Return the link that each factor is, or -1."""
    link_of = np.full(graph.n_factors, -1, np.int64)
    link_of[edges.link_factor] = np.arange(len(edges.link_factor))
    return link_of
