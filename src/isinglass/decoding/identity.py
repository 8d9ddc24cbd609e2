"""Fractional decisions: the mean state of each variable, and the beliefs themselves.

    identity         d_i  =  sum_x x b_i(x)
    distribution     d_i  =  b_i

States count as numbers 0, 1, ...; of a binary variable the mean state is its belief of state 1. Under exact inference
no real number has a smaller expected squared distance from the state, and no distribution a smaller expected -log d(x).
The relaxation of both is the beliefs at any temperature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.decoding.decoder import Decoder, DecoderFacts, register
from isinglass.decoding.outputs import beliefs_of, checked_outputs
from isinglass.decoding.relaxation import Relaxed, checked_temperature
from isinglass.graph.layout import state_blocks
from isinglass.inference.result import Result, VariableBeliefs
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray


@register
@dataclass(frozen=True)
class Identity(Decoder):
    """Take the mean state of each variable, for a binary one its belief of state 1: ``"identity"``.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 3], [(0,), (1,)]), [np.log([1.0, 3.0]), np.log([1.0, 0.0 + 1e-9, 1.0])])
    >>> ig.decoding.Identity()(ig.infer(p)).round(4).tolist()
    [0.75, 1.0]
    """

    name: ClassVar[str] = "identity"
    facts: ClassVar[DecoderFacts] = DecoderFacts(
        "d_i = sum_x x b_i(x)",
        uses="beliefs",
        optimal="least squared error of real numbers in expectation",
        output="values",
        relaxed="q_i = b_i",
    )

    def __call__(self, given: Result | Potentials, outputs: ArrayLike | None = None) -> FloatArray:
        """Return the mean state of each variable; nan for those that are no outputs."""
        beliefs = beliefs_of(given).real
        graph = given.potentials.graph  # type: ignore[union-attr]
        mask, values = checked_outputs(outputs, graph), np.zeros(graph.n_variables)
        for variables, entries in state_blocks(graph):
            values[variables] = beliefs[entries] @ np.arange(entries.shape[1])
        return np.where(mask, values, np.nan)

    def relaxed(self, result: Result, outputs: ArrayLike | None = None, temperature: float = 1.0) -> Relaxed:
        """Return the beliefs."""
        return plain_beliefs(result, outputs, temperature)


@register
@dataclass(frozen=True)
class Distribution(Decoder):
    """Take the belief of each variable itself: ``"distribution"``.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2], [(0,)]), [np.log([1.0, 3.0])])
    >>> np.asarray(ig.decoding.Distribution()(ig.infer(p))).tolist()
    [[0.25, 0.75]]
    """

    name: ClassVar[str] = "distribution"
    facts: ClassVar[DecoderFacts] = DecoderFacts(
        "d_i = b_i",
        uses="beliefs",
        optimal="least logarithmic loss of each variable in expectation",
        output="distributions",
        relaxed="q_i = b_i",
    )

    def __call__(self, given: Result | Potentials, outputs: ArrayLike | None = None) -> VariableBeliefs:
        """Return the belief of each variable; nan for those that are no outputs."""
        beliefs = beliefs_of(given).real
        graph = given.potentials.graph  # type: ignore[union-attr]
        mask = np.repeat(checked_outputs(outputs, graph), graph.cards)
        return VariableBeliefs(graph, np.where(mask, beliefs, np.nan))

    def relaxed(self, result: Result, outputs: ArrayLike | None = None, temperature: float = 1.0) -> Relaxed:
        """Return the beliefs."""
        return plain_beliefs(result, outputs, temperature)


def plain_beliefs(result: Result, outputs: ArrayLike | None, temperature: float) -> Relaxed:
    """Return the beliefs of the outputs as they are, whatever the temperature."""
    checked_temperature(temperature)
    graph, flat = result.potentials.graph, beliefs_of(result)
    mask = checked_outputs(outputs, graph)
    wide = np.repeat(mask, graph.cards)

    def back(bars: Array) -> tuple[Array, Array]:
        return np.where(wide, bars, 0.0), np.zeros(graph.n_variables, bars.dtype)

    return Relaxed(mask, np.where(wide, flat, 0.0), back)
