"""Greedy elimination of the vertices of an undirected graph: the search for elimination orders.

Eliminating a vertex joins its remaining neighbours pairwise; they are its *separator*, and together with it they form
its *bucket*. Vertices with at most one neighbour go first, which is always optimal and takes linear time on forests;
then the vertex of least score is eliminated, one after the other:

- least weight: log2 of the bucket's number of states;
- least fill: the edges that its elimination would add, each counted as the product of its ends' weights.

Ties go to the lower `tie_break`, then to the lower number. The sequence inside a connected part does not
depend on the other parts.

The search is done in pieces of about PIECE steps, between which Ctrl-C can interrupt it; all of its state is in arrays,
which the loops fill but never allocate (see `runtime.compilation.jit`). `small` does the same in plain Python.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.structure.elimination import (
    DONE,
    FINISHED,
    FULL,
    STUCK,
    TOTAL,
    WORK,
    Search,
    copy_rest,
    search_on,
    strip,
)
from isinglass.typing import FloatArray, IntArray

PIECE = 20_000_000  # inner steps, about a tenth of a second


def eliminate(
    first: IntArray,
    neighbours: IntArray,
    log_cards: FloatArray,
    fill_weights: FloatArray,
    tie_break: FloatArray,
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
    search = _start(first, neighbours, log_cards, fill_weights, tie_break)
    while True:
        ended = search_on(search, use_fill, max_log2, max_work, PIECE)
        if ended == FINISHED:
            break
        if ended == FULL:
            search = search._replace(separators=_longer(search.separators), pool=_longer(search.pool))
    done, total = int(search.at[DONE]), int(search.at[TOTAL])
    found = search.order[:done], search.bounds[: done + 1], search.separators[:total]
    return *found, int(search.at[STUCK]), int(search.at[WORK])


def _start(
    first: IntArray,
    neighbours: IntArray,
    log_cards: FloatArray,
    fill_weights: FloatArray,
    tie_break: FloatArray,
) -> Search:
    """Start: eliminate vertices with at most one neighbour; copy the adjacency of the others, with room to grow."""
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
        near=np.zeros(n),
        stale=np.zeros(n, np.bool_),
        touched=np.full(n, -1, np.int64),
        at=np.zeros(7, np.int64),
    )  # fmt: skip
    degree, left, queue = np.diff(first), np.zeros(n, np.int64), np.empty(n, np.int64)
    strip(
        first, neighbours, search.gone, search.order, search.bounds, search.separators, degree, left, queue, search.at
    )
    copy_rest(first, neighbours, search.gone, search.start, search.length, search.room, search.pool, search.at)
    return search


def _longer(array: IntArray) -> IntArray:
    """Return the array with room for as much again."""
    return np.concatenate([array, np.empty_like(array)])
