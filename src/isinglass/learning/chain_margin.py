"""Structured hinge losses of chains: the best labels with their cost, by Viterbi, less the score of the right ones.

The losses are those of `losses.margin`; the maximum is exact whatever `solver` they have. Sequences of which no label
is known count nothing; where some are hidden, the right labels are the best that agree with the known ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isinglass.inference.chain import Room, Transition, best_labels
from isinglass.losses.costs import cost_matrix
from isinglass.losses.margin import HingeLoss
from isinglass.segments import starts
from isinglass.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from isinglass.learning.chain_losses import Piece


def hinge(
    loss: HingeLoss, piece: Piece, scores: FloatArray, transition: Transition, slopes: FloatArray, room: Room
) -> tuple[float, FloatArray]:
    """Return the sum of the hinges, by weight, and the derivative by the transitions; that by scores is written."""
    weights, extra = _costs(loss, piece, transition.card)
    augmented = scores.copy()
    augmented[:, : transition.card] += extra
    worst, _ = best_labels(augmented.copy(), piece.offsets, transition)
    right = _right(piece, scores, transition)
    above, counts = _path(piece, worst, weights, augmented, transition)
    below, known = _path(piece, right, weights, scores, transition)
    slopes[:] = 0.0
    tokens, of_token = np.arange(len(worst)), np.repeat(weights, np.diff(piece.offsets))
    slopes[tokens, worst] += of_token
    slopes[tokens, right] -= of_token
    return above - below, counts - known


def _costs(loss: HingeLoss, piece: Piece, card: int) -> tuple[FloatArray, FloatArray]:
    """Return the weight of each sequence, and the cost of each state of each token (see `losses.costs`)."""
    seen, sizes = piece.labels >= 0, np.diff(piece.offsets)
    totals = np.concatenate([np.zeros((2, 1)), np.cumsum([seen, np.where(seen, piece.weights, 0.0)], axis=1)], axis=1)
    counts, sums = totals[:, piece.offsets[1:]] - totals[:, piece.offsets[:-1]]
    means: FloatArray = sums / np.maximum(counts, 1.0)
    extra = np.zeros((len(seen), card))
    if loss.cost is not None:
        share = np.where(seen, piece.weights, 0.0) / np.repeat(np.where(means > 0, means, 1.0), sizes)
        table = piece.states.spread(cost_matrix(loss.cost, piece.states.card))
        extra[seen] = share[seen, None] * table[piece.labels[seen]]
    return means, extra


def _right(piece: Piece, scores: FloatArray, transition: Transition) -> IntArray:
    """Return the states of the right labels; hidden ones are completed by the best."""
    right, hidden = piece.codes.copy(), np.flatnonzero(~piece._whole(piece.labels >= 0))
    if len(hidden):
        rows = piece.tokens_of(hidden)
        kept, y, labels = scores[rows], piece.labels[rows, None], piece.states.label_of
        kept[:, : len(labels)][(y >= 0) & (y != labels)] = -np.inf
        right[rows], _ = best_labels(kept, starts(np.diff(piece.offsets)[hidden]), transition)
    return right


def _path(
    piece: Piece, states: IntArray, weights: FloatArray, scores: FloatArray, transition: Transition
) -> tuple[float, FloatArray]:
    """Return the scores of paths, by weight, and how often each transition occurs; refuse a path that is forbidden."""
    from isinglass.kernels.numba.chains.forward_backward import known_paths

    counts = np.zeros_like(transition.log)
    last = len(piece.offsets) - 1
    value, bad = known_paths(0, last, piece.offsets, states, weights, scores, transition.log, counts)
    if bad >= 0:
        piece.refuse(bad, "one that the model forbids")
    return value, counts
