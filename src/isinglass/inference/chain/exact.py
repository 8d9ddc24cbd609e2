"""Exact inference on linear chains: marginals, best paths and samples.

The model has a score for each label of each token, and one transition table. The recursions (forward-backward, Viterbi)
are in `kernels.numba.chains`. They use scaled probabilities. A chain whose scores differ by too much for that is
computed again with logarithms. Forbidden labels have the score -inf.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isinglass.errors import ImpossibleEvidenceError
from isinglass.models.chain.layout import aligned, width_of
from isinglass.models.chain.model import ends_of
from isinglass.runtime.cached_property import cached_property
from isinglass.typing import Array, FloatArray, IntArray, Mask


@dataclass(frozen=True, eq=False)
class Transition:
    """A transition table of log scores (labels, labels), in the forms that the compiled loops need; -inf forbids."""

    log: FloatArray

    @property
    def card(self) -> int:
        """The number of labels."""
        return len(self.log)

    @cached_property
    def top(self) -> float:
        """The largest entry; 0 if all are -inf."""
        top = float(self.log.max(initial=-np.inf))
        return top if top > -np.inf else 0.0

    @cached_property
    def span(self) -> float:
        """The range of the finite entries: largest minus smallest."""
        finite = self.log[self.log > -np.inf]
        return float(np.ptp(finite)) if finite.size else 0.0

    @property
    def widest(self) -> float:
        """The range that scores of a token may have before a chain is computed with logarithms."""
        from isinglass.kernels.numba.chains.recursions import SPAN

        return SPAN - self.span

    @cached_property
    def linear(self) -> FloatArray:
        """exp(log - top), padded with zeros."""
        return _padded(np.exp(self.log - self.top), 0.0)

    @cached_property
    def transposed(self) -> FloatArray:
        """The transpose of `linear`."""
        return np.ascontiguousarray(self.linear.T)

    @cached_property
    def padded(self) -> FloatArray:
        """`log`, padded with -inf."""
        return _padded(self.log, -np.inf)


@dataclass(frozen=True, eq=False)
class Posterior:
    """The result of forward-backward.

    Attributes
    ----------
    log_z : array (sequences,)
        -inf if every labelling is forbidden.
    nodes : array (tokens, width)
        The marginals p_t(x); zero in the padding.
    alpha, v : arrays (tokens, width)
        See `isinglass.kernels.numba.chains.forward_backward`; undefined for chains in `logs`.
    logs : dict of int to (log alpha, log v)
        For the chains that were computed with logarithms.
    """

    offsets: IntArray
    transition: Transition
    log_z: FloatArray
    nodes: FloatArray
    alpha: FloatArray
    v: FloatArray
    flagged: Mask
    logs: dict[int, tuple[FloatArray, FloatArray]]

    def rows(self, s: int) -> slice:
        """Return the rows of the tokens of a sequence."""
        return slice(int(self.offsets[s]), int(self.offsets[s + 1]))

    def transitions(self, weights: FloatArray) -> FloatArray:
        """Return the expected counts of transitions (labels, labels), summed over the weighted sequences."""
        from isinglass.kernels.numba.chains.forward_backward import add_pairs

        k = self.transition.card
        sums = np.zeros_like(self.transition.linear)
        last = len(self.offsets) - 1
        add_pairs(0, last, self.offsets, weights, self.alpha, self.v, self.flagged, sums)
        total = (sums * self.transition.linear)[:k, :k]
        for s in self.logs:
            total = total + weights[s] * self._log_pairs(s).sum(axis=0)
        return np.asarray(total)

    def pairs(self) -> FloatArray:
        """Return p(x_{t-1}, x_t) of each token, (tokens, labels, labels); zero for the first of a sequence."""
        k = self.transition.card
        pairs = np.zeros((len(self.nodes), k, k))
        if len(pairs):
            table = self.transition.linear[:k, :k]
            with np.errstate(all="ignore"):  # chains computed with logarithms are overwritten below
                pairs[1:] = self.alpha[:-1, :k, None] * table * self.v[1:, None, :k]
            pairs[self.offsets[:-1][self.offsets[:-1] < len(pairs)]] = 0.0
        for s in self.logs:
            rows = self.rows(s)
            pairs[rows] = 0.0
            pairs[rows.start + 1 : rows.stop] = self._log_pairs(s)
        return pairs

    def log_alpha(self) -> FloatArray:
        """Return log alpha of each token, up to a constant for each token."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.alpha)
        for s, (alpha, _) in self.logs.items():
            logs[self.rows(s)] = alpha
        return logs

    def _log_pairs(self, s: int) -> FloatArray:
        alpha, v = self.logs[s]
        k = self.transition.card
        return np.asarray(np.exp(alpha[:-1, :k, None] + self.transition.log + v[1:, None, :k]))


def require_possible(values: FloatArray, first: int = 0) -> None:
    """Raise an error if log Z, or the best score, of a sequence is -inf; `first` numbers the first sequence."""
    if (values == -np.inf).any():
        s = first + int(np.argmax(values == -np.inf))
        text = f"no labelling of sequence {s} is possible with these forbidden transitions, allowed and known labels"
        raise ImpossibleEvidenceError(text)


class Room:
    """Arrays that one thread reuses between calls: allocating them would take as long as the computation."""

    def __init__(self) -> None:
        self.arrays: dict[str, FloatArray] = {}

    def take(self, name: str, rows: int, width: int) -> FloatArray:
        """Return an uninitialised array, valid until the same name is taken again."""
        size = rows * width
        if name not in self.arrays or self.arrays[name].size < size:
            self.arrays[name] = aligned(rows, width).reshape(-1)
        return self.arrays[name][:size].reshape(rows, width)


def posterior(
    scores: FloatArray,
    offsets: IntArray,
    transition: Transition,
    out: FloatArray | None = None,
    back: bool = True,
    room: Room | None = None,
) -> Posterior:
    """Run forward-backward.

    Parameters
    ----------
    scores : array (tokens, width)
        f_t(x) in the first columns; the padding is ignored. Overwritten.
    offsets : int array (sequences + 1,)
        The first token of each sequence, and the number of tokens.
    transition : Transition
    out : array (tokens, width), optional
        Where to write p_t.
    back : bool
        Whether to run the backward pass; without it only alpha and log Z are computed.
    room : Room, optional
        For the arrays of the result, which are then valid until the next call with it.
    """
    from isinglass.kernels.numba.chains import forward_backward as chains

    card, last, n = transition.card, len(offsets) - 1, len(scores)
    tops, scales, flagged, log_z = np.empty(n), np.empty(n), np.empty(last, np.bool_), np.empty(last)
    room = Room() if room is None else room
    nodes, alpha = room.take("nodes", *scores.shape), room.take("alpha", *scores.shape)
    tables = card, transition.widest, transition.linear, transition.top
    chains.forward(0, last, offsets, *tables, scores, nodes, tops, log_z, alpha, scales, flagged)
    beliefs = np.empty_like(scores) if out is None else out
    if back:
        chains.backward(0, last, offsets, card, transition.transposed, nodes, scales, alpha, beliefs, flagged)
    found = Posterior(offsets, transition, log_z, beliefs, alpha, nodes, flagged, {})
    for s in np.flatnonzero(flagged).tolist():
        rows = found.rows(s)
        found.logs[s], log_z[s] = _in_logarithms(scores[rows], transition, beliefs[rows])
        log_z[s] += tops[rows].sum()
    return found


def _in_logarithms(
    scores: FloatArray, transition: Transition, beliefs: FloatArray
) -> tuple[tuple[FloatArray, FloatArray], float]:
    """Run forward-backward with logarithms on one chain; return log alpha, log v and log Z."""
    from isinglass.kernels.numba.chains.forward_backward import log_chain

    alpha, v = np.full_like(scores, -np.inf), np.full_like(scores, -np.inf)
    beliefs[:] = 0.0
    log_z = log_chain(transition.card, scores, transition.log, alpha, v, beliefs, np.empty(transition.card))
    return (alpha, v), float(log_z)


def subtract_local(scores: FloatArray, offsets: IntArray, transition: Transition) -> None:
    """Normalise each token given the label before it, in place (Murphy 2012, equation 19.66).

    With p(y_t = y | y_{t-1} = x) = exp(f_t(y) + g(x, y) - n_t(x)), the normaliser n_t(x) depends on the label x of
    token t - 1. So a locally normalised model is a chain with the scores f_t(x) - n_{t+1}(x), and its log Z is 0. A
    label that no label may follow gets the score -inf.

    Parameters
    ----------
    scores : array (tokens, width)
        f_t(x) in the first columns.
    offsets : int array (sequences + 1,)
        The first token of each sequence, and the number of tokens.
    transition : Transition
    """
    f = scores[:, : transition.card]
    norms = np.stack([_log_sums(f + row) for row in transition.log], axis=1)
    begins, _ = ends_of(offsets)
    starts = _log_sums(f[begins])
    after = np.delete(np.arange(len(f)), begins)
    f[after - 1] -= np.where(norms[after] > -np.inf, norms[after], np.inf)
    f[begins] -= np.where(starts > -np.inf, starts, 0.0)[:, None]


def _log_sums(rows: FloatArray) -> FloatArray:
    """Return the log-sum-exp of each row."""
    top = rows.max(axis=1, initial=-np.inf)
    top = np.where(top > -np.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(rows - top[:, None]).sum(axis=1)) + top)


def best_labels(scores: FloatArray, offsets: IntArray, transition: Transition) -> tuple[IntArray, FloatArray]:
    """Return the best labels of all tokens and the score of each sequence; `scores` are overwritten."""
    from isinglass.kernels.numba.chains.paths import viterbi

    labels, values = np.empty(len(scores), np.int64), np.empty(len(offsets) - 1)
    scores[:, transition.card :] = -np.inf
    viterbi(0, len(offsets) - 1, offsets, transition.card, scores, transition.padded, labels, values)
    return labels, values


def n_best_labels(scores: FloatArray, transition: Transition, n: int) -> tuple[IntArray, FloatArray]:
    """Return the n best labellings (n or fewer, tokens) of one sequence, and their scores, best first."""
    from isinglass.kernels.numba.chains.paths import best_paths

    tokens, card = len(scores), transition.card
    if tokens == 0:
        return np.zeros((1, 0), np.int64), np.zeros(1)
    d, places = np.empty((tokens, card, n)), np.zeros((tokens, card, n), np.int64)
    ends, labels = np.empty(n), np.empty((n, tokens), np.int64)
    count = best_paths(card, scores, transition.log, d, places, ends, labels)
    return labels[:count], ends[:count]


def draw_labels(found: Posterior, generator: np.random.Generator) -> IntArray:
    """Draw labellings from the posterior: backward sampling, all tokens of all sequences."""
    from isinglass.kernels.numba.chains.paths import draw_paths

    labels, card = np.empty(len(found.alpha), np.int64), found.transition.card
    uniforms, row = generator.random(len(labels)), np.empty(card)
    last = len(found.offsets) - 1
    draw_paths(0, last, found.offsets, card, found.log_alpha(), found.transition.log, uniforms, row, labels)
    return labels


def derivative(found: Posterior, node_bars: FloatArray, pair_bars: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return the derivatives of a loss by the scores, (tokens, labels) and (labels, labels), from those by the beliefs.

    The beliefs are the gradient of log Z, so their Jacobian is symmetric. Its product with the derivatives by the
    beliefs is therefore a directional derivative of the beliefs.
    """
    from isinglass.kernels.numba.chains.forward_backward import covariance

    k = found.transition.card
    slopes, totals = np.empty((len(found.nodes), k)), np.zeros((k, k))
    bars = np.empty((0, k, k)) if pair_bars is None else pair_bars
    tau, rho = np.empty_like(slopes), np.empty_like(slopes)
    last = len(found.offsets) - 1
    beliefs = np.ascontiguousarray(found.nodes[:, :k])
    covariance(0, last, found.offsets, k, beliefs, found.pairs(), node_bars, bars, tau, rho, slopes, totals)
    return slopes, totals


def _padded(table: FloatArray, fill: float) -> FloatArray:
    width = width_of(len(table))
    padded: Array = np.full((width, width), fill)
    padded[: len(table), : len(table)] = table
    return padded
