"""Best paths, several best paths and random paths of chains with one transition table.

With f_t(x) the score of label x at token t and g(x, y) that of y after x,

    d_t(y)  =  f_t(y) + max_x (d_{t-1}(x) + g(x, y))                    (Viterbi 1967)

Only maxima are taken on the way; which label attains one is looked up on the way back, for the labels of the path
alone, so that a token costs K² additions and maxima, in vectors, and K comparisons. Ties go to the lowest label.

The n best keep a list of n scores for each label (list Viterbi: Seshadri and Sundberg 1994); with n = 1 it is the same
recursion. Random paths go backwards: x_t with weight alpha_t(x) exp g(x, x_{t+1}) (Scott 2002).
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.arithmetic.lanes import add_eight, best_eight, eight, put_eight
from isinglass.runtime.compilation.jit import compiled, inner, unrolled

NOTHING = (-np.inf,) * 8


@inner
def best_rows(d, row, count, table):
    """Write d[row + 1](y) += max_x (d[row](x) + table(x, y)), LANES columns at a time."""
    for b in range(0, table.shape[1], 8):
        best = NOTHING
        for i in range(count):
            best = best_eight(best, d[ix(row), ix(i)], eight(table[ix(i)], b))
        put_eight(d[ix(row + 1)], b, add_eight(eight(d[ix(row + 1)], b), 1.0, best))


@unrolled
def viterbi(first, last, offsets, card, d, table, labels, values):
    """Write the best labels of chains `first` to `last` and their scores; `d` holds f at first, and is overwritten."""
    base = offsets[ix(first)]
    for s in range(first, last):
        start, end = offsets[ix(s)] - base, offsets[ix(s + 1)] - base
        if end == start:
            values[ix(s - first)] = 0.0
            continue
        for t in range(start, end - 1):
            best_rows(d, t, card, table)
        y, top = 0, d[ix(end - 1), ix(0)]
        for x in range(1, card):
            if d[ix(end - 1), ix(x)] > top:
                y, top = x, d[ix(end - 1), ix(x)]
        values[ix(s - first)] = top
        labels[ix(end - 1)] = y
        for t in range(end - 2, start - 1, -1):
            best, most = 0, d[ix(t), ix(0)] + table[ix(0), ix(y)]
            for x in range(1, card):
                value = d[ix(t), ix(x)] + table[ix(x), ix(y)]
                if value > most:
                    best, most = x, value
            y = best
            labels[ix(t)] = y


@inner
def insert(scores, places, value, place, count):
    """Put a value into a list that falls; what is equal stays before it."""
    k = len(scores) - 1
    if not value > scores[k]:
        return count
    while k > 0 and value > scores[k - 1]:
        scores[k], places[k] = scores[k - 1], places[k - 1]
        k -= 1
    scores[k], places[k] = value, place
    return min(count + 1, len(scores))


@compiled
def best_paths(card, f, table, d, places, ends, labels):
    """Write the n best paths of one chain to labels (n, tokens); return how many there are. Scores: ends (n,).

    `d` (tokens, labels, n) and `places` of the same shape are scratch: scores, and which entry each comes from.
    """
    tokens, n = len(f), d.shape[2]
    d[:] = -np.inf
    for x in range(card):
        d[0, x, 0] = f[0, x]
    for t in range(1, tokens):
        for y in range(card):
            if f[t, y] == -np.inf:
                continue
            for x in range(card):
                for k in range(n):
                    value = d[t - 1, x, k] + table[x, y]
                    if not value > d[t, y, n - 1]:
                        break
                    insert(d[t, y], places[t, y], value, x * n + k, 0)
            for k in range(n):
                d[t, y, k] += f[t, y]
    ends[:] = -np.inf
    last = places[0, 0]  # the first token has no use for its places
    count = 0
    for x in range(card):
        for k in range(n):
            count = insert(ends, last, d[tokens - 1, x, k], x * n + k, count)
    for rank in range(count):
        place = last[rank]
        for t in range(tokens - 1, 0, -1):
            labels[rank, t] = place // n
            place = places[t, place // n, place % n]
        labels[rank, 0] = place // n
    return count


@inner
def drawn(row, card, uniform):
    """Return the label at which the running sum of exp(row) passes a share of the whole."""
    top = -np.inf
    for x in range(card):
        top = row[x] if row[x] > top else top
    total = 0.0
    for x in range(card):
        total += np.exp(row[x] - top)
    left, chosen = uniform * total, 0
    for x in range(card):
        if row[x] > -np.inf:
            chosen = x
            left -= np.exp(row[x] - top)
            if left < 0:
                break
    return chosen


@compiled
def draw_paths(first, last, offsets, card, alpha, table, uniforms, row, labels):
    """Draw a path of each chain from log alpha, with one uniform number a token."""
    base = offsets[first]
    for s in range(first, last):
        for t in range(offsets[s + 1] - base - 1, offsets[s] - base - 1, -1):
            for x in range(card):
                after = table[x, labels[t + 1]] if t < offsets[s + 1] - base - 1 else 0.0
                row[x] = alpha[t, x] + after
            labels[t] = drawn(row, card, uniforms[t])
