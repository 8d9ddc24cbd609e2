"""Greedy elimination of the vertices of an undirected graph: the compiled inner loop of elimination orders.

Eliminating a vertex joins its remaining neighbours pairwise; they are its *separator*, and together with
it they form its *bucket*. Vertices with at most one neighbour go first, which is always optimal and takes
linear time on forests; then, again and again, the vertex of least score goes:

- least weight: log2 of the bucket's number of states;
- least fill: the edges that its elimination would add, each counted as the product of its ends' weights.

Ties go to the lower `tie_break`, then to the lower number. The sequence inside a connected part does not
depend on the other parts.

The search is done in pieces of about PIECE steps, between which Python hears Ctrl-C; all of its state is in arrays,
which the loops fill but never allocate (see `isinglass.compilation`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isinglass.compilation import cold, compiled, inner
from isinglass.validation import IntArray

LARGE_DEGREE = 256  # above it a score is brought up to date when its vertex comes up, not at every change
PIECE = 20_000_000  # inner steps, about a tenth of a second
FINISHED, MORE, FULL = 0, 1, 2  # how a piece of the search ended: for good, for a pause, for want of room
DONE, TOTAL, TOP, WORK, SCORED, WAITING, STUCK = range(7)  # what `Search.at` counts


class Search(NamedTuple):
    """A search under way; of each vertex unless something else is said.

    The neighbours left of v are ``pool[start[v] : start[v] + length[v]]``, with room for ``room[v]``. Vertices wait in
    a binary heap, in which v is at ``place[v]``.
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
    stale: NDArray[np.bool_]
    touched: IntArray
    at: IntArray  # vertices eliminated, separators and pool used, steps, vertices scored and waiting, degree stuck at


def eliminate(
    first: IntArray,
    neighbours: IntArray,
    log_cards: NDArray[np.float64],
    fill_weights: NDArray[np.float64],
    tie_break: NDArray[np.float64],
    use_fill: bool,
    max_log2: float,
    max_work: int,
) -> tuple[IntArray, IntArray, IntArray, int, int]:
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
    search = _opened(first, neighbours, log_cards, fill_weights, tie_break)
    while True:
        ended = _search(search, use_fill, max_log2, max_work, PIECE)
        if ended == FINISHED:
            break
        if ended == FULL:
            search = search._replace(separators=_longer(search.separators), pool=_longer(search.pool))
    done, total = int(search.at[DONE]), int(search.at[TOTAL])
    found = search.order[:done], search.bounds[: done + 1], search.separators[:total]
    return *found, int(search.at[STUCK]), int(search.at[WORK])


def _opened(
    first: IntArray,
    neighbours: IntArray,
    log_cards: NDArray[np.float64],
    fill_weights: NDArray[np.float64],
    tie_break: NDArray[np.float64],
) -> Search:
    """Eliminate vertices with at most one neighbour left; copy the adjacency of the others, with room to grow."""
    n = len(first) - 1
    search = Search(
        log_cards, fill_weights, tie_break,
        order=np.empty(n, np.int64),
        bounds=np.zeros(n + 1, np.int64),
        separators=np.empty(max(len(neighbours), 16), np.int64),
        gone=np.zeros(n, np.bool_),
        start=np.zeros(n, np.int64),
        length=np.zeros(n, np.int64),
        room=np.zeros(n, np.int64),
        pool=np.empty(max(2 * len(neighbours), 16), np.int64),
        score=np.zeros(n),
        heap=np.zeros(n, np.int64),
        place=np.zeros(n, np.int64),
        mark=np.full(n, -1, np.int64),
        stale=np.zeros(n, np.bool_),
        touched=np.full(n, -1, np.int64),
        at=np.zeros(7, np.int64),
    )  # fmt: skip
    degree, left, queue = np.diff(first), np.zeros(n, np.int64), np.empty(n, np.int64)
    _strip(
        first, neighbours, search.gone, search.order, search.bounds, search.separators, degree, left, queue, search.at
    )
    _copy_rest(first, neighbours, search.gone, search.start, search.length, search.room, search.pool, search.at)
    return search


def _longer(array: IntArray) -> IntArray:
    """Return the array with room for as much again."""
    return np.concatenate([array, np.empty_like(array)])


@compiled
def _strip(first, neighbours, gone, order, bounds, separators, degree, left, queue, at):
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
def _copy_rest(first, neighbours, gone, start, length, room, pool, at):
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
def _search(search, use_fill, max_log2, max_work, piece):
    """Go on for about `piece` steps; return how that ended."""
    log_cards, fill_weights, tie_break = search.log_cards, search.fill_weights, search.tie_break
    order, bounds, separators, gone = search.order, search.bounds, search.separators, search.gone
    start, length, room, pool = search.start, search.length, search.room, search.pool
    score, heap, place = search.score, search.heap, search.place
    mark, stale, touched, at = search.mark, search.stale, search.touched, search.at
    pause = at[WORK] + piece
    while at[SCORED] < len(gone) and at[WORK] <= max_work:
        if at[WORK] > pause:
            return MORE
        v = at[SCORED]
        at[SCORED] += 1
        if not gone[v]:
            score[v] = _score(v, start, length, pool, log_cards, fill_weights, use_fill, mark, at)
            heap[at[WAITING]] = v
            at[WAITING] += 1
            _rise(at[WAITING] - 1, score, tie_break, heap, place)
    while at[WAITING] > 0 and at[WORK] <= max_work:
        if at[WORK] > pause:
            return MORE
        v = heap[0]
        if stale[v]:
            stale[v] = False
            score[v] = _score(v, start, length, pool, log_cards, fill_weights, use_fill, mark, at)
            _sink(0, at[WAITING], score, tie_break, heap, place)
            continue
        degree = length[v]
        size = log_cards[v]
        for i in range(start[v], start[v] + degree):
            size += log_cards[pool[i]]
        if size > max_log2:
            at[STUCK] = degree
            return FINISHED
        total = at[TOTAL]
        if total + degree > len(separators) or at[TOP] + _growth(v, start, length, room, pool) > len(pool):
            return FULL
        at[WAITING] -= 1
        heap[0] = heap[at[WAITING]]
        _sink(0, at[WAITING], score, tie_break, heap, place)
        gone[v] = True
        order[at[DONE]] = v
        at[DONE] += 1
        for i in range(degree):
            separators[total + i] = pool[start[v] + i]
        at[TOTAL] = total + degree
        bounds[at[DONE]] = at[TOTAL]
        filled = False
        for i in range(total, total + degree):
            filled |= _join(separators[i], v, separators, total, total + degree, start, length, room, pool, mark, at)
        # The scores of the neighbours change; with fill, also those of vertices next to an added edge.
        for i in range(total, total + degree):
            _update(separators[i], touched, stale, score, heap, place, start, length, pool, log_cards,
                    fill_weights, tie_break, use_fill, mark, at)  # fmt: skip
        if use_fill and filled:
            for i in range(total, total + degree):
                u = separators[i]
                if length[u] <= LARGE_DEGREE:
                    for j in range(start[u], start[u] + length[u]):
                        _update(pool[j], touched, stale, score, heap, place, start, length, pool, log_cards,
                                fill_weights, tie_break, use_fill, mark, at)  # fmt: skip
    return FINISHED


@cold
def _growth(v, start, length, room, pool):
    """Return how much of the pool joining the neighbours of v may take."""
    growth, degree = 0, length[v]
    for i in range(start[v], start[v] + degree):
        u = pool[i]
        if room[u] < length[u] + degree:
            growth += 2 * (length[u] + degree)
    return growth


@cold
def _join(u, v, around, first, last, start, length, room, pool, mark, at):
    """Take v out of u's neighbours and put the others of ``around[first:last]`` in. Tell whether that added an edge."""
    degree = last - first
    if room[u] < length[u] + degree:
        room[u] = 2 * (length[u] + degree)
        top = at[TOP]
        for i in range(length[u]):
            pool[top + i] = pool[start[u] + i]
        start[u] = top
        at[TOP] = top + room[u]
    kept = 0
    for i in range(start[u], start[u] + length[u]):
        w = pool[i]
        if w != v:
            pool[start[u] + kept] = w
            kept += 1
            mark[w] = u
    before = kept
    mark[u] = u
    for i in range(first, last):
        w = around[i]
        if mark[w] != u:
            pool[start[u] + kept] = w
            kept += 1
    for i in range(start[u], start[u] + kept):
        mark[pool[i]] = -1
    mark[u] = -1
    at[WORK] += length[u] + degree
    length[u] = kept
    return kept > before


@cold
def _score(v, start, length, pool, log_cards, fill_weights, use_fill, mark, at):
    """Score one vertex: its bucket's weight, or the weight of the edges missing among its neighbours."""
    first, last = start[v], start[v] + length[v]
    at[WORK] += length[v]
    if not use_fill:
        total = log_cards[v]
        for i in range(first, last):
            total += log_cards[pool[i]]
        return total
    total = 0.0
    squares = 0.0
    for i in range(first, last):
        u = pool[i]
        mark[u] = v
        total += fill_weights[u]
        squares += fill_weights[u] * fill_weights[u]
    present = 0.0
    for i in range(first, last):
        u = pool[i]
        at[WORK] += length[u]
        for j in range(start[u], start[u] + length[u]):
            if mark[pool[j]] == v:
                present += fill_weights[u] * fill_weights[pool[j]]
    for i in range(first, last):
        mark[pool[i]] = -1
    return (total * total - squares - present) / 2


@cold
def _update(u, touched, stale, score, heap, place, start, length, pool, log_cards, fill_weights,
            tie_break, use_fill, mark, at):  # fmt: skip
    """Score u anew, once for each vertex eliminated; one of large degree waits until it comes up."""
    if touched[u] == at[DONE]:
        return
    touched[u] = at[DONE]
    if length[u] > LARGE_DEGREE:
        stale[u] = True
        return
    score[u] = _score(u, start, length, pool, log_cards, fill_weights, use_fill, mark, at)
    _rise(place[u], score, tie_break, heap, place)
    _sink(place[u], at[WAITING], score, tie_break, heap, place)


@inner
def _goes_first(u, v, score, tie_break):
    """Tell whether u goes before v."""
    if score[u] != score[v]:
        return score[u] < score[v]
    if tie_break[u] != tie_break[v]:
        return tie_break[u] < tie_break[v]
    return u < v


@cold
def _rise(i, score, tie_break, heap, place):
    """Move what is at i in the heap up to where it belongs."""
    v = heap[i]
    while i > 0 and _goes_first(v, heap[(i - 1) // 2], score, tie_break):
        heap[i] = heap[(i - 1) // 2]
        place[heap[i]] = i
        i = (i - 1) // 2
    heap[i] = v
    place[v] = i


@cold
def _sink(i, size, score, tie_break, heap, place):
    """Move what is at i in the heap down to where it belongs."""
    if i >= size:
        return
    v = heap[i]
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and _goes_first(heap[child + 1], heap[child], score, tie_break):
            child += 1
        if not _goes_first(heap[child], v, score, tie_break):
            break
        heap[i] = heap[child]
        place[heap[i]] = i
        i = child
    heap[i] = v
    place[v] = i


def acyclic_subset(first: IntArray, variables: IntArray, order: IntArray, n: int) -> NDArray[np.bool_]:
    """Take scopes in this order, each if its variables lie in different trees so far. Returns which were taken."""
    taken = np.zeros(len(order), np.bool_)
    _take_acyclic(first, variables, order, np.arange(n), taken)
    return taken


@compiled
def _take_acyclic(first, variables, order, parent, taken):
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


@cold
def _root(parent, v):
    """Find the root of a tree, halving the path."""
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v
