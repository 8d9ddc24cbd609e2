"""Least expected cost, variable by variable, for a loss that is a sum over variables.

    x_i  =  argmin_d R_i(d),        R_i(d)  =  sum_y b_i(y) C(y, d)

C(y, d) is what the decision d costs if the state is y. Under exact inference no assignment has a smaller expected cost.
The costs |y - d| of ordered states give a median: the lowest state up to which the beliefs add up to one half. A tie
goes to the lowest state. The relaxation is q_i(d) = exp(-R_i(d) / t), normalised:

    dL/dR(d)  =  - q(d) / t (q'(d) - sum_d' q(d') q'(d')),        dL/dt  =  - sum_d dL/dR(d) R(d) / t.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.decoding.decoder import Decoder, DecoderFacts, register
from isinglass.decoding.outputs import beliefs_of, checked_outputs
from isinglass.decoding.relaxation import Relaxed, checked_temperature
from isinglass.errors import InputError
from isinglass.graph.layout import state_blocks
from isinglass.inference.result import Result
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import real_numbers

RELAXED = "q_i(d) = exp(-R_i(d) / t) / sum_d' exp(-R_i(d') / t)"
HAMMING = "hamming"


class LeastCost(Decoder):
    """Base class of decoders that minimise an expected cost of each variable; subclasses supply `costs`."""

    @abstractmethod
    def costs(self, n_states: int) -> FloatArray:
        """Return C (states, decisions) for variables of so many states."""

    def __call__(self, given: Result | Potentials, outputs: ArrayLike | None = None) -> IntArray:
        """Return the decision of least expected cost for each variable."""
        beliefs = beliefs_of(given).real
        graph = given.potentials.graph  # type: ignore[union-attr]
        mask = checked_outputs(outputs, graph)
        states = np.full(graph.n_variables, -1, np.int64)
        for variables, entries in state_blocks(graph):
            mine = mask[variables]
            if mine.any():
                risks = beliefs[entries[mine]] @ self.costs(entries.shape[1])
                states[variables[mine]] = risks.argmin(axis=1)
        return states

    def relaxed(self, result: Result, outputs: ArrayLike | None = None, temperature: float = 1.0) -> Relaxed:
        """Return the soft argmin of the expected costs."""
        t, flat = checked_temperature(temperature), beliefs_of(result)
        graph = result.potentials.graph
        mask, shares = checked_outputs(outputs, graph), np.zeros_like(flat)
        found = []
        for variables, entries in state_blocks(graph):
            mine = mask[variables]
            if mine.any():
                costs = self.costs(entries.shape[1])
                risks = flat[entries[mine]] @ costs
                shares[entries[mine]] = _soft_argmin(risks, t)
                found.append((variables[mine], entries[mine], risks, costs))

        def back(bars: Array) -> tuple[Array, Array]:
            by_beliefs = np.zeros(flat.shape, np.result_type(flat, bars))
            by_temperature = np.zeros(graph.n_variables, by_beliefs.dtype)
            for variables, entries, risks, costs in found:
                q, bar = shares[entries], bars[entries]
                by_risk = -q * (bar - (q * bar).sum(axis=1, keepdims=True)) / t
                by_beliefs[entries] = by_risk @ costs.T
                by_temperature[variables] = -(by_risk * risks).sum(axis=1) / t
            return by_beliefs, by_temperature

        return Relaxed(mask, shares, back)


def _soft_argmin(risks: Array, t: float) -> Array:
    """Return exp(-R / t), normalised, for expected costs (n, decisions)."""
    powers = np.exp(-(risks - risks.real.min(axis=1, keepdims=True)) / t)
    shares: Array = powers / powers.sum(axis=1, keepdims=True)
    return shares


@register
@dataclass(frozen=True, eq=False)
class Bayes(LeastCost):
    """Take the state of least expected cost for each variable: ``"bayes"``.

    Parameters
    ----------
    cost : "hamming" or array (states, states)
        What a decision costs, (state, decision): any finite real numbers.

    Examples
    --------
    A missed 1 costs five times as much as a false one:

    >>> import isinglass as ig
    >>> r = ig.infer(ig.Potentials(ig.FactorGraph([2], [(0,)]), [np.log([3.0, 1.0])]))
    >>> ig.decoding.Bayes([[0, 1], [5, 0]])(r).tolist(), ig.decoding.MPM()(r).tolist()
    ([1], [0])
    """

    cost: str | ArrayLike = HAMMING

    name: ClassVar[str] = "bayes"
    facts: ClassVar[DecoderFacts] = DecoderFacts(
        "x_i = argmin_d sum_y b_i(y) C(y, d)", uses="beliefs", optimal="least expected cost", relaxed=RELAXED
    )

    def costs(self, n_states: int) -> FloatArray:
        """Return the given costs; refuse those of another number of states."""
        if isinstance(self.cost, str):
            if self.cost != HAMMING:
                raise InputError("cost", f"{HAMMING!r} or a table (state, decision)", repr(self.cost))
            return 1.0 - np.eye(n_states)
        expected = f"a table ({n_states}, {n_states}) of finite costs, (state, decision)"
        table = real_numbers(self.cost, "cost", expected)
        if table.shape != (n_states, n_states):
            remedy = "outputs of other numbers of states are decided one mask after the other"
            raise InputError("cost", expected, f"shape {table.shape}", remedy)
        if not np.isfinite(table).all():
            raise InputError("cost", expected, f"{table[~np.isfinite(table)][0]}")
        return table


@register
@dataclass(frozen=True)
class Median(LeastCost):
    """Take a median state of each variable: ``"median"``.

    Examples
    --------
    >>> import isinglass as ig
    >>> r = ig.infer(ig.Potentials(ig.FactorGraph([3], [(0,)]), [np.log([4.0, 3.0, 3.0])]))
    >>> ig.decoding.Median()(r).tolist(), ig.decoding.MPM()(r).tolist()
    ([1], [0])
    """

    name: ClassVar[str] = "median"
    facts: ClassVar[DecoderFacts] = DecoderFacts(
        "x_i = argmin_d sum_y b_i(y) |y - d|",
        uses="beliefs",
        optimal="least absolute error of ordered states in expectation",
        relaxed=RELAXED,
    )

    def costs(self, n_states: int) -> FloatArray:
        """Return the distances of states."""
        states = np.arange(n_states, dtype=np.float64)
        return np.abs(states[:, None] - states)
