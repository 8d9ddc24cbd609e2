"""Maximum posterior marginals: the most believed state of each variable (Domke 2009, eq. 3.22).

    x_i  =  argmax_x b_i(x)

Under exact inference no assignment has more variables right in expectation. A tie goes to the lowest state. Its
relaxation is the soft argmax of `relaxation`; that is also a decoder of its own, with a fractional decision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.decoding.decoder import Decoder, DecoderFacts, register
from isinglass.decoding.outputs import beliefs_of, checked_outputs
from isinglass.decoding.relaxation import Relaxed, checked_temperature, soft_argmax, soft_argmax_back
from isinglass.graph.layout import state_blocks
from isinglass.inference.result import Result, VariableBeliefs
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray, IntArray

SOFT_ARGMAX = "q_i(x) = b_i(x)^(1/t) / sum_x' b_i(x')^(1/t)"


def states_of_rows(rows: FloatArray) -> IntArray:
    """Return the first of the largest entries of each row; of two it is the second where that is larger.

    Examples
    --------
    >>> states_of_rows(np.array([[0.5, 0.5], [0.2, 0.8]])).tolist()
    [0, 1]
    """
    states = np.empty(len(rows), np.int64)
    if rows.shape[1] == 2:
        np.greater(rows[:, 1], rows[:, 0], out=states)
    else:
        rows.argmax(axis=1, out=states)
    return states


@register
@dataclass(frozen=True)
class MPM(Decoder):
    """Take the most believed state of each variable: ``"mpm"``.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[4.0, 1.0], [3.0, 3.0]])])
    >>> ig.decoding.MPM()(ig.infer(p)).tolist(), ig.decoding.MAP()(p).tolist()
    ([1, 0], [0, 0])
    >>> ig.decoding.MPM()(ig.infer(p), outputs=[True, False]).tolist()
    [1, -1]
    """

    name: ClassVar[str] = "mpm"
    facts: ClassVar[DecoderFacts] = DecoderFacts(
        "x_i = argmax_x b_i(x)",
        uses="beliefs",
        optimal="most variables right in expectation",
        relaxed=SOFT_ARGMAX,
    )

    def __call__(self, given: Result | Potentials, outputs: ArrayLike | None = None) -> IntArray:
        """Return the most believed state of each variable."""
        beliefs = beliefs_of(given).real
        graph = given.potentials.graph  # type: ignore[union-attr]
        blocks = state_blocks(graph)
        if len(blocks) == 1:
            states = states_of_rows(blocks[0].rows(beliefs))
        else:
            states = np.zeros(graph.n_variables, np.int64)
            for block in blocks:
                states[block.variables] = states_of_rows(block.rows(beliefs))
        return states if outputs is None else np.where(checked_outputs(outputs, graph), states, -1)

    def by_rows(self) -> Callable[[FloatArray], IntArray] | None:
        """Return the function itself, unless a derived class has another one."""
        return states_of_rows if type(self) is MPM else None

    def relaxed(self, result: Result, outputs: ArrayLike | None = None, temperature: float = 1.0) -> Relaxed:
        """Return the soft argmax of the beliefs."""
        return soft_states(result, outputs, temperature)


@register
@dataclass(frozen=True)
class Soft(Decoder):
    """Take powers of the beliefs, normalised, between the beliefs themselves and the most believed state: ``"soft"``.

    Parameters
    ----------
    temperature : float
        Positive. One gives the beliefs, small ones nearly the decision of ``"mpm"``.

    Examples
    --------
    >>> import isinglass as ig
    >>> r = ig.infer(ig.Potentials(ig.FactorGraph([2], [(0,)]), [np.log([1.0, 4.0])]))
    >>> np.asarray(ig.decoding.Soft(0.5)(r)).round(4).tolist()
    [[0.0588, 0.9412]]
    """

    temperature: float = 0.1

    name: ClassVar[str] = "soft"
    facts: ClassVar[DecoderFacts] = DecoderFacts(
        SOFT_ARGMAX,
        uses="beliefs",
        optimal="nothing by itself: a smooth stand-in for mpm",
        output="distributions",
        relaxed=SOFT_ARGMAX,
    )

    def __call__(self, given: Result | Potentials, outputs: ArrayLike | None = None) -> VariableBeliefs:
        """Return the distribution of each variable; nan for those that are no outputs."""
        beliefs_of(given)
        assert isinstance(given, Result)
        found = soft_states(given, outputs, self.temperature)
        graph = given.potentials.graph
        return VariableBeliefs(graph, np.where(np.repeat(found.outputs, graph.cards), found.shares, np.nan))

    def relaxed(self, result: Result, outputs: ArrayLike | None = None, temperature: float = 1.0) -> Relaxed:
        """Return the soft argmax at the product of both temperatures: at one, the decision itself."""
        own, scale = checked_temperature(self.temperature), checked_temperature(temperature)
        found = soft_states(result, outputs, own * scale)

        def back(bars: Array) -> tuple[Array, Array]:
            by_beliefs, by_temperature = found.back(bars)
            return by_beliefs, own * by_temperature

        return Relaxed(found.outputs, found.shares, back)


def soft_states(result: Result, outputs: ArrayLike | None, temperature: float) -> Relaxed:
    """Return the soft argmax of the beliefs of all outputs."""
    t, flat = checked_temperature(temperature), beliefs_of(result)
    graph = result.potentials.graph
    mask = checked_outputs(outputs, graph)
    shares = np.zeros_like(flat)
    blocks = [(v[mask[v]], entries[mask[v]]) for v, entries in state_blocks(graph)]
    for _, entries in blocks:
        shares[entries] = soft_argmax(flat[entries], t)

    def back(bars: Array) -> tuple[Array, Array]:
        by_beliefs = np.zeros(flat.shape, np.result_type(flat, bars))
        by_temperature = np.zeros(graph.n_variables, by_beliefs.dtype)
        for variables, entries in blocks:
            found = soft_argmax_back(flat[entries], shares[entries], bars[entries], t)
            by_beliefs[entries], by_temperature[variables] = found
        return by_beliefs, by_temperature

    return Relaxed(mask, shares, back)
