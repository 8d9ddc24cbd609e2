"""Message passing with counting numbers: messages from variables to links and back.

With phi_i the potential of variable i, psi_a = phi_a^(1/c_a) the effective table of link a (a factor of arity two
or more), m_ai the message from a to i and c_a the counting number of a (one for belief propagation):

    n_ia(x_i)  ~  phi_i prod_{b at i} m_bi^c_b / m_ai                               variable to link
    m_ai(x_i)  ~  sum_{x_a without x_i} psi_a(x_a) prod_{j in a, j != i} n_ja(x_j)   link to variable
    b_i        ~  phi_i prod_{b at i} m_bi^c_b,       b_a ~ psi_a prod_{i in a} n_ia

(Wainwright, Jaakkola and Willsky 2005; Yedidia, Freeman and Weiss 2005). Damping is geometric,
m <- m_old^d m_new^(1 - d), normalised.

Products at a variable run forwards and backwards over its edges, never "all divided by own". Zeros are exact:
where m_ai is zero, so is n_ia. A product of non-zero linear numbers below SAFE is reported as an underflow.
"""

from __future__ import annotations

from math import exp

from isinglass.compilation import compiled
from isinglass.kernels.numba.ring import is_zero, normalise, plus, power, product, underflows


@compiled
def raise_messages(m, start, edge_link, counting, powered, own, ring):
    """Write m^c to `powered` and m^(c - 1) to `own`, for every edge."""
    for e in range(len(edge_link)):
        c = counting[edge_link[e]]
        for k in range(start[e], start[e + 1]):
            powered[k] = power(m[k], c, ring)
            own[k] = power(m[k], c - 1, ring)


@compiled
def to_links(i, first_edge, start, first_state, cards, phi, powered, own, n, scale, belief, row, units, ring):
    """Write n_ia on every edge of variable i with what it was divided by, and b_i, unnormalised.

    `powered` are the messages m^c and `own` m^(c - 1); `own` is empty if every c is one. Returns whether a product
    underflowed.
    """
    card, at, first, last = cards[i], first_state[i], first_edge[i], first_edge[i + 1]
    low = False
    for k in range(card):
        row[k] = phi[at + k]
    for e in range(first, last):  # the product of what comes before e
        s = start[e]
        for k in range(card):
            n[s + k] = row[k]
            row[k] = product(n[s + k], powered[s + k], ring)
            low |= underflows(row[k], n[s + k], powered[s + k], ring)
    for k in range(card):
        belief[at + k] = row[k]
        row[k] = units[1]
    for e in range(last - 1, first - 1, -1):  # times the product of what comes after e
        s = start[e]
        for k in range(card):
            value = product(n[s + k], row[k], ring)
            after = product(row[k], powered[s + k], ring)
            low |= underflows(value, n[s + k], row[k], ring) or underflows(after, row[k], powered[s + k], ring)
            n[s + k] = value
            row[k] = after
        if len(own) > 0:
            for k in range(card):
                value = product(n[s + k], own[s + k], ring)
                low |= underflows(value, n[s + k], own[s + k], ring)
                n[s + k] = value
        scale[e] = normalise(n, s, s + card, ring)
    return low


@compiled
def to_one_link(e, i, first_edge, start, first_state, cards, phi, m, counting, edge_link, n, ring):
    """Write n_ia on one edge, from the current messages. Returns whether a product underflowed."""
    s, at = start[e], first_state[i]
    low = False
    for k in range(cards[i]):
        value = phi[at + k]
        for f in range(first_edge[i], first_edge[i + 1]):
            c = counting[edge_link[f]]
            factor = m[start[f] + k]
            if f == e:
                if c == 1:
                    continue
                factor = power(factor, c - 1, ring)
            elif c != 1:
                factor = power(factor, c, ring)
            after = product(value, factor, ring)
            low |= underflows(after, value, factor, ring)
            value = after
        n[s + k] = value
    normalise(n, s, s + cards[i], ring)
    return low


@compiled
def to_variables(first, last, slot_edge, start, psi, at, size, n, out, prefix, digits, units, ring):
    """Write the new messages of a link, normalised, to `out`; see `sum_link`."""
    low = sum_link(first, last, slot_edge, start, psi, at, size, n, out, prefix, digits, units, ring)
    normalise_slots(first, last, slot_edge, start, out, ring)
    return low


@compiled
def sum_link(first, last, slot_edge, start, psi, at, size, n, out, prefix, digits, units, ring):
    """Sum a link with slots ``first:last`` to each of them: its messages, unnormalised, one after the other in `out`.

    Its table is ``psi[at : at + size]``. Returns whether a product underflowed.
    """
    if last - first == 2:
        e, f = slot_edge[first], slot_edge[first + 1]
        rows, columns = slot_card(start, e), slot_card(start, f)
        x0, y0 = start[e], start[f]
        return sum_pair(x0, rows, y0, columns, psi, at, n, out, units, ring)
    return sum_any(first, last, slot_edge, start, psi, at, size, n, out, prefix, digits, units, ring)


@compiled
def slot_card(start, e):
    """Entries of the message of an edge."""
    return start[e + 1] - start[e]


@compiled
def normalise_slots(first, last, slot_edge, start, out, ring):
    """Normalise the messages of a link, one after the other in `out`."""
    place = 0
    for slot in range(first, last):
        card = slot_card(start, slot_edge[slot])
        normalise(out, place, place + card, ring)
        place += card


@compiled
def sum_pair(x0, rows, y0, columns, psi, at, n, out, units, ring):
    """Sum a pairwise table against the other slot's message, both ways; the messages n start at x0 and y0."""
    low = False
    for y in range(columns):
        out[rows + y] = units[0]
    for x in range(rows):
        total = units[0]
        for y in range(columns):
            entry = psi[at + x * columns + y]
            there, back = product(entry, n[y0 + y], ring), product(entry, n[x0 + x], ring)
            low |= underflows(there, entry, n[y0 + y], ring) or underflows(back, entry, n[x0 + x], ring)
            total = plus(total, there, ring)
            out[rows + y] = plus(out[rows + y], back, ring)
        out[x] = total
    return low


@compiled
def sum_any(first, last, slot_edge, start, psi, at, size, n, out, prefix, digits, units, ring):
    """The same for any arity."""
    total = 0
    for slot in range(first, last):
        total += start[slot_edge[slot] + 1] - start[slot_edge[slot]]
        digits[slot - first] = 0
    for k in range(total):
        out[k] = units[0]
    low = False
    for entry in range(size):
        low |= others(first, last, slot_edge, start, psi[at + entry], n, prefix, digits, units, ring)
        place = 0
        for slot in range(first, last):
            k = place + digits[slot - first]
            out[k] = plus(out[k], prefix[slot - first], ring)
            place += start[slot_edge[slot] + 1] - start[slot_edge[slot]]
        advance(first, last, slot_edge, start, digits)
    return low


@compiled
def others(first, last, slot_edge, start, value, n, prefix, digits, units, ring):
    """Write, for each slot, a table entry times the messages of the other slots. Returns an underflow flag."""
    low = False
    running = value
    for slot in range(first, last):
        factor = n[start[slot_edge[slot]] + digits[slot - first]]
        prefix[slot - first] = running
        running = product(prefix[slot - first], factor, ring)
        low |= underflows(running, prefix[slot - first], factor, ring)
    running = units[1]
    for slot in range(last - 1, first - 1, -1):
        factor = n[start[slot_edge[slot]] + digits[slot - first]]
        value = product(prefix[slot - first], running, ring)
        low |= underflows(value, prefix[slot - first], running, ring)
        prefix[slot - first] = value
        running = product(running, factor, ring)
    return low


@compiled
def advance(first, last, slot_edge, start, digits):
    """Step to the states of the next entry of a table (C order)."""
    for slot in range(last - 1, first - 1, -1):
        digits[slot - first] += 1
        if digits[slot - first] < start[slot_edge[slot] + 1] - start[slot_edge[slot]]:
            return
        digits[slot - first] = 0


@compiled
def damp(m, out, first, last, slot_edge, start, damping, ring):
    """Mix the new messages of a link in `out` with the old ones in m."""
    if damping == 0:
        return
    place = 0
    for slot in range(first, last):
        s, card = start[slot_edge[slot]], start[slot_edge[slot] + 1] - start[slot_edge[slot]]
        for k in range(card):
            kept, new = power(m[s + k], damping, ring), power(out[place + k], 1 - damping, ring)
            out[place + k] = product(kept, new, ring)
        normalise(out, place, place + card, ring)
        place += card


@compiled
def replace(m, out, first, last, slot_edge, start, ring):
    """Write the messages of a link over the old ones. Returns the largest change."""
    change = 0.0
    place = 0
    for slot in range(first, last):
        s = start[slot_edge[slot]]
        for k in range(slot_card(start, slot_edge[slot])):
            change = max(change, distance(m[s + k], out[place], ring))
            m[s + k] = out[place]
            place += 1
    return change


@compiled
def distance(old, new, ring):
    """Difference of two message entries: of probabilities, or of logarithms in the max semiring."""
    if len(ring) == 0:
        return abs(new.real - old.real)
    if is_zero(old, ring) and is_zero(new, ring):
        return 0.0
    if len(ring) == 1:
        return abs(exp(new.real) - exp(old.real))
    return abs(new.real - old.real)
