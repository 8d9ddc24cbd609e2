"""Losses of sequences, piece by piece: values, and derivatives by the scores of tokens and transitions.

For the likelihood, dL/df_t(x) = p_t(x) - p_t(x given y) and dL/dg likewise, the second term an indicator where every
label is known. Losses of beliefs go through the derivative of forward-backward along their own derivatives
(`isinglass.inference.chain.exact.derivative`). The pseudolikelihood and the local likelihood, of each
label given its neighbours or only the one before it, need no inference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from isinglass.errors import ImpossibleLabelError, InputError
from isinglass.inference.chain.exact import Posterior, Room, Transition, derivative, posterior, require_possible
from isinglass.learning.chain_margin import hinge
from isinglass.losses import HingeLoss, Loss
from isinglass.losses.loss import Differentiate, Evaluation, LossFacts, LossProblem, ScoringLoss
from isinglass.models.chain.model import ends_of
from isinglass.runtime.cached_property import cached_property
from isinglass.segments import ranges, starts
from isinglass.typing import FloatArray, IntArray, Mask

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
    card : int
        The number of labels.
    completion : int array (tokens,) or None
        Labels that stand for those that were not observed, in hinge losses.
    missed : array (1,)
        How many sequences of the last evaluation had no proved maximum; written by hinge losses.
    """

    first: int
    offsets: IntArray
    labels: IntArray
    weights: FloatArray
    card: int
    completion: IntArray | None = None
    missed: FloatArray = field(default_factory=lambda: np.zeros(1))

    @cached_property
    def sequence_weights(self) -> FloatArray:
        """The weight of each sequence, that of its first token; zero if no label of it is known."""
        none = self._whole(self.labels < 0)
        return np.where(none, 0.0, np.append(self.weights, 0.0)[self.offsets[:-1]])

    @cached_property
    def every(self) -> Mask:
        """Whether all labels of a sequence are known, and count."""
        return self._whole(self.labels >= 0) & (self.sequence_weights > 0)

    @cached_property
    def partly(self) -> IntArray:
        """The sequences of which some labels are known, others not."""
        return np.flatnonzero(~self.every & (self.sequence_weights > 0))

    @cached_property
    def after(self) -> IntArray:
        """The tokens that have one before them in their sequence."""
        inside = np.ones(len(self.labels), np.bool_)
        inside[ends_of(self.offsets)[0]] = False
        return np.flatnonzero(inside)

    def tokens_of(self, sequences: IntArray) -> IntArray:
        """Return the tokens of some sequences."""
        return ranges(self.offsets[sequences], np.diff(self.offsets)[sequences])

    def _whole(self, what: Mask) -> Mask:
        """Tell for which sequences something is true of all tokens."""
        wrong = np.concatenate([[0], np.cumsum(~what)])
        return np.asarray(wrong[self.offsets[1:]] == wrong[self.offsets[:-1]])

    def refuse(self, token: int, got: str) -> None:
        """Refuse the label of a token."""
        s = int(np.searchsorted(self.offsets, token, "right")) - 1
        where = f"{got}, at token {token - self.offsets[s]} of sequence {self.first + s}"
        raise ImpossibleLabelError("Y", "labels that the model allows", where, _REMEDY)


Sums = tuple[float, FloatArray]
"""Of a piece: the value and the derivative by the transitions; that by the scores is written to its place."""


@dataclass(frozen=True)
class LocalLikelihood(Loss):
    """What a maximum entropy Markov model minimises: each label given the one before it (McCallum et al. 2000)."""

    name: ClassVar[str] = "local"
    facts: ClassVar[LossFacts] = LossFacts(
        formula="-sum_t log p(y_t | y_{t-1}, x)",
        convex=True,
        consistent=True,
        uses="potentials",
        note="for models that are normalised locally; a token whose own label or the one before it is not observed is "
        "left out",
        given="before",
    )

    def used(self, labels: IntArray, scopes: Sequence[IntArray]) -> Mask:
        """Leave out labels after one that was not observed."""
        found = labels >= 0
        for before, after in (scope.T for scope in scopes):
            found[after[labels[before] < 0]] = False
        return found

    def evaluate(self, problem: LossProblem, differentiate: Differentiate) -> Evaluation:
        """Refuse graphs: a label has no label before it there."""
        raise InputError("loss", "one for graphs", repr(self.name), "it is a loss of sequences alone")


PieceLoss = Callable[[Piece, FloatArray, Transition, FloatArray, Room], Sums]
"""From a piece, its scores (overwritten) and the transitions to its sums; derivatives by the scores: the last array."""


def piece_loss(loss: Loss) -> PieceLoss:
    """Return the function for the pieces of a loss."""
    if loss.facts.uses == "log_z":
        return likelihood
    if loss.facts.given is not None:
        return partial(conditional, loss.facts.given == "neighbours")
    if isinstance(loss, HingeLoss):
        return partial(hinge, loss)
    if isinstance(loss, ScoringLoss):
        return partial(univariate if loss.over == "variables" else clique, loss)
    raise InputError(
        "loss", "'cl', 'pseudo', 'margin', 'slack', or a loss of single labels or of pairs of them", repr(loss.name)
    )


def likelihood(piece: Piece, scores: FloatArray, transition: Transition, slopes: FloatArray, room: Room) -> Sums:
    """Return log Z - log Z(y), by weight; sequences without any label are left out."""
    from isinglass.kernels.numba.chains.forward_backward import known_paths, less_known

    last, weights, partly = len(piece.offsets) - 1, piece.sequence_weights, piece.partly
    counts = np.zeros_like(transition.log)
    on = np.where(piece.every, weights, 0.0)
    value, bad = known_paths(0, last, piece.offsets, piece.labels, on, scores, transition.log, counts)
    if bad >= 0:
        piece.refuse(bad, "one that the model forbids")
    clamped = _clamped(piece, scores, transition) if len(partly) else None
    found = posterior(scores, piece.offsets, transition, slopes, room=room)
    require_possible(found.log_z, piece.first)
    total = found.transitions(weights) - counts
    value = float((weights * found.log_z).sum() - value)
    if clamped is not None:
        require_possible(clamped.log_z, piece.first)
        value -= float((weights[partly] * clamped.log_z).sum())
        slopes[piece.tokens_of(partly)] -= clamped.nodes
        total = total - clamped.transitions(weights[partly])
    less_known(0, last, piece.offsets, piece.labels, piece.every, weights, slopes)
    return value, total


def _clamped(piece: Piece, scores: FloatArray, transition: Transition) -> Posterior:
    """Run the sequences whose labels are partly known, with those ruling out all others."""
    rows = piece.tokens_of(piece.partly)
    kept, y = scores[rows], piece.labels[rows, None]
    kept[:, : piece.card][(y >= 0) & (y != np.arange(piece.card))] = -np.inf
    offsets = starts(np.diff(piece.offsets)[piece.partly])
    return posterior(kept, offsets, transition)


def conditional(
    both: bool, piece: Piece, scores: FloatArray, transition: Transition, slopes: FloatArray, room: Room
) -> Sums:
    """Return - sum_t log p(y_t given its neighbours, or only the one before it), where all of them are known."""
    y, k, g, after = piece.labels, transition.card, transition.log, piece.after
    fine = (y >= 0) & (piece.weights > 0)
    fine[after] &= y[after - 1] >= 0
    if both:
        fine[after - 1] &= y[after] >= 0
    left, right = after[fine[after]], after[fine[after - 1] & both] - 1
    rows = np.flatnonzero(fine)
    scores[left, :k] += g[y[left - 1]]
    scores[right, :k] += g[:, y[right + 1]].T
    chosen, at, weights = scores[rows, :k], np.arange(len(rows)), piece.weights[rows]
    own = chosen[at, y[rows]]
    _require_believed(own == -np.inf, rows, piece)
    top = chosen.max(axis=1, initial=-np.inf, keepdims=True)
    mass = np.exp(chosen - top)
    norm = mass.sum(axis=1, keepdims=True)
    bars = mass / norm
    bars[at, y[rows]] -= 1.0
    slopes[:] = 0.0
    slopes[rows, :k] = weights[:, None] * bars
    total = np.zeros((k, k))
    np.add.at(total, y[left - 1], slopes[left, :k])
    np.add.at(total.T, y[right + 1], slopes[right, :k])
    return float((weights * (np.log(norm[:, 0]) + top[:, 0] - own)).sum()), total


def univariate(
    loss: ScoringLoss, piece: Piece, scores: FloatArray, transition: Transition, slopes: FloatArray, room: Room
) -> Sums:
    """Sum a function of the token's belief over known labels."""
    found, k = posterior(scores, piece.offsets, transition, room=room), transition.card
    require_possible(found.log_z, piece.first)
    rows = np.flatnonzero((piece.labels >= 0) & (piece.weights > 0))
    values, bars = loss.terms(found.nodes[rows, :k], piece.labels[rows])
    _require_believed(~np.isfinite(values), rows, piece)
    node_bars = np.zeros((len(piece.labels), k))
    node_bars[rows] = piece.weights[rows, None] * bars
    slopes[:] = 0.0
    slopes[:, :k], totals = derivative(found, node_bars, None)
    return float((piece.weights[rows] * values).sum()), totals


def clique(
    loss: ScoringLoss, piece: Piece, scores: FloatArray, transition: Transition, slopes: FloatArray, room: Room
) -> Sums:
    """Sum a function of the belief of pairs of labels over known neighbours; the weight is the mean of the two."""
    found, k = posterior(scores, piece.offsets, transition, room=room), transition.card
    y, after = piece.labels, piece.after
    require_possible(found.log_z, piece.first)
    rows = after[(y[after] >= 0) & (y[after - 1] >= 0)]
    weights = (piece.weights[rows] + piece.weights[rows - 1]) / 2
    rows, weights = rows[weights > 0], weights[weights > 0]
    values, bars = loss.terms(found.pairs()[rows].reshape(-1, k * k), y[rows - 1] * k + y[rows])
    _require_believed(~np.isfinite(values), rows, piece)
    pair_bars = np.zeros((len(y), k, k))
    pair_bars[rows] = (weights[:, None] * bars).reshape(-1, k, k)
    slopes[:] = 0.0
    slopes[:, :k], totals = derivative(found, np.zeros((len(y), k)), pair_bars)
    return float((weights * values).sum()), totals


def _require_believed(bad: Mask, rows: IntArray, piece: Piece) -> None:
    """Refuse labels that the model forbids."""
    if bad.any():
        piece.refuse(int(rows[np.argmax(bad)]), "one of belief zero")
