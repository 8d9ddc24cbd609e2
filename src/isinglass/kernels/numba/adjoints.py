"""The reverse of message passing: derivatives by the *logarithms* of messages and tables.

A bar marks the derivative of the loss by the logarithm of a quantity.

    read-out   b ~ exp(t):  t_bar = b (d - <b, d>) + z c b,  with d the derivative by b itself, z that by log Z and
               c the counting number of the region (log Z of each region enters log Z with c)
    links      m_i(x_i) ~ sum psi prod_{j != i} n_j.  With h_i the derivative by log m_i, made orthogonal to the
               normalisation, and w_i(x_a) = h_i(x_i) psi prod_{j != i} n_j / m_i(x_i):
               psi_bar(x_a) += sum_i w_i,   n_j_bar(x_j) += sum_{x_a with x_j} sum_{i != j} w_i
    variables  log n_ia = log phi_i + sum_b c_b log m_bi - log m_ai - log Z_ia.  With t_ia = n_ia_bar, centred:
               phi_i_bar += t_ia,  m_bi_bar += c_b t_ia,  m_ai_bar -= t_ia,  c_b_bar += <t_ia, log m_bi>

(Domke 2009, chapter 5; Stoyanov, Ropson and Eisner 2011, appendix A, with the beliefs of (14) and (15) exchanged.)
The projection onto the normalisation is zero in exact arithmetic; it stays, or rounding grows with every iteration.
In the max semiring the sum is its largest term, and so is the derivative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isinglass.compilation import compiled
from isinglass.kernels.numba.messages import (
    advance,
    damp,
    normalise_slots,
    others,
    sum_link,
    to_one_link,
)
from isinglass.kernels.numba.passes import all_to_links
from isinglass.kernels.numba.ring import is_zero, linear, logarithm, share, weight_of


class Bars(NamedTuple):
    """The derivatives that are accumulated."""

    m: np.ndarray  # by the log of the current messages
    n: np.ndarray  # by the log of the messages to links; scratch
    phi: np.ndarray  # by the log potentials of variables
    psi: np.ndarray  # by the log effective tables, link by link
    first_psi: np.ndarray  # (links,) where a link's derivative starts
    counting: np.ndarray  # (links,)
    damping: np.ndarray  # (1,)


@compiled
def center(bar, at, values, first, card, ring):
    """Project a derivative onto the normalisation: bar -= value * sum(bar)."""
    total = bar[at]
    for k in range(1, card):
        total += bar[at + k]
    for k in range(card):
        bar[at + k] -= weight_of(values[first + k], ring) * total


@compiled
def weights_back(first, last, slot_edge, start, psi, at, size, n, raw, bar, n_bar, psi_bar, bar_at, prefix, digits,
                 units, ring):  # fmt: skip
    """Reverse `sum_link`: from derivatives by the logs of its sums (`bar`; the sums are `raw`) to n_bar and psi_bar."""
    for slot in range(first, last):
        digits[slot - first] = 0
        for k in range(start[slot_edge[slot]], start[slot_edge[slot] + 1]):
            n_bar[k] = 0
    for entry in range(size):
        others(first, last, slot_edge, start, psi[at + entry], n, prefix, digits, units, ring)
        total = psi_bar[bar_at + entry]
        before = total
        place = 0
        for slot in range(first, last):
            k = place + digits[slot - first]
            weight = bar[k]
            if is_zero(raw[k], ring) or is_zero(prefix[slot - first], ring):
                weight = bar[k] * 0
            else:
                weight = bar[k] * share(prefix[slot - first], raw[k], ring)
            prefix[slot - first] = weight
            total += weight
            place += start[slot_edge[slot] + 1] - start[slot_edge[slot]]
        psi_bar[bar_at + entry] = total
        for slot in range(first, last):
            n_bar[start[slot_edge[slot]] + digits[slot - first]] += total - before - prefix[slot - first]
        advance(first, last, slot_edge, start, digits)


@compiled
def link_back(f, edges, values, m, n, bars, damping, scratch, units, ring):
    """Reverse the update of link f from the old messages m and the messages n: m_bar to n_bar, psi_bar, old m_bar."""
    first, last = edges.first_slot[f], edges.first_slot[f + 1]
    slot_edge, start, raw, out, bar = edges.slot_edge, edges.start, scratch.raw, scratch.out, scratch.bar
    at, size = values.table[f], edges.size[f]
    sum_link(first, last, slot_edge, start, values.psi, at, size, n, raw, scratch.prefix, scratch.digits, units, ring)
    place = 0
    for slot in range(first, last):
        for k in range(start[slot_edge[slot]], start[slot_edge[slot] + 1]):
            out[place] = raw[place]
            bar[place] = bars.m[k]
            place += 1
    normalise_slots(first, last, slot_edge, start, out, ring)
    if damping != 0:
        damping_back(first, last, slot_edge, start, m, out, bar, bars, damping, raw, ring)
        sum_link(first, last, slot_edge, start, values.psi, at, size, n, raw, scratch.prefix, scratch.digits, units,
                 ring)  # fmt: skip
    else:
        for slot in range(first, last):
            for k in range(start[slot_edge[slot]], start[slot_edge[slot] + 1]):
                bars.m[k] = 0
    place = 0
    for slot in range(first, last):
        card = start[slot_edge[slot] + 1] - start[slot_edge[slot]]
        center(bar, place, out, place, card, ring)
        place += card
    weights_back(first, last, slot_edge, start, values.psi, at, size, n, raw, bar, bars.n, bars.psi,
                 bars.first_psi[f], scratch.prefix, scratch.digits, units, ring)  # fmt: skip


@compiled
def damping_back(first, last, slot_edge, start, m, out, bar, bars, damping, mixed, ring):
    """Reverse the damping: bar becomes the derivative by log m_new, bars.m that by log m_old. `mixed` is scratch."""
    place = 0
    for slot in range(first, last):
        for _ in range(start[slot_edge[slot]], start[slot_edge[slot] + 1]):
            mixed[place] = out[place]
            place += 1
    damp(m, mixed, first, last, slot_edge, start, damping, ring)
    place = 0
    for slot in range(first, last):
        s, card = start[slot_edge[slot]], start[slot_edge[slot] + 1] - start[slot_edge[slot]]
        center(bar, place, mixed, place, card, ring)
        for k in range(card):
            if not is_zero(m[s + k], ring) and not is_zero(out[place + k], ring):
                difference = logarithm(m[s + k], ring) - logarithm(out[place + k], ring)
                bars.damping[0] += bar[place + k] * difference
            bars.m[s + k] = damping * bar[place + k]
            bar[place + k] *= 1 - damping
        place += card


@compiled
def variable_back(i, edges, m, n, bars, extra, counting, ring):
    """Reverse all messages of variable i to its links, and its belief (whose centred derivative is `extra`)."""
    first_edge, start, edge_link = edges.first_edge, edges.start, edges.edge_link
    card, at = edges.cards[i], edges.first_state[i]
    for e in range(first_edge[i], first_edge[i + 1]):
        for k in range(card):
            extra[k] += bars.n[start[e] + k]
    for k in range(card):
        bars.phi[at + k] += extra[k]
    for e in range(first_edge[i], first_edge[i + 1]):
        for k in range(card):
            s = start[e] + k
            bars.m[s] += counting[edge_link[e]] * extra[k] - bars.n[s]
            if not is_zero(m[s], ring):
                bars.counting[edge_link[e]] += extra[k] * logarithm(m[s], ring)


@compiled
def one_edge_back(e, i, edges, m, bars, counting, ring):
    """Reverse `to_one_link`: the (centred) derivative bars.n on edge e reaches phi_i and all messages at i."""
    first_edge, start, edge_link = edges.first_edge, edges.start, edges.edge_link
    for k in range(edges.cards[i]):
        t = bars.n[start[e] + k]
        bars.phi[edges.first_state[i] + k] += t
        for f in range(first_edge[i], first_edge[i + 1]):
            s = start[f] + k
            bars.m[s] += counting[edge_link[f]] * t
            if not is_zero(m[s], ring):
                bars.counting[edge_link[f]] += t * logarithm(m[s], ring)
        bars.m[start[e] + k] -= t


@compiled
def flood_back(edges, values, m, n, scale, belief, bars, damping, active, flagged, scratch, units, ring):
    """Reverse one iteration of flooding that began with the messages m."""
    all_to_links(edges, values, m, n, scale, belief, active, flagged, scratch, units, ring)
    for f in range(len(edges.component)):
        if active[edges.component[f]]:
            link_back(f, edges, values, m, n, bars, damping, scratch, units, ring)
    for e in range(len(edges.edge_link)):
        if active[edges.component[edges.edge_link[e]]]:
            card = edges.start[e + 1] - edges.start[e]
            center(bars.n, edges.start[e], n, edges.start[e], card, ring)
    row = scratch.row
    for i in range(len(edges.cards)):
        if active[edges.variable_component[i]]:
            for k in range(edges.cards[i]):
                row[k] = 0
            variable_back(i, edges, m, n, bars, row, values.counting, ring)


@compiled
def follow_back(edges, values, sequence, m, n, log, logged, bars, damping, active, scratch, units, ring):
    """Reverse a sequence of links, last first; m is brought back to what it was, from the log that ends at `logged`."""
    start, first_slot, slot_edge, slot_variable = edges.start, edges.first_slot, edges.slot_edge, edges.slot_variable
    for j in range(len(sequence) - 1, -1, -1):
        f = sequence[j]
        first, last = first_slot[f], first_slot[f + 1]
        for slot in range(last - 1, first - 1, -1):
            for k in range(start[slot_edge[slot] + 1] - 1, start[slot_edge[slot]] - 1, -1):
                logged -= 1
                m[k] = log[logged]
        if not active[edges.component[f]]:
            continue
        for slot in range(first, last):
            to_one_link(slot_edge[slot], slot_variable[slot], edges.first_edge, start, edges.first_state, edges.cards,
                        values.phi, m, values.counting, edges.edge_link, n, ring)  # fmt: skip
        link_back(f, edges, values, m, n, bars, damping, scratch, units, ring)
        for slot in range(first, last):
            e = slot_edge[slot]
            center(bars.n, start[e], n, start[e], start[e + 1] - start[e], ring)
            one_edge_back(e, slot_variable[slot], edges, m, bars, values.counting, ring)
    return logged


@compiled
def read_out_back(edges, values, m, n, log_scale, variables, factors, first_belief, log_zi, log_za, z_bar,
                  variables_bar, factors_bar, bars, active, scratch, ring):  # fmt: skip
    """Reverse the read-out, whose n, beliefs and logs of Z are given, from derivatives by log Z and the beliefs."""
    start, counting, edge_link = edges.start, values.counting, edges.edge_link
    for f in range(len(edges.component)):
        c = edges.component[f]
        if not active[c]:
            continue
        bars.counting[f] += z_bar[c] * log_za[f]
        belief_back(f, edges, factors, factors_bar, first_belief[f], z_bar[c] * counting[f], bars, scratch.digits)
    for e in range(len(edge_link)):
        c = edges.component[edge_link[e]]
        if not active[c]:
            continue
        center(bars.n, start[e], n, start[e], start[e + 1] - start[e], ring)
        bars.counting[edge_link[e]] += z_bar[c] * log_scale[e]
        for k in range(start[e], start[e + 1]):
            bars.n[k] += z_bar[c] * counting[edge_link[e]] * linear(n[k], ring)
    row = scratch.row
    for i in range(len(edges.cards)):
        c = edges.variable_component[i]
        if not active[c]:
            continue
        at = edges.first_state[i]
        weight = z_bar[c]
        for e in range(edges.first_edge[i], edges.first_edge[i + 1]):
            weight -= z_bar[c] * counting[edge_link[e]]
            bars.counting[edge_link[e]] -= z_bar[c] * log_zi[i]
        mean = variables[at] * variables_bar[at]
        for k in range(1, edges.cards[i]):
            mean += variables[at + k] * variables_bar[at + k]
        for k in range(edges.cards[i]):
            row[k] = variables[at + k] * (variables_bar[at + k] - mean + weight)
        variable_back(i, edges, m, n, bars, row, counting, ring)


@compiled
def belief_back(f, edges, factors, factors_bar, at, weight, bars, digits):
    """Reverse the belief of link f: psi_bar, and n_bar (not centred) on its edges."""
    first, last = edges.first_slot[f], edges.first_slot[f + 1]
    slot_edge, start = edges.slot_edge, edges.start
    for slot in range(first, last):
        digits[slot - first] = 0
        for k in range(start[slot_edge[slot]], start[slot_edge[slot] + 1]):
            bars.n[k] = 0
    mean = factors[at] * factors_bar[at]
    for entry in range(1, edges.size[f]):
        mean += factors[at + entry] * factors_bar[at + entry]
    for entry in range(edges.size[f]):
        t = factors[at + entry] * (factors_bar[at + entry] - mean + weight)
        bars.psi[bars.first_psi[f] + entry] += t
        for slot in range(first, last):
            bars.n[start[slot_edge[slot]] + digits[slot - first]] += t
        advance(first, last, slot_edge, start, digits)
