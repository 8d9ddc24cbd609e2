"""Blocks of an undirected graph, with parallel edges: the links that a cycle joins, and the bridges.

Two links are in one block if some simple cycle goes through both; a link on no cycle, a *bridge*, is a block by itself.
A depth-first search finds them in linear time: with disc(v) the time at which v is found and low(v) the least disc
that the subtree of v reaches by one link out of it, a child v of p closes a block if low(v) >= disc(p)
(Hopcroft and Tarjan 1973). The search keeps its own path, so that depth costs no stack.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.structure.blocks import fill_slots, find_blocks
from isinglass.segments import starts
from isinglass.typing import IntArray


def adjacency(pairs: IntArray, n: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return where the slots of each vertex begin, and the neighbour and the link of each slot."""
    first = starts(np.bincount(pairs.ravel(), minlength=n))
    neighbour, link = np.empty(2 * len(pairs), np.int64), np.empty(2 * len(pairs), np.int64)
    fill_slots(pairs, first[:-1].copy(), neighbour, link)
    return first, neighbour, link


def link_blocks(first: IntArray, neighbour: IntArray, link: IntArray) -> IntArray:
    """Return the block of each link, numbered from zero, for the slots that `adjacency` returns."""
    n, n_links = len(first) - 1, len(link) // 2
    block, path, open_links = np.empty(n_links, np.int64), np.empty(n, np.int64), np.empty(n_links, np.int64)
    disc, low, via = np.full(n, -1), np.zeros(n, np.int64), np.full(n, -1)
    find_blocks(first, neighbour, link, first[:-1].copy(), disc, low, via, path, open_links, block)
    return block
