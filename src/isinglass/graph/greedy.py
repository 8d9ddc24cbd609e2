"""Greedy elimination of the vertices of an undirected graph: the compiled inner loop of elimination orders.

Eliminating a vertex joins its remaining neighbours pairwise; they are its *separator*, and together with
it they form its *bucket*. Vertices with at most one neighbour go first, which is always optimal and takes
linear time on forests; then, again and again, the vertex of least score goes:

- least weight: log2 of the bucket's number of states;
- least fill: the edges that its elimination would add, each counted as the product of its ends' weights.

Ties go to the lower `tie_break`, then to the lower number. The sequence inside a connected part does not
depend on the other parts.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from isinglass.compilation import allocating, compiled

LARGE_DEGREE = 256  # above it a score is brought up to date when its vertex comes up, not at every change


@allocating
def eliminate(first, neighbours, log_cards, fill_weights, tie_break, use_fill, max_log2, max_work):
    """Eliminate greedily.

    Parameters
    ----------
    first, neighbours : int64 arrays
        Adjacency: the neighbours of v are ``neighbours[first[v]:first[v + 1]]``, distinct, without v.
    log_cards, fill_weights, tie_break : float64 arrays (vertices,)
    use_fill : bool
        Least fill, otherwise least weight.
    max_log2 : float
        Stop before a bucket with more than ``2**max_log2`` states.
    max_work : int
        Stop after so many inner steps.

    Returns
    -------
    order, first, separators, stuck, work
        The vertices in elimination order (not all of them, if it stopped), their separators
        (``separators[first[i]:first[i + 1]]``), the degree of the vertex that it stopped at (else zero), and the
        number of inner steps taken.
    """
    n = len(first) - 1
    order = np.empty(n, np.int64)
    bounds = np.zeros(n + 1, np.int64)
    separators = np.empty(max(len(neighbours), 16), np.int64)
    gone = np.zeros(n, np.bool_)
    done, total = _strip(first, neighbours, gone, order, bounds, separators)
    start, length, room, pool, top = _core(first, neighbours, gone)
    mark = np.full(n, -1, np.int64)
    work = np.zeros(1, np.int64)
    version = np.zeros(n, np.int64)
    stale = np.zeros(n, np.bool_)
    touched = np.full(n, -1, np.int64)
    heap: Any = [(0.0, 0.0, np.int64(-1), np.int64(-1))]  # tells Numba what the heap holds
    heap.clear()
    stuck = 0
    for v in range(n):
        if not gone[v] and work[0] <= max_work:
            score = _score(v, start, length, pool, log_cards, fill_weights, use_fill, mark, work)
            heapq.heappush(heap, (score, tie_break[v], v, version[v]))
    while len(heap) > 0 and work[0] <= max_work:
        _, _, v, stamp = heapq.heappop(heap)
        if gone[v] or stamp != version[v]:
            continue
        if stale[v]:
            stale[v] = False
            version[v] += 1
            score = _score(v, start, length, pool, log_cards, fill_weights, use_fill, mark, work)
            heapq.heappush(heap, (score, tie_break[v], v, version[v]))
            continue
        degree = length[v]
        size = log_cards[v]
        for i in range(start[v], start[v] + degree):
            size += log_cards[pool[i]]
        if size > max_log2:
            stuck = degree
            break
        gone[v] = True
        order[done] = v
        done += 1
        separators = _room(separators, total + degree)
        separators[total : total + degree] = pool[start[v] : start[v] + degree]
        around = separators[total : total + degree]
        total += degree
        bounds[done] = total
        filled = False
        for u in around:
            pool, top, added = _join(u, v, around, start, length, room, pool, top, mark, work)
            filled |= added
        # The scores of the neighbours change; with fill, also those of vertices next to an added edge.
        for u in around:
            _update(u, done, touched, stale, version, heap, start, length, pool, log_cards,
                    fill_weights, tie_break, use_fill, mark, work)  # fmt: skip
        if use_fill and filled:
            for u in around:
                if length[u] <= LARGE_DEGREE:
                    for i in range(start[u], start[u] + length[u]):
                        _update(pool[i], done, touched, stale, version, heap, start, length, pool, log_cards,
                                fill_weights, tie_break, use_fill, mark, work)  # fmt: skip
    return order[:done], bounds[: done + 1], separators[:total], stuck, work[0]


@allocating
def _strip(first, neighbours, gone, order, bounds, separators):
    """Eliminate vertices with at most one neighbour left. The exclusive or of what is left names the last."""
    n = len(gone)
    degree = np.diff(first)
    left = np.zeros(n, np.int64)
    for v in range(n):
        for i in range(first[v], first[v + 1]):
            left[v] ^= neighbours[i]
    queue = np.empty(n, np.int64)
    tail = 0
    for v in range(n):
        if degree[v] <= 1:
            queue[tail] = v
            tail += 1
    done = 0
    total = 0
    while done < tail:
        v = queue[done]
        gone[v] = True
        order[done] = v
        done += 1
        if degree[v] == 1:
            u = left[v]
            separators[total] = u
            total += 1
            left[u] ^= v
            degree[u] -= 1
            if degree[u] == 1:
                queue[tail] = u
                tail += 1
        bounds[done] = total
    return done, total


@allocating
def _core(first, neighbours, gone):
    """Copy the adjacency of what is left into a pool with room to grow."""
    n = len(gone)
    start = np.zeros(n, np.int64)
    length = np.zeros(n, np.int64)
    room = np.zeros(n, np.int64)
    pool = np.empty(max(2 * len(neighbours), 16), np.int64)
    top = 0
    for v in range(n):
        if gone[v]:
            continue
        start[v] = top
        for i in range(first[v], first[v + 1]):
            if not gone[neighbours[i]]:
                pool[top] = neighbours[i]
                top += 1
        length[v] = top - start[v]
        room[v] = length[v]
    return start, length, room, pool, top


@allocating
def _room(array, size):
    """Return `array`, or a copy twice as long if it has fewer than `size` entries."""
    if size <= len(array):
        return array
    longer = np.empty(max(size, 2 * len(array)), array.dtype)
    longer[: len(array)] = array
    return longer


@allocating
def _join(u, v, around, start, length, room, pool, top, mark, work):
    """Take v out of u's neighbours and put the others of `around` in. Tell whether that added an edge."""
    if room[u] < length[u] + len(around):
        room[u] = 2 * (length[u] + len(around))
        pool = _room(pool, top + room[u])
        pool[top : top + length[u]] = pool[start[u] : start[u] + length[u]]
        start[u] = top
        top += room[u]
    kept = 0
    for i in range(start[u], start[u] + length[u]):
        w = pool[i]
        if w != v:
            pool[start[u] + kept] = w
            kept += 1
            mark[w] = u
    before = kept
    mark[u] = u
    for w in around:
        if mark[w] != u:
            pool[start[u] + kept] = w
            kept += 1
    for i in range(start[u], start[u] + kept):
        mark[pool[i]] = -1
    mark[u] = -1
    work[0] += length[u] + len(around)
    length[u] = kept
    return pool, top, kept > before


@allocating
def _score(v, start, length, pool, log_cards, fill_weights, use_fill, mark, work):
    """Score one vertex: its bucket's weight, or the weight of the edges missing among its neighbours."""
    degree = length[v]
    work[0] += degree
    around = pool[start[v] : start[v] + degree]
    if not use_fill:
        total = log_cards[v]
        for u in around:
            total += log_cards[u]
        return total
    total = 0.0
    squares = 0.0
    for u in around:
        mark[u] = v
        total += fill_weights[u]
        squares += fill_weights[u] * fill_weights[u]
    present = 0.0
    for u in around:
        work[0] += length[u]
        for i in range(start[u], start[u] + length[u]):
            if mark[pool[i]] == v:
                present += fill_weights[u] * fill_weights[pool[i]]
    for u in around:
        mark[u] = -1
    return (total * total - squares - present) / 2


@allocating
def _update(u, turn, touched, stale, version, heap, start, length, pool, log_cards, fill_weights,
            tie_break, use_fill, mark, work):  # fmt: skip
    """Score u anew, once a turn; a vertex of large degree waits until it comes up."""
    if touched[u] == turn:
        return
    touched[u] = turn
    if length[u] > LARGE_DEGREE:
        stale[u] = True
        return
    version[u] += 1
    score = _score(u, start, length, pool, log_cards, fill_weights, use_fill, mark, work)
    heapq.heappush(heap, (score, tie_break[u], u, version[u]))


@allocating
def acyclic_subset(first, variables, order, n):
    """Take scopes in this order, each if its variables lie in different trees so far. Returns which were taken."""
    parent = np.arange(n)
    taken = np.zeros(len(order), np.bool_)
    for f in order:
        cyclic = False
        for slot in range(first[f], first[f + 1]):
            root = _root(parent, variables[slot])
            for other in range(first[f], slot):
                cyclic |= _root(parent, variables[other]) == root
        if not cyclic:
            taken[f] = True
            for slot in range(first[f] + 1, first[f + 1]):
                parent[_root(parent, variables[slot])] = _root(parent, variables[first[f]])
    return taken


@compiled
def _root(parent, v):
    """Find the root of a tree, halving the path."""
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v
