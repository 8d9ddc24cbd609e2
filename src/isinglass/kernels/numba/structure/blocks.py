"""Slots of vertices, and blocks by depth-first search: the loops of `graph.forests.blocks`."""

from __future__ import annotations

from isinglass.runtime.compilation.jit import cold, compiled


@compiled
def fill_slots(pairs, free, neighbour, link):
    """Write the slots of each vertex, of which the first free one is known."""
    for e in range(len(pairs)):
        for side in range(2):
            slot = free[pairs[e, side]]
            free[pairs[e, side]] += 1
            neighbour[slot] = pairs[e, 1 - side]
            link[slot] = e


@compiled
def find_blocks(first, neighbour, link, slot, disc, low, via, path, open_links, block):
    """Search depth first; `slot` is the next of each vertex."""
    clock = blocks = opened = 0
    for root in range(len(disc)):
        if disc[root] >= 0:
            continue
        disc[root] = low[root] = clock
        clock += 1
        path[0] = root
        depth = 1
        while depth > 0:
            v = path[depth - 1]
            if slot[v] < first[v + 1]:
                u, e = neighbour[slot[v]], link[slot[v]]
                slot[v] += 1
                if e == via[v] or disc[u] > disc[v]:  # where v came from, or a link that u has seen already
                    continue
                open_links[opened] = e
                opened += 1
                if disc[u] >= 0:
                    low[v] = min(low[v], disc[u])
                    continue
                disc[u] = low[u] = clock
                clock += 1
                via[u] = e
                path[depth] = u
                depth += 1
                continue
            depth -= 1
            if depth == 0:
                break
            p = path[depth - 1]
            low[p] = min(low[p], low[v])
            if low[v] >= disc[p]:
                opened = close(open_links, opened, via[v], block, blocks)
                blocks += 1


@cold
def close(open_links, opened, last, block, number):
    """Give the links opened since `last` their block; return how many stay open."""
    while True:
        opened -= 1
        e = open_links[opened]
        block[e] = number
        if e == last:
            return opened
