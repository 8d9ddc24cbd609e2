"""The residual schedule: always update the link whose messages would change most (Elidan, McGraw and Koller 2006).

A binary heap holds the links of a component by their pending change. After an update, the pending changes of the links
next to it are computed anew. One iteration makes as many updates as the component has links, fewer if the largest
pending change falls to the tolerance. The sequence of updates and the messages that they overwrote are logged, so that
the reverse pass replays them.
"""

from __future__ import annotations

from isinglass.compilation import compiled
from isinglass.kernels.numba.messages import damp, distance, replace, slot_card, to_one_link, to_variables
from isinglass.kernels.numba.passes import keep


@compiled
def prepare(f, edges, values, m, n, damping, scratch, units, ring):
    """Leave the new messages of link f in scratch.out. Returns whether a product underflowed."""
    first, last = edges.first_slot[f], edges.first_slot[f + 1]
    low = False
    for slot in range(first, last):
        low |= to_one_link(edges.slot_edge[slot], edges.slot_variable[slot], edges.first_edge, edges.start,
                           edges.first_state, edges.cards, values.phi, m, values.counting, edges.edge_link, n,
                           ring)  # fmt: skip
    low |= to_variables(first, last, edges.slot_edge, edges.start, values.psi, values.table[f], edges.size[f], n,
                        scratch.out, scratch.prefix, scratch.digits, units, ring)  # fmt: skip
    damp(m, scratch.out, first, last, edges.slot_edge, edges.start, damping, ring)
    return low


@compiled
def pending(f, edges, m, out, ring):
    """Return the largest change that the messages in `out` would make."""
    change = 0.0
    place = 0
    for slot in range(edges.first_slot[f], edges.first_slot[f + 1]):
        s = edges.start[edges.slot_edge[slot]]
        for k in range(slot_card(edges.start, edges.slot_edge[slot])):
            change = max(change, distance(m[s + k], out[place], ring))
            place += 1
    return change


@compiled
def sift(heap, place, priority, at, size):
    """Restore the heap (largest first, ties to the lower link) after the priority of the link at `at` changed."""
    link = heap[at]
    while at > 0:
        above = heap[(at - 1) // 2]
        if priority[above] > priority[link] or (priority[above] == priority[link] and above < link):
            break
        heap[at] = above
        place[above] = at
        at = (at - 1) // 2
    while 2 * at + 1 < size:
        child = 2 * at + 1
        other = child + 1
        if other < size:
            one, two = heap[child], heap[other]
            if priority[two] > priority[one] or (priority[two] == priority[one] and two < one):
                child = other
        below = heap[child]
        if priority[link] > priority[below] or (priority[link] == priority[below] and link < below):
            break
        heap[at] = below
        place[below] = at
        at = child
    heap[at] = link
    place[link] = at


@compiled
def chase(edges, values, members, first_member, m, n, log, sequence, priority, heap, place, fresh, tol, damping, active,
          flagged, residual, scratch, units, ring):  # fmt: skip
    """One iteration of every active component. Returns the number of updates and of logged message entries.

    The links of component c are ``members[first_member[c]:first_member[c + 1]]``; `priority` is kept between
    iterations, and computed first if the run is `fresh`. `log` may be empty.
    """
    count = 0
    logged = 0
    for c in range(len(active)):
        if not active[c]:
            continue
        first, size = first_member[c], first_member[c + 1] - first_member[c]
        for j in range(size):
            f = members[first + j]
            if fresh:
                flagged[c] |= prepare(f, edges, values, m, n, damping, scratch, units, ring)
                priority[f] = pending(f, edges, m, scratch.out, ring)
            heap[j] = f
            place[f] = j
            sift(heap, place, priority, j, j + 1)
        for _ in range(size):
            f = heap[0]
            if priority[f] <= tol:
                break
            if len(log) > 0:
                logged = keep(
                    m, edges.first_slot[f], edges.first_slot[f + 1], edges.slot_edge, edges.start, log, logged
                )
            sequence[count] = f
            count += 1
            flagged[c] |= prepare(f, edges, values, m, n, damping, scratch, units, ring)
            replace(m, scratch.out, edges.first_slot[f], edges.first_slot[f + 1], edges.slot_edge, edges.start, ring)
            refresh(f, edges, values, m, n, priority, heap, place, size, damping, scratch, units, ring)
        residual[c] = priority[heap[0]] if size > 0 else 0.0
    return count, logged


@compiled
def refresh(f, edges, values, m, n, priority, heap, place, size, damping, scratch, units, ring):
    """Compute the pending changes of link f and of all links next to it anew."""
    for slot in range(edges.first_slot[f], edges.first_slot[f + 1]):
        i = edges.slot_variable[slot]
        for e in range(edges.first_edge[i], edges.first_edge[i + 1]):
            g = edges.edge_link[e]
            if g != f or slot == edges.first_slot[f]:
                prepare(g, edges, values, m, n, damping, scratch, units, ring)
                priority[g] = pending(g, edges, m, scratch.out, ring)
                sift(heap, place, priority, place[g], size)
