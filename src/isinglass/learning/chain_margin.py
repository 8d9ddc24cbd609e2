"""Structured hinge losses of chains: the best labels with their cost, by Viterbi, less the score of the right ones.

The losses are those of `losses.hinge`; the maximum is exact whatever `solver` they have. Sequences of which no label
is known count nothing; where some are hidden, the right labels are the best that agree with the known ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from isinglass.inference.chain import Room, Transition, best_labels
from isinglass.losses.costs import cost_matrix
from isinglass.losses.hinge.hinge import HingeLoss
from isinglass.models.chain.model import SequenceModel, ends_of
from isinglass.segments import starts
from isinglass.typing import FloatArray, IntArray

SLICE = 500  # sequences of one compiled loop; Ctrl-C is heard between
SLOTS = 12  # labellings that a sequence's plane may be made of
CACHED = 10  # passes over cached labellings after each that searches for the best ones

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


def hinge_planes(
    loss: HingeLoss, piece: Piece, scores: FloatArray, transition: Transition, X: csr_array, model: SequenceModel
) -> tuple[FloatArray, FloatArray]:
    """Return the hinge of each sequence, by weight, and its derivative by all parameters, (sequences, size)."""
    weights, extra = _costs(loss, piece, transition.card)
    augmented = scores.copy()
    augmented[:, : transition.card] += extra
    worst, above = best_labels(augmented, piece.offsets, transition)
    right = _right(piece, scores, transition)
    values = above - _path_scores(piece, right, scores, transition)
    slopes = _features(piece, worst, X, model) - _features(piece, right, X, model)
    return weights * values, weights[:, None] * slopes.toarray()


class ChainSweep:
    """Passes of block-coordinate Frank-Wolfe over sequences (`kernels.numba.chains.frank_wolfe`).

    What it remembers is one flat array: the weights alpha (sequences, SLOTS), then the labellings (SLOTS, tokens).
    """

    def __init__(self, loss: HingeLoss, piece: Piece, X: csr_array, model: SequenceModel) -> None:
        self.n, self.tokens, k = len(piece.offsets) - 1, len(piece.labels), model.features.card
        cost = np.zeros((k, k)) if loss.cost is None else cost_matrix(loss.cost, k)
        weights, share = _shares(piece)
        indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int64)
        self.data = (piece.offsets, indptr, indices, X.data.astype(np.float64), piece.labels, share, cost, weights)
        place = np.full(model.features.n_attributes * k, -1)
        place[model.features.pairs] = np.arange(model.features.size)
        self.features = place.reshape(-1, k), model.features.size
        self.boundary, self.allowed, self.size = model.boundary, ~model.forbidden, model.size
        longest = int(np.diff(piece.offsets).max(initial=1))
        widest = int(np.diff(indptr[piece.offsets]).max(initial=0)) + longest + 2
        self.rows, self.d = np.zeros((2, longest, k))
        self.back, self.path = np.zeros((longest, k), np.int64), np.zeros(self.tokens, np.int64)
        self.diff, self.step = np.zeros(self.size), np.zeros(2 * widest)
        self.touched, self.level = np.zeros(2 * widest, np.int64), np.zeros(SLOTS)

    def start(self) -> FloatArray:
        """Return the memory of the start: all weight on the right labels."""
        alpha, paths = np.zeros((self.n, SLOTS)), np.full((SLOTS, self.tokens), -1.0)
        alpha[:, 0], paths[0] = 1.0, self.data[4]
        return np.concatenate([alpha.ravel(), paths.ravel()])

    def __call__(
        self, order: IntArray, memory: FloatArray, x: FloatArray, penalty: FloatArray
    ) -> tuple[FloatArray, FloatArray, float]:
        """Make a step for each sequence; return the memory, the sum of all A, and that of all B."""
        from isinglass.kernels.numba.chains.frank_wolfe import add_planes, sweep

        cut = self.n * SLOTS
        alpha = memory[:cut].reshape(self.n, SLOTS).copy()
        paths = memory[cut:].reshape(SLOTS, self.tokens).astype(np.int64)
        h, x = 1.0 / (2 * np.broadcast_to(penalty, self.size)), x.copy()
        total = -x / h
        for turn in range(1 + CACHED):
            for begin in range(0, len(order), SLICE):
                sweep(
                    order[begin : begin + SLICE], turn == 0, *self.data, *self.features, self.boundary, self.allowed, h,
                    paths, alpha, total, x, self.rows, self.d, self.back, self.path, self.diff, self.touched, self.step,
                    self.level,
                )  # fmt: skip
        exact = np.zeros(self.size)  # without the rounding of many steps
        offset = add_planes(
            self.n, *self.data, *self.features, self.boundary, paths, alpha, exact, self.diff, self.touched
        )  # fmt: skip
        return np.concatenate([alpha.ravel(), paths.ravel().astype(np.float64)]), exact, float(offset)


def _path_scores(piece: Piece, states: IntArray, scores: FloatArray, transition: Transition) -> FloatArray:
    """Return the score of each sequence's path."""
    own = scores[np.arange(len(states)), states]
    own[piece.after] += transition.log[states[piece.after - 1], states[piece.after]]
    sums = np.concatenate([[0.0], np.cumsum(own)])
    found: FloatArray = sums[piece.offsets[1:]] - sums[piece.offsets[:-1]]
    return found


def _features(piece: Piece, labels: IntArray, X: csr_array, model: SequenceModel) -> csr_array:
    """Return the features of labelled sequences, (sequences, size): what each parameter is multiplied by."""
    k, pairs, base = model.features.card, model.features.pairs, model.features.size
    sequence = np.repeat(np.arange(len(piece.offsets) - 1), np.diff(piece.offsets))
    token = np.repeat(np.arange(len(labels)), np.diff(X.indptr))
    keys = X.indices.astype(np.int64) * k + labels[token]
    place = np.minimum(np.searchsorted(pairs, keys), max(len(pairs) - 1, 0))
    known = pairs[place] == keys if len(pairs) else np.zeros(len(keys), bool)
    after, (begins, ends) = piece.after, ends_of(piece.offsets)
    rows = [sequence[token[known]], sequence[after]]
    columns = [place[known], base + labels[after - 1] * k + labels[after]]
    values = [X.data[known], np.ones(len(after))]
    if model.boundary:
        rows += [sequence[begins], sequence[ends]]
        columns += [base + k * k + labels[begins], base + k * k + k + labels[ends]]
        values += [np.ones(len(begins)), np.ones(len(ends))]
    shape = (len(piece.offsets) - 1, model.size)
    return csr_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape)


def _costs(loss: HingeLoss, piece: Piece, card: int) -> tuple[FloatArray, FloatArray]:
    """Return the weight of each sequence, and the cost of each state of each token (see `losses.costs`)."""
    weights, share = _shares(piece)
    extra = np.zeros((len(share), card))
    if loss.cost is not None:
        seen = piece.labels >= 0
        table = piece.states.spread(cost_matrix(loss.cost, piece.states.card))
        extra[seen] = share[seen, None] * table[piece.labels[seen]]
    return weights, extra


def _shares(piece: Piece) -> tuple[FloatArray, FloatArray]:
    """Return the weight of each sequence, the mean of its known tokens', and what is left for each token."""
    seen, sizes = piece.labels >= 0, np.diff(piece.offsets)
    totals = np.concatenate([np.zeros((2, 1)), np.cumsum([seen, np.where(seen, piece.weights, 0.0)], axis=1)], axis=1)
    counts, sums = totals[:, piece.offsets[1:]] - totals[:, piece.offsets[:-1]]
    means: FloatArray = sums / np.maximum(counts, 1.0)
    share = np.where(seen, piece.weights, 0.0) / np.repeat(np.where(means > 0, means, 1.0), sizes)
    return means, share


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
