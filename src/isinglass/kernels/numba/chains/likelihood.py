"""The likelihood of known labels and its derivatives, piece by piece, from weights to derivatives in one pass.

    value   =  sum_s w_s (log Z_s - sum_t f_t(y_t) - sum_t g(y_{t-1}, y_t))
    slopes  =  w_s (p_t(x) - [x = y_t])
    pairs   =  sum of w_s alpha_{t-1}(x) v_t(y),       counts  =  sum of w_s [x = y_{t-1}, y = y_t]

Scores, alpha and v of a chain stay in the first cache, the slopes of a group of pieces in the next ones, until they are
added to the derivatives by weights. Pieces are made in any order, and added up in order
(`isinglass.kernels.numba.arithmetic.in_order`). Symbols as in `isinglass.kernels.numba.chains.recursions`.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.in_order import GROUP, PARTS, claim, go_on, oldest, take_piece, tell_made
from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.arithmetic.lanes import ZEROS, add_eight, eight, put_eight, scaled_eight
from isinglass.kernels.numba.arithmetic.together import let_others_run
from isinglass.kernels.numba.chains.attributes import sum_attributes
from isinglass.kernels.numba.chains.gradient import add_part
from isinglass.kernels.numba.chains.recursions import add_chain, ahead, back, shift
from isinglass.runtime.compilation.jit import cold, inner, unrolled


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
def write_slopes(first, last, labels, weight, beliefs, at, slopes, counts):
    """Write the beliefs less the indicators of known labels, times the weight, to slopes; count neighbours."""
    for t in range(first, last):
        y = labels[ix(t)]
        if t > first:
            counts[ix(labels[ix(t - 1)]), ix(y)] += weight
        beliefs[ix(t - first), ix(y)] -= 1.0
        for b in range(0, slopes.shape[1], 8):
            put_eight(slopes[ix(at + t - first)], b, scaled_eight(weight, eight(beliefs[ix(t - first)], b)))


@inner
def clear_slopes(first, last, slopes):
    """Write zeros."""
    for t in range(first, last):
        for b in range(0, slopes.shape[1], 8):
            put_eight(slopes[ix(t)], b, ZEROS)


@inner
def add_edges(first, last, slopes, edges):
    """Add the slopes of the first and of the last token of a chain; `edges` (2, width)."""
    if last > first:
        for b in range(0, slopes.shape[1], 8):
            put_eight(edges[ix(0)], b, add_eight(eight(edges[ix(0)], b), 1.0, eight(slopes[ix(first)], b)))
            put_eight(edges[ix(1)], b, add_eight(eight(edges[ix(1)], b), 1.0, eight(slopes[ix(last - 1)], b)))


@inner
def known_chain(s, offsets, labels, weights, rich, poor, ends, tables, room, at, slopes, pairs, counts, edges):
    """Write the slopes of a chain and add to the sums; return its value, -inf where a label is ruled out, and a flag.

    The flag says that numbers are too small. Such a chain has zero slopes, and is not in the sums.
    """
    card, span, table, turned, logs, log_table = tables
    scores, nodes, alpha, tops, scales = room
    begin, weight = offsets[ix(s)], weights[ix(s)]
    n = offsets[ix(s + 1)] - begin
    for t in range(n):
        sum_attributes(begin + t, rich, poor, t, scores)
    add_ends(0, n, card, ends, scores)
    known = known_path(begin, begin + n, labels, scores, logs)
    wide = shift(0, n, card, span, scores, nodes, tops)
    log_z, lost = ahead(0, n, card, nodes, table, tops, log_table, alpha, scales)
    lost |= back(0, n, card, turned, nodes, scales, alpha, scores)
    if (lost or wide) and known > -np.inf:
        clear_slopes(at, at + n, slopes)
        return 0.0, True
    write_slopes(begin, begin + n, labels, weight, scores, at, slopes, counts)
    add_edges(at, at + n, slopes, edges)
    add_chain(0, n, weight, alpha, nodes, pairs)
    return weight * (log_z - known) if known > -np.inf else -np.inf, False


@cold
def add_made(queue, begin, rows, layout, slopes, derivatives):
    """Add groups of pieces that are made to all parts of the derivatives that no other thread has."""
    slots, parts = slopes[0].shape[0] // rows, queue[PARTS]
    for i in range(parts):
        part = (begin + i) % parts
        group = claim(queue, part)
        while group >= 0:
            add_part(group, part, group % slots * rows, layout, slopes, derivatives)
            group = go_on(queue, part, group)


@unrolled
def known_gradient(most, queue, chains, places, sums, ring, layout, derivatives):
    """Take pieces of chains whose labels are all known, at most so many; write their sums, and add to the derivatives.

    Chains that are flagged are left out.

    Parameters
    ----------
    queue : int array
        Shared by all threads; see `isinglass.kernels.numba.arithmetic.in_order`.
    chains : tuple
        The first chain of each piece (pieces + 1,); the first token of each chain, and the number of tokens; the label
        of each token; the weight of each chain.
    places : tuple
        The attributes of tokens (`rich`, `poor`: see `isinglass.kernels.numba.chains.attributes.sum_attributes`), the
        scores of first and last labels (2, labels), and tables: the number of labels, the widest span, A, A transposed,
        g, the maximum that A is without; then room for the scores, nodes and alpha of one chain (tokens, width), and
        its maxima and scales (tokens,).
    sums : tuple
        Of each piece the value, -inf where a label is ruled out, pairs (width, width), counts (labels, labels), and
        slopes of first and last labels (2, width); of each chain whether it is flagged.
    ring : tuple
        Slopes of some groups of pieces (rows, width), the same flat, and the rows of one group.
    layout, derivatives : tuples
        See `isinglass.kernels.numba.chains.gradient.add_part`.
    """
    (pieces, offsets, labels, weights), (rich, poor, ends, tables, room) = chains, places
    (values, pairs, counts, edges, flagged), (slopes, flat, rows) = sums, ring
    slots = slopes.shape[0] // rows
    for _ in range(most):
        piece = take_piece(queue)
        if piece >= len(pieces) - 1:
            return
        group = piece // queue[GROUP]
        while group - oldest(queue) >= slots:
            add_made(queue, piece, rows, layout, (slopes, flat), derivatives)
            let_others_run()
        before = offsets[ix(pieces[ix(piece)])] - offsets[ix(pieces[ix(group * queue[GROUP])])]
        at, value = group % slots * rows + before, 0.0
        for s in range(pieces[ix(piece)], pieces[ix(piece + 1)]):
            own, flagged[ix(s)] = known_chain(
                s, offsets, labels, weights, rich, poor, ends, tables, room, at, slopes,
                pairs[ix(piece)], counts[ix(piece)], edges[ix(piece)],
            )  # fmt: skip
            value += own
            at += offsets[ix(s + 1)] - offsets[ix(s)]
        values[ix(piece)] = value
        tell_made(queue, group)
        add_made(queue, piece, rows, layout, (slopes, flat), derivatives)
