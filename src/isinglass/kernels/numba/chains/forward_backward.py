"""Forward-backward on a batch of chains with one transition table, linear and in logarithms.

Scores are f_t(x) for label x at token t, and g(x, y) for y after x. With n = exp(f_t - max f_t), A = exp(g - max g):

    alpha_t(y)   =  n_t(y) sum_x alpha_{t-1}(x) A(x, y) / c_t                  c_t makes alpha_t sum to one
    v_t(y)       =  n_t(y) beta_t(y) / c_t,     beta_{t-1}(x) = sum_y A(x, y) v_t(y),   beta at the end = 1
    p_t(x)       =  alpha_t(x) beta_t(x)        p_t(x, y) = alpha_{t-1}(x) A(x, y) v_t(y)
    log Z        =  sum_t log c_t + the maxima that were taken out             (Rabiner 1989, section V.A)

Only the sum of alpha_{t-1}(x) v_t(y) over tokens is needed for the expected transitions: A multiplies it once.

Work: 3 K² multiplications and additions a token, beside K exponentials; everything but the scores stays in the first
two caches. 204,000 tokens with 22 labels (24 lanes): 0.65 Gflop, 27 ms at the 24 Gflop/s of one 3 GHz core with vectors
of four and no fused operations. Measured: 50 to 60 ms, of which each of the three products takes a third.

Underflow. Where f_t and g each span at most SPAN nats in all, a product of positive numbers, one of them at least LOW,
is positive, and a normalised positive number below LOW is seen before any is lost: such a chain is flagged and done
in logarithms. Hard zeros (-inf) are exact in both.

The derivative of the beliefs along a direction F = sum of f'_t(x_t) + g'_t(x_{t-1}, x_t) is a covariance, for which
conditional expectations of the direction's sum before and after each token are enough (`covariance`):

    tau_t(y)  =  f'_t(y) + sum_x p(x_{t-1} = x | y) (tau_{t-1}(x) + g'_t(x, y))
    rho_t(x)  =  sum_y p(x_{t+1} = y | x) (f'_{t+1}(y) + g'_{t+1}(x, y) + rho_{t+1}(y))
    dp_t(x)   =  p_t(x) (tau_t(x) + rho_t(x) - E F),    likewise for pairs
"""

from __future__ import annotations

import numpy as np

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
from isinglass.runtime.jit import compiled, inner, unrolled

SPAN = 230.0
LOW = 1e-180
FEW, MANY = 1e-100, 1e100  # the product of scales is kept between these, and its logarithm taken beyond
NOTHING, EVERYTHING = (-np.inf,) * 8, (np.inf,) * 8


@unrolled
def shift_rows(first, last, offsets, card, span, scores, tops, flagged):
    """Take the maximum out of each row of scores, fill the padding with -inf, flag chains with too wide a span."""
    base = offsets[ix(first)]
    for s in range(first, last):
        wide = False
        for t in range(offsets[ix(s)] - base, offsets[ix(s + 1)] - base):
            r = ix(t)
            for x in range(card, scores.shape[1]):
                scores[r, ix(x)] = -np.inf
            most, least = NOTHING, EVERYTHING
            for b in range(0, scores.shape[1], 8):
                row = eight(scores[r], b)
                most, least = larger_eight(most, row), smaller_eight(least, above(row, -np.inf, row, np.inf))
            top = largest_of(most)
            top = top if top > -np.inf else 0.0
            wide |= top - smallest_of(least) > span
            tops[r] = top
            for b in range(0, scores.shape[1], 8):
                put_eight(scores[r], b, add_eight(eight(scores[r], b), -top, ONES))
        flagged[ix(s - first)] = wide


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


@unrolled
def forward(first, last, offsets, card, nodes, table, tops, log_table, log_z, alpha, scales, flagged):
    """Run alpha over chains `first` to `last`, whose tokens are the rows; log Z is -inf where nothing is possible.

    A row is divided by its sum only after the next one was made from it: so no token waits for a division.
    """
    base = offsets[ix(first)]
    for s in range(first, last):
        start, end = offsets[ix(s)] - base, offsets[ix(s + 1)] - base
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
        if end > start:
            rescale(end - 1, inverse, alpha)
        log_z[ix(s - first)] = total + np.log(product) + (end - start - 1) * log_table if end > start else 0.0
        flagged[ix(s - first)] |= lost


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


@unrolled
def backward(first, last, offsets, card, turned, nodes, scales, alpha, beliefs, flagged):
    """Write p_t to `beliefs` and v_t over `nodes`. `turned`: A transposed.

    beta is kept for labels that can be reached; that of others may overflow, and nothing needs it.
    """
    base = offsets[ix(first)]
    for s in range(first, last):
        start, end = offsets[ix(s)] - base, offsets[ix(s + 1)] - base
        lost = False
        if end > start:
            for x in range(nodes.shape[1]):
                beliefs[ix(end - 1), ix(x)] = 1.0
        for t in range(end - 1, start - 1, -1):
            scale = 1 / scales[ix(t)] if scales[ix(t)] > 0 else 0.0
            lost |= turn(t, scale, nodes, alpha, beliefs) < LOW
            if t > start:
                times_rows(nodes, t, card, turned, beliefs, t - 1)
        flagged[ix(s - first)] |= lost


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


@unrolled
def add_pairs(first, last, offsets, weights, alpha, v, flagged, pairs):
    """Add weight times the sum of alpha_{t-1}(x) v_t(y) over the tokens of chains that are not flagged."""
    base = offsets[ix(first)]
    for s in range(first, last):
        start, end, weight = offsets[ix(s)] - base, offsets[ix(s + 1)] - base, weights[ix(s)]
        if flagged[ix(s - first)] or weight == 0 or end < start + 2:
            continue
        for i in range(0, pairs.shape[0], 8):
            for b in range(0, pairs.shape[1], 8):
                add_block(start, end, i, b, weight, alpha, v, pairs)


@compiled
def known_paths(first, last, offsets, labels, weights, scores, table, counts):
    """Return the scores of known labels, by weight, and the first token that is ruled out, or -1; count transitions."""
    total = 0.0
    for s in range(first, last):
        weight = weights[ix(s)]
        if weight == 0:
            continue
        for t in range(offsets[ix(s)], offsets[ix(s + 1)]):
            y = labels[ix(t)]
            value = scores[ix(t), ix(y)]
            if t > offsets[ix(s)]:
                before = labels[ix(t - 1)]
                value += table[ix(before), ix(y)]
                counts[ix(before), ix(y)] += weight
            if value == -np.inf:
                return total, t
            total += weight * value
    return total, -1


@compiled
def less_known(first, last, offsets, labels, every, weights, slopes):
    """Subtract the indicators of known labels from slopes, where a sequence has them all; multiply by its weight."""
    for s in range(first, last):
        weight = weights[ix(s)]
        for t in range(offsets[ix(s)], offsets[ix(s + 1)]):
            if every[ix(s)]:
                slopes[ix(t), ix(labels[ix(t)])] -= 1.0
            if weight != 1:
                for x in range(slopes.shape[1]):
                    slopes[ix(t), ix(x)] *= weight


@inner
def log_sum(row):
    """Return the logarithm of the sum of exponentials."""
    top = -np.inf
    for value in row:
        top = value if value > top else top
    if top == -np.inf:
        return top
    total = 0.0
    for value in row:
        total += np.exp(value - top)
    return top + np.log(total)


@compiled
def log_chain(card, scores, table, alpha, v, beliefs, row):
    """Forward-backward of one chain in logarithms, scaled as above: log alpha, log v and linear p; returns log Z."""
    n, log_z = len(scores), 0.0
    for t in range(n):
        for y in range(card):
            for x in range(card):
                row[x] = alpha[t - 1, x] + table[x, y] if t > 0 else 0.0
            alpha[t, y] = (log_sum(row[:card]) if t > 0 else 0.0) + scores[t, y]
        total = log_sum(alpha[t, :card])
        if total == -np.inf:
            return total
        log_z += total
        for y in range(card):
            alpha[t, y] -= total
            v[t, y] = scores[t, y] - total
    for t in range(n - 1, -1, -1):
        for x in range(card):
            for y in range(card):
                row[y] = table[x, y] + v[t + 1, y] if t < n - 1 else 0.0
            beta = log_sum(row[:card]) if t < n - 1 else 0.0
            v[t, x] += beta
            beliefs[t, x] = np.exp(alpha[t, x] + beta) if alpha[t, x] > -np.inf else 0.0
    return log_z


@inner
def before_tokens(start, end, card, beliefs, pairs, node_bars, pair_bars, tau):
    """Write tau: the expected sum of the direction up to each token, given its label."""
    for t in range(start, end):
        for y in range(card):
            tau[ix(t), ix(y)] = 0.0
        if t > start:
            for x in range(card):
                sent = tau[ix(t - 1), ix(x)]
                if len(pair_bars) > 0:
                    for y in range(card):
                        tau[ix(t), ix(y)] += pairs[ix(t), ix(x), ix(y)] * (sent + pair_bars[ix(t), ix(x), ix(y)])
                else:
                    for y in range(card):
                        tau[ix(t), ix(y)] += pairs[ix(t), ix(x), ix(y)] * sent
            for y in range(card):
                belief = beliefs[ix(t), ix(y)]
                tau[ix(t), ix(y)] = tau[ix(t), ix(y)] / belief if belief > 0 else 0.0
        for y in range(card):
            tau[ix(t), ix(y)] += node_bars[ix(t), ix(y)]


@compiled
def covariance(first, last, offsets, card, beliefs, pairs, node_bars, pair_bars, tau, rho, slopes, totals):
    """Write the derivative of node beliefs along the bars to `slopes`, that of pairs, summed, to `totals`.

    `pairs` (tokens, card, card) are p_t(x, y) of each token with the one before it; `pair_bars` may be empty: zeros.
    """
    base = offsets[ix(first)]
    for s in range(first, last):
        start, end = offsets[ix(s)] - base, offsets[ix(s + 1)] - base
        before_tokens(start, end, card, beliefs, pairs, node_bars, pair_bars, tau)
        whole = 0.0
        if end > start:
            for x in range(card):
                whole += beliefs[ix(end - 1), ix(x)] * tau[ix(end - 1), ix(x)]
        for t in range(end - 1, start - 1, -1):
            for x in range(card):
                mean, own = 0.0, tau[ix(t), ix(x)] - whole
                if t < end - 1:
                    for y in range(card):
                        after = node_bars[ix(t + 1), ix(y)] + rho[ix(t + 1), ix(y)]
                        after += pair_bars[ix(t + 1), ix(x), ix(y)] if len(pair_bars) > 0 else 0.0
                        pair = pairs[ix(t + 1), ix(x), ix(y)]
                        mean += pair * after
                        totals[ix(x), ix(y)] += pair * (own + after)
                belief = beliefs[ix(t), ix(x)]
                mean = mean / belief if belief > 0 else 0.0
                rho[ix(t), ix(x)] = mean
                slopes[ix(t), ix(x)] = belief * (own + mean)
