"""Forward-backward on one chain, with scaled probabilities: the parts that the loops over chains are made of.

Scores are f_t(x) for label x at token t, and g(x, y) for y after x. With n = exp(f_t - max f_t), A = exp(g - max g):

    alpha_t(y)   =  n_t(y) sum_x alpha_{t-1}(x) A(x, y) / c_t                  c_t makes alpha_t sum to one
    v_t(y)       =  n_t(y) beta_t(y) / c_t,     beta_{t-1}(x) = sum_y A(x, y) v_t(y),   beta at the end = 1
    p_t(x)       =  alpha_t(x) beta_t(x)        p_t(x, y) = alpha_{t-1}(x) A(x, y) v_t(y)
    log Z        =  sum_t log c_t + the maxima that were taken out             (Rabiner 1989, section V.A)

Only the sum of alpha_{t-1}(x) v_t(y) over tokens is needed for the expected transitions: A multiplies it once.

Work: 3 K² multiplications and additions a token, beside K exponentials; a chain stays in the first cache. 204,000
tokens with 22 labels (24 lanes): 0.33 G multiplications and additions, 12 ms at the 28 G/s of a 3.5 GHz core that does
eight of each in a cycle. Measured: 9 ms forward, 8 ms backward, 4 ms for the pairs, 7 ms for maxima and exponentials.

Underflow. Where f_t and g each span at most SPAN nats in all, a product of positive numbers, one of them at least LOW,
is positive, and a normalised positive number below LOW is seen before any is lost: such a chain is flagged and done
in logarithms. Hard zeros (-inf) are exact in both.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.exponentials import exp_eight
from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.arithmetic.lanes import (
    ONES,
    ZEROS,
    above,
    add_eight,
    eight,
    larger_eight,
    largest_of,
    put_eight,
    scaled_eight,
    smaller_eight,
    smallest_of,
    times_eight,
    total_of,
)
from isinglass.runtime.compilation.jit import inner

SPAN = 230.0
LOW = 1e-180
FEW, MANY = 1e-100, 1e100  # the product of scales is kept between these, and its logarithm taken beyond
NOTHING, EVERYTHING = (-np.inf,) * 8, (np.inf,) * 8
PADDING = tuple((0.0,) * (k + 1) + (-np.inf,) * (7 - k) for k in range(8))  # after so many labels in the last LANES


@inner
def range_of(start, end, padding, scores):
    """Add the padding to the last LANES columns of rows of scores; return the largest and the least finite score."""
    most, least, last = NOTHING, EVERYTHING, scores.shape[1] - 8
    for t in range(start, end):
        for b in range(0, last + 8, 8):
            row = eight(scores[ix(t)], b)
            if b == last:
                row = add_eight(row, 1.0, padding)
                put_eight(scores[ix(t)], b, row)
            most, least = larger_eight(most, row), smaller_eight(least, above(row, -np.inf, row, np.inf))
    top = largest_of(most)
    return top if top > -np.inf else 0.0, smallest_of(least)


@inner
def lower(start, end, top, scores, nodes, tops):
    """Subtract the maximum from rows of scores, and write n."""
    for t in range(start, end):
        tops[ix(t)] = top
        for b in range(0, scores.shape[1], 8):
            row = add_eight(eight(scores[ix(t)], b), -top, ONES)
            put_eight(scores[ix(t)], b, row)
            put_eight(nodes[ix(t)], b, exp_eight(row))


@inner
def shift(start, end, card, span, scores, nodes, tops):
    """Take a maximum out of the scores, fill their padding with -inf, write n; return whether they differ too much.

    The maximum is that of the chain, or of each token where scores of the chain span more than `span`.
    """
    step, t, wide, padding = end - start, start, False, PADDING[(card - 1) & 7]
    while t < end:
        top, least = range_of(t, t + step, padding, scores)
        if top - least > span and step > 1:
            step = 1
            continue
        wide |= top - least > span
        lower(t, t + step, top, scores, nodes, tops)
        t += step
    return wide


@inner
def times_rows(vector, row, count, table, out, at):
    """Multiply a row vector by a table (count, width), three times LANES columns at a time while there are so many."""
    b = 0
    while b + 24 <= table.shape[1]:
        one, two, three = ZEROS, ZEROS, ZEROS
        for i in range(count):
            x = vector[ix(row), ix(i)]
            one = add_eight(one, x, eight(table[ix(i)], b))
            two = add_eight(two, x, eight(table[ix(i)], b + 8))
            three = add_eight(three, x, eight(table[ix(i)], b + 16))
        put_eight(out[ix(at)], b, one)
        put_eight(out[ix(at)], b + 8, two)
        put_eight(out[ix(at)], b + 16, three)
        b += 24
    while b < table.shape[1]:
        sums = ZEROS
        for i in range(count):
            sums = add_eight(sums, vector[ix(row), ix(i)], eight(table[ix(i)], b))
        put_eight(out[ix(at)], b, sums)
        b += 8


@inner
def weighted(t, before, nodes, alpha):
    """Multiply row t of alpha by nodes and by `before`; return its sum and its smallest positive entry."""
    r, sums, least = ix(t), ZEROS, EVERYTHING
    for b in range(0, alpha.shape[1], 8):
        row = times_eight(eight(alpha[r], b), scaled_eight(before, eight(nodes[r], b)))
        put_eight(alpha[r], b, row)
        sums, least = add_eight(sums, 1.0, row), smaller_eight(least, above(row, 0.0, row, 1.0))
    return total_of(sums), smallest_of(least)


@inner
def rescale(t, factor, alpha):
    """Multiply a row by a factor."""
    for b in range(0, alpha.shape[1], 8):
        put_eight(alpha[ix(t)], b, scaled_eight(factor, eight(alpha[ix(t)], b)))


@inner
def ahead(start, end, card, nodes, table, tops, log_table, alpha, scales):
    """Write alpha and c; return log Z, -inf where nothing is possible, and whether a number is too small.

    A row is divided by its sum only after the next one was made from it: so no token waits for a division.
    """
    total, product, inverse, lost = 0.0, 1.0, 1.0, False
    for t in range(start, end):
        if t > start:
            times_rows(alpha, t - 1, card, table, alpha, t)
            rescale(t - 1, inverse, alpha)
        else:
            for x in range(alpha.shape[1]):
                alpha[ix(t), ix(x)] = 1.0
        scale, least = weighted(t, inverse, nodes, alpha)
        inverse = 1 / scale if scale > 0 else 0.0
        lost |= least < LOW
        scales[ix(t)] = scale
        total += tops[ix(t)]
        product *= scale
        if product < FEW or product > MANY:
            total, product = total + np.log(product), 1.0
    if end == start:
        return 0.0, False
    rescale(end - 1, inverse, alpha)
    return total + np.log(product) + (end - start - 1) * log_table, lost


@inner
def turn(t, scale, nodes, alpha, beliefs):
    """Write v over a row of nodes, p over beta; return the smallest positive v. Lanes with alpha = 0 have beta = 0."""
    r, least = ix(t), EVERYTHING
    for b in range(0, nodes.shape[1], 8):
        own = eight(alpha[r], b)
        beta = above(own, 0.0, eight(beliefs[r], b), 0.0)
        put_eight(beliefs[r], b, times_eight(own, beta))
        v = times_eight(beta, scaled_eight(scale, eight(nodes[r], b)))
        put_eight(nodes[r], b, v)
        least = smaller_eight(least, above(v, 0.0, v, 1.0))
    return smallest_of(least)


@inner
def back(start, end, card, turned, nodes, scales, alpha, beliefs):
    """Write p_t to `beliefs` and v_t over `nodes`; return whether a number is too small. `turned`: A transposed.

    beta is kept for labels that can be reached; that of others may overflow, and nothing needs it.
    """
    lost = False
    if end > start:
        for x in range(nodes.shape[1]):
            beliefs[ix(end - 1), ix(x)] = 1.0
    for t in range(end - 1, start - 1, -1):
        scale = 1 / scales[ix(t)] if scales[ix(t)] > 0 else 0.0
        lost |= turn(t, scale, nodes, alpha, beliefs) < LOW
        if t > start:
            times_rows(nodes, t, card, turned, beliefs, t - 1)
    return lost


@inner
def add_block(start, end, i, b, weight, alpha, v, pairs):
    """Add weight times the sum of alpha_{t-1}(x) v_t(y) over the tokens of a chain, for eight x and eight y."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = ZEROS
    for t in range(start + 1, end):
        x, y = eight(alpha[ix(t - 1)], i), eight(v[ix(t)], b)
        s0, s1, s2, s3 = add_eight(s0, x[0], y), add_eight(s1, x[1], y), add_eight(s2, x[2], y), add_eight(s3, x[3], y)
        s4, s5, s6, s7 = add_eight(s4, x[4], y), add_eight(s5, x[5], y), add_eight(s6, x[6], y), add_eight(s7, x[7], y)
    for j, sums in enumerate((s0, s1, s2, s3, s4, s5, s6, s7)):
        put_eight(pairs[ix(i + j)], b, add_eight(eight(pairs[ix(i + j)], b), weight, sums))


@inner
def add_chain(start, end, weight, alpha, v, pairs):
    """Add weight times the sum of alpha_{t-1}(x) v_t(y) over the tokens of a chain."""
    for i in range(0, pairs.shape[0], 8):
        for b in range(0, pairs.shape[1], 8):
            add_block(start, end, i, b, weight, alpha, v, pairs)
