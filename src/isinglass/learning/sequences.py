"""What learning minimises for sequences: a loss of exact inference on chains, plus a penalty.

    F(theta)  =  sum_s loss_s(theta)  +  sum_j l2_j theta_j²

For the likelihood, dL/df_t(x) = p_t(x) - p_t(x given y) and dL/dg likewise, the second term an indicator where every
label is known. Losses of beliefs go through the derivative of forward-backward along their own derivatives
(`isinglass.inference.sequences.derivative`). The pseudolikelihood needs no inference.

Sequences are done in pieces, on as many threads as wished; cuts and the order of sums depend on the data alone, so that
the result has the same bits for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isinglass.errors import InputError
from isinglass.inference import Info
from isinglass.inference.sequences import Posterior, Transition, derivative, posterior
from isinglass.losses import CliqueLoss, Likelihood, Loss, Pseudolikelihood, UnivariateLoss
from isinglass.models.attributes import width_of
from isinglass.models.sequences import SequenceModel, Sequences, Tables, ends_of
from isinglass.validation import IntArray

FloatArray = NDArray[np.float64]
_REMEDY = "a forbidden transition rules it out, or it underflows; use None (not observed) there"


@dataclass(frozen=True, eq=False)
class Piece:
    """Some sequences with their labels and weights, as a loss sees them.

    Attributes
    ----------
    first : int
        The number of the first sequence, for errors.
    offsets : int array (sequences + 1,)
        From 0 on.
    labels : int array (tokens,)
        -1: not observed.
    weights : array (tokens,)
    scores : array (tokens, width)
        Overwritten by inference.
    """

    first: int
    offsets: IntArray
    labels: IntArray
    weights: FloatArray
    scores: FloatArray
    tables: Tables
    transition: Transition

    @property
    def sequence_weights(self) -> FloatArray:
        """The weight of each sequence: that of its first token."""
        return np.append(self.weights, 0.0)[self.offsets[:-1]]

    @cached_property
    def after(self) -> IntArray:
        """The tokens that have one before them in their sequence."""
        inside = np.ones(len(self.labels), np.bool_)
        inside[ends_of(self.offsets)[0]] = False
        return np.flatnonzero(inside)

    def whole(self, what: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Tell for which sequences something is true of all tokens."""
        wrong = np.concatenate([[0], np.cumsum(~what)])
        return np.asarray(wrong[self.offsets[1:]] == wrong[self.offsets[:-1]])


Sums = tuple[float, FloatArray]
"""Of a piece: the value and the derivative by the transitions; that by the scores is written to its place."""


@dataclass(eq=False)
class SequenceObjective:
    """A function of the parameters: ``objective(theta)`` returns its value and gradient.

    Parameters
    ----------
    model : SequenceModel
    data : Sequences
    labels : int array (tokens,)
        -1 where a label was not observed.
    loss : Loss
    l2 : float or array (size,)
    weights : array (tokens,), optional
        For the likelihood equal within a sequence.
    threads : int
    """

    model: SequenceModel
    data: Sequences
    labels: IntArray
    loss: Loss
    l2: float | FloatArray = 0.0
    weights: FloatArray | None = None
    threads: int = 1
    infos: list[Info] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.of_piece = piece_loss(self.loss)
        self.spread = Spreading(self.threads)

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient."""
        model, data = self.model, self.data
        tables = model.tables(theta, data.tokens)
        slopes = np.empty((data.n_tokens, width_of(model.features.card)))
        one = partial(self._piece, tables, Transition(tables.transition), slopes)
        values, transitions = zip(*self.spread(one, list(data.pieces())), strict=True)
        state = data.tokens.transpose(slopes, self.spread)
        k, (begins, ends) = model.features.card, ends_of(data.offsets)
        edges = (slopes[begins, :k].sum(axis=0), slopes[ends, :k].sum(axis=0)) if model.boundary else (state,) * 2
        gradient = model.joined(state, np.sum(transitions, axis=0), *edges)
        gradient += 2.0 * self.l2 * theta
        return float(np.sum(values) + np.sum(self.l2 * theta * theta)), gradient

    def _piece(self, tables: Tables, transition: Transition, slopes: FloatArray, first: int, last: int) -> Sums:
        offsets = self.data.offsets[first : last + 1]
        tokens = slice(int(offsets[0]), int(offsets[-1]))
        scores = np.empty((tokens.stop - tokens.start, slopes.shape[1]))
        self.data.scores(tables, first, last, scores)
        weights = np.ones(len(scores)) if self.weights is None else self.weights[tokens]
        piece = Piece(first, offsets - offsets[0], self.labels[tokens], weights, scores, tables, transition)
        return self.of_piece(piece, slopes[tokens])


class Spreading:
    """Call a function with several tuples of arguments, on some threads; answers come in the order of the tuples."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def __call__(self, function: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Return what the function returns for each tuple."""
        if self.pool is None or len(arguments) < 2:
            return [function(*one) for one in arguments]
        return list(self.pool.map(lambda one: function(*one), arguments))


def piece_loss(loss: Loss) -> Callable[[Piece, FloatArray], Sums]:
    """Return the function for the pieces of a loss."""
    if isinstance(loss, Likelihood):
        return likelihood
    if isinstance(loss, Pseudolikelihood):
        return pseudolikelihood
    if isinstance(loss, UnivariateLoss):
        return partial(univariate, loss)
    if isinstance(loss, CliqueLoss):
        return partial(clique, loss)
    raise InputError("loss", "'cl', 'pseudo', or a loss of single labels or of pairs of them", repr(loss.name))


def likelihood(piece: Piece, slopes: FloatArray) -> Sums:
    """log Z - log Z(y), by weight; sequences without any label are left out."""
    known = piece.labels >= 0
    weights = np.where(piece.whole(~known), 0.0, piece.sequence_weights)
    every = piece.whole(known) & (weights > 0)
    partly = np.flatnonzero(~every & (weights > 0))
    clamped = _clamped(piece, partly)
    value, pairs = _scores_of_labels(piece, every, weights)
    found = posterior(piece.scores, piece.offsets, piece.transition, out=slopes)
    found.require_possible(piece.first)
    value += float((weights * found.log_z)[weights > 0].sum())
    total = found.transitions(weights) - pairs
    rows = np.flatnonzero(np.repeat(every, np.diff(piece.offsets)))
    slopes[rows, piece.labels[rows]] -= 1.0
    if clamped is not None:
        clamped.require_possible(piece.first)
        value -= float((weights[partly] * clamped.log_z).sum())
        slopes[_rows_of(piece.offsets, partly)] -= clamped.nodes
        total = total - clamped.transitions(weights[partly])
    if not (weights == 1).all():
        slopes *= np.repeat(weights, np.diff(piece.offsets))[:, None]
    return value, total


def _scores_of_labels(piece: Piece, every: NDArray[np.bool_], weights: FloatArray) -> Sums:
    """Return minus the scores of the known labels, and how often they have each transition, by weight."""
    on = np.repeat(np.where(every, weights, 0.0), np.diff(piece.offsets))
    rows = np.flatnonzero(on)
    y, after = piece.labels, piece.after[on[piece.after] > 0]
    own, moved = piece.scores[rows, y[rows]], piece.transition.log[y[after - 1], y[after]]
    bad = np.concatenate([rows[own == -np.inf], after[moved == -np.inf]])
    if len(bad):
        s = piece.first + int(np.searchsorted(piece.offsets, bad[0], "right")) - 1
        t = int(bad[0] - piece.offsets[s - piece.first])
        got = f"one that the model forbids, at token {t} of sequence {s}"
        raise InputError("Y", "labels that the model allows", got, _REMEDY)
    k = piece.transition.card
    pairs = np.bincount(y[after - 1] * k + y[after], on[after], k * k).reshape(k, k)
    return -float((on[rows] * own).sum() + (on[after] * moved).sum()), pairs


def _clamped(piece: Piece, partly: IntArray) -> Posterior | None:
    """Run the sequences whose labels are partly known, with those ruling out all others."""
    if not len(partly):
        return None
    rows = _rows_of(piece.offsets, partly)
    scores, y = piece.scores[rows], piece.labels[rows]
    known = np.flatnonzero(y >= 0)
    kept = scores[known, y[known]]
    scores[known] = -np.inf
    scores[known, y[known]] = kept
    offsets = np.concatenate([[0], np.cumsum(np.diff(piece.offsets)[partly])])
    return posterior(scores, offsets, piece.transition)


def _rows_of(offsets: IntArray, sequences: IntArray) -> IntArray:
    """Return the tokens of some sequences."""
    sizes = np.diff(offsets)[sequences]
    ends = np.cumsum(sizes)
    return np.asarray(np.arange(sizes.sum()) + np.repeat(offsets[sequences] - (ends - sizes), sizes))


def pseudolikelihood(piece: Piece, slopes: FloatArray) -> Sums:
    """- sum_t log p(y_t given its neighbours), over known labels whose neighbours are known."""
    y, k, g = piece.labels, piece.transition.card, piece.transition.log
    after = piece.after
    fine = y >= 0
    fine[after] &= y[after - 1] >= 0
    fine[after - 1] &= y[after] >= 0
    on = fine & (piece.weights > 0)
    scores = piece.scores[:, :k]
    left, right = after[on[after]], after[on[after - 1]] - 1
    scores[left] += g[y[left - 1]]
    scores[right] += g[:, y[right + 1]].T
    rows = np.flatnonzero(on)
    chosen = scores[rows]
    own = chosen[np.arange(len(rows)), y[rows]]
    _require_possible(own == -np.inf, rows, piece)
    top = chosen.max(axis=1, initial=-np.inf, keepdims=True)
    mass = np.exp(chosen - top)
    norm = mass.sum(axis=1, keepdims=True)
    weights = piece.weights[rows]
    value = float((weights * (np.log(norm[:, 0]) + top[:, 0] - own)).sum())
    bars = mass / norm
    bars[np.arange(len(rows)), y[rows]] -= 1.0
    slopes[:] = 0.0
    slopes[rows, :k] = weights[:, None] * bars
    total = np.zeros((k, k))
    np.add.at(total, y[left - 1], slopes[left, :k])
    np.add.at(total.T, y[right + 1], slopes[right, :k])
    return value, total


def univariate(loss: UnivariateLoss, piece: Piece, slopes: FloatArray) -> Sums:
    """A sum over known labels of a function of the token's belief."""
    found = posterior(piece.scores, piece.offsets, piece.transition)
    found.require_possible(piece.first)
    k = piece.transition.card
    rows = np.flatnonzero((piece.labels >= 0) & (piece.weights > 0))
    values, bars = loss.terms(found.nodes[rows, :k], piece.labels[rows])
    _require_possible(~np.isfinite(values), rows, piece)
    node_bars = np.zeros((len(piece.labels), k))
    node_bars[rows] = piece.weights[rows, None] * bars
    slopes[:] = 0.0
    slopes[:, :k], totals = derivative(found, node_bars, None)
    return float((piece.weights[rows] * values).sum()), totals


def clique(loss: CliqueLoss, piece: Piece, slopes: FloatArray) -> Sums:
    """A sum over pairs of known neighbours of a function of their belief; the weight is the mean of the two."""
    found = posterior(piece.scores, piece.offsets, piece.transition)
    found.require_possible(piece.first)
    k, y, after = piece.transition.card, piece.labels, piece.after
    rows = after[(y[after] >= 0) & (y[after - 1] >= 0)]
    weights = (piece.weights[rows] + piece.weights[rows - 1]) / 2
    values, bars = loss.terms(found.pairs()[rows].reshape(-1, k * k), y[rows - 1] * k + y[rows])
    _require_possible(~np.isfinite(values), rows, piece)
    pair_bars = np.zeros((len(y), k, k))
    pair_bars[rows] = (weights[:, None] * bars).reshape(-1, k, k)
    slopes[:] = 0.0
    slopes[:, :k], totals = derivative(found, np.zeros((len(y), k)), pair_bars)
    return float((weights * values).sum()), totals


def _require_possible(bad: NDArray[np.bool_], rows: IntArray, piece: Piece) -> None:
    """Refuse labels that the model forbids."""
    if bad.any():
        t = int(rows[np.argmax(bad)])
        s = int(np.searchsorted(piece.offsets, t, "right")) - 1
        got = f"one of belief zero, at token {t - piece.offsets[s]} of sequence {piece.first + s}"
        raise InputError("Y", "labels that the model allows", got, _REMEDY)
