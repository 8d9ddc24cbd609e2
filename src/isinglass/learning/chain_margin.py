"""Structured hinge losses of chains: the best labels with their cost, by Viterbi, less the score of the right ones.

The losses are those of `losses.hinge`; the maximum is exact whatever `solver` they have, but for slack rescaling where
its list of best labellings is too short (`Piece.missed`). Sequences of which no label is known count nothing; where
some are hidden, the right labels are the best that agree with the known ones.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from isinglass.errors import InputError, require
from isinglass.inference.chain.counts import CountedPaths
from isinglass.inference.chain.exact import Room, Transition, best_labels, n_best_labels
from isinglass.losses.costs import cost_matrix
from isinglass.losses.hinge.f1 import f1_table
from isinglass.losses.hinge.hinge import HingeLoss
from isinglass.losses.hinge.multipliers import Decoded, Products
from isinglass.models.chain.model import SequenceModel, ends_of
from isinglass.segments import starts
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import whole_number

SLICE = 500  # sequences of one compiled loop; Ctrl-C is heard between
SLOTS = 12  # labellings that a sequence's plane may be made of
CACHED = 10  # passes over cached labellings after each that searches for the best ones

if TYPE_CHECKING:
    from isinglass.learning.chain_losses import Piece


class Worst(NamedTuple):
    """The labels of each sequence that violate their margin most (see `losses.hinge.violations`).

    Attributes
    ----------
    states : int array (tokens,)
    costs, factors : arrays (sequences,)
        Delta, and what the difference of scores is multiplied by.
    """

    states: IntArray
    costs: FloatArray
    factors: FloatArray


def hinge(
    loss: HingeLoss, piece: Piece, scores: FloatArray, transition: Transition, slopes: FloatArray, room: Room
) -> tuple[float, FloatArray]:
    """Return the sum of the hinges, by weight, and the derivative by the transitions; that by scores is written."""
    weights, _ = _shares(piece)
    right = right_states(piece, scores, transition)
    worst = _worst(loss, piece, right, scores, transition)
    scaled = weights * worst.factors
    above, counts = _path(piece, worst.states, scaled, scores, transition)
    below, known = _path(piece, right, scaled, scores, transition)
    slopes[:] = 0.0
    tokens, of_token = np.arange(len(right)), np.repeat(scaled, np.diff(piece.offsets))
    slopes[tokens, worst.states] += of_token
    slopes[tokens, right] -= of_token
    return float(weights @ worst.costs) + above - below, counts - known


def hinge_planes(
    loss: HingeLoss, piece: Piece, scores: FloatArray, transition: Transition, X: csr_array, model: SequenceModel
) -> tuple[FloatArray, FloatArray]:
    """Return the hinge of each sequence, by weight, and its derivative by all parameters, (sequences, size)."""
    weights, _ = _shares(piece)
    right = right_states(piece, scores, transition)
    worst = _worst(loss, piece, right, scores, transition)
    above, below = (_path_scores(piece, states, scores, transition) for states in (worst.states, right))
    slopes = _features(piece, worst.states, X, model) - _features(piece, right, X, model)
    counts = weights > 0  # the others may be forbidden
    apart = np.zeros(len(weights))
    np.subtract(above, below, out=apart, where=counts)
    values = weights * (worst.costs + worst.factors * apart)
    return values, (weights * worst.factors)[:, None] * slopes.toarray()


def _worst(loss: HingeLoss, piece: Piece, right: IntArray, scores: FloatArray, transition: Transition) -> Worst:
    """Find the labels that violate most: by Viterbi, with counters, or by a search over multipliers of the cost."""
    if loss.by_counts:
        return _by_counts(piece, right, scores, transition)
    extra = _costs(loss, piece, transition.card)
    if loss.by_slack:
        return _by_slack(loss, piece, right, scores, extra, transition)
    augmented = scores.copy()
    augmented[:, : transition.card] += extra
    states, _ = best_labels(augmented, piece.offsets, transition)
    return Worst(states, _paid(piece, extra, states), np.ones(len(piece.offsets) - 1))


def _by_counts(piece: Piece, right: IntArray, scores: FloatArray, transition: Transition) -> Worst:
    """Maximise score and F1 cost of each sequence; its label 1, of two, is the positive one."""
    require(piece.card == 2, "cost", "two labels, where it is 'f1'", f"{piece.card}", "use 'hamming'")
    _require_even(piece)
    found, costs, k = right.copy(), np.zeros(len(piece.offsets) - 1), transition.card
    for s, (begin, end) in enumerate(pairwise(piece.offsets.tolist())):
        y = piece.labels[begin:end]
        if end == begin or (y < 0).all():
            continue
        n = int((y == 1).sum())
        table = f1_table(n, int((y == 0).sum()))
        steps = np.where(y == 1, 1, np.where(y == 0, n + 1, 0))[:, None] * [0, 1]
        paths = CountedPaths(scores[begin:end, :k], transition.log, steps, table.size)
        flat = table.T.ravel()
        best = int(np.argmax(paths.heights + flat))
        found[begin:end], costs[s] = paths.path(best), flat[best]
    return Worst(found, costs, np.ones(len(costs)))


def _require_even(piece: Piece) -> None:
    """Refuse weights of single labels."""
    share = _shares(piece)[1][piece.labels >= 0]
    if not np.allclose(share[share > 0], 1.0):
        raise InputError("class_weight", "None, where the cost is 'f1'", "weights of labels", "use 'hamming'")


def _by_slack(
    loss: HingeLoss, piece: Piece, right: IntArray, scores: FloatArray, extra: FloatArray, transition: Transition
) -> Worst:
    """Maximise the product of cost and margin of each sequence."""
    owner, k = np.repeat(np.arange(len(piece.offsets) - 1), np.diff(piece.offsets)), transition.card
    _path(piece, right, _shares(piece)[0], scores, transition)  # refuses right labels that the model forbids
    known = _path_scores(piece, right, scores, transition)
    margin = np.where(np.isfinite(known), 1.0 - known, 1.0)  # those that are forbidden have no weight

    def augmented(multipliers: FloatArray) -> FloatArray:
        found = scores.copy()
        found[:, :k] += multipliers[owner, None] * extra
        return found

    def decode(multipliers: FloatArray) -> Decoded:
        states, _ = best_labels(augmented(multipliers), piece.offsets, transition)
        margins = margin + _path_scores(piece, states, scores, transition)
        costs = _paid(piece, extra, states)
        return Decoded(states, margins, costs, margins + multipliers * costs)

    def best(s: int, multiplier: float, n: int) -> tuple[IntArray, FloatArray, FloatArray]:
        rows = slice(int(piece.offsets[s]), int(piece.offsets[s + 1]))
        given = scores[rows].copy()
        given[:, :k] += multiplier * extra[rows]
        states, values = n_best_labels(given, transition, n)
        costs = extra[rows][np.arange(states.shape[1]), states].sum(axis=1)
        return states, margin[s] + values - multiplier * costs, costs

    top = np.bincount(owner, extra.max(axis=1, initial=0.0), len(margin)).astype(np.float64)
    search = Products(owner, right.copy(), top, bool((extra == np.rint(extra)).all()))
    search.search(decode)
    search.refine(best, whole_number(getattr(loss, "n_best", 1), "n_best", 1))
    piece.missed[0] = float(search.open.sum())
    return Worst(search.states, search.costs, search.costs)


def _paid(piece: Piece, extra: FloatArray, states: IntArray) -> FloatArray:
    """Return the cost of each sequence's labels."""
    return _sums(piece, extra[np.arange(len(states)), states])


def _sums(piece: Piece, values: FloatArray) -> FloatArray:
    """Add up a value of each token over its sequence; -inf stays in its own."""
    n = len(piece.offsets) - 1
    owner = np.repeat(np.arange(n), np.diff(piece.offsets))
    return np.bincount(owner, values, n).astype(np.float64)


class ChainSweep:
    """Passes of block-coordinate Frank-Wolfe over sequences (`kernels.numba.chains.frank_wolfe`).

    What it remembers is one flat array: the weights alpha (sequences, SLOTS), then the labellings (SLOTS, tokens).
    """

    def __init__(self, loss: HingeLoss, piece: Piece, X: csr_array, model: SequenceModel) -> None:
        self.n, self.tokens, k = len(piece.offsets) - 1, len(piece.labels), model.features.card
        cost = np.zeros((k, k)) if loss.cost is None else cost_matrix(loss.cost, k)
        weights, share = _shares(piece)
        labels = piece.labels if piece.completion is None else piece.completion
        indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int64)
        self.data = (piece.offsets, indptr, indices, X.data.astype(np.float64), labels, share, cost, weights)
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
    return _sums(piece, own)


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


def _costs(loss: HingeLoss, piece: Piece, card: int) -> FloatArray:
    """Return the cost of each label of each token (see `losses.costs`)."""
    _, share = _shares(piece)
    extra = np.zeros((len(share), card))
    if loss.cost is not None:
        seen = piece.labels >= 0
        table = cost_matrix(loss.cost, piece.card)
        extra[seen] = share[seen, None] * table[piece.labels[seen]]
    return extra


def _shares(piece: Piece) -> tuple[FloatArray, FloatArray]:
    """Return the weight of each sequence, the mean of its known tokens', and what is left for each token."""
    seen, sizes = piece.labels >= 0, np.diff(piece.offsets)
    totals = np.concatenate([np.zeros((2, 1)), np.cumsum([seen, np.where(seen, piece.weights, 0.0)], axis=1)], axis=1)
    counts, sums = totals[:, piece.offsets[1:]] - totals[:, piece.offsets[:-1]]
    means: FloatArray = sums / np.maximum(counts, 1.0)
    share = np.where(seen, piece.weights, 0.0) / np.repeat(np.where(means > 0, means, 1.0), sizes)
    return means, share


def right_states(piece: Piece, scores: FloatArray, transition: Transition) -> IntArray:
    """Return the right labels; hidden ones are completed by the best, unless that was done."""
    if piece.completion is not None:
        return piece.completion
    right, hidden = piece.labels.copy(), np.flatnonzero(~piece._whole(piece.labels >= 0))
    if len(hidden):
        rows = piece.tokens_of(hidden)
        kept, y = scores[rows], piece.labels[rows, None]
        kept[:, : piece.card][(y >= 0) & (y != np.arange(piece.card))] = -np.inf
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
