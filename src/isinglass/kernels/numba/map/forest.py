"""Block moves: a random forest of variables, maximised exactly given the others.

A set of variables *induces* a forest if the factors that hold some of them, joined with them, have no cycle. Such a set
is grown from a random order, by union-find over variables and links: a variable joins if its links lie in different
trees. Given all other variables, the best states of the set follow by dynamic programming from the leaves to the
roots (max-product on a forest), and back:

    q_i(x_i)    =  phi_i(x_i) + sum_{a below i} m_a(x_i)
    m_a(x_i)    =  max over the members j != i of a of  phi_a(x_a) + sum_j q_j(x_j)

(Hamze and de Freitas 2004 sample such trees.) No assignment that agrees with the current one outside the set scores
higher than the result.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.compilation.jit import compiled, inner


@inner
def root_of(node, parent):
    """Return the representative of a node; paths are halved."""
    while parent[ix(node)] != node:
        parent[ix(node)] = parent[ix(parent[ix(node)])]
        node = parent[ix(node)]
    return node


@compiled
def grow(order, edges, parent, inside):
    """Mark the variables of a forest, tried in this order; `parent` has room for variables and links."""
    n, count = len(edges.cards), 0
    for node in range(len(parent)):
        parent[ix(node)] = node
    for i in range(n):
        inside[ix(i)] = False
    for i in order:
        fits = True
        first, last = edges.first_edge[ix(i)], edges.first_edge[ix(i + 1)]
        for e in range(first, last):
            mine = root_of(n + edges.edge_link[ix(e)], parent)
            for other in range(first, e):
                if root_of(n + edges.edge_link[ix(other)], parent) == mine:
                    fits = False
                    break
            if not fits:
                break
        if fits:
            inside[ix(i)] = True
            count += 1
            for e in range(first, last):
                parent[ix(root_of(n + edges.edge_link[ix(e)], parent))] = root_of(i, parent)
    return count


@compiled
def order_forest(order, edges, inside, up, seen, queue):
    """Number the variables of the forest from the roots down, into `queue`; return how many there are.

    `up` is the link towards the root, -1 for a root; `seen` has a flag for each link.
    """
    n, count = len(edges.cards), 0
    for i in range(n):
        up[ix(i)] = -2
    for f in range(len(seen)):
        seen[ix(f)] = False
    for root in order:
        if not inside[ix(root)] or up[ix(root)] != -2:
            continue
        up[ix(root)] = -1
        head = count
        queue[ix(count)] = root
        count += 1
        while head < count:
            i = queue[ix(head)]
            head += 1
            for e in range(edges.first_edge[ix(i)], edges.first_edge[ix(i + 1)]):
                f = edges.edge_link[ix(e)]
                if seen[ix(f)]:
                    continue
                seen[ix(f)] = True
                for s in range(edges.first_slot[ix(f)], edges.first_slot[ix(f + 1)]):
                    j = edges.slot_variable[ix(s)]
                    if inside[ix(j)] and up[ix(j)] == -2:
                        up[ix(j)] = f
                        queue[ix(count)] = j
                        count += 1
    return count


@inner
def next_members(first, last, edges, inside, fixed, x, entry):
    """Advance the states of the members of a link but one; return its entry, or -1 after the last."""
    for s in range(first, last):
        j = edges.slot_variable[ix(s)]
        if j == fixed or not inside[ix(j)]:
            continue
        if x[ix(j)] + 1 < edges.cards[ix(j)]:
            x[ix(j)] += 1
            return entry + edges.slot_stride[ix(s)]
        entry -= edges.slot_stride[ix(s)] * x[ix(j)]
        x[ix(j)] = 0
    return np.int64(-1)


@inner
def entry_with(first, last, edges, inside, fixed, state, x, start):
    """Set the members of a link but one to their first state; return the entry there, with the others as they are."""
    entry = start
    for s in range(first, last):
        j = edges.slot_variable[ix(s)]
        if j == fixed:
            entry += edges.slot_stride[ix(s)] * state
            continue
        if inside[ix(j)]:
            x[ix(j)] = 0
        entry += edges.slot_stride[ix(s)] * x[ix(j)]
    return entry


@inner
def members_score(first, last, edges, inside, fixed, x, q):
    """Add up the q of a link's members but one, at their states."""
    total = 0.0
    for s in range(first, last):
        j = edges.slot_variable[ix(s)]
        if j != fixed and inside[ix(j)]:
            total += q[ix(edges.first_state[ix(j)] + x[ix(j)])]
    return total


@inner
def send_up(f, i, edges, table, psi, inside, x, q):
    """Add m_f to q_i."""
    first, last, at = edges.first_slot[ix(f)], edges.first_slot[ix(f + 1)], edges.first_state[ix(i)]
    for a in range(edges.cards[ix(i)]):
        top = -np.inf
        entry = entry_with(first, last, edges, inside, i, a, x, table[ix(f)])
        while entry >= 0:
            top = max(top, psi[ix(entry)] + members_score(first, last, edges, inside, i, x, q))
            entry = next_members(first, last, edges, inside, i, x, entry)
        q[ix(at + a)] += top


@inner
def choose_down(f, i, edges, table, psi, inside, x, q, best):
    """Write the best states of the members of link f but i, whose state is known, into `best`."""
    first, last, top = edges.first_slot[ix(f)], edges.first_slot[ix(f + 1)], -np.inf
    entry = entry_with(first, last, edges, inside, i, best[ix(i)], x, table[ix(f)])
    while entry >= 0:
        value = psi[ix(entry)] + members_score(first, last, edges, inside, i, x, q)
        if value > top:
            top = value
            for s in range(first, last):
                j = edges.slot_variable[ix(s)]
                if j != i and inside[ix(j)]:
                    best[ix(j)] = x[ix(j)]
        entry = next_members(first, last, edges, inside, i, x, entry)


@compiled
def maximise(count, queue, up, edges, table, phi, psi, inside, x, best, q):
    """Write the best states of the forest into `best`, given the other variables; return how many changed.

    The current assignment must have no conflict. `x` is scratch inside the forest: it is the result afterwards, too.
    """
    for k in range(count):
        i = queue[ix(k)]
        for a in range(edges.first_state[ix(i)], edges.first_state[ix(i + 1)]):
            q[ix(a)] = phi[ix(a)]
    for k in range(count - 1, -1, -1):
        i = queue[ix(k)]
        for e in range(edges.first_edge[ix(i)], edges.first_edge[ix(i + 1)]):
            f = edges.edge_link[ix(e)]
            if f != up[ix(i)]:
                send_up(f, i, edges, table, psi, inside, x, q)
    for k in range(count):
        i = queue[ix(k)]
        if up[ix(i)] == -1:
            top, at = 0, edges.first_state[ix(i)]
            for a in range(1, edges.cards[ix(i)]):
                if q[ix(at + a)] > q[ix(at + top)]:
                    top = a
            best[ix(i)] = top
        for e in range(edges.first_edge[ix(i)], edges.first_edge[ix(i + 1)]):
            f = edges.edge_link[ix(e)]
            if f != up[ix(i)]:
                choose_down(f, i, edges, table, psi, inside, x, q, best)
    for k in range(count):
        x[ix(queue[ix(k)])] = best[ix(queue[ix(k)])]
    return count
