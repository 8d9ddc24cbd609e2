"""Flooding on a pairwise graph, and its reverse, variable by variable: what one sends needs no other's messages.

Where every link has two variables, i and j, the message that arrives at j is a function of what i sends alone, so that
n_ia lives in a row of scratch and one pass over the variables does an iteration. The arithmetic is that of `passes`, in
the same sequence: results agree with the general loops to the last bit, and a component gives the same answer alone
and beside others that need the general loops. Linear values only.
"""

from __future__ import annotations

from isinglass.kernels.numba.arithmetic.indexing import card_of, first_of, ix
from isinglass.kernels.numba.messages.updates import (
    RAISED,
    damp_row,
    divide_row,
    edge_card,
    raise_block,
    send,
    sending_underflows,
    to_links,
)
from isinglass.runtime.compilation.jit import compiled, inner


@compiled
def flood_pairs(edges, partner, span, values, m, new, damping, active, flagged, residual, watched, scratch, states,
                units):  # fmt: skip
    """One iteration of flooding, from the messages m to `new`; residuals only if it is `watched`."""
    first_edge, start, first_state, cards = edges.first_edge, edges.start, edges.first_state, edges.cards
    component, phi, psi, edge_table = edges.variable_component, values.phi, values.psi, values.edge_table
    own, row, scale, limit = scratch.own, scratch.row, scratch.scale, values.limit
    powered = scratch.powered if len(own) > 0 else m
    for c in range(span.first_component, span.last_component):
        residual[c] = 0
    for i in range(span.first_variable, span.last_variable):
        if len(own) > 0 and (i - span.first_variable) % RAISED == 0:
            raise_block(i, min(i + RAISED, span.last_variable), edges, values, m, active, scratch, ())
        c = component[ix(i)]
        first, last = first_edge[ix(i)], first_edge[ix(i + 1)]
        base = first_of(first, start, states)
        if not active[ix(c)]:
            for k in range(base, first_of(last, start, states)):
                new[k] = m[k]
            continue
        if to_links(i, first_edge, start, first_state, cards, phi, powered, own, row, base, scale, states, limit, units,
                    ()):  # fmt: skip
            flagged[c] |= sending_underflows(i, edges, values, powered, row, base)
        card, change = card_of(i, cards, states), 0.0
        for e in range(first, last):
            other = partner[ix(e)]
            to, outer = first_of(other, start, states), edge_card(start, other, states)
            sender = first_of(e, start, states) - base
            total = send(psi, edge_table[ix(e)], row, sender, card, new, to, outer, ())
            divide_row(new, to, outer, total, ())
            if damping != 0:
                damp_row(m, to, new, to, outer, damping, ())
            if watched:
                for k in range(outer):
                    moved = abs(new[ix(to + k)].real - m[ix(to + k)].real)
                    change = moved if moved > change else change
        residual[c] = max(residual[c], change)


@compiled
def flood_pairs_back(edges, partner, span, values, m, new_bar, bars, active, scratch, states, units):
    """Reverse one iteration that began with the messages m: from derivatives by the logs of the new messages (bars.m).

    `new_bar` are those by the logs of m. Every counting number is one, and there is no damping. With h_ja the
    derivative by log m_ja, made orthogonal to the normalisation, and s_ja the sum before it:

        w(x_i, x_j)  =  h_ja(x_j) psi(x_i, x_j) n_ia(x_i) / s_ja(x_j)        psi_bar += w,   t_ia(x_i) = sum_{x_j} w
        phi_i_bar   +=  sum_a t_ia                                          m_bi_bar = sum_{a != b} t_ia
    """
    first_edge, start, first_state, cards = edges.first_edge, edges.start, edges.first_state, edges.cards
    component, phi, psi, edge_table = edges.variable_component, values.phi, values.psi, values.edge_table
    row, back, raw, slope, own = scratch.row, scratch.back, scratch.raw, scratch.bar, scratch.own
    bar, phi_bar, psi_bar, bar_table = bars.m, bars.phi, bars.psi, bars.edge_table
    for i in range(span.first_variable, span.last_variable):
        first, last = first_edge[ix(i)], first_edge[ix(i + 1)]
        base = first_of(first, start, states)
        if not active[ix(component[ix(i)])]:
            for k in range(base, first_of(last, start, states)):
                new_bar[k] = bar[k]
            continue
        to_links(i, first_edge, start, first_state, cards, phi, m, own, row, base, scratch.scale, states, 0.0, units,
                 ())  # fmt: skip
        card = card_of(i, cards, states)
        for e in range(first, last):
            other = partner[ix(e)]
            to, outer = first_of(other, start, states), edge_card(start, other, states)
            sender, table = first_of(e, start, states) - base, edge_table[ix(e)]
            place = bar_table[ix(e)]
            total = send(psi, table, row, sender, card, raw, 0, outer, ())
            slopes(bar, to, raw, total, outer, slope)
            for x in range(card):
                message = row[ix(sender + x)]
                t = message * 0
                for y in range(outer):
                    weight = slope[ix(y)] * psi[ix(table + y * card + x)] * message
                    psi_bar[ix(place + y * card + x)] += weight
                    t += weight
                back[ix(sender + x)] = t
        at = first_of(i, first_state, states)
        for k in range(card):
            total = phi[ix(at + k)] * 0
            for e in range(first, last):
                total += back[ix(first_of(e, start, states) - base + k)]
            phi_bar[ix(at + k)] += total
            for e in range(first, last):
                s = first_of(e, start, states) + k
                new_bar[ix(s)] = total - back[ix(s - base)]


@inner
def slopes(bar, at, raw, total, card, slope):
    """Write h / s: the derivative by a message before its normalisation; zero where the message is."""
    mean = bar[ix(at)]
    for k in range(1, card):
        mean += bar[ix(at + k)]
    mean = mean / total if total.real != 0 else mean * 0
    for k in range(card):
        value = raw[ix(k)]
        slope[ix(k)] = bar[ix(at + k)] / value - mean if value.real != 0 else value * 0
