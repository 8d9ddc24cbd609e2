"""Local search for most probable assignments: one variable at a time, given the others.

    t_i(x_i)  =  phi_i(x_i) + sum_{a at i} phi_a(x_a)         all other variables at their current states

A hard zero adds nothing to t_i but counts as a *conflict*: a state with fewer conflicts is better, whatever its score.
So a search that starts with conflicts gets rid of them, and one without never makes any. No number stands for -inf.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.compilation.jit import compiled, inner


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


@inner
def best_state(i, edges, slots, table, phi, psi, x, t, conflicts):
    """Return a variable's best state given the others: its own unless another one is better."""
    targets(i, edges, slots, table, phi, psi, x, t, conflicts)
    best = x[ix(i)]
    for a in range(edges.cards[ix(i)]):
        if better(t, conflicts, a, best):
            best = a
    return best


@compiled
def climb(order, edges, slots, table, phi, psi, x, t, conflicts):
    """Give each variable, in this order, its best state given the others; return how many changed.

    A variable keeps its state unless another one is better, so that sweeps end.
    """
    changed = 0
    for i in order:
        best = best_state(i, edges, slots, table, phi, psi, x, t, conflicts)
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


@inner
def ball(center, size, edges, stamp, mark, queue):
    """Write the variables nearest to a center, breadth first, at most `size` of them; return how many."""
    queue[0] = center
    stamp[ix(center)] = mark
    head, count = 0, 1
    while head < count and count < size:
        i = queue[ix(head)]
        head += 1
        for e in range(edges.first_edge[ix(i)], edges.first_edge[ix(i + 1)]):
            f = edges.edge_link[ix(e)]
            for s in range(edges.first_slot[ix(f)], edges.first_slot[ix(f + 1)]):
                j = edges.slot_variable[ix(s)]
                if stamp[ix(j)] != mark and count < size:
                    stamp[ix(j)] = mark
                    queue[ix(count)] = j
                    count += 1
    return count


@inner
def move_to(i, new, x, t, conflicts, total):
    """Change a variable's state; add the change of score and of conflicts to `total`."""
    old = x[ix(i)]
    total[0] += t[ix(new)] - t[ix(old)]
    total[1] += conflicts[ix(new)] - conflicts[ix(old)]
    x[ix(i)] = new


@inner
def draw(card, t, temperature, uniform):
    """Draw a state from p(x_i | others) at a temperature; hard zeros do not count."""
    top, mass = -np.inf, 0.0
    for a in range(card):
        top = max(top, t[ix(a)])
    for a in range(card):
        mass += np.exp((t[ix(a)] - top) / temperature)
    rest = uniform * mass
    for a in range(card):
        rest -= np.exp((t[ix(a)] - top) / temperature)
        if rest < 0:
            return a
    return card - 1


@inner
def climb_inside(count, queue, edges, slots, table, phi, psi, x, t, conflicts, total):
    """Give the variables of a ball their best states until none changes; add what it brings to `total`."""
    changed = True
    while changed:
        changed = False
        for place in range(count):
            i = queue[ix(place)]
            best = best_state(i, edges, slots, table, phi, psi, x, t, conflicts)
            if best != x[ix(i)]:
                move_to(i, best, x, t, conflicts, total)
                changed = True


@compiled
def perturb(
    centers, uniforms, temperature, first_mark, edges, slots, table, phi, psi, x, t, conflicts, stamp, queue, saved,
    total,
):  # fmt: skip
    """Redraw the states of a ball around each center, climb inside it, and keep the result unless it is worse.

    Each row of `uniforms` is as long as a ball is large. States are drawn from p(x_i | others) at a temperature; hard
    zeros do not count there. Returns how many balls changed the score for the better.
    """
    better_ones, size = 0, uniforms.shape[1]
    for k in range(len(centers)):
        count = ball(centers[ix(k)], size, edges, stamp, first_mark + k, queue)
        total[0] = total[1] = 0.0
        for place in range(count):
            i = queue[ix(place)]
            saved[ix(place)] = x[ix(i)]
            targets(i, edges, slots, table, phi, psi, x, t, conflicts)
            new = draw(edges.cards[ix(i)], t, temperature, uniforms[ix(k), ix(place)])
            move_to(i, new, x, t, conflicts, total)
        climb_inside(count, queue, edges, slots, table, phi, psi, x, t, conflicts, total)
        if total[1] > 0 or (total[1] == 0 and total[0] < 0):
            for place in range(count):
                x[ix(queue[ix(place)])] = saved[ix(place)]
        elif total[1] < 0 or total[0] > 0:
            better_ones += 1
    return better_ones
