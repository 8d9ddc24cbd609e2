"""Message passing with counting numbers: messages from variables to links and back.

With phi_i the potential of variable i, psi_a = phi_a^(1/c_a) the effective table of link a (a factor of arity two
or more), m_ai the message from a to i and c_a the counting number of a (one for belief propagation):

    n_ia(x_i)  =  phi_i prod_{b at i} m_bi^c_b / m_ai                               variable to link
    m_ai(x_i)  ~  sum_{x_a without x_i} psi_a(x_a) prod_{j in a, j != i} n_ja(x_j)   link to variable
    b_i        ~  phi_i prod_{b at i} m_bi^c_b,       b_a ~ psi_a prod_{i in a} n_ia

(Wainwright, Jaakkola and Willsky 2005; Yedidia, Freeman and Weiss 2005). m and b are normalised, n only where counting
numbers raise it to powers, and then its scale is kept. Damping is geometric, m <- m_old^d m_new^(1 - d), normalised.

Products at a variable run forwards and backwards over its edges, never "all divided by own". Zeros are exact: where
m_ai is zero, so is n_ia. A product of non-zero linear numbers below SAFE is an underflow. The loops only tell what is
*suspect*, by one comparison; the functions that end in `underflows` then look closely.
"""

from __future__ import annotations

from math import exp

from isinglass.kernels.layout import SAFE
from isinglass.kernels.numba.arithmetic.indexing import card_of, first_of, ix
from isinglass.kernels.numba.arithmetic.powers import is_strange, raise_run
from isinglass.kernels.numba.arithmetic.semiring import (
    is_zero,
    plus,
    power,
    product,
    quotient,
    takes_largest,
    underflows,
)
from isinglass.runtime.compilation.jit import apart, inner, relay

RAISED = 64  # variables whose messages are raised to powers at a time


@inner
def raise_messages(i, first_edge, start, edge_link, counting, m, powered, own, ring):
    """Write m^c to `powered` and m^(c - 1) to `own`, for every edge of variable i."""
    for e in range(first_edge[ix(i)], first_edge[ix(i + 1)]):
        c = counting[ix(edge_link[ix(e)])]
        for s in range(start[ix(e)], start[ix(e + 1)]):
            raised = power(m[ix(s)], c, ring)
            powered[ix(s)] = raised
            own[ix(s)] = quotient(raised, m[ix(s)], ring)


@apart
def raise_block(i, stop, edges, values, m, active, scratch, ring):
    """Do the same for the variables from i to before `stop`, unless none is active.

    Linear real numbers are raised in one run, and one by one where a power is not normal: whatever lies beside them,
    the bits are the same.
    """
    wanted = False
    for j in range(i, stop):
        wanted |= active[edges.variable_component[ix(j)]]
    if not wanted:
        return
    if len(ring) > 0 or len(values.raising) == 0:
        for j in range(i, stop):
            raise_messages(j, edges.first_edge, edges.start, edges.edge_link, values.counting, m, scratch.powered,
                           scratch.own, ring)  # fmt: skip
        return
    first, last = edges.start[edges.first_edge[ix(i)]], edges.start[edges.first_edge[ix(stop)]]
    exponents, powered, own = values.raising, scratch.powered, scratch.own
    plain = raise_run(m.real[first:last], exponents[first:last], powered.real[first:last])
    for s in range(first, last):
        if not plain and is_strange(m[ix(s)].real, exponents[ix(s)]):
            powered[ix(s)] = power(m[ix(s)], exponents[ix(s)], ring)
        own[ix(s)] = quotient(powered[ix(s)], m[ix(s)], ring)


@inner
def to_links(i, first_edge, start, first_state, cards, phi, powered, own, n, base, scale, states, limit, units, ring):
    """Write n_ia on every edge of variable i, the first of them at ``start - base``.

    `powered` are the messages m^c and `own` m^(c - 1); `own` is empty if every c is one, else n_ia is normalised and
    `scale` keeps what it was divided by. Returns whether an underflow is suspected, here or where n_ia is multiplied
    by a table (limit: SAFE over the smallest entry of a table).
    """
    card, at = card_of(i, cards, states), first_of(i, first_state, states)
    first, last = first_edge[ix(i)], first_edge[ix(i + 1)]
    suspect = False
    for k in range(card):
        run = phi[ix(at + k)]
        for e in range(first, last):  # the product of what comes before e
            s = first_of(e, start, states) + k
            n[ix(s - base)] = run
            run = product(run, powered[ix(s)], ring)
        suspect |= len(ring) == 0 and run.real < limit  # factors are at most one: no part of the product is smaller
        run = units[1]
        for e in range(last - 1, first - 1, -1):  # times the product of what comes after e
            s = first_of(e, start, states) + k
            n[ix(s - base)] = product(n[ix(s - base)], run, ring)
            run = product(run, powered[ix(s)], ring)
    if len(own) > 0:
        for e in range(first, last):
            s = first_of(e, start, states)
            for k in range(card):
                n[ix(s - base + k)] = product(n[ix(s - base + k)], own[ix(s + k)], ring)
            scale[ix(e)] = normalise_row(n, s - base, card, ring)
    return suspect


@inner
def normalise_row(values, first, card, ring):
    """Divide a row by its sum (in the max semiring: its maximum), which is returned; rows of zeros are left alone."""
    total = values[ix(first)]
    for k in range(1, card):
        total = plus(total, values[ix(first + k)], ring)
    divide_row(values, first, card, total, ring)
    return total


@inner
def divide_row(values, first, card, total, ring):
    """Divide a row by its total, unless that is zero."""
    if is_zero(total, ring):
        return
    if len(ring) == 0:
        scale = 1 / total
        for k in range(card):
            values[ix(first + k)] *= scale
    else:
        for k in range(card):
            values[ix(first + k)] -= total


@relay
def sending_underflows(i, edges, values, powered, n, base):
    """Tell whether a product at variable i underflows: of its messages, or of a pairwise table and n_ia."""
    low = products_underflow(i, edges, values.phi, powered)
    for e in range(edges.first_edge[i], edges.first_edge[i + 1]):
        low |= table_underflows(e, edges, values, n, edges.start[e] - base, edges.cards[i])
    return low


@relay
def products_underflow(i, edges, phi, powered):
    """Tell whether the product of what is not zero at variable i underflows.

    No factor is larger than one, so no part of the product is smaller than the whole.
    """
    low = False
    for k in range(edges.cards[i]):
        run = phi[edges.first_state[i] + k]
        if run.real == 0:
            continue
        for e in range(edges.first_edge[i], edges.first_edge[i + 1]):
            factor = powered[edges.start[e] + k]
            if factor.real != 0:
                run *= factor
        low |= run.real < SAFE
    return low


@relay
def table_underflows(e, edges, values, n, sender, card):
    """Tell whether the product of an entry of a pairwise table and the message on its edge e, at `sender`, underflows.

    Longer products are looked after in `sum_any`.
    """
    f, low = edges.edge_link[e], False
    if edges.first_slot[f + 1] - edges.first_slot[f] != 2:
        return low
    for entry in range(edges.size[f]):
        value, factor = values.psi[values.edge_table[e] + entry], n[sender + entry % card]
        low |= underflows(value * factor, value, factor, ())
    return low


@inner
def to_one_link(e, i, first_edge, start, first_state, cards, phi, m, counting, edge_link, own, n, states, limit, ring):
    """Write n_ia on one edge, from the current messages. Returns whether an underflow is suspected."""
    card, at, place = card_of(i, cards, states), first_of(i, first_state, states), first_of(e, start, states)
    suspect = False
    for k in range(card):
        run = phi[ix(at + k)]
        for f in range(first_edge[ix(i)], first_edge[ix(i + 1)]):
            factor = m[ix(first_of(f, start, states) + k)]
            if len(own) == 0:
                if f == e:
                    continue
            else:
                c = counting[ix(edge_link[ix(f)])]
                factor = power(factor, c - 1 if f == e else c, ring)
            run = product(run, factor, ring)
            suspect |= len(ring) == 0 and run.real < limit
        n[ix(place + k)] = run
    if len(own) > 0:
        normalise_row(n, place, card, ring)
    return suspect


@apart
def one_underflows(e, i, edges, values, m, n):
    """Tell whether a product underflows in `to_one_link`, or of a pairwise table and its result."""
    low = table_underflows(e, edges, values, n, edges.start[e], edges.cards[i])
    for k in range(edges.cards[i]):
        run = values.phi[edges.first_state[i] + k]
        if run.real == 0:
            continue
        for f in range(edges.first_edge[i], edges.first_edge[i + 1]):
            factor = m[edges.start[f] + k]
            if f != e and factor.real != 0:
                run *= power(factor, values.counting[edges.edge_link[f]], ())
        low |= run.real < SAFE
    return low


@inner
def send(psi, at, n, sender, inner, out, to, outer, ring):
    """Sum a pairwise table, receiver's states first, against the sender's message. Returns the sum of the results."""
    total = n[ix(sender)]
    for y in range(outer):
        row = at + y * inner
        value = product(psi[ix(row)], n[ix(sender)], ring)
        for x in range(1, inner):
            value = plus(value, product(psi[ix(row + x)], n[ix(sender + x)], ring), ring)
        out[ix(to + y)] = value
        total = value if y == 0 else plus(total, value, ring)
    return total


@inner
def edge_card(start, e, states):
    """Return the number of entries of the message of an edge."""
    return len(states) if len(states) > 0 else start[ix(e + 1)] - start[ix(e)]


@inner
def sum_link(
    first, last, slot_edge, start, psi, at, edge_table, size, n, out, totals, prefix, digits, states, units, ring
):
    """Sum a link with slots ``first:last`` to each of them: its messages, unnormalised, one after the other in `out`.

    Its table is ``psi[at : at + size]``; `totals` keeps the sum of each message. Returns whether a product of a table
    of arity three or more underflowed (those of pairs are looked after where variables send).
    """
    if last - first == 2:
        e, f = slot_edge[ix(first)], slot_edge[ix(first + 1)]
        rows, columns = edge_card(start, e, states), edge_card(start, f, states)
        x0, y0 = first_of(e, start, states), first_of(f, start, states)
        totals[0] = send(psi, edge_table[ix(f)], n, y0, columns, out, 0, rows, ring)
        totals[1] = send(psi, edge_table[ix(e)], n, x0, rows, out, rows, columns, ring)
        return False
    return sum_any(first, last, slot_edge, start, psi, at, size, n, out, totals, prefix, digits, states, units, ring)


@inner
def divide_slots(first, last, slot_edge, start, out, totals, states, ring):
    """Normalise the messages of a link, one after the other in `out`."""
    place = 0
    for slot in range(first, last):
        card = edge_card(start, slot_edge[ix(slot)], states)
        divide_row(out, place, card, totals[ix(slot - first)], ring)
        place += card


@inner
def sum_any(first, last, slot_edge, start, psi, at, size, n, out, totals, prefix, digits, states, units, ring):
    """The same for any arity."""
    entries = 0
    for slot in range(first, last):
        entries += edge_card(start, slot_edge[ix(slot)], states)
        digits[slot - first] = 0
    for k in range(entries):
        out[ix(k)] = units[0]
    low = False
    for entry in range(size):
        value = psi[ix(at + entry)]
        whole = others(first, last, slot_edge, start, value, n, prefix, digits, states, units, ring)
        if len(ring) == 0 and whole.real < SAFE:
            low |= entry_underflows(first, last, slot_edge, start, value, n, digits)
        place = 0
        for slot in range(first, last):
            k = ix(place + digits[ix(slot - first)])
            out[k] = plus(out[k], prefix[ix(slot - first)], ring)
            place += edge_card(start, slot_edge[ix(slot)], states)
        advance(first, last, slot_edge, start, digits, states)
    place = 0
    for slot in range(first, last):
        card = edge_card(start, slot_edge[ix(slot)], states)
        totals[slot - first] = out[place]
        for k in range(1, card):
            totals[slot - first] = plus(totals[slot - first], out[place + k], ring)
        place += card
    return low


@inner
def others(first, last, slot_edge, start, value, n, prefix, digits, states, units, ring):
    """Write, for each slot, a table entry times the messages of the others. Returns the entry times all of them."""
    run = value
    for slot in range(first, last):
        prefix[ix(slot - first)] = run
        place = first_of(slot_edge[ix(slot)], start, states) + digits[ix(slot - first)]
        run = product(run, n[ix(place)], ring)
    whole = run
    run = units[1]
    for slot in range(last - 1, first - 1, -1):
        prefix[ix(slot - first)] = product(prefix[ix(slot - first)], run, ring)
        place = first_of(slot_edge[ix(slot)], start, states) + digits[ix(slot - first)]
        run = product(run, n[ix(place)], ring)
    return whole


@apart
def entry_underflows(first, last, slot_edge, start, value, n, digits):
    """Tell whether the product of what is not zero among a table entry and the messages to it underflows."""
    run = value.real
    for slot in range(first, last):
        factor = n[start[slot_edge[slot]] + digits[slot - first]].real
        if factor != 0:
            run *= factor
    return value.real != 0 and run < SAFE


@inner
def advance(first, last, slot_edge, start, digits, states):
    """Step to the states of the next entry of a table (C order)."""
    for slot in range(last - 1, first - 1, -1):
        digits[ix(slot - first)] += 1
        if digits[ix(slot - first)] < edge_card(start, slot_edge[ix(slot)], states):
            return
        digits[ix(slot - first)] = 0


@inner
def damp_row(old, at, new, to, card, damping, ring):
    """Mix a new message with the old one."""
    for k in range(card):
        kept, fresh = power(old[ix(at + k)], damping, ring), power(new[ix(to + k)], 1 - damping, ring)
        new[ix(to + k)] = product(kept, fresh, ring)
    normalise_row(new, to, card, ring)


@inner
def damp(m, out, first, last, slot_edge, start, damping, states, ring):
    """Mix the new messages of a link in `out` with the old ones in m."""
    if damping == 0:
        return
    place = 0
    for slot in range(first, last):
        e = slot_edge[ix(slot)]
        card = edge_card(start, e, states)
        damp_row(m, first_of(e, start, states), out, place, card, damping, ring)
        place += card


@inner
def replace(m, new, out, first, last, slot_edge, start, states, ring):
    """Write the messages of a link to `new`. Returns the largest change from those in m."""
    change = 0.0
    place = 0
    for slot in range(first, last):
        e = slot_edge[ix(slot)]
        s = first_of(e, start, states)
        for k in range(edge_card(start, e, states)):
            value = out[ix(place)]
            change = max(change, distance(m[ix(s + k)], value, ring))
            new[ix(s + k)] = value
            place += 1
    return change


@inner
def distance(old, new, ring):
    """Difference of two message entries: of probabilities, or of logarithms in the max semiring."""
    if len(ring) == 0:
        return abs(new.real - old.real)
    if is_zero(old, ring) and is_zero(new, ring):
        return 0.0
    if takes_largest(ring):
        return abs(new.real - old.real)
    return abs(exp(new.real) - exp(old.real))
