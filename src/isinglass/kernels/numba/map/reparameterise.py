"""Reparameterisation: a bound for any messages, sequential tree-reweighted updates, and decoding.

For any messages m_ai(x_i), one vector for each link a and variable i of it,

    theta_i  =  phi_i + sum_a m_ai          theta_a(x_a)  =  phi_a(x_a) - sum_{i in a} m_ai(x_i)
    max_x sum_a phi_a(x_a)   <=   D(m)  =  sum_i max theta_i + sum_a max theta_a

as the score of every x is sum_i theta_i(x_i) + sum_a theta_a(x_a). The least D is the value of the local relaxation.

One step at variable i (Kolmogorov 2006; for links of any arity Kolmogorov 2015), with variables in a fixed order:

    m_ai(x_i)  <-  max_{x_a with x_i} phi_a(x_a) - sum_{j in a, j != i} m_aj(x_j)     links with an earlier variable
    m_ai       <-  m_ai - w_i theta_i                                                 links with a later variable

where w_i = 1 / max(links with an earlier variable, links with a later variable). No step raises D. A backward pass
takes the reverse order.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.compilation.jit import compiled, inner


@inner
def from_pair(e, edges, partner, edge_table, psi, m):
    """Write m of edge e, of a link of two variables: the largest table entry less the other message."""
    other = partner[ix(e)]
    at, to = edges.start[ix(other)], edges.start[ix(e)]
    card, entry = edges.start[ix(other + 1)] - at, edge_table[ix(other)]
    for a in range(edges.start[ix(e + 1)] - to):
        top = -np.inf
        for b in range(card):
            value = psi[ix(entry + b)] - m[ix(at + b)]
            top = value if value > top else top
        m[ix(to + a)] = top
        entry += card


@inner
def rest_of(first, last, edges, m, digits, skipped):
    """Add up the messages of a link's slots but one, at the current digits."""
    total = 0.0
    for s in range(first, last):
        if s != skipped:
            total += m[ix(edges.start[ix(edges.slot_edge[ix(s)])] + digits[ix(s - first)])]
    return total


@inner
def next_digits(first, last, edges, digits):
    """Advance to the next entry of a link's table (C order)."""
    for s in range(last - 1, first - 1, -1):
        digits[ix(s - first)] += 1
        if digits[ix(s - first)] < edges.cards[ix(edges.slot_variable[ix(s)])]:
            return
        digits[ix(s - first)] = 0


@inner
def from_link(e, slot, edges, table, psi, m, digits):
    """Write m of edge e, of a link of any arity."""
    f, to = edges.edge_link[ix(e)], edges.start[ix(e)]
    first, last = edges.first_slot[ix(f)], edges.first_slot[ix(f + 1)]
    for a in range(edges.start[ix(e + 1)] - to):
        m[ix(to + a)] = -np.inf
    for s in range(last - first):
        digits[ix(s)] = 0
    for entry in range(table[ix(f)], table[ix(f)] + edges.size[ix(f)]):
        value = psi[ix(entry)] - rest_of(first, last, edges, m, digits, slot)
        a = to + digits[ix(slot - first)]
        m[ix(a)] = max(m[ix(a)], value)
        next_digits(first, last, edges, digits)


@compiled
def sweep(order, earlier, later, weight, edges, slots, partner, table, edge_table, phi, psi, m, theta, digits):
    """Make one step at each variable, in this order; `earlier` and `later` flag edges whose link has such variables."""
    for i in order:
        at, card = edges.first_state[ix(i)], edges.cards[ix(i)]
        for a in range(card):
            theta[ix(a)] = phi[ix(at + a)]
        for e in range(edges.first_edge[ix(i)], edges.first_edge[ix(i + 1)]):
            if earlier[ix(e)]:
                if partner[ix(e)] >= 0:
                    from_pair(e, edges, partner, edge_table, psi, m)
                else:
                    from_link(e, slots[ix(e)], edges, table, psi, m, digits)
            to = edges.start[ix(e)]
            for a in range(card):
                theta[ix(a)] += m[ix(to + a)]
        for e in range(edges.first_edge[ix(i)], edges.first_edge[ix(i + 1)]):
            if later[ix(e)]:
                to = edges.start[ix(e)]
                for a in range(card):
                    m[ix(to + a)] -= weight[ix(i)] * theta[ix(a)]


@inner
def size_of_state(i, a, edges, phi, m):
    """Add up the sizes of the terms of theta_i(a)."""
    total = abs(phi[ix(edges.first_state[ix(i)] + a)])
    for e in range(edges.first_edge[ix(i)], edges.first_edge[ix(i + 1)]):
        total += abs(m[ix(edges.start[ix(e)] + a)])
    return total


@inner
def size_of_rest(first, last, edges, m, digits):
    """Add up the sizes of the messages of a link's slots, at the current digits."""
    total = 0.0
    for s in range(first, last):
        total += abs(m[ix(edges.start[ix(edges.slot_edge[ix(s)])] + digits[ix(s - first)])])
    return total


@compiled
def dual_bound(edges, table, phi, psi, m, unit, of_variables, of_links, theta, digits):
    """Write the largest theta of each variable and link, each with `unit` times the sizes of its terms added."""
    for i in range(len(edges.cards)):
        top = -np.inf
        for a in range(edges.cards[ix(i)]):
            value = phi[ix(edges.first_state[ix(i)] + a)]
            for e in range(edges.first_edge[ix(i)], edges.first_edge[ix(i + 1)]):
                value += m[ix(edges.start[ix(e)] + a)]
            if unit > 0:
                value += unit * size_of_state(i, a, edges, phi, m)
            top = value if value > top else top
        of_variables[ix(i)] = top
    for f in range(len(edges.size)):
        first, last, top = edges.first_slot[ix(f)], edges.first_slot[ix(f + 1)], -np.inf
        for s in range(last - first):
            digits[ix(s)] = 0
        for entry in range(table[ix(f)], table[ix(f)] + edges.size[ix(f)]):
            value = psi[ix(entry)] - rest_of(first, last, edges, m, digits, -1)
            if unit > 0 and value > -np.inf:
                value += unit * (abs(psi[ix(entry)]) + size_of_rest(first, last, edges, m, digits))
            top = value if value > top else top
            next_digits(first, last, edges, digits)
        of_links[ix(f)] = top


@inner
def add_decided(e, slot, edges, table, psi, m, x, digits, theta, row):
    """Add to theta the best of a link, with its decided variables at their states, less the messages of the others."""
    f = edges.edge_link[ix(e)]
    first, last = edges.first_slot[ix(f)], edges.first_slot[ix(f + 1)]
    card = edges.start[ix(e + 1)] - edges.start[ix(e)]
    for a in range(card):
        row[ix(a)] = -np.inf
    for s in range(last - first):
        digits[ix(s)] = 0
    for entry in range(table[ix(f)], table[ix(f)] + edges.size[ix(f)]):
        value, agrees = psi[ix(entry)], True
        for s in range(first, last):
            j = edges.slot_variable[ix(s)]
            if s == slot:
                continue
            if x[ix(j)] >= 0:
                agrees = agrees and x[ix(j)] == digits[ix(s - first)]
            else:
                value -= m[ix(edges.start[ix(edges.slot_edge[ix(s)])] + digits[ix(s - first)])]
        if agrees:
            a = digits[ix(slot - first)]
            row[ix(a)] = max(row[ix(a)], value)
        next_digits(first, last, edges, digits)
    for a in range(card):
        theta[ix(a)] += row[ix(a)]


@compiled
def decode(order, edges, slots, table, phi, psi, m, x, theta, row, digits):
    """Decide one variable after the other, given those before it; x is -1 where nothing is decided yet."""
    for i in order:
        if x[ix(i)] >= 0:
            continue
        at, card = edges.first_state[ix(i)], edges.cards[ix(i)]
        for a in range(card):
            theta[ix(a)] = phi[ix(at + a)]
        for e in range(edges.first_edge[ix(i)], edges.first_edge[ix(i + 1)]):
            add_decided(e, slots[ix(e)], edges, table, psi, m, x, digits, theta, row)
        best = 0
        for a in range(1, card):
            if theta[ix(a)] > theta[ix(best)]:
                best = a
        x[ix(i)] = best
