"""Naive mean field: coordinate ascent on the lower bound, and its reverse.

With q(x) = prod_i q_i(x_i), phi_i the log potential of variable i and phi_a the log table of link a:

    t_i(x_i)  =  phi_i(x_i) + sum_{a at i} sum_{x_a with x_i} phi_a(x_a) prod_{j in a, j != i} q_j(x_j)
    q_i       =  exp(t_i) / sum exp(t_i)                                       one variable after the other
    log Z    >=  sum_i <q_i, phi_i - log q_i> + sum_a <prod q, phi_a>          monotone in every update

(Wainwright and Jordan 2008, section 5.3). All values are logarithms but q. A product that is zero counts nothing,
whatever it multiplies: 0 (-inf) = 0; so a state that meets a hard zero with positive probability gets none.

Reverse, last update first: t_bar = q (q_bar - <q, q_bar>), which goes to phi_i, to the tables with the weights above,
and to the other variables' q. Hard zeros do not move.
"""

from __future__ import annotations

import numpy as np

from isinglass.compilation import compiled
from isinglass.kernels.numba.messages import advance


@compiled
def expect(f, slot, edges, table, at, q, t, digits):
    """Add link f's expectation to t, for each state of one of its slots."""
    first, last = edges.first_slot[f], edges.first_slot[f + 1]
    for j in range(last - first):
        digits[j] = 0
    for entry in range(edges.size[f]):
        weight = q[edges.first_state[edges.slot_variable[first]]] * 0 + 1
        for j in range(first, last):
            if j != slot:
                weight *= q[edges.first_state[edges.slot_variable[j]] + digits[j - first]]
        if weight.real != 0:
            t[digits[slot - first]] += weight * table[at + entry]
        advance(first, last, edges.slot_edge, edges.start, digits, ())


@compiled
def target(i, edges, slot_of, phi, table, starts, q, t, digits):
    """Write t_i."""
    for k in range(edges.cards[i]):
        t[k] = phi[edges.first_state[i] + k]
    for e in range(edges.first_edge[i], edges.first_edge[i + 1]):
        f = edges.edge_link[e]
        expect(f, slot_of[e], edges, table, starts[f], q, t, digits)


@compiled
def ascend(edges, slot_of, phi, table, starts, q, log, active, residual, possible, t, digits):
    """Update every active variable once; `log`, if not empty, keeps the old q. A t_i of all -inf clears `possible`."""
    residual[:] = 0
    for i in range(len(edges.cards)):
        c = edges.variable_component[i]
        first, card = edges.first_state[i], edges.cards[i]
        if len(log) > 0:
            for k in range(card):
                log[first + k] = q[first + k]
        if not active[c]:
            continue
        target(i, edges, slot_of, phi, table, starts, q, t, digits)
        top = t[0].real
        for k in range(1, card):
            top = max(top, t[k].real)
        if top == -np.inf:
            possible[c] = False
            continue
        total = t[0] * 0 if t[0].real > -np.inf else np.exp(t[0] - top)
        for k in range(card):
            t[k] = np.exp(t[k] - top)
            total += t[k]
        for k in range(card):
            value = t[k] / total
            residual[c] = max(residual[c], abs(value.real - q[first + k].real))
            q[first + k] = value


@compiled
def lower_bound(edges, phi, table, starts, q, log_z, factors, first_belief, digits):
    """Add the bound of each component to `log_z`; write the links' beliefs, which are products."""
    for i in range(len(edges.cards)):
        for k in range(edges.first_state[i], edges.first_state[i + 1]):
            if q[k].real != 0:
                log_z[edges.variable_component[i]] += q[k] * (phi[k] - np.log(q[k]))
    for f in range(len(edges.size)):
        first, last = edges.first_slot[f], edges.first_slot[f + 1]
        for j in range(last - first):
            digits[j] = 0
        for entry in range(edges.size[f]):
            weight = q[edges.first_state[edges.slot_variable[first]] + digits[0]]
            for j in range(first + 1, last):
                weight *= q[edges.first_state[edges.slot_variable[j]] + digits[j - first]]
            factors[first_belief[f] + entry] = weight
            if weight.real != 0:
                log_z[edges.component[f]] += weight * table[starts[f] + entry]
            advance(first, last, edges.slot_edge, edges.start, digits, ())


@compiled
def product_back(f, skip, edges, table, at, q, bars, q_bar, table_bar, bar_at, digits):
    """Reverse <bars, products of q times the log table> over the slots but `skip` (none if it is -1).

    ``bars`` weighs an entry by the state of the slot `skip`, or, without one, is a single number.
    """
    first, last = edges.first_slot[f], edges.first_slot[f + 1]
    for j in range(last - first):
        digits[j] = 0
    for entry in range(edges.size[f]):
        bar = bars[digits[skip - first]] if skip >= 0 else bars[0]
        value = table[at + entry]
        if value.real > -np.inf and bar != 0:
            weight = bar
            for j in range(first, last):
                if j != skip:
                    weight *= q[edges.first_state[edges.slot_variable[j]] + digits[j - first]]
            table_bar[bar_at + entry] += weight
            one_out(first, last, skip, edges, q, bar * value, q_bar, digits)
        advance(first, last, edges.slot_edge, edges.start, digits, ())


@compiled
def one_out(first, last, skip, edges, q, bar, q_bar, digits):
    """Add to each slot's q_bar `bar` times the product of the other slots' q (without `skip`)."""
    for j in range(first, last):
        if j == skip:
            continue
        weight = bar
        for other in range(first, last):
            if other != j and other != skip:
                weight *= q[edges.first_state[edges.slot_variable[other]] + digits[other - first]]
        q_bar[edges.first_state[edges.slot_variable[j]] + digits[j - first]] += weight


@compiled
def read_out_back(edges, phi, table, starts, q, z_bar, factors_bar, first_belief, q_bar, phi_bar, table_bar, first_bar,
                  t, digits):  # fmt: skip
    """Reverse the bound and the links' beliefs; q_bar already holds the derivative by the variables' beliefs."""
    for i in range(len(edges.cards)):
        z = z_bar[edges.variable_component[i]]
        for k in range(edges.first_state[i], edges.first_state[i + 1]):
            phi_bar[k] += z * q[k]
            if q[k].real != 0:
                q_bar[k] += z * (phi[k] - np.log(q[k]) - 1)
    for f in range(len(edges.size)):
        t[0] = z_bar[edges.component[f]]
        product_back(f, -1, edges, table, starts[f], q, t, q_bar, table_bar, first_bar[f], digits)
        first, last = edges.first_slot[f], edges.first_slot[f + 1]
        for j in range(last - first):
            digits[j] = 0
        for entry in range(edges.size[f]):
            one_out(first, last, -1, edges, q, factors_bar[first_belief[f] + entry], q_bar, digits)
            advance(first, last, edges.slot_edge, edges.start, digits, ())


@compiled
def ascend_back(edges, slot_of, table, starts, q, log, active, q_bar, phi_bar, table_bar, first_bar, t, digits):
    """Reverse one sweep of `ascend`; q is brought back to what it was."""
    for i in range(len(edges.cards) - 1, -1, -1):
        first, card = edges.first_state[i], edges.cards[i]
        mean = q[first] * q_bar[first]
        for k in range(1, card):
            mean += q[first + k] * q_bar[first + k]
        for k in range(card):
            t[k] = q[first + k] * (q_bar[first + k] - mean)
            q[first + k] = log[first + k]
        if not active[edges.variable_component[i]]:
            continue
        for k in range(card):
            phi_bar[first + k] += t[k]
            q_bar[first + k] = 0
        for e in range(edges.first_edge[i], edges.first_edge[i + 1]):
            f = edges.edge_link[e]
            product_back(f, slot_of[e], edges, table, starts[f], q, t, q_bar, table_bar, first_bar[f], digits)
