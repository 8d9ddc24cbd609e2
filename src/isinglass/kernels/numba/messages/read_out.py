"""The read-out of beliefs: those of variables, and those of links.

    b_i  =  phi_i prod_a m_ai^c / Z_i,        b_a  =  psi_a prod_i n_ia / Z_a,

    log Z  =  sum_a c_a log Z_a + sum_i c_i log Z_i,     c_i = 1 - sum_{a at i} c_a,

where Z_i and Z_a are the sums of what is divided by them. It holds at a fixed point, where it is the (Bethe,
tree-reweighted, ...) free energy, and it does not depend on how the messages m are scaled.

Components that are not active are skipped. In the max semiring the Z are maxima; beliefs are still scaled to sum to
one.
"""

from __future__ import annotations

from isinglass.kernels.layout import SAFE
from isinglass.kernels.numba.arithmetic.indexing import card_of, first_of, ix
from isinglass.kernels.numba.arithmetic.semiring import linear, product, takes_largest, underflows
from isinglass.kernels.numba.messages.passes import all_to_links
from isinglass.kernels.numba.messages.updates import advance, edge_card, entry_underflows, normalise_row
from isinglass.runtime.compilation.jit import compiled, inner


@compiled
def read_out_variables(edges, span, values, m, variables, z_i, active, scratch, states, ring):
    """Write normalised beliefs of variables (linear numbers), and Z_i, as values of the ring.

    Where counting numbers differ from one, a pass over links has left the powers of messages in ``scratch.powered``.
    """
    powered = scratch.powered if len(scratch.own) > 0 else m
    for i in range(span.first_variable, span.last_variable):
        c = edges.variable_component[ix(i)]
        if active[ix(c)]:
            z_i[i] = variable_belief(i, edges, values, powered, variables, states, ring)


@compiled
def read_out_links(
    edges, span, values, m, n, factors, first_belief, z_a, active, flagged, scratch, states, units, ring
):
    """Write normalised beliefs of links (linear numbers), and Z_a, as values of the ring.

    Where n is normalised, Z_a lacks its scale.
    """
    all_to_links(edges, span, values, m, n, active, flagged, scratch, states, units, ring)
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
    if takes_largest(ring):
        total = values[first]
        for k in range(first + 1, first + size):
            total += values[k]
        for k in range(first, first + size):
            values[k] /= total
    return scale
