"""Whole passes over a graph: one iteration of flooding or of a sequence of links, and the read-out of beliefs.

    log Z  =  sum_a c_a log Z_a + sum_i c_i log Z_i + sum_{(i,a)} c_a log Z_ia,   c_i = 1 - sum_{a at i} c_a,

where Z_a, Z_i and Z_ia are the sums that normalise b_a, b_i and n_ia. It holds at a fixed point, where it is the
(Bethe, tree-reweighted, ...) free energy, and it does not depend on how the messages are scaled.

Components that are not active are passed over; what happens in one never reaches another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isinglass.compilation import compiled
from isinglass.kernels.numba.messages import (
    advance,
    damp,
    others,
    raise_messages,
    replace,
    to_links,
    to_one_link,
    to_variables,
)
from isinglass.kernels.numba.ring import linear, logarithm, normalise, product, underflows
from isinglass.validation import IntArray


class Values(NamedTuple):
    """The numbers of a model, in the representation of a ring."""

    phi: np.ndarray  # potentials of the variables, flat
    psi: np.ndarray  # effective tables, flat
    table: IntArray  # (links,) where a link's effective table starts
    counting: np.ndarray  # (links,)


class Scratch(NamedTuple):
    """Working memory."""

    powered: np.ndarray  # m^c; empty if every c is one
    own: np.ndarray  # m^(c - 1); empty if every c is one
    row: np.ndarray  # a variable's states
    out: np.ndarray  # the messages of one link
    raw: np.ndarray  # the same, unnormalised
    bar: np.ndarray  # their derivatives
    prefix: np.ndarray  # a link's slots
    digits: IntArray


@compiled
def all_to_links(edges, values, m, n, scale, belief, active, flagged, scratch, units, ring):
    """Send the messages of all active variables; leave their unnormalised beliefs."""
    first_edge, start, first_state, cards = edges.first_edge, edges.start, edges.first_state, edges.cards
    component, phi, own, row = edges.variable_component, values.phi, scratch.own, scratch.row
    powered = m
    if len(own) > 0:
        powered = scratch.powered
        raise_messages(m, start, edges.edge_link, values.counting, powered, own, ring)
    for i in range(len(cards)):
        if active[component[i]]:
            flagged[component[i]] |= to_links(i, first_edge, start, first_state, cards, phi, powered, own, n,
                                              scale, belief, row, units, ring)  # fmt: skip


@compiled
def flood(edges, values, m, n, scale, belief, damping, active, flagged, residual, scratch, units, ring):
    """One iteration of flooding: all variables send, then all links. `n` keeps what the variables sent."""
    all_to_links(edges, values, m, n, scale, belief, active, flagged, scratch, units, ring)
    start, first_slot, slot_edge, component = edges.start, edges.first_slot, edges.slot_edge, edges.component
    size, psi, table = edges.size, values.psi, values.table
    out, prefix, digits = scratch.out, scratch.prefix, scratch.digits
    residual[:] = 0
    for f in range(len(component)):
        c = component[f]
        if active[c]:
            first, last = first_slot[f], first_slot[f + 1]
            flagged[c] |= to_variables(first, last, slot_edge, start, psi, table[f], size[f], n, out, prefix,
                                       digits, units, ring)  # fmt: skip
            damp(m, out, first, last, slot_edge, start, damping, ring)
            residual[c] = max(residual[c], replace(m, out, first, last, slot_edge, start, ring))


@compiled
def follow(edges, values, sequence, m, n, log, damping, active, flagged, residual, scratch, units, ring):
    """One iteration of a sequence of links. `log`, if not empty, keeps the messages that were overwritten."""
    start, first_slot, slot_edge, component = edges.start, edges.first_slot, edges.slot_edge, edges.component
    first_edge, first_state, cards, slot_variable = (
        edges.first_edge,
        edges.first_state,
        edges.cards,
        edges.slot_variable,
    )
    size, phi, psi, table, counting = edges.size, values.phi, values.psi, values.table, values.counting
    edge_link, out, prefix, digits = edges.edge_link, scratch.out, scratch.prefix, scratch.digits
    residual[:] = 0
    logged = 0
    for f in sequence:
        c = component[f]
        first, last = first_slot[f], first_slot[f + 1]
        if len(log) > 0:
            logged = keep(m, first, last, slot_edge, start, log, logged)
        if not active[c]:
            continue
        low = False
        for slot in range(first, last):
            low |= to_one_link(slot_edge[slot], slot_variable[slot], first_edge, start, first_state, cards, phi, m,
                               counting, edge_link, n, ring)  # fmt: skip
        low |= to_variables(first, last, slot_edge, start, psi, table[f], size[f], n, out, prefix, digits, units,
                            ring)  # fmt: skip
        flagged[c] |= low
        damp(m, out, first, last, slot_edge, start, damping, ring)
        residual[c] = max(residual[c], replace(m, out, first, last, slot_edge, start, ring))


@compiled
def keep(m, first, last, slot_edge, start, log, logged):
    """Copy the messages of a link to the log. Returns where the next ones go."""
    for slot in range(first, last):
        for k in range(start[slot_edge[slot]], start[slot_edge[slot] + 1]):
            log[logged] = m[k]
            logged += 1
    return logged


@compiled
def read_out(edges, values, m, n, log_scale, variables, factors, first_belief, log_zi, log_za, active, flagged,
             scratch, units, ring):  # fmt: skip
    """Write normalised beliefs of variables and links (linear numbers) and the logs of Z_i, Z_a and Z_ia.

    In the max semiring the Z are maxima; the beliefs are still scaled to sum to one.
    """
    all_to_links(edges, values, m, n, log_scale, variables, active, flagged, scratch, units, ring)
    for e in range(len(edges.edge_link)):
        if active[edges.component[edges.edge_link[e]]]:
            log_scale[e] = logarithm(log_scale[e], ring)
    first_state = edges.first_state
    for i in range(len(edges.cards)):
        if active[edges.variable_component[i]]:
            log_zi[i] = to_distribution(variables, first_state[i], first_state[i + 1], ring)
    for f in range(len(edges.component)):
        if active[edges.component[f]]:
            flagged[edges.component[f]] |= link_belief(f, edges, values, n, factors, first_belief[f], log_za, scratch,
                                                       units, ring)  # fmt: skip


@compiled
def link_belief(f, edges, values, n, factors, at, log_za, scratch, units, ring):
    """Write the belief of link f and log Z_a. Returns whether a product underflowed."""
    first, last = edges.first_slot[f], edges.first_slot[f + 1]
    low = False
    for j in range(last - first):
        scratch.digits[j] = 0
    for entry in range(edges.size[f]):
        value = values.psi[values.table[f] + entry]
        low |= others(first, last, edges.slot_edge, edges.start, value, n, scratch.prefix, scratch.digits, units, ring)
        own = n[edges.start[edges.slot_edge[first]] + scratch.digits[0]]
        factors[at + entry] = product(scratch.prefix[0], own, ring)
        low |= underflows(factors[at + entry], scratch.prefix[0], own, ring)
        advance(first, last, edges.slot_edge, edges.start, scratch.digits)
    log_za[f] = to_distribution(factors, at, at + edges.size[f], ring)
    return low


@compiled
def to_distribution(values, first, last, ring):
    """Normalise, and turn into linear numbers that sum to one. Returns the log of the scale."""
    scale = normalise(values, first, last, ring)
    for k in range(first, last):
        values[k] = linear(values[k], ring)
    if len(ring) == 2:
        total = values[first].real
        for k in range(first + 1, last):
            total += values[k].real
        for k in range(first, last):
            values[k] /= total
    return logarithm(scale, ring)
