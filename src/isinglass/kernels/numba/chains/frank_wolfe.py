"""Block-coordinate Frank-Wolfe on chains, with pairwise steps and cached labellings.

The plane of sequence s is a convex combination of at most M touching planes, each of a labelling q:

    A_s  =  w sum_q alpha_q (features(q) - features(right)),      B_s  =  w sum_q alpha_q cost(q)

The right labels themselves have the plane zero, where every sequence starts. A step takes a good labelling: the best
with its cost at x (Viterbi), or in cheap passes the best of those that are cached. It also takes the labelling of
positive weight that is worst at x, and moves weight from the worst to the good one:

    gamma  =  min(alpha of the worst,  (good value - worst value) / sum_j (difference of features)_j² h_j)

with h = 1 / (2 l2) (Osokin, Alayrac, Lukasewitz, Dokania and Lacoste-Julien 2016: pairwise steps, caching). Only the
features in which the two labellings differ change. ``place[a, y]`` is the parameter of attribute a and label y, or -1.
A slot without a labelling has the label -1.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.compilation.jit import compiled, inner


@inner
def token_scores(t, indptr, indices, values, place, x, row):
    """Add the state weights of a token's attributes to a row of scores."""
    for e in range(indptr[ix(t)], indptr[ix(t + 1)]):
        a, value = indices[ix(e)], values[ix(e)]
        for y in range(place.shape[1]):
            p = place[ix(a), ix(y)]
            if p >= 0:
                row[ix(y)] += value * x[ix(p)]


@inner
def add_to(j, amount, diff, touched, count):
    """Add to an entry of a sparse vector; return how many entries it has."""
    if diff[ix(j)] == 0:
        touched[ix(count)] = j
        count += 1
    diff[ix(j)] += amount
    return count


@inner
def add_path(begin, end, path, sign, k, base, boundary, indptr, indices, values, place, diff, touched, count):
    """Add the features of a labelled sequence to a sparse vector; an entry that cancels may be listed twice."""
    for t in range(begin, end):
        y = path[ix(t)]
        for e in range(indptr[ix(t)], indptr[ix(t + 1)]):
            p = place[ix(indices[ix(e)]), ix(y)]
            if p >= 0:
                count = add_to(p, sign * values[ix(e)], diff, touched, count)
        if t > begin:
            count = add_to(base + path[ix(t - 1)] * k + y, sign, diff, touched, count)
    if boundary:
        count = add_to(base + k * k + path[ix(begin)], sign, diff, touched, count)
        count = add_to(base + k * k + k + path[ix(end - 1)], sign, diff, touched, count)
    return count


@inner
def path_value(begin, end, path, y, share, cost, base, boundary, indptr, indices, values, place, x):
    """Return the score of a labelling with its cost."""
    total, k = 0.0, cost.shape[0]
    for t in range(begin, end):
        z = path[ix(t)]
        total += share[ix(t)] * cost[ix(y[ix(t)]), ix(z)]
        for e in range(indptr[ix(t)], indptr[ix(t + 1)]):
            p = place[ix(indices[ix(e)]), ix(z)]
            if p >= 0:
                total += values[ix(e)] * x[ix(p)]
        if t > begin:
            total += x[ix(base + path[ix(t - 1)] * k + z)]
    if boundary:
        total += x[ix(base + k * k + path[ix(begin)])] + x[ix(base + k * k + k + path[ix(end - 1)])]
    return total


@inner
def best_path(begin, end, k, base, boundary, allowed, x, rows, d, back, path):
    """Write the best labels of a sequence."""
    length = end - begin
    for y in range(k):
        d[ix(0), ix(y)] = rows[ix(0), ix(y)] + (x[ix(base + k * k + y)] if boundary else 0.0)
        if not allowed[ix(k), ix(y)]:
            d[ix(0), ix(y)] = -np.inf
    for t in range(1, length):
        for y in range(k):
            top, which = -np.inf, 0
            for z in range(k):
                if allowed[ix(z), ix(y)]:
                    value = d[ix(t - 1), ix(z)] + x[ix(base + z * k + y)]
                    if value > top:
                        top, which = value, z
            d[ix(t), ix(y)] = rows[ix(t), ix(y)] + top
            back[ix(t), ix(y)] = which
    top, which = -np.inf, 0
    for y in range(k):
        if allowed[ix(y), ix(k)]:
            value = d[ix(length - 1), ix(y)] + (x[ix(base + k * k + k + y)] if boundary else 0.0)
            if value > top:
                top, which = value, y
    for t in range(length - 1, -1, -1):
        path[ix(begin + t)] = which
        which = back[ix(t), ix(which)]


@inner
def same(begin, end, one, two):
    """Tell whether two labellings are equal."""
    t = begin
    while t < end and one[ix(t)] == two[ix(t)]:
        t += 1
    return t == end


@inner
def find_best(begin, end, y, share, cost, base, boundary, indptr, indices, values, place, allowed, x, rows, d, back,
              path):  # fmt: skip
    """Write the best labels of a sequence with their cost."""
    k = cost.shape[0]
    for t in range(begin, end):
        for z in range(k):
            rows[ix(t - begin), ix(z)] = share[ix(t)] * cost[ix(y[ix(t)]), ix(z)]
        token_scores(t, indptr, indices, values, place, x, rows[ix(t - begin)])
    best_path(begin, end, k, base, boundary, allowed, x, rows, d, back, path)


@inner
def rank(s, begin, end, y, share, cost, base, boundary, indptr, indices, values, place, paths, alpha, x, level):
    """Write the values of a sequence's labellings; return the worst of positive weight, the best, and one to spare."""
    worst, best, spare = -1, -1, -1
    for m in range(len(paths)):
        if paths[ix(m), ix(begin)] < 0:
            level[ix(m)] = -np.inf
        else:
            level[ix(m)] = path_value(
                begin, end, paths[ix(m)], y, share, cost, base, boundary, indptr, indices, values, place, x
            )
        if alpha[ix(s), ix(m)] > 0:
            if worst < 0 or level[ix(m)] < level[ix(worst)]:
                worst = m
        elif spare < 0 or level[ix(m)] < level[ix(spare)]:
            spare = m
        if best < 0 or level[ix(m)] > level[ix(best)]:
            best = m
    return worst, best, spare


@inner
def difference(begin, end, good, bad, weight, k, base, boundary, indptr, indices, values, place, h, diff, touched,
               step):  # fmt: skip
    """Write the weighted features of one labelling less those of another; return how many, and their squared length."""
    count = add_path(begin, end, good, weight, k, base, boundary, indptr, indices, values, place, diff, touched, 0)
    count = add_path(begin, end, bad, -weight, k, base, boundary, indptr, indices, values, place, diff, touched, count)
    length = 0.0
    for c in range(count):
        j = touched[ix(c)]
        step[ix(c)] = diff[ix(j)]
        diff[ix(j)] = 0.0
        length += step[ix(c)] * step[ix(c)] * h[ix(j)]
    return count, length


@compiled
def sweep(
    order, search, offsets, indptr, indices, values, y, share, cost, weights, place, base, boundary, allowed, h, paths,
    alpha, total, x, rows, d, back, path, diff, touched, step, level,
):  # fmt: skip
    """Make one step for each sequence, in this order; `paths` (M, tokens), `alpha`, the sum S of A, and x change.

    With `search` the best labels are found anew, else among the cached ones. `level` is scratch for M values.
    """
    k = cost.shape[0]
    for s in order:
        begin, end, weight = offsets[ix(s)], offsets[ix(s + 1)], weights[ix(s)]
        if begin == end or weight == 0:
            continue
        worst, best, spare = rank(s, begin, end, y, share, cost, base, boundary, indptr, indices, values, place, paths,
                                  alpha, x, level)  # fmt: skip
        if search:
            find_best(begin, end, y, share, cost, base, boundary, indptr, indices, values, place, allowed, x, rows, d,
                      back, path)  # fmt: skip
            if spare >= 0 and not same(begin, end, paths[ix(best)], path):
                for t in range(begin, end):
                    paths[ix(spare), ix(t)] = path[ix(t)]
                level[ix(spare)] = path_value(
                    begin, end, path, y, share, cost, base, boundary, indptr, indices, values, place, x
                )
                best = spare if level[ix(spare)] > level[ix(best)] else best
        gain = weight * (level[ix(best)] - level[ix(worst)])
        if gain <= 0 or best == worst:
            continue
        count, length = difference(begin, end, paths[ix(best)], paths[ix(worst)], weight, k, base, boundary, indptr,
                                   indices, values, place, h, diff, touched, step)  # fmt: skip
        gamma = alpha[ix(s), ix(worst)]
        if length > 0 and gain < gamma * length:
            gamma = gain / length
        alpha[ix(s), ix(best)] += gamma
        alpha[ix(s), ix(worst)] -= gamma
        for c in range(count):
            j = touched[ix(c)]
            total[ix(j)] += gamma * step[ix(c)]
            x[ix(j)] = -total[ix(j)] * h[ix(j)]


@compiled
def add_planes(
    sequences, offsets, indptr, indices, values, y, share, cost, weights, place, base, boundary, paths, alpha, total,
    diff, touched,
):  # fmt: skip
    """Add up A of all sequences into `total`; return the sum of B."""
    k, offset = cost.shape[0], 0.0
    for s in range(sequences):
        begin, end, weight = offsets[ix(s)], offsets[ix(s + 1)], weights[ix(s)]
        if begin == end or weight == 0:
            continue
        for m in range(len(paths)):
            part = weight * alpha[ix(s), ix(m)]
            if part == 0:
                continue
            for t in range(begin, end):
                offset += part * share[ix(t)] * cost[ix(y[ix(t)]), ix(paths[ix(m), ix(t)])]
            count = add_path(
                begin, end, paths[ix(m)], part, k, base, boundary, indptr, indices, values, place, diff, touched, 0
            )
            count = add_path(
                begin, end, y, -part, k, base, boundary, indptr, indices, values, place, diff, touched, count
            )
            for c in range(count):
                j = touched[ix(c)]
                total[ix(j)] += diff[ix(j)]
                diff[ix(j)] = 0.0
    return offset
