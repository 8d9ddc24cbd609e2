"""Greedy elimination of the vertices of an undirected graph: the loops of `graph.elimination.greedy`.

The search is done in pieces, between which Python hears Ctrl-C; all of its state is in arrays, which the loops fill but
never allocate (see `runtime.compilation.jit`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.compilation.jit import cold, compiled, inner
from isinglass.typing import IntArray

LARGE_DEGREE = 256  # above it a score is brought up to date when its vertex comes up, not at every change
FINISHED, MORE, FULL = 0, 1, 2  # how a piece of the search ended: for good, for a pause, for want of room
DONE, TOTAL, TOP, WORK, SCORED, WAITING, STUCK = range(7)  # what `Search.at` counts


class Search(NamedTuple):
    """A search under way; of each vertex unless something else is said.

    The neighbours left of v are ``pool[start[v] : start[v] + length[v]]``, with room for ``room[v]``. Vertices wait in
    a binary heap, in which v is at ``place[v]``. Between two steps all `mark` are -1 and all `near` are zero.
    """

    log_cards: NDArray[np.float64]
    fill_weights: NDArray[np.float64]
    tie_break: NDArray[np.float64]
    order: IntArray
    bounds: IntArray  # (vertices + 1,) of the separators
    separators: IntArray
    gone: NDArray[np.bool_]
    start: IntArray
    length: IntArray
    room: IntArray
    pool: IntArray
    score: NDArray[np.float64]
    heap: IntArray
    place: IntArray
    mark: IntArray
    near: NDArray[np.float64]
    stale: NDArray[np.bool_]
    touched: IntArray
    at: IntArray  # vertices eliminated, separators and pool used, steps, vertices scored and waiting, degree stuck at


@compiled
def strip(first, neighbours, gone, order, bounds, separators, degree, left, queue, at):
    """Eliminate vertices with at most one neighbour left. The exclusive or of what is left names the last."""
    n = len(gone)
    for v in range(n):
        for i in range(first[v], first[v + 1]):
            left[v] ^= neighbours[i]
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
    at[DONE], at[TOTAL] = done, total


@compiled
def copy_rest(first, neighbours, gone, start, length, room, pool, at):
    """Copy the adjacency of what is left into the pool."""
    top = 0
    for v in range(len(gone)):
        if gone[v]:
            continue
        start[v] = top
        for i in range(first[v], first[v + 1]):
            if not gone[neighbours[i]]:
                pool[top] = neighbours[i]
                top += 1
        length[v] = top - start[v]
        room[v] = length[v]
    at[TOP] = top


@compiled
def search_on(search, use_fill, max_log2, max_work, piece):
    """Go on for about `piece` steps; return how that ended."""
    log_cards, fill_weights, tie_break = search.log_cards, search.fill_weights, search.tie_break
    order, bounds, separators, gone = search.order, search.bounds, search.separators, search.gone
    start, length, room, pool = search.start, search.length, search.room, search.pool
    score, heap, place = search.score, search.heap, search.place
    mark, near, stale, touched, at = search.mark, search.near, search.stale, search.touched, search.at
    pause = at[WORK] + piece
    while at[SCORED] < len(gone) and at[WORK] <= max_work:
        if at[WORK] > pause:
            return MORE
        v = at[SCORED]
        at[SCORED] += 1
        if not gone[v]:
            score[v] = score_of(v, start, length, pool, log_cards, fill_weights, use_fill, near, at)
            heap[at[WAITING]] = v
            at[WAITING] += 1
            rise(at[WAITING] - 1, score, tie_break, heap, place)
    while at[WAITING] > 0 and at[WORK] <= max_work:
        if at[WORK] > pause:
            return MORE
        v = heap[0]
        if stale[v]:
            stale[v] = False
            score[v] = score_of(v, start, length, pool, log_cards, fill_weights, use_fill, near, at)
            sink(0, at[WAITING], score, tie_break, heap, place)
            continue
        degree = length[v]
        size = log_cards[v]
        for i in range(start[v], start[v] + degree):
            size += log_cards[pool[i]]
        if size > max_log2:
            at[STUCK] = degree
            return FINISHED
        total = at[TOTAL]
        if total + degree > len(separators) or at[TOP] + growth(v, start, length, room, pool) > len(pool):
            return FULL
        at[WAITING] -= 1
        heap[0] = heap[at[WAITING]]
        sink(0, at[WAITING], score, tie_break, heap, place)
        gone[v] = True
        order[at[DONE]] = v
        at[DONE] += 1
        for i in range(degree):
            separators[total + i] = pool[start[v] + i]
        at[TOTAL] = total + degree
        bounds[at[DONE]] = at[TOTAL]
        filled = False
        for i in range(total, total + degree):
            filled |= join(separators[i], v, separators, total, total + degree, start, length, room, pool, mark, at)
        # The scores of the neighbours change; with fill, also those of vertices next to an added edge.
        for i in range(total, total + degree):
            update(separators[i], touched, stale, score, heap, place, start, length, pool, log_cards,
                    fill_weights, tie_break, use_fill, near, at)  # fmt: skip
        if use_fill and filled:
            for i in range(total, total + degree):
                u = separators[i]
                if length[u] <= LARGE_DEGREE:
                    for j in range(start[u], start[u] + length[u]):
                        update(pool[j], touched, stale, score, heap, place, start, length, pool, log_cards,
                                fill_weights, tie_break, use_fill, near, at)  # fmt: skip
    return FINISHED


@cold
def growth(v, start, length, room, pool):
    """Return how much of the pool joining the neighbours of v may take."""
    growth, degree = 0, length[v]
    for i in range(start[v], start[v] + degree):
        u = pool[i]
        if room[u] < length[u] + degree:
            growth += 2 * (length[u] + degree)
    return growth


@cold
def join(u, v, around, first, last, start, length, room, pool, mark, at):
    """Take v out of u's neighbours and put the others of ``around[first:last]`` in. Tell whether that added an edge."""
    degree = last - first
    if room[u] < length[u] + degree:
        room[u] = 2 * (length[u] + degree)
        top = at[TOP]
        for i in range(length[u]):
            pool[top + i] = pool[start[u] + i]
        start[u] = top
        at[TOP] = top + room[u]
    begin = start[u]
    to = begin
    for i in range(begin, begin + length[u]):
        w = pool[ix(i)]
        if w != v:
            pool[ix(to)] = w
            to += 1
            mark[ix(w)] = u
    before = to
    mark[u] = u
    for i in range(first, last):
        w = around[ix(i)]
        if mark[ix(w)] != u:
            pool[ix(to)] = w
            to += 1
    for i in range(begin, before):
        mark[ix(pool[ix(i)])] = -1
    mark[u] = -1
    at[WORK] += length[u] + degree
    length[u] = to - begin
    return to > before


@cold
def score_of(v, start, length, pool, log_cards, fill_weights, use_fill, near, at):
    """Score one vertex: its bucket's weight, or the weight of the edges missing among its neighbours."""
    first, last = ix(start[v]), ix(start[v] + length[v])
    work = length[v]
    total = squares = present = 0.0
    if not use_fill:
        at[WORK] += work
        total = log_cards[v]
        for i in range(first, last):
            total += log_cards[ix(pool[i])]
        return total
    for i in range(first, last):
        u = ix(pool[i])
        near[u] = fill_weights[u]
        total += near[u]
        squares += near[u] * near[u]
    for i in range(first, last):
        u = ix(pool[i])
        work += length[u]
        for j in range(ix(start[u]), ix(start[u] + length[u])):
            present += fill_weights[u] * near[ix(pool[j])]  # zero for those that are not near
    for i in range(first, last):
        near[ix(pool[i])] = 0.0
    at[WORK] += work
    return (total * total - squares - present) / 2


@cold
def update(u, touched, stale, score, heap, place, start, length, pool, log_cards, fill_weights,
            tie_break, use_fill, near, at):  # fmt: skip
    """Score u anew, once for each vertex eliminated; one of large degree waits until it comes up."""
    if touched[u] == at[DONE]:
        return
    touched[u] = at[DONE]
    if length[u] > LARGE_DEGREE:
        stale[u] = True
        return
    score[u] = score_of(u, start, length, pool, log_cards, fill_weights, use_fill, near, at)
    rise(place[u], score, tie_break, heap, place)
    sink(place[u], at[WAITING], score, tie_break, heap, place)


@inner
def goes_first(u, v, score, tie_break):
    """Tell whether u goes before v."""
    if score[u] != score[v]:
        return score[u] < score[v]
    if tie_break[u] != tie_break[v]:
        return tie_break[u] < tie_break[v]
    return u < v


@cold
def rise(i, score, tie_break, heap, place):
    """Move what is at i in the heap up to where it belongs."""
    v = heap[i]
    while i > 0 and goes_first(v, heap[(i - 1) // 2], score, tie_break):
        heap[i] = heap[(i - 1) // 2]
        place[heap[i]] = i
        i = (i - 1) // 2
    heap[i] = v
    place[v] = i


@cold
def sink(i, size, score, tie_break, heap, place):
    """Move what is at i in the heap down to where it belongs."""
    if i >= size:
        return
    v = heap[i]
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and goes_first(heap[child + 1], heap[child], score, tie_break):
            child += 1
        if not goes_first(heap[child], v, score, tie_break):
            break
        heap[i] = heap[child]
        place[heap[i]] = i
        i = child
    heap[i] = v
    place[v] = i
