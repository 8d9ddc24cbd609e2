"""The reverse of message passing: derivatives by the *logarithms* of messages and tables.

A bar marks the derivative of the loss by the logarithm of a quantity.

    read-out   b = exp(t) / Z:  t_bar = b (d - <b, d>) + z c b,  with d the derivative by b itself, z that by log Z and
               c the counting number of the region (log Z of each region enters log Z with c)
    links      m_i(x_i) ~ sum psi prod_{j != i} n_j.  With h_i the derivative by log m_i, made orthogonal to the
               normalisation, and w_i(x_a) = h_i(x_i) psi prod_{j != i} n_j / m_i(x_i):
               psi_bar(x_a) += sum_i w_i,   n_j_bar(x_j) += sum_{x_a with x_j} sum_{i != j} w_i
    variables  log n_ia = log phi_i + sum_b c_b log m_bi - log m_ai.  With t_ia = n_ia_bar:
               phi_i_bar += t_ia,  m_bi_bar += c_b t_ia,  m_ai_bar -= t_ia,  c_b_bar += <t_ia, log m_bi>

(Domke 2009, chapter 5; Stoyanov, Ropson and Eisner 2011, appendix A, with the beliefs of (14) and (15) exchanged.)
The projection onto the normalisation of m is zero in exact arithmetic; it stays, or rounding grows with every
iteration. In the max semiring a sum is its largest term, and so is the derivative; at a tie, the first of them.
"""

from __future__ import annotations

from isinglass.kernels.numba.arithmetic.indexing import card_of, first_of, ix
from isinglass.kernels.numba.arithmetic.semiring import is_zero, linear, logarithm, share, takes_largest
from isinglass.kernels.numba.messages.passes import all_to_links, gather
from isinglass.kernels.numba.messages.updates import advance, damp_row, divide_slots, edge_card, others, sum_link
from isinglass.runtime.compilation.jit import compiled, inner


@inner
def center(bar, values, at, card, ring):
    """Project a derivative onto the normalisation: bar -= value * sum(bar), or, of a maximum, from its entry."""
    total = bar[ix(at)]
    for k in range(1, card):
        total += bar[ix(at + k)]
    if takes_largest(ring):
        bar[ix(at + first_largest(values, at, card))] -= total
        return
    for k in range(at, at + card):
        bar[ix(k)] -= linear(values[ix(k)], ring) * total


@inner
def first_largest(values, at, size):
    """Return which of some values is the largest, the first one at a tie."""
    best = 0
    for k in range(1, size):
        if values[ix(at + k)].real > values[ix(at + best)].real:
            best = k
    return best


@inner
def weights_back(first, last, slot_edge, start, psi, at, size, n, raw, bar, n_bar, psi_bar, to, prefix, digits, states,
                 units, ring):  # fmt: skip
    """Reverse `sum_link`: from derivatives by the logs of its sums (`bar`; the sums are `raw`) to n_bar and psi_bar."""
    for slot in range(first, last):
        digits[ix(slot - first)] = 0
        s = first_of(slot_edge[ix(slot)], start, states)
        for k in range(edge_card(start, slot_edge[ix(slot)], states)):
            n_bar[ix(s + k)] = 0
    for entry in range(size):
        others(first, last, slot_edge, start, psi[ix(at + entry)], n, prefix, digits, states, units, ring)
        total = bar[0] * 0
        place = 0
        for slot in range(first, last):
            k = ix(place + digits[ix(slot - first)])
            weight = bar[k] * 0
            if not (is_zero(raw[k], ring) or is_zero(prefix[ix(slot - first)], ring)):
                weight = bar[k] * share(prefix[ix(slot - first)], raw[k], ring)
                if takes_largest(ring):
                    bar[k] -= weight  # the entry that attains the maximum takes it all; another one gets nothing
            prefix[ix(slot - first)] = weight
            total += weight
            place += edge_card(start, slot_edge[ix(slot)], states)
        psi_bar[ix(to + entry)] += total
        for slot in range(first, last):
            s = first_of(slot_edge[ix(slot)], start, states)
            n_bar[ix(s + digits[ix(slot - first)])] += total - prefix[ix(slot - first)]
        advance(first, last, slot_edge, start, digits, states)


@inner
def link_back(f, edges, values, m, n, bars, damping, scratch, states, units, ring):
    """Reverse the update of link f from the old messages m and the messages n: m_bar to n_bar, psi_bar, old m_bar."""
    first, last = edges.first_slot[ix(f)], edges.first_slot[ix(f + 1)]
    slot_edge, start, raw, out, bar = edges.slot_edge, edges.start, scratch.raw, scratch.out, scratch.bar
    at, size = values.table[ix(f)], edges.size[ix(f)]
    sum_link(first, last, slot_edge, start, values.psi, at, values.edge_table, size, n, raw, scratch.totals,
             scratch.prefix, scratch.digits, states, units, ring)  # fmt: skip
    place = 0
    for slot in range(first, last):
        s = first_of(slot_edge[ix(slot)], start, states)
        for k in range(edge_card(start, slot_edge[ix(slot)], states)):
            out[ix(place)] = raw[ix(place)]
            bar[ix(place)] = bars.m[ix(s + k)]
            bars.m[ix(s + k)] = 0
            place += 1
    divide_slots(first, last, slot_edge, start, out, scratch.totals, states, ring)
    place = 0
    for slot in range(first, last):
        card = edge_card(start, slot_edge[ix(slot)], states)
        if damping != 0:
            s = first_of(slot_edge[ix(slot)], start, states)
            damping_back(s, card, place, m, out, scratch.mixed, bar, bars, damping, ring)
        center(bar, out, place, card, ring)
        place += card
    weights_back(first, last, slot_edge, start, values.psi, at, size, n, raw, bar, bars.n, bars.psi, bars.table[ix(f)],
                 scratch.prefix, scratch.digits, states, units, ring)  # fmt: skip


@inner
def damping_back(s, card, place, m, out, mixed, bar, bars, damping, ring):
    """Reverse the damping of one message: bar becomes the derivative by log m_new, bars.m that by log m_old."""
    for k in range(place, place + card):
        mixed[ix(k)] = out[ix(k)]
    damp_row(m, s, mixed, place, card, damping, ring)
    center(bar, mixed, place, card, ring)
    for k in range(card):
        if not is_zero(m[ix(s + k)], ring) and not is_zero(out[ix(place + k)], ring):
            difference = logarithm(m[ix(s + k)], ring) - logarithm(out[ix(place + k)], ring)
            bars.damping[0] += bar[ix(place + k)] * difference
        bars.m[ix(s + k)] = damping * bar[ix(place + k)]
        bar[ix(place + k)] *= 1 - damping


@inner
def variable_back(i, edges, m, bars, row, counting, states, ring):
    """Reverse all messages of variable i to its links, and its belief (whose derivative is `row`)."""
    first_edge, start, edge_link = edges.first_edge, edges.start, edges.edge_link
    card, at = card_of(i, edges.cards, states), first_of(i, edges.first_state, states)
    for k in range(card):
        total = row[ix(k)]
        for e in range(first_edge[ix(i)], first_edge[ix(i + 1)]):
            total += bars.n[ix(first_of(e, start, states) + k)]
        bars.phi[ix(at + k)] += total
        for e in range(first_edge[ix(i)], first_edge[ix(i + 1)]):
            s = ix(first_of(e, start, states) + k)
            bars.m[s] += counting[ix(edge_link[ix(e)])] * total - bars.n[s]
            if len(bars.counting) > 0 and not is_zero(m[s], ring):
                bars.counting[edge_link[e]] += total * logarithm(m[s], ring)


@inner
def one_edge_back(e, i, edges, m, bars, counting, states, ring):
    """Reverse `to_one_link`: the derivative bars.n on edge e reaches phi_i and all messages at i."""
    first_edge, start, edge_link = edges.first_edge, edges.start, edges.edge_link
    at, place = first_of(i, edges.first_state, states), first_of(e, start, states)
    for k in range(card_of(i, edges.cards, states)):
        t = bars.n[ix(place + k)]
        bars.phi[ix(at + k)] += t
        for f in range(first_edge[ix(i)], first_edge[ix(i + 1)]):
            s = ix(first_of(f, start, states) + k)
            bars.m[s] += counting[ix(edge_link[ix(f)])] * t
            if len(bars.counting) > 0 and not is_zero(m[s], ring):
                bars.counting[edge_link[f]] += t * logarithm(m[s], ring)
        bars.m[ix(place + k)] -= t


@compiled
def flood_back(edges, span, values, m, n, bars, damping, active, flagged, sent, scratch, states, units, ring):
    """Reverse one iteration of flooding that began with the messages m; n holds what they send, if it was `sent`."""
    if not sent:
        all_to_links(edges, span, values, m, n, active, flagged, scratch, states, units, ring)
    for f in range(span.first_link, span.last_link):
        if active[edges.component[f]]:
            link_back(f, edges, values, m, n, bars, damping, scratch, states, units, ring)
    row = scratch.row
    for i in range(span.first_variable, span.last_variable):
        if active[edges.variable_component[i]]:
            for k in range(edges.cards[i]):
                row[k] = 0
            variable_back(i, edges, m, bars, row, values.counting, states, ring)


@compiled
def update_in_sequence_back(
    edges, values, sequence, m, n, log, logged, bars, damping, active, scratch, states, units, ring
):
    """Reverse a sequence of links, last first; m is brought back to what it was, from the log that ends at `logged`."""
    start, first_slot, slot_edge, slot_variable = edges.start, edges.first_slot, edges.slot_edge, edges.slot_variable
    for j in range(len(sequence) - 1, -1, -1):
        f = sequence[j]
        first, last = first_slot[ix(f)], first_slot[ix(f + 1)]
        for slot in range(last - 1, first - 1, -1):
            s = first_of(slot_edge[ix(slot)], start, states)
            for k in range(edge_card(start, slot_edge[ix(slot)], states) - 1, -1, -1):
                logged -= 1
                m[ix(s + k)] = log[ix(logged)]
        if not active[edges.component[f]]:
            continue
        gather(f, edges, values, m, n, scratch, states, ring)
        link_back(f, edges, values, m, n, bars, damping, scratch, states, units, ring)
        for slot in range(first, last):
            one_edge_back(slot_edge[slot], slot_variable[slot], edges, m, bars, values.counting, states, ring)
    return logged


@compiled
def read_out_back(edges, span, values, m, variables, factors, first_belief, log_zi, log_za, z_bar, variables_bar,
                  factors_bar, by_links, bars, active, scratch, states, ring):  # fmt: skip
    """Reverse the read-out, whose beliefs and logs of Z are given, from derivatives by log Z and the beliefs.

    Unless `by_links`, those by log Z and the beliefs of links are known to be zero, and bars.m is overwritten.
    """
    counting, edge_link = values.counting, edges.edge_link
    for f in range(span.first_link, span.last_link if by_links else span.first_link):
        c = edges.component[ix(f)]
        if active[ix(c)]:
            if len(bars.counting) > 0:
                bars.counting[f] += z_bar[c] * log_za[f]
            belief_back(f, edges, factors, factors_bar, first_belief[f], z_bar[c] * counting[f], bars,
                        scratch.digits, states, ring)  # fmt: skip
    row = scratch.row
    for i in range(span.first_variable, span.last_variable):
        c = edges.variable_component[ix(i)]
        if not active[ix(c)]:
            continue
        card, at = card_of(i, edges.cards, states), first_of(i, edges.first_state, states)
        weight = z_bar[ix(c)]
        for e in range(edges.first_edge[ix(i)], edges.first_edge[ix(i + 1)]):
            weight -= z_bar[ix(c)] * counting[ix(edge_link[ix(e)])]
            if len(bars.counting) > 0:
                bars.counting[edge_link[e]] -= z_bar[c] * log_zi[i]
        mean = z_bar[0] * 0
        for k in range(at, at + card):
            mean += variables[ix(k)] * variables_bar[ix(k)]
        for k in range(card):
            row[ix(k)] = variables[ix(at + k)] * (variables_bar[ix(at + k)] - mean)
        for k in range(card):
            row[ix(k)] += weight * log_z_share(variables, at, k, card, ring)
        if by_links:
            variable_back(i, edges, m, bars, row, counting, states, ring)
            continue
        for k in range(card):
            bars.phi[ix(at + k)] += row[ix(k)]
            for e in range(edges.first_edge[ix(i)], edges.first_edge[ix(i + 1)]):
                bars.m[ix(first_of(e, edges.start, states) + k)] = counting[ix(edge_link[ix(e)])] * row[ix(k)]


@inner
def log_z_share(beliefs, at, k, size, ring):
    """Return the derivative of a region's log Z by the log of entry k: its belief; of a maximum: one where it is."""
    value = beliefs[ix(at + k)]
    if takes_largest(ring):
        return value * 0 + (1 if first_largest(beliefs, at, size) == k else 0)
    return value


@inner
def belief_back(f, edges, factors, factors_bar, at, weight, bars, digits, states, ring):
    """Reverse the belief of link f: psi_bar, and n_bar on its edges."""
    first, last = edges.first_slot[ix(f)], edges.first_slot[ix(f + 1)]
    slot_edge, start, size, table = edges.slot_edge, edges.start, edges.size[ix(f)], bars.table[ix(f)]
    for slot in range(first, last):
        digits[ix(slot - first)] = 0
        s = first_of(slot_edge[ix(slot)], start, states)
        for k in range(edge_card(start, slot_edge[ix(slot)], states)):
            bars.n[ix(s + k)] = 0
    mean = weight * 0
    for entry in range(at, at + size):
        mean += factors[ix(entry)] * factors_bar[ix(entry)]
    columns = edge_card(start, slot_edge[ix(last - 1)], states)
    x0, y0, x, y = first_of(slot_edge[ix(first)], start, states), first_of(slot_edge[ix(last - 1)], start, states), 0, 0
    for entry in range(size):
        t = factors[ix(at + entry)] * (factors_bar[ix(at + entry)] - mean)
        t += weight * log_z_share(factors, at, entry, size, ring)
        bars.psi[ix(table + entry)] += t
        if last - first == 2:
            bars.n[ix(x0 + x)] += t
            bars.n[ix(y0 + y)] += t
            y += 1
            if y == columns:
                x, y = x + 1, 0
            continue
        for slot in range(first, last):
            s = first_of(slot_edge[ix(slot)], start, states)
            bars.n[ix(s + digits[ix(slot - first)])] += t
        advance(first, last, slot_edge, start, digits, states)
