"""The likelihood of known labels and its derivatives, chain by chain, from weights to slopes in one pass.

    value   =  sum_s w_s (log Z_s - sum_t f_t(y_t) - sum_t g(y_{t-1}, y_t))
    slopes  =  w_s (p_t(x) - [x = y_t])
    pairs   =  sum of w_s alpha_{t-1}(x) v_t(y),       counts  =  sum of w_s [x = y_{t-1}, y = y_t]

Scores, alpha and v of a chain stay in the first cache; what goes to memory is the slopes. Symbols as in
`isinglass.kernels.numba.chains.recursions`.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.arithmetic.lanes import eight, put_eight, scaled_eight
from isinglass.kernels.numba.chains.attributes import sum_attributes
from isinglass.kernels.numba.chains.recursions import add_chain, ahead, back, shift
from isinglass.runtime.jit import inner, unrolled


@inner
def add_ends(start, end, card, ends, scores):
    """Add the scores of the first and of the last label of a chain; `ends` (2, labels)."""
    if end > start:
        for x in range(card):
            scores[ix(start), ix(x)] += ends[ix(0), ix(x)]
            scores[ix(end - 1), ix(x)] += ends[ix(1), ix(x)]


@inner
def known_path(first, last, labels, scores, table):
    """Return the score of the known labels of tokens `first` to `last`, whose scores begin with row 0."""
    total = 0.0
    for t in range(first, last):
        y = labels[ix(t)]
        total += scores[ix(t - first), ix(y)]
        if t > first:
            total += table[ix(labels[ix(t - 1)]), ix(y)]
    return total


@inner
def write_slopes(first, last, labels, weight, beliefs, slopes, counts):
    """Write the beliefs less the indicators of known labels, times the weight, to slopes; count neighbours."""
    for t in range(first, last):
        y = labels[ix(t)]
        if t > first:
            counts[ix(labels[ix(t - 1)]), ix(y)] += weight
        beliefs[ix(t - first), ix(y)] -= 1.0
        for b in range(0, slopes.shape[1], 8):
            put_eight(slopes[ix(t)], b, scaled_eight(weight, eight(beliefs[ix(t - first)], b)))


@unrolled
def known_likelihood(
    first, last, pieces, offsets, labels, weights, rich, poor, ends, tables, room, slopes, sums, flagged
):
    """Write the sums of pieces `first` to `last`, of chains whose labels are all known; those flagged are left out.

    Parameters
    ----------
    pieces : int array (pieces + 1,)
        The first chain of each piece.
    rich, poor : tuples
        See `isinglass.kernels.numba.chains.attributes.sum_attributes`.
    ends : array (2, labels)
    tables : number of labels, widest span, A, A transposed, g, and the maximum that A is without
    room : scores, nodes and alpha of one chain (tokens, width), maxima and scales (tokens,)
    sums : of each piece the value, -inf where a label is ruled out, pairs (width, width) and counts (labels, labels)
    flagged : bool array (chains,)
    """
    (card, span, table, turned, logs, log_table), (values, pairs, counts) = tables, sums
    scores, nodes, alpha, tops, scales = room
    for piece in range(first, last):
        value = 0.0
        for s in range(pieces[ix(piece)], pieces[ix(piece + 1)]):
            begin, weight = offsets[ix(s)], weights[ix(s)]
            n = offsets[ix(s + 1)] - begin
            for t in range(n):
                sum_attributes(begin + t, rich, poor, t, scores)
            add_ends(0, n, card, ends, scores)
            known = known_path(begin, begin + n, labels, scores, logs)
            wide = shift(0, n, card, span, scores, nodes, tops)
            log_z, lost = ahead(0, n, card, nodes, table, tops, log_table, alpha, scales)
            lost |= back(0, n, card, turned, nodes, scales, alpha, scores)
            flagged[ix(s)] = (lost or wide) and known > -np.inf
            if not flagged[ix(s)]:
                write_slopes(begin, begin + n, labels, weight, scores, slopes, counts[ix(piece)])
                add_chain(0, n, weight, alpha, nodes, pairs[ix(piece)])
                value += weight * (log_z - known) if known > -np.inf else -np.inf
        values[ix(piece)] = value
