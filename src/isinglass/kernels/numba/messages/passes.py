"""Whole passes over a graph: one iteration of flooding or of a sequence of links, and the read-out of beliefs.

    log Z  =  sum_a c_a log Z_a + sum_i c_i log Z_i,     c_i = 1 - sum_{a at i} c_a,

where Z_a and Z_i are the sums of psi_a prod n_ia and of phi_i prod m^c, neither of them normalised before. It holds at
a fixed point, where it is the (Bethe, tree-reweighted, ...) free energy, and it does not depend on how the messages m
are scaled.

Components that are not active are skipped; components do not influence each other. A pass only works on the
variables and links of a *span*, so that several can run in parallel.
"""

from __future__ import annotations

from isinglass.kernels.layout import SAFE
from isinglass.kernels.numba.arithmetic.indexing import card_of, first_of, ix
from isinglass.kernels.numba.arithmetic.semiring import linear, product, underflows
from isinglass.kernels.numba.messages.updates import (
    RAISED,
    advance,
    damp,
    divide_slots,
    edge_card,
    entry_underflows,
    normalise_row,
    one_underflows,
    raise_block,
    replace,
    sending_underflows,
    sum_link,
    to_links,
    to_one_link,
)
from isinglass.runtime.jit import compiled, inner


@inner
def all_to_links(edges, span, values, m, n, active, flagged, scratch, states, units, ring):
    """Send the messages of all active variables."""
    first_edge, start, first_state, cards = edges.first_edge, edges.start, edges.first_state, edges.cards
    component, phi, own, scale, limit = edges.variable_component, values.phi, scratch.own, scratch.scale, values.limit
    powered = scratch.powered if len(own) > 0 else m
    for i in range(span.first_variable, span.last_variable):
        if len(own) > 0 and (i - span.first_variable) % RAISED == 0:
            raise_block(i, span.last_variable, edges, values, m, active, scratch, states, ring)
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


@compiled
def read_out(edges, span, values, m, n, variables, factors, first_belief, z_i, z_a, active, flagged, scratch, states,
             units, ring):  # fmt: skip
    """Write normalised beliefs of variables and links (linear numbers), and Z_i and Z_a, as values of the ring.

    In the max semiring the Z are maxima; the beliefs are still scaled to sum to one. Where n is normalised, Z_a lacks
    its scale.
    """
    all_to_links(edges, span, values, m, n, active, flagged, scratch, states, units, ring)
    powered = scratch.powered if len(scratch.own) > 0 else m
    for i in range(span.first_variable, span.last_variable):
        c = edges.variable_component[ix(i)]
        if active[ix(c)]:
            z_i[i] = variable_belief(i, edges, values, powered, variables, states, ring)
    for f in range(span.first_link, span.last_link):
        c = edges.component[ix(f)]
        if active[ix(c)]:
            flagged[c] |= link_belief(f, edges, values, n, factors, first_belief[ix(f)], z_a, scratch, states, units,
                                      ring)  # fmt: skip


@inner
def variable_belief(i, edges, values, powered, variables, states, ring):
    """Write the belief of variable i. Returns Z_i."""
    card, at = card_of(i, edges.cards, states), first_of(i, edges.first_state, states)
    for k in range(card):
        run = values.phi[ix(at + k)]
        for e in range(edges.first_edge[ix(i)], edges.first_edge[ix(i + 1)]):
            run = product(run, powered[ix(first_of(e, edges.start, states) + k)], ring)
        variables[ix(at + k)] = run
    return to_distribution(variables, at, card, ring)


@inner
def link_belief(f, edges, values, n, factors, at, z_a, scratch, states, units, ring):
    """Write the belief of link f and Z_a. Returns whether a product underflowed."""
    first, last, slot_edge = edges.first_slot[ix(f)], edges.first_slot[ix(f + 1)], edges.slot_edge
    size = edges.size[ix(f)]
    if last - first == 2:
        low = pair_belief(slot_edge[ix(first)], slot_edge[ix(first + 1)], edges.start, values.psi,
                          values.table[ix(f)], n, factors, at, states, ring)  # fmt: skip
    else:
        low = any_belief(first, last, slot_edge, edges.start, values.psi, values.table[ix(f)], size, n, factors, at,
                         scratch.digits, states, ring)  # fmt: skip
    z_a[f] = to_distribution(factors, at, size, ring)
    return low


@inner
def pair_belief(e, g, start, psi, table, n, factors, at, states, ring):
    """Write psi n n for a pairwise link with edges e and g."""
    rows, columns = edge_card(start, e, states), edge_card(start, g, states)
    x0, y0, place, low = first_of(e, start, states), first_of(g, start, states), 0, False
    for x in range(rows):
        for y in range(columns):
            value, one, two = psi[ix(table + place)], n[ix(x0 + x)], n[ix(y0 + y)]
            part = product(value, one, ring)
            whole = product(part, two, ring)
            if len(ring) == 0 and whole.real < SAFE:
                low |= underflows(part, value, one, ring) or underflows(whole, part, two, ring)
            factors[ix(at + place)] = whole
            place += 1
    return low


@inner
def any_belief(first, last, slot_edge, start, psi, table, size, n, factors, at, digits, states, ring):
    """Write psi prod n for a link of any arity."""
    low = False
    for j in range(last - first):
        digits[ix(j)] = 0
    for entry in range(size):
        value = psi[ix(table + entry)]
        run = value
        for slot in range(first, last):
            place = first_of(slot_edge[ix(slot)], start, states) + digits[ix(slot - first)]
            run = product(run, n[ix(place)], ring)
        factors[ix(at + entry)] = run
        if len(ring) == 0 and run.real < SAFE:
            low |= entry_underflows(first, last, slot_edge, start, value, n, digits)
        advance(first, last, slot_edge, start, digits, states)
    return low


@inner
def to_distribution(values, first, size, ring):
    """Normalise, and turn into linear numbers that sum to one. Returns the scale."""
    scale = normalise_row(values, first, size, ring)
    for k in range(first, first + size):
        values[ix(k)] = linear(values[ix(k)], ring)
    if len(ring) == 2:
        total = values[first]
        for k in range(first + 1, first + size):
            total += values[k]
        for k in range(first, first + size):
            values[k] /= total
    return scale
