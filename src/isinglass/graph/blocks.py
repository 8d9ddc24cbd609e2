"""Blocks of an undirected graph, with parallel edges: the links that a cycle joins, and the bridges.

Two links are in one block if some simple cycle goes through both; a link on no cycle, a *bridge*, is a block by itself.
A depth-first search finds them in linear time: with disc(v) the time at which v is found and low(v) the least disc
that the subtree of v reaches by one link out of it, a child v of p closes a block if low(v) >= disc(p)
(Hopcroft and Tarjan 1973). The search keeps its own path, so that depth costs no stack.
"""

from __future__ import annotations

import numpy as np

from isinglass.compilation import cold, compiled
from isinglass.validation import IntArray


def adjacency(pairs: IntArray, n: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return where the slots of each vertex begin, and the neighbour and the link of each slot."""
    first = np.concatenate([[0], np.cumsum(np.bincount(pairs.ravel(), minlength=n))]).astype(np.int64)
    neighbour, link = np.empty(2 * len(pairs), np.int64), np.empty(2 * len(pairs), np.int64)
    _fill_slots(pairs, first[:-1].copy(), neighbour, link)
    return first, neighbour, link


def link_blocks(first: IntArray, neighbour: IntArray, link: IntArray) -> IntArray:
    """Return the block of each link, numbered from zero, for the slots that `adjacency` returns."""
    n, n_links = len(first) - 1, len(link) // 2
    block, path, open_links = np.empty(n_links, np.int64), np.empty(n, np.int64), np.empty(n_links, np.int64)
    disc, low, via = np.full(n, -1), np.zeros(n, np.int64), np.full(n, -1)
    _find_blocks(first, neighbour, link, first[:-1].copy(), disc, low, via, path, open_links, block)
    return block


@compiled
def _fill_slots(pairs, free, neighbour, link):
    """Write the slots of each vertex, of which the first free one is known."""
    for e in range(len(pairs)):
        for side in range(2):
            slot = free[pairs[e, side]]
            free[pairs[e, side]] += 1
            neighbour[slot] = pairs[e, 1 - side]
            link[slot] = e


@compiled
def _find_blocks(first, neighbour, link, slot, disc, low, via, path, open_links, block):
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
                opened = _close(open_links, opened, via[v], block, blocks)
                blocks += 1


@cold
def _close(open_links, opened, last, block, number):
    """Give the links opened since `last` their block; return how many stay open."""
    while True:
        opened -= 1
        e = open_links[opened]
        block[e] = number
        if e == last:
            return opened
