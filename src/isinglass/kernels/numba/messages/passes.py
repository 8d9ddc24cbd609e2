"""Whole passes over a graph: one iteration of flooding or of a sequence of links.

Components that are not active are skipped; components do not influence each other. A pass only works on the
variables and links of a *span*, so that several can run in parallel.
"""

from __future__ import annotations

from isinglass.kernels.numba.arithmetic.indexing import first_of, ix
from isinglass.kernels.numba.messages.updates import (
    RAISED,
    damp,
    divide_slots,
    edge_card,
    one_underflows,
    raise_block,
    replace,
    sending_underflows,
    sum_link,
    to_links,
    to_one_link,
)
from isinglass.runtime.compilation.jit import apart, compiled, inner


@inner
def all_to_links(edges, span, values, m, n, active, flagged, scratch, states, units, ring):
    """Send the messages of all active variables."""
    first, last = span.first_variable, span.last_variable
    if len(scratch.own) == 0:
        some_to_links(first, last, edges, values, m, n, active, flagged, scratch, states, units, ring)
        return
    for i in range(first, last, RAISED):
        stop = min(i + RAISED, last)
        raise_block(i, stop, edges, values, m, active, scratch, ring)
        some_to_links(i, stop, edges, values, m, n, active, flagged, scratch, states, units, ring)


@apart
def some_to_links(first, last, edges, values, m, n, active, flagged, scratch, states, units, ring):
    """Send the messages of the active ones among the variables ``first:last``; their powers are in `scratch`."""
    first_edge, start, first_state, cards = edges.first_edge, edges.start, edges.first_state, edges.cards
    component, phi, own, scale, limit = edges.variable_component, values.phi, scratch.own, scratch.scale, values.limit
    powered = scratch.powered if len(own) > 0 else m
    for i in range(first, last):
        c = component[ix(i)]
        if not active[ix(c)]:
            continue
        if to_links(i, first_edge, start, first_state, cards, phi, powered, own, n, 0, scale, states, limit, units,
                    ring):  # fmt: skip
            flagged[c] |= sending_underflows(i, edges, values, powered, n, 0)


@compiled
def flood(edges, span, values, m, new, n, damping, active, flagged, residual, scratch, states, units, ring):
    """One iteration of flooding, from the messages m to `new`: all variables send, then all links."""
    all_to_links(edges, span, values, m, n, active, flagged, scratch, states, units, ring)
    start, first_slot, slot_edge, component = edges.start, edges.first_slot, edges.slot_edge, edges.component
    out, totals, prefix, digits = scratch.out, scratch.totals, scratch.prefix, scratch.digits
    for c in range(span.first_component, span.last_component):
        residual[c] = 0
    for f in range(span.first_link, span.last_link):
        c = component[ix(f)]
        first, last = first_slot[ix(f)], first_slot[ix(f + 1)]
        if not active[ix(c)]:
            carry(m, new, first, last, slot_edge, start, states)
            continue
        flagged[c] |= sum_link(first, last, slot_edge, start, values.psi, values.table[f], values.edge_table,
                               edges.size[f], n, out, totals, prefix, digits, states, units, ring)  # fmt: skip
        divide_slots(first, last, slot_edge, start, out, totals, states, ring)
        damp(m, out, first, last, slot_edge, start, damping, states, ring)
        residual[c] = max(residual[c], replace(m, new, out, first, last, slot_edge, start, states, ring))


@inner
def carry(m, new, first, last, slot_edge, start, states):
    """Copy the messages of a link that is not updated."""
    for slot in range(first, last):
        s = first_of(slot_edge[slot], start, states)
        for k in range(s, s + edge_card(start, slot_edge[slot], states)):
            new[k] = m[k]


@compiled
def update_in_sequence(
    edges, values, sequence, m, n, log, damping, active, flagged, residual, scratch, states, units, ring
):
    """One iteration of a sequence of links. `log`, if not empty, keeps the messages that were overwritten."""
    first_slot, slot_edge, component = edges.first_slot, edges.slot_edge, edges.component
    residual[:] = 0
    logged = 0
    for f in sequence:
        c = component[ix(f)]
        first, last = first_slot[ix(f)], first_slot[ix(f + 1)]
        if len(log) > 0:
            logged = keep(m, first, last, slot_edge, edges.start, log, logged, states)
        if active[ix(c)]:
            flagged[c] |= gather(f, edges, values, m, n, scratch, states, ring)
            flagged[c] |= compute(f, edges, values, m, n, damping, scratch, states, units, ring)
            change = replace(m, m, scratch.out, first, last, slot_edge, edges.start, states, ring)
            residual[c] = max(residual[c], change)


@inner
def gather(f, edges, values, m, n, scratch, states, ring):
    """Write what its variables send to link f, from the current messages. Returns whether a product underflowed."""
    low = False
    for slot in range(edges.first_slot[ix(f)], edges.first_slot[ix(f + 1)]):
        e, i = edges.slot_edge[ix(slot)], edges.slot_variable[ix(slot)]
        if to_one_link(e, i, edges.first_edge, edges.start, edges.first_state, edges.cards, values.phi, m,
                       values.counting, edges.edge_link, scratch.own, n, states, values.limit, ring):  # fmt: skip
            low |= one_underflows(e, i, edges, values, m, n)
    return low


@inner
def compute(f, edges, values, m, n, damping, scratch, states, units, ring):
    """Leave the new messages of link f in scratch.out, from what its variables send. Returns an underflow flag."""
    first, last, slot_edge = edges.first_slot[ix(f)], edges.first_slot[ix(f + 1)], edges.slot_edge
    low = sum_link(first, last, slot_edge, edges.start, values.psi, values.table[ix(f)], values.edge_table,
                   edges.size[ix(f)], n, scratch.out, scratch.totals, scratch.prefix, scratch.digits, states, units,
                   ring)  # fmt: skip
    divide_slots(first, last, slot_edge, edges.start, scratch.out, scratch.totals, states, ring)
    damp(m, scratch.out, first, last, slot_edge, edges.start, damping, states, ring)
    return low


@inner
def keep(m, first, last, slot_edge, start, log, logged, states):
    """Copy the messages of a link to the log. Returns where the next ones go."""
    for slot in range(first, last):
        s = first_of(slot_edge[ix(slot)], start, states)
        for k in range(edge_card(start, slot_edge[ix(slot)], states)):
            log[ix(logged)] = m[ix(s + k)]
            logged += 1
    return logged
