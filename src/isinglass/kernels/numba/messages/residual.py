"""The residual schedule: always update the link whose messages would change most (Elidan, McGraw and Koller 2006).

A binary heap holds the links of a component by their pending change, measured by what it can do to a probability; that
grows with exp(osc), the *widest ratio* of `changes`, which is what the heap compares. What every variable sends (n)
and every link's next messages (`pending`) are kept up to date: after an update, the variables of the link send anew,
and the links next to it compute their next messages. One iteration makes as many updates as the component has links,
fewer if the largest pending change falls to the tolerance. The sequence of updates and the messages that they
overwrote are logged, so that the reverse pass replays them. An iteration depends on the messages at its start only.

Links whose pending changes are within the tolerance, where a given number of iterations goes on, *take turns*: the one
that has waited longest is updated. Values hardly change then, but derivatives do: the message of a uniform table is
uniform whatever the variables send, while its derivative by the table depends on what they send. A link that is not
updated any more would keep the derivative at what they sent before.
"""

from __future__ import annotations

from isinglass.kernels.numba.arithmetic.indexing import first_of, ix
from isinglass.kernels.numba.messages.changes import effect, widest_ratio
from isinglass.kernels.numba.messages.passes import compute, keep, some_to_links
from isinglass.kernels.numba.messages.updates import (
    damp_row,
    divide_row,
    edge_card,
    raise_messages,
    send,
    sending_underflows,
    to_links,
)
from isinglass.runtime.compilation.jit import apart, compiled, inner


@inner
def sift(heap, place, priority, at, size):
    """Restore the heap (largest first, ties to the lower link) after the priority of the link at `at` changed."""
    link = heap[ix(at)]
    key = priority[ix(link)]
    while at > 0:
        above = heap[ix((at - 1) >> 1)]
        over = priority[ix(above)]
        if over > key or (over == key and above < link):
            break
        heap[ix(at)] = above
        place[ix(above)] = at
        at = (at - 1) >> 1
    while 2 * at + 1 < size:
        child = 2 * at + 1
        below = heap[ix(child)]
        under = priority[ix(below)]
        if child + 1 < size:
            other = heap[ix(child + 1)]
            rival = priority[ix(other)]
            if rival > under or (rival == under and other < below):
                child, below, under = child + 1, other, rival
        if key > under or (key == under and link < below):
            break
        heap[ix(at)] = below
        place[ix(below)] = at
        at = child
    heap[ix(at)] = link
    place[ix(link)] = at


@apart
def make_heap(heap, place, priority, members, first, size):
    """Put the links ``members[first : first + size]`` into the heap."""
    for j in range(size):
        heap[ix(j)] = members[ix(first + j)]
        place[ix(heap[ix(j)])] = j
        sift(heap, place, priority, j, j + 1)


@inner
def send_anew(i, edges, values, m, n, scratch, states, units, ring):
    """Send the messages of variable i. Returns whether a product underflowed."""
    powered = scratch.powered if len(scratch.own) > 0 else m
    if len(scratch.own) > 0:
        raise_messages(i, edges.first_edge, edges.start, edges.edge_link, values.counting, m, scratch.powered,
                       scratch.own, ring)  # fmt: skip
    if to_links(i, edges.first_edge, edges.start, edges.first_state, edges.cards, values.phi, powered, scratch.own, n,
                0, scratch.scale, states, values.limit, units, ring):  # fmt: skip
        return sending_underflows(i, edges, values, powered, n, 0)
    return False


@apart
def raise_all(edges, span, values, m, active, scratch, ring):
    """Raise the messages of all active variables to powers, with the bits of `send_anew`."""
    for i in range(span.first_variable, span.last_variable):
        if active[edges.variable_component[ix(i)]]:
            raise_messages(i, edges.first_edge, edges.start, edges.edge_link, values.counting, m, scratch.powered,
                           scratch.own, ring)  # fmt: skip


@inner
def look_ahead(f, edges, values, m, n, pending, change, damping, scratch, states, units, ring):
    """Compute the next messages of link f and how far each is from the current one. Returns an underflow flag."""
    low = compute(f, edges, values, m, n, damping, scratch, states, units, ring)
    place = 0
    for slot in range(edges.first_slot[ix(f)], edges.first_slot[ix(f + 1)]):
        e = edges.slot_edge[ix(slot)]
        s, card = first_of(e, edges.start, states), edge_card(edges.start, e, states)
        for k in range(card):
            pending[ix(s + k)] = scratch.out[ix(place + k)]
        change[ix(e)] = widest_ratio(m, s, pending, s, card, ring)
        place += card
    return low


@inner
def look_across(e, other, edges, values, m, n, pending, change, damping, states, ring):
    """Compute the next message of a pairwise link from edge e to the other one."""
    to, outer = first_of(other, edges.start, states), edge_card(edges.start, other, states)
    sender, card = first_of(e, edges.start, states), edge_card(edges.start, e, states)
    total = send(values.psi, values.edge_table[ix(e)], n, sender, card, pending, to, outer, ring)
    divide_row(pending, to, outer, total, ring)
    if damping != 0:
        damp_row(m, to, pending, to, outer, damping, ring)
    change[ix(other)] = widest_ratio(m, to, pending, to, outer, ring)


@inner
def largest_change(f, edges, change):
    """Return the largest pending change of a link."""
    largest = 1.0
    for slot in range(edges.first_slot[ix(f)], edges.first_slot[ix(f + 1)]):
        largest = max(largest, change[ix(edges.slot_edge[ix(slot)])])
    return largest


@inner
def rank(f, edges, change, turn, alike):
    """Return the priority of a link: its largest pending change, or its turn where that is too small to choose by."""
    largest = largest_change(f, edges, change)
    return largest if largest > alike else turn[ix(f)]


@apart
def still_pending(members, first, size, edges, change):
    """Return the largest pending change of the links ``members[first : first + size]``."""
    largest = 1.0
    for j in range(size):
        largest = max(largest, largest_change(members[ix(first + j)], edges, change))
    return largest


@compiled
def update_by_residual(edges, span, values, queue, m, n, damping, active, flagged, residual, scratch, states, units,
                       ring):  # fmt: skip
    """One iteration of every active component. Returns the number of updates and of logged message entries.

    ``members[first_member[c] : first_member[c + 1]]`` are the links of component c; `log` is empty or long enough.
    Links whose widest ratio is at most `limit` are not updated; where it is at most `alike`, they take turns.
    """
    members, first_member, pending, change = queue.members, queue.first_member, queue.pending, queue.change
    log, sequence, priority, heap, place = queue.log, queue.sequence, queue.priority, queue.heap, queue.place
    limit, turn, alike = queue.limit, queue.turn, queue.alike
    if len(scratch.own) > 0:
        raise_all(edges, span, values, m, active, scratch, ring)
    some_to_links(span.first_variable, span.last_variable, edges, values, m, n, active, flagged, scratch, states, units,
                  ring)  # fmt: skip
    count, logged = 0, 0
    for c in range(span.first_component, span.last_component):
        first, size = first_member[c], first_member[c + 1] - first_member[c]
        if not active[c]:
            continue
        for j in range(size):
            f = members[first + j]
            flagged[c] |= look_ahead(f, edges, values, m, n, pending, change, damping, scratch, states, units, ring)
            priority[f] = rank(f, edges, change, turn, alike)
        make_heap(heap, place, priority, members, first, size)
        for _ in range(size):
            f = heap[0]
            if priority[f] <= limit:
                break
            if len(log) > 0:
                logged = keep(m, edges.first_slot[f], edges.first_slot[f + 1], edges.slot_edge, edges.start, log,
                              logged, states)  # fmt: skip
            sequence[count] = f
            count += 1
            turn[f] = -float(len(turn) + count)  # the last one
            flagged[c] |= update(f, edges, values, m, n, pending, change, priority, heap, place, size, turn, alike,
                                 damping, scratch, states, units, ring)  # fmt: skip
        largest = priority[heap[0]] if size > 0 else 1.0
        if largest < 1:
            largest = still_pending(members, first, size, edges, change)
        residual[c] = effect(largest, damping) if size > 0 else 0.0
    return count, logged


@inner
def update(f, edges, values, m, n, pending, change, priority, heap, place, size, turn, alike, damping, scratch,
           states, units, ring):  # fmt: skip
    """Give link f its next messages; bring what depends on them up to date. Returns whether a product underflowed.

    A link next to it at variable i has a new message to its other variables only. The link itself has no new ones,
    for what its variables send to it does not depend on its messages, unless these are damped or raised to powers.
    """
    low, settled = False, damping == 0 and len(scratch.own) == 0
    first, last = edges.first_slot[ix(f)], edges.first_slot[ix(f + 1)]
    for slot in range(first, last):
        e = edges.slot_edge[ix(slot)]
        s = first_of(e, edges.start, states)
        for k in range(edge_card(edges.start, e, states)):
            m[ix(s + k)] = pending[ix(s + k)]
        change[ix(e)] = 1.0
        low |= send_anew(edges.slot_variable[ix(slot)], edges, values, m, n, scratch, states, units, ring)
    for slot in range(first, last):
        i = edges.slot_variable[ix(slot)]
        for e in range(edges.first_edge[ix(i)], edges.first_edge[ix(i + 1)]):
            g = edges.edge_link[ix(e)]
            start = edges.first_slot[ix(g)]
            if g == f and slot > first:
                continue
            if g != f and edges.first_slot[ix(g + 1)] - start == 2:
                other = edges.slot_edge[ix(start)] + edges.slot_edge[ix(start + 1)] - e
                look_across(e, other, edges, values, m, n, pending, change, damping, states, ring)
            elif g != f or not settled:
                low |= look_ahead(g, edges, values, m, n, pending, change, damping, scratch, states, units, ring)
            priority[ix(g)] = rank(g, edges, change, turn, alike)
            sift(heap, place, priority, place[ix(g)], size)
    return low
