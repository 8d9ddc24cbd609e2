"""The possible values of messages and log Z, given the potentials: proved hard zeros, and the range of log Z."""

from __future__ import annotations

import numpy as np

from isinglass.graph.message_graph import edges_of
from isinglass.inference.support import support_of
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray


def without_unproved_zeros(potentials: Potentials, messages: Array) -> Array:
    """Make messages uniform that forbid a state which the potentials, by arc consistency, do not.

    A hard zero in a message never changes again. One that comes from evidence which is no longer given would be wrong.
    """
    zero = messages.real == -np.inf
    if not zero.any():
        return messages
    edges, cards = edges_of(potentials.graph), np.diff(edges_of(potentials.graph).start)
    variable = np.repeat(np.arange(len(edges.cards)), np.diff(edges.first_edge))
    state = np.arange(len(messages)) - np.repeat(edges.start[:-1], cards)
    left = support_of(potentials).states[np.repeat(edges.first_state[variable], cards) + state]
    wrong = np.zeros(len(cards), bool)
    wrong[np.repeat(np.arange(len(cards)), cards)[zero & left]] = True
    return np.where(np.repeat(wrong, cards), -np.log(np.repeat(cards, cards)), messages)


def log_z_range(potentials: Potentials, counting: FloatArray) -> tuple[Array, Array]:
    """Return a lower and an upper limit of log Z of each component, for any beliefs (a little wider for rounding).

    It is an average of log tables, plus entropies H_a of c_a factors and H_i of 1 - sum c_a variables.
    """
    graph, edges = potentials.graph, edges_of(potentials.graph)
    low, high = np.zeros(graph.n_factors), np.zeros(graph.n_factors)
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        rows = tables.real.reshape(len(tables), group.table_size)
        low[group.factors] = np.where(rows > -np.inf, rows, np.inf).min(axis=1, initial=np.inf)[ids]
        high[group.factors] = rows.max(axis=1, initial=-np.inf)[ids]
    n, owner = graph.n_components, edges.variable_component
    link = np.repeat(np.arange(len(edges.size)), np.diff(edges.first_slot))
    of_variable = 1.0 - np.bincount(edges.slot_variable, counting[link], len(edges.cards))
    entropy = of_variable * np.log(edges.cards)
    least = np.bincount(graph.factor_component, low, n) + np.bincount(owner, np.minimum(entropy, 0), n)
    most = np.bincount(graph.factor_component, high, n) + np.bincount(owner, np.maximum(entropy, 0), n)
    most = most + np.bincount(edges.component, counting * np.log(edges.size), n)
    slack = 1e-6 * (1 + np.abs(least) + np.abs(most))
    return least - slack, most + slack


def imaginary_steps(potentials: Potentials) -> FloatArray:
    """Return the largest imaginary part of a log table of each component; nothing if they are real."""
    graph = potentials.graph
    if potentials.dtype.kind != "c":
        return np.zeros(0)
    steps = np.zeros(graph.n_components)
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        largest = np.abs(tables.imag).reshape(len(tables), group.table_size).max(axis=1, initial=0.0)
        np.maximum.at(steps, graph.factor_component[group.factors], largest[ids])
    return steps
