"""Local search for most probable assignments: one variable at a time, given the others.

    t_i(x_i)  =  phi_i(x_i) + sum_{a at i} phi_a(x_a)         all other variables at their current states

A hard zero adds nothing to t_i but counts as a *conflict*: a state with fewer conflicts is better, whatever its score.
So a search that starts with conflicts gets rid of them, and one without never makes any. No number stands for -inf.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.jit import compiled, inner


@inner
def targets(i, edges, slots, table, phi, psi, x, t, conflicts):
    """Write t_i and the number of conflicts of each state."""
    card, first = edges.cards[ix(i)], edges.first_state[ix(i)]
    for a in range(card):
        t[ix(a)] = phi[ix(first + a)]
        conflicts[ix(a)] = 0
    for e in range(edges.first_edge[ix(i)], edges.first_edge[ix(i + 1)]):
        f, own = edges.edge_link[ix(e)], slots[ix(e)]
        entry = table[ix(f)]
        for s in range(edges.first_slot[ix(f)], edges.first_slot[ix(f + 1)]):
            if s != own:
                entry += edges.slot_stride[ix(s)] * x[ix(edges.slot_variable[ix(s)])]
        step = edges.slot_stride[ix(own)]
        for a in range(card):
            value = psi[ix(entry + a * step)]
            if value == -np.inf:
                conflicts[ix(a)] += 1
            else:
                t[ix(a)] += value


@inner
def better(t, conflicts, a, b):
    """Tell whether state a is better than state b: fewer conflicts, or as many and a higher score."""
    if conflicts[ix(a)] != conflicts[ix(b)]:
        return conflicts[ix(a)] < conflicts[ix(b)]
    return t[ix(a)] > t[ix(b)]


@compiled
def climb(order, edges, slots, table, phi, psi, x, t, conflicts):
    """Give each variable, in this order, its best state given the others; return how many changed.

    A variable keeps its state unless another one is better, so that sweeps end.
    """
    changed = 0
    for i in order:
        targets(i, edges, slots, table, phi, psi, x, t, conflicts)
        best = x[ix(i)]
        for a in range(edges.cards[ix(i)]):
            if better(t, conflicts, a, best):
                best = a
        if best != x[ix(i)]:
            x[ix(i)] = best
            changed += 1
    return changed


@compiled
def anneal(order, uniforms, temperature, edges, slots, table, phi, psi, x, t, conflicts):
    """Draw each variable's state, in this order, from p(x_i | others) at a temperature; return the change of score.

    Only states with the fewest conflicts are drawn. The change counts finite entries alone.
    """
    gain = 0.0
    for k in range(len(order)):
        i = order[k]
        targets(i, edges, slots, table, phi, psi, x, t, conflicts)
        card, best = edges.cards[ix(i)], 0
        for a in range(1, card):
            if better(t, conflicts, a, best):
                best = a
        fewest, top, total = conflicts[ix(best)], t[ix(best)], 0.0
        for a in range(card):
            if conflicts[ix(a)] == fewest:
                total += np.exp((t[ix(a)] - top) / temperature)
        rest, drawn = uniforms[ix(k)] * total, best
        for a in range(card):
            if conflicts[ix(a)] == fewest:
                rest -= np.exp((t[ix(a)] - top) / temperature)
                if rest < 0:
                    drawn = a
                    break
        gain += t[ix(drawn)] - t[ix(x[ix(i)])]
        x[ix(i)] = drawn
    return gain
