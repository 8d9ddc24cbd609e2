"""Flooding on a pairwise graph whose variables all have the same few states: the loops of `passes`, written out.

The arithmetic is that of `messages`, in the same sequence, so that results agree with the general loops to the last
bit: a component gives the same answer alone, and beside others that need the general loops. Linear values, counting
numbers of one, no damping. The number of states is a constant to the compiler, ``len(states)``.
"""

from __future__ import annotations

from isinglass.compilation import compiled
from isinglass.kernels.numba.ring import SAFE


@compiled
def flood_pairs(edges, values, m, n, active, flagged, residual, row, out, states):
    """One iteration of flooding: all variables send, then all links."""
    send_to_links(edges.first_edge, edges.variable_component, values.phi, m, n, active, flagged, row, states)
    send_to_variables(edges.slot_edge, edges.component, values.psi, values.table, m, n, active, flagged, residual, out,
                      states)  # fmt: skip


@compiled
def send_to_links(first_edge, component, phi, m, n, active, flagged, row, states):
    """Write n_ia on all edges: products over the other edges, forwards and backwards, normalised."""
    card = len(states)
    for i in range(len(component)):
        c = component[i]
        if not active[c]:
            continue
        low = False
        for k in range(card):
            row[k] = phi[i * card + k]
        for e in range(first_edge[i], first_edge[i + 1]):
            for k in range(card):
                before, factor = row[k], m[e * card + k]
                value = before * factor
                low |= value.real < SAFE and before.real != 0 and factor.real != 0
                n[e * card + k] = before
                row[k] = value
        for k in range(card):
            row[k] = 1
        for e in range(first_edge[i + 1] - 1, first_edge[i] - 1, -1):
            total = m[0] * 0
            for k in range(card):
                before, after, factor = n[e * card + k], row[k], m[e * card + k]
                value, running = before * after, after * factor
                low |= value.real < SAFE and before.real != 0 and after.real != 0
                low |= running.real < SAFE and after.real != 0 and factor.real != 0
                n[e * card + k] = value
                row[k] = running
                total = value if k == 0 else total + value
            if total.real != 0:
                scale = 1 / total
                for k in range(card):
                    n[e * card + k] *= scale
        if low:
            flagged[c] = True


@compiled
def send_to_variables(slot_edge, component, psi, table, m, n, active, flagged, residual, out, states):
    """Write m_ai on all edges: tables summed against the other slot's message, normalised."""
    card = len(states)
    for c in range(len(residual)):
        residual[c] = 0
    for f in range(len(component)):
        c = component[f]
        if not active[c]:
            continue
        x0, y0, at = slot_edge[2 * f] * card, slot_edge[2 * f + 1] * card, table[f]
        low = False
        for y in range(card):
            out[card + y] = 0
        for x in range(card):
            total = out[card] * 0
            message = n[x0 + x]
            for y in range(card):
                entry, other = psi[at + x * card + y], n[y0 + y]
                there, back = entry * other, entry * message
                low |= there.real < SAFE and entry.real != 0 and other.real != 0
                low |= back.real < SAFE and entry.real != 0 and message.real != 0
                total += there
                out[card + y] += back
            out[x] = total
        change = 0.0
        for side in range(2):
            first, target = side * card, x0 if side == 0 else y0
            total = out[first]
            for k in range(1, card):
                total += out[first + k]
            scale = 1 / total if total.real != 0 else total + 1
            for k in range(card):
                value = out[first + k] * scale
                change = max(change, abs(value.real - m[target + k].real))
                m[target + k] = value
        residual[c] = max(residual[c], change)
        if low:
            flagged[c] = True
