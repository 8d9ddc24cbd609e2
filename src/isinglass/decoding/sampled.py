"""Minimum Bayes risk by sampling, for any loss: of some candidates, the one of least mean loss over samples.

    d  =  argmin_{d in D} (1/M) sum_m loss(d, x^(m)),        x^(1), ..., x^(M) ~ p

The candidates D of an example are the distinct samples, the most frequent state of each output, and, for binary
outputs, all thresholds of their frequencies (Stoyanov, Ropson and Eisner 2011, footnote 4). Samples are of the joint
model, so that the loss may depend on all outputs together. The decision is as good as the candidates are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.decoding.decoder import Decoder, DecoderFacts, register
from isinglass.decoding.outputs import checked_outputs, outputs_by_component, potentials_of
from isinglass.errors import InputError
from isinglass.inference.algorithm import Algorithm
from isinglass.inference.api import sample
from isinglass.inference.result import Result
from isinglass.potentials import Potentials
from isinglass.registry import Registry
from isinglass.segments import distinct_rows
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import RandomState, whole_number

Cost = Callable[[IntArray, IntArray], ArrayLike]
"""From a decision (outputs,) and truths (samples, outputs) to the losses (samples,)."""

COSTS: Registry[Cost] = Registry("loss")


@COSTS.register("hamming")
def hamming(decision: IntArray, truths: IntArray) -> FloatArray:
    """Return the share of wrong outputs."""
    return np.asarray((decision != truths).mean(axis=1), np.float64)


@COSTS.register("l1")
def absolute(decision: IntArray, truths: IntArray) -> FloatArray:
    """Return the mean distance of states."""
    return np.asarray(np.abs(decision - truths).mean(axis=1), np.float64)


@COSTS.register("0-1")
def zero_one(decision: IntArray, truths: IntArray) -> FloatArray:
    """Return whether any output is wrong."""
    return np.asarray((decision != truths).any(axis=1), np.float64)


@COSTS.register("f1")
def one_minus_f1(decision: IntArray, truths: IntArray) -> FloatArray:
    """Return 1 - F1 of the state 1."""
    right = ((decision == 1) & (truths == 1)).sum(axis=1)
    total = (decision == 1).sum() + (truths == 1).sum(axis=1)
    return 1 - np.where(total > 0, 2 * right / np.maximum(total, 1), 1.0)


@register
@dataclass(frozen=True)
class Sampled(Decoder):
    """Take the candidate of least mean loss over samples: ``"sampled"``.

    Parameters
    ----------
    loss : str or callable
        "hamming", "l1", "0-1" or "f1" of the state 1; or a function of a decision (outputs,) and truths (samples,
        outputs) that returns the loss of each sample (samples,).
    samples : int
    algorithm : str or Algorithm
        What draws; any that `isinglass.sample` takes.
    random_state : int, Generator or None

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[4.0, 1.0], [3.0, 3.0]])])
    >>> [ig.decoding.Sampled(loss, 2000, random_state=0)(p).tolist() for loss in ("hamming", "0-1")]
    [[1, 0], [0, 0]]
    """

    loss: str | Cost = "hamming"
    samples: int = 200
    algorithm: str | Algorithm = "exact"
    random_state: RandomState = None

    name: ClassVar[str] = "sampled"
    facts: ClassVar[DecoderFacts] = DecoderFacts(
        "d = argmin_d mean_m loss(d, x^(m))", uses="potentials", optimal="any loss, of some candidates, as samples grow"
    )

    def __call__(self, given: Result | Potentials, outputs: ArrayLike | None = None) -> IntArray:
        """Return the best candidate of each example; -1 for variables that are no outputs."""
        potentials, count = potentials_of(given), whole_number(self.samples, "samples", 1)
        mask, cost = checked_outputs(outputs, potentials.graph), self._cost()
        drawn = sample(potentials, count, self.algorithm, random_state=self.random_state)
        states = np.full(potentials.graph.n_variables, -1, np.int64)
        for mine in outputs_by_component(mask, potentials.graph):
            if len(mine):
                states[mine] = _best(drawn[:, mine], potentials.graph.cards[mine], cost)
        return states

    def _cost(self) -> Cost:
        if isinstance(self.loss, str):
            return COSTS[self.loss]
        if not callable(self.loss):
            raise InputError("loss", "a name such as 'f1' or a function", type(self.loss).__name__)
        return self.loss


def _best(drawn: IntArray, cards: IntArray, cost: Cost) -> IntArray:
    """Return the candidate of least mean loss, the first at a tie."""
    candidates = _candidates(drawn, cards)
    means = [_mean(cost, one, drawn) for one in candidates]
    best: IntArray = candidates[int(np.argmin(means))]
    return best


def _mean(cost: Cost, decision: IntArray, drawn: IntArray) -> float:
    losses = np.asarray(cost(decision.copy(), drawn.copy()))
    if losses.shape != (len(drawn),) or losses.dtype.kind not in "biuf" or not np.isfinite(losses).all():
        expected = f"a function that returns {len(drawn)} finite losses, one for each sample"
        raise InputError("loss", expected, f"{losses!r:.60}")
    return float(losses.mean())


def _candidates(drawn: IntArray, cards: IntArray) -> IntArray:
    """Return modes, thresholds, and the distinct samples."""
    counts = np.stack([(drawn == x).sum(axis=0) for x in range(int(cards.max()))])
    found = [counts.argmax(axis=0)[None]]
    if (cards == 2).all():
        order = np.argsort(-counts[1], kind="stable")
        ranks = np.empty_like(order)
        ranks[order] = np.arange(len(order))
        found.append((ranks < np.arange(len(order) + 1)[:, None]).astype(np.int64))
    return np.concatenate([*found, drawn[distinct_rows(drawn)[0]]])
