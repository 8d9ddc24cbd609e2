"""Greedy elimination of small graphs in plain Python: no loop has to be compiled, or loaded, for them.

The rules and the arithmetic are those of `isinglass.kernels.numba.structure.elimination`, step by step, so that the
orders are the same.
"""

from __future__ import annotations

import numpy as np

from isinglass.typing import FloatArray, IntArray

MOST = 64  # vertices for which this takes a few milliseconds


def eliminate_small(
    first: IntArray,
    neighbours: IntArray,
    log_cards: FloatArray,
    fill_weights: FloatArray,
    tie_break: FloatArray,
    use_fill: bool,
    max_log2: float,
) -> tuple[IntArray, IntArray, IntArray, int]:
    """Eliminate greedily: returns order, bounds, separators, and the degree that it stopped at (see `eliminate`)."""
    around = [neighbours[i:j].tolist() for i, j in zip(first[:-1].tolist(), first[1:].tolist(), strict=True)]
    weights = (fill_weights if use_fill else log_cards).tolist()
    sizes, ties = log_cards.tolist(), tie_break.tolist()
    order: list[int] = []
    separators: list[int] = []
    bounds, stuck = [0], 0

    def eliminated(v: int) -> None:
        order.append(v)
        separators.extend(around[v])
        bounds.append(len(separators))
        _join(around, v)

    queue = [v for v, others in enumerate(around) if len(others) <= 1]
    for v in queue:  # which grows
        before = around[v][:1]
        eliminated(v)
        queue += [u for u in before if len(around[u]) == 1]
    score = _fill if use_fill else _weight
    left = sorted(set(range(len(around))) - set(queue))
    while left:
        v = min(left, key=lambda v: (score(around, weights, v), ties[v], v))
        size = sizes[v]
        for u in around[v]:
            size += sizes[u]
        if size > max_log2:
            stuck = len(around[v])
            break
        left.remove(v)
        eliminated(v)
    return np.array(order, np.int64), np.array(bounds, np.int64), np.array(separators, np.int64), stuck


def _join(around: list[list[int]], v: int) -> None:
    """Take v out of the graph, and join its neighbours pairwise."""
    for u in around[v]:
        kept = [w for w in around[u] if w != v]
        around[u] = kept + [w for w in around[v] if w != u and w not in kept]


def _weight(around: list[list[int]], sizes: list[float], v: int) -> float:
    """Weigh the bucket of v: log2 of its states."""
    total = sizes[v]
    for u in around[v]:
        total += sizes[u]
    return total


def _fill(around: list[list[int]], weights: list[float], v: int) -> float:
    """Weigh the edges that are missing among the neighbours of v."""
    near = set(around[v])
    total = squares = present = 0.0
    for u in around[v]:
        total += weights[u]
        squares += weights[u] * weights[u]
    for u in around[v]:
        for w in around[u]:
            if w in near:
                present += weights[u] * weights[w]
    return (total * total - squares - present) / 2
