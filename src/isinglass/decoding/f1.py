"""Decisions of high expected F-measure over the outputs of an example (see `f_measure`), in three forms.

    independent    the maximiser of E F_beta, were the outputs independent with the probabilities p_i = b_i(positive)
    exact          the maximiser of E F_beta under the joint model, from P(y_i = 1, S = s) (`count_distribution`)
    even-split     half of the outputs positive, those of highest p_i (Stoyanov, Ropson and Eisner 2011, section 5.1)

F is that of each example; F of a corpus, whose counts are added up first, is another measure (`isinglass.metrics`).
Outputs that are not decided positive get their most believed other state. Ties go to the first output.

The first and the last form are thresholds. The decision and its relaxation are

    d_i = [p_i > tau],        q_i  =  sigma( (logit p_i - logit tau) / t ).

Of the even split, tau is such that the q_i sum to k, half the number of outputs (`soft_count`), which is smooth in the
beliefs. Of the form "independent", and wherever that has no solution, tau = (p_(k) + p_(k+1)) / 2 with p_(k) the k-th
largest probability, p_(0) = 1 and p_(n+1) = 0; k is taken as constant, so that the relaxation jumps where k does. The
other states share 1 - q_i by the soft argmax of their beliefs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isinglass.decoding.count_distribution import count_distributions
from isinglass.decoding.decoder import Decoder, DecoderFacts, register
from isinglass.decoding.f_measure import best_counts, best_joint, checked_beta
from isinglass.decoding.outputs import beliefs_of, checked_outputs, outputs_by_component, potentials_of
from isinglass.decoding.relaxation import (
    LEAST_NORMAL,
    Relaxed,
    checked_temperature,
    logarithms,
    soft_argmax,
    soft_argmax_back,
)
from isinglass.decoding.soft_count import soft_thresholds, solvable, threshold_slopes
from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.layout import first_states, state_blocks
from isinglass.inference.result import Result
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray, IntArray, Mask
from isinglass.validation import whole_number

FORMS = ("independent", "exact", "even-split")
Form = Literal["independent", "exact", "even-split"]


class _Threshold(NamedTuple):
    """The outputs of an example, the two whose mean is the threshold (-1: the ends, 1 and 0), and the threshold."""

    outputs: IntArray
    above: int
    below: int
    tau: Array


class _SoftCount(NamedTuple):
    """The outputs (examples, n) of examples of one size, ranked, and the logits of their thresholds."""

    outputs: IntArray
    thresholds: Array


@register
@dataclass(frozen=True)
class F1(Decoder):
    """Choose the positive outputs of each example for a high F-measure: ``"f1"``.

    Parameters
    ----------
    form : {"independent", "exact", "even-split"}
        "exact" takes the potentials, or those of a result, and needs exact inference about half as often as there are
        outputs. It has no differentiable version.
    positive : int
        The positive state.
    beta : float
        Positive; recall counts beta times as much as precision.

    Examples
    --------
    No output is more probably positive than not, but some positives are expected:

    >>> import isinglass as ig
    >>> odds = [0.4, 0.1, 0.45]
    >>> p = ig.Potentials(ig.FactorGraph([2, 2, 2], [(0,), (1,), (2,)]), [np.log([1 - o, o]) for o in odds])
    >>> ig.decoding.F1()(ig.infer(p)).tolist(), ig.decoding.MPM()(ig.infer(p)).tolist()
    ([1, 0, 1], [0, 0, 0])
    """

    form: Form = "independent"
    positive: int = 1
    beta: float = 1.0

    name: ClassVar[str] = "f1"
    facts: ClassVar[DecoderFacts] = DecoderFacts(
        "d = argmax_d E F_beta(d, y)",
        uses="beliefs",
        optimal="highest F-measure of an example in expectation, given independent outputs (or, if exact, any)",
        relaxed="q_i(positive) = sigma((logit b_i(positive) - logit tau) / t)",
    )

    def __call__(self, given: Result | Potentials, outputs: ArrayLike | None = None) -> IntArray:
        """Return the decisions; -1 for variables that are no outputs."""
        exact = self._form() == "exact"
        potentials = potentials_of(given)
        graph = potentials.graph
        mask = self._outputs(outputs, graph)
        if exact:
            chosen = self._jointly(potentials, mask)
            beliefs = given.variables.flat.real if isinstance(given, Result) else None
        else:
            beliefs = beliefs_of(given, "infer first, or use form='exact'").real
            p = _positives(beliefs, graph, mask, self.positive)
            ranked, counts = self._ranked(p, outputs_by_component(mask, graph))
            chosen = [mine[:k] for mine, k in zip(ranked, counts.tolist(), strict=True)]
        return _states(graph, mask, chosen, beliefs, self.positive)

    @property
    def jumps(self) -> bool:
        """Whether the relaxed version jumps, where the number of positives changes."""
        return self.form == "independent"

    def relaxed(self, result: Result, outputs: ArrayLike | None = None, temperature: float = 1.0) -> Relaxed:
        """Return the relaxed decisions."""
        if self._form() == "exact":
            expected = "'independent' or 'even-split' for training"
            raise InputError("form", expected, "'exact', which has no differentiable version")
        t, graph, flat = checked_temperature(temperature), result.potentials.graph, beliefs_of(result)
        mask = self._outputs(outputs, graph)
        p = _positives(flat, graph, mask, self.positive)
        ranked, counts = self._ranked(p.real, outputs_by_component(mask, graph))
        smooth = _soft_counts(p, ranked, t) if self.form == "even-split" else []
        done = {int(i) for one in smooth for i in one.outputs[:, 0]}
        pairs = [(mine, k) for mine, k in zip(ranked, counts.tolist(), strict=True) if len(mine)]
        found = [_threshold(p, mine, k) for mine, k in pairs if int(mine[0]) not in done]
        return _RelaxedThresholds(graph, flat, mask, self.positive, p, found, smooth, t).made()

    def _form(self) -> str:
        if self.form not in FORMS:
            raise InputError("form", f"one of {', '.join(map(repr, FORMS))}", f"{self.form!r:.40}")
        checked_beta(self.beta)
        return self.form

    def _outputs(self, outputs: ArrayLike | None, graph: FactorGraph) -> Mask:
        """Check the mask, and that all outputs have the positive state and another one."""
        state, mask = whole_number(self.positive, "positive"), checked_outputs(outputs, graph)
        bad = mask & (graph.cards < max(2, state + 1))
        if bad.any():
            i = int(np.argmax(bad))
            expected = f"outputs with the state {state} and another one"
            got = f"variable {i} of {graph.cards[i]} states"
            raise InputError(
                "positive" if graph.cards[i] > 1 else "outputs", expected, got, "leave it out of the outputs"
            )
        return mask

    def _ranked(self, p: FloatArray, outputs: list[IntArray]) -> tuple[list[IntArray], IntArray]:
        """Return the outputs of each example, the most probable first, and how many of them are positive."""
        ranked = [mine[np.argsort(-p[mine], kind="stable")] for mine in outputs]
        sizes = np.array([len(mine) for mine in outputs], np.int64)
        counts = sizes // 2
        if self.form == "independent":
            for n in np.unique(sizes).tolist():
                rows = np.flatnonzero(sizes == n)
                counts[rows] = best_counts(np.stack([p[ranked[i]] for i in rows]), self.beta)[0]
        return ranked, counts

    def _jointly(self, potentials: Potentials, mask: Mask) -> list[IntArray]:
        found = count_distributions(potentials, mask, self.positive)
        outputs = outputs_by_component(mask, potentials.graph)
        return [mine[best_joint(*one, self.beta)[0]] for mine, one in zip(outputs, found, strict=True)]


def _threshold(p: Array, ranked: IntArray, k: int) -> _Threshold:
    """Return the threshold of an example of which the first k outputs are positive."""
    inside = k < len(ranked)
    above, below = (int(ranked[k - 1]) if k else -1), (int(ranked[k]) if inside else -1)
    top, bottom = (p[above] if k else 1.0), (p[below] if inside else 0.0)
    return _Threshold(ranked, above, below, np.asarray((top + bottom) / 2))


def _soft_counts(p: Array, ranked: list[IntArray], t: float) -> list[_SoftCount]:
    """Return thresholds for half of the outputs, of all examples that have one; examples of one size together."""
    found, sizes = [], np.array([len(mine) for mine in ranked], np.int64)
    for n in np.unique(sizes).tolist():
        outputs = np.stack([ranked[i] for i in np.flatnonzero(sizes == n)])
        logits = _logit(p[outputs], np.ones(outputs.shape, bool))
        good = solvable(logits.real, n // 2)
        if good.any():
            found.append(_SoftCount(outputs[good], soft_thresholds(logits[good], n // 2, t)))
    return found


def _positives(flat: Array, graph: FactorGraph, mask: Mask, positive: int) -> Array:
    """Return the belief of the positive state of each output; zero for others."""
    p = np.zeros(graph.n_variables, flat.dtype)
    p[mask] = flat[first_states(graph)[:-1][mask] + positive]
    return p


def _states(
    graph: FactorGraph, mask: Mask, chosen: list[IntArray], beliefs: FloatArray | None, positive: int
) -> IntArray:
    """Return the positive state for what was chosen, the most believed other state for other outputs."""
    states = np.full(graph.n_variables, -1, np.int64)
    for variables, entries in state_blocks(graph):
        mine = mask[variables]
        if not mine.any():
            continue
        others = np.zeros(entries[mine].shape) if beliefs is None else beliefs[entries[mine]]
        others[:, positive] = -np.inf
        states[variables[mine]] = others.argmax(axis=1)
    states[np.concatenate([np.zeros(0, np.int64), *chosen])] = positive
    return states


class _RelaxedThresholds:
    """The relaxation of thresholds, forward and back."""

    def __init__(
        self, graph: FactorGraph, flat: Array, mask: Mask, positive: int, p: Array, found: list[_Threshold],
        smooth: list[_SoftCount], t: float,
    ) -> None:  # fmt: skip
        self.graph, self.flat, self.mask, self.positive, self.p, self.found, self.smooth, self.t = (
            graph, flat, mask, positive, p, found, smooth, t,
        )  # fmt: skip
        self.tau = np.ones_like(p)
        for one in found:
            self.tau[one.outputs] = one.tau
        self.own, at = _logit(p, mask), _logit(self.tau, mask)
        for part in smooth:
            at[part.outputs] = part.thresholds[:, None]
        tie = self.own == at  # also of infinities
        self.logit = np.where(tie, 0.0, self.own - np.where(tie, 0.0, at))
        self.q = np.where(mask, _sigmoid(self.logit / t), 0.0)

    def made(self) -> Relaxed:
        """Return the shares of all states, and the way back."""
        shares, self.others = np.zeros_like(self.flat), []
        for variables, entries in state_blocks(self.graph):
            mine = self.mask[variables]
            if not mine.any():
                continue
            which = variables[mine]
            rest = np.delete(entries[mine], self.positive, axis=1)
            split = soft_argmax(_spread(self.flat[rest]), self.t)
            shares[entries[mine][:, self.positive]] = self.q[which]
            shares[rest] = (1 - self.q[which])[:, None] * split
            self.others.append((which, entries[mine][:, self.positive], rest, split))
        return Relaxed(self.mask, shares, self.back)

    def back(self, bars: Array) -> tuple[Array, Array]:
        """Go back from the shares to the beliefs and to the temperature."""
        by_beliefs = np.zeros(self.flat.shape, np.result_type(self.flat, bars))
        by_q = np.zeros(self.graph.n_variables, by_beliefs.dtype)
        by_t = np.zeros_like(by_q)
        for which, place, rest, split in self.others:
            by_q[which] = bars[place] - (split * bars[rest]).sum(axis=1)
            inner = (1 - self.q[which])[:, None] * bars[rest]
            by_rest, by_t[which] = soft_argmax_back(_spread(self.flat[rest]), split, inner, self.t)
            by_beliefs[rest] = np.where(self.flat[rest].real.sum(axis=1, keepdims=True) > 0, by_rest, 0.0)
        slope = by_q * self.q * (1 - self.q)
        finite = np.isfinite(self.logit.real) & np.isfinite(self.own.real) & self.mask
        by_t[finite] -= slope[finite] * self.logit[finite] / self.t**2
        by_p = _by_probability(slope, self.p, finite) / self.t
        by_tau = -_by_probability(slope, self.tau, finite) / self.t
        for one in self.found:
            total = by_tau[one.outputs].sum() / 2
            for i in (one.above, one.below):
                if i >= 0:
                    by_p[i] += total
        for part in self.smooth:
            weights, by_temperature = threshold_slopes(self.own[part.outputs], part.thresholds, self.t)
            by_threshold = -np.where(finite, slope, 0.0)[part.outputs].sum(axis=1) / self.t
            by_p[part.outputs] += _by_probability(
                by_threshold[:, None] * weights, self.p[part.outputs], finite[part.outputs]
            )
            by_t[part.outputs[:, 0]] += by_threshold * by_temperature
        for which, place, _, _ in self.others:
            by_beliefs[place] += by_p[which]
        return by_beliefs, by_t


def _spread(beliefs: Array) -> Array:
    """Return beliefs, uniform where all of them are zero."""
    return np.where(beliefs.real.sum(axis=1, keepdims=True) > 0, beliefs, np.ones_like(beliefs))


def _logit(p: Array, mask: Mask) -> Array:
    """Return log p - log(1 - p) where a mask says so, zero elsewhere; infinite at 0 and 1."""
    inside = np.where(mask, p, 0.5)
    return logarithms(inside) - logarithms(1 - inside)


def _by_probability(by_logit: Array, p: Array, mask: Mask) -> Array:
    """Return derivatives by p, given those by logit p: divided by p (1 - p) where a mask says so, zero elsewhere."""
    inside = mask & (p.real >= LEAST_NORMAL) & (p.real < 1)
    safe = np.where(inside, p, 0.5)
    return np.where(inside, by_logit / (safe * (1 - safe)), 0.0)


def _sigmoid(t: Array) -> Array:
    """Return 1 / (1 + exp(-t)), without overflow; infinite arguments give 0 and 1."""
    low = t.real < 0
    small = np.exp(np.where(low, t, -t))
    return np.where(low, small, 1.0) / (1.0 + small)
