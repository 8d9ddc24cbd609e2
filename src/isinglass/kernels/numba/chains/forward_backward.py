"""Forward-backward on a batch of chains with one transition table, linear and in logarithms.

The linear recursions and their symbols are in `isinglass.kernels.numba.chains.recursions`; chains that it flags are
done in logarithms (`log_chain`).

The derivative of the beliefs along a direction F = sum of f'_t(x_t) + g'_t(x_{t-1}, x_t) is a covariance, for which
conditional expectations of the direction's sum before and after each token are enough (`covariance`):

    tau_t(y)  =  f'_t(y) + sum_x p(x_{t-1} = x | y) (tau_{t-1}(x) + g'_t(x, y))
    rho_t(x)  =  sum_y p(x_{t+1} = y | x) (f'_{t+1}(y) + g'_{t+1}(x, y) + rho_{t+1}(y))
    dp_t(x)   =  p_t(x) (tau_t(x) + rho_t(x) - E F),    likewise for pairs
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.chains.recursions import add_chain, ahead, back, shift
from isinglass.runtime.compilation.jit import compiled, inner, unrolled


@unrolled
def forward(first, last, offsets, card, span, table, log_table, scores, nodes, tops, log_z, alpha, scales, flagged):
    """Run alpha over chains `first` to `last`, whose tokens are the rows; log Z is -inf where nothing is possible."""
    base = offsets[ix(first)]
    for s in range(first, last):
        start, end = offsets[ix(s)] - base, offsets[ix(s + 1)] - base
        wide = shift(start, end, card, span, scores, nodes, tops)
        log_z[ix(s - first)], lost = ahead(start, end, card, nodes, table, tops, log_table, alpha, scales)
        flagged[ix(s - first)] = lost or wide


@unrolled
def backward(first, last, offsets, card, turned, nodes, scales, alpha, beliefs, flagged):
    """Write p_t to `beliefs` and v_t over `nodes`. `turned`: A transposed."""
    base = offsets[ix(first)]
    for s in range(first, last):
        start, end = offsets[ix(s)] - base, offsets[ix(s + 1)] - base
        flagged[ix(s - first)] |= back(start, end, card, turned, nodes, scales, alpha, beliefs)


@unrolled
def add_pairs(first, last, offsets, weights, alpha, v, flagged, pairs):
    """Add weight times the sum of alpha_{t-1}(x) v_t(y) over the tokens of chains that are not flagged."""
    base = offsets[ix(first)]
    for s in range(first, last):
        if not flagged[ix(s - first)] and weights[ix(s)] != 0:
            add_chain(offsets[ix(s)] - base, offsets[ix(s + 1)] - base, weights[ix(s)], alpha, v, pairs)


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
