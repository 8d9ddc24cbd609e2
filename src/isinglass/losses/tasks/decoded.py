"""Losses of what is decided: the empirical risk of inference, decoder and task together.

    L  =  l( q(b), y ),        dL/db  =  (dq/db)' dl/dq                (Stoyanov, Ropson and Eisner 2011, section 4)

b are the beliefs of any inference, converged or not; q the relaxed decision of a decoder at a temperature t (see
`isinglass.decoding.relaxation`), a distribution over the states of each labelled variable; l the loss of the task. As t
goes to zero, L tends to the loss of the decision itself. Variables without a label are hidden: nothing is decided about
them, and decoders that look at all outputs of an example together do not see them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isinglass.decoding.decoder import Decoder
from isinglass.decoding.decoder import make as make_decoder
from isinglass.decoding.outputs import outputs_by_component
from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.layout import state_blocks
from isinglass.inference.result import Result
from isinglass.losses.loss import BeliefLoss, Loss, LossFacts, LossValue
from isinglass.losses.observed import checked_labels, checked_weights, component_weights
from isinglass.segments import sum_at
from isinglass.typing import Array, FloatArray, IntArray, Mask


class Decided(NamedTuple):
    """Relaxed decisions beside labels, for all examples of a batch.

    Attributes
    ----------
    graph : FactorGraph
    outputs : bool array (variables,)
        The labelled variables of examples that have some.
    shares : flat array
        The share of each state, laid out like beliefs.
    labels : int array (variables,)
    weights : array (variables,)
    """

    graph: FactorGraph
    outputs: Mask
    shares: Array
    labels: IntArray
    weights: FloatArray

    @property
    def counts(self) -> FloatArray:
        """The number of outputs of each example, at least one."""
        component = self.graph.variable_component[self.outputs]
        return np.maximum(np.bincount(component, minlength=self.graph.n_components), 1).astype(np.float64)


@dataclass(frozen=True)
class DecodedLoss(BeliefLoss):
    """Base class of losses of decisions; subclasses supply `task` and a decoder to go with it.

    Parameters
    ----------
    decoder : str or Decoder, optional
        By default that of the estimator, or, outside of one, the decoder that minimises the expected loss.
    temperature : float
        Positive: how soft decisions are in training. Small ones are close to the real loss, and have plateaus.
    """

    decoder: str | Decoder | None = None
    temperature: float = 0.25

    matched: ClassVar[str]  # the decoder of least expected loss

    @abstractmethod
    def task(self, decided: Decided) -> tuple[Array, Array]:
        """Return the loss of each example (components,), and its derivatives by the shares, flat."""

    @property
    def jumps(self) -> bool:
        """Whether it jumps where its decoder does."""
        return (self.own_decoder() if self.decoder is None else make_decoder(self.decoder)).jumps

    def own_decoder(self) -> Decoder:
        """Return the decoder of least expected loss."""
        return make_decoder(self.matched)

    def for_decoder(self, decoder: Decoder) -> DecodedLoss:
        """Return the loss behind a decoder, unless it has its own."""
        chosen = decoder if self.decoder is None else make_decoder(self.decoder)
        if not chosen.facts.relaxed:
            able = "one with a differentiable version"
            raise InputError("decoder", f"{able}, for loss {self.name!r}", repr(chosen.name), f"use {self.matched!r}")
        return replace(self, decoder=chosen)

    def __call__(self, result: Result, labels: ArrayLike, weights: ArrayLike | None = None) -> LossValue:
        """Decide softly, and compare with the labels."""
        graph = result.potentials.graph
        y, w = checked_labels(labels, graph), checked_weights(weights, graph)
        seen, flat = y >= 0, result.variables.flat
        if not seen.any():
            nothing = np.zeros(graph.n_components, flat.dtype)
            return LossValue(nothing, nothing.copy(), np.zeros_like(flat), None, {"temperature": nothing.copy()})
        chosen = self.own_decoder() if self.decoder is None else make_decoder(self.decoder)
        relaxed = chosen.relaxed(result, self._asked(seen, graph), self.temperature)
        shares = np.where(np.repeat(seen, graph.cards), relaxed.shares, 0.0)
        value, bars = self.task(Decided(graph, seen, shares, y, w))
        variables, by_temperature = relaxed.back(np.where(np.repeat(seen, graph.cards), bars, 0.0))
        temperature = sum_at(graph.variable_component, by_temperature, graph.n_components)
        return LossValue(value, np.zeros_like(value), variables, None, {"temperature": temperature})

    def _asked(self, seen: Mask, graph: FactorGraph) -> Mask:
        """Return the variables to decide on: the labelled ones; of an example without any, all, which count nothing."""
        labelled = np.zeros(graph.n_components, bool)
        labelled[graph.variable_component[seen]] = True
        return np.asarray(seen | ~labelled[graph.variable_component], bool)


def mean_of_terms(decided: Decided, terms: Callable[[Array, IntArray], tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the mean over an example's outputs of a term of the shares (n, states) and labels (n,), by weight."""
    graph, scale = decided.graph, decided.weights / decided.counts[decided.graph.variable_component]
    value, bars = np.zeros(graph.n_components, decided.shares.dtype), np.zeros_like(decided.shares)
    for variables, entries in state_blocks(graph):
        mine = decided.outputs[variables]
        i, places = variables[mine], entries[mine]
        values, slopes = terms(decided.shares[places], decided.labels[i])
        value += sum_at(graph.variable_component[i], scale[i] * values, graph.n_components)
        bars[places] = scale[i, None] * slopes
    return value, bars


Cost = Callable[[Array, IntArray], tuple[Any, ArrayLike]]
"""From shares (outputs, states) and labels (outputs,) of one example to its loss and the derivatives by the shares."""


@dataclass(frozen=True)
class TaskLoss(DecodedLoss):
    """A differentiable loss of your own, of the decisions about one example.

    Parameters
    ----------
    cost : callable
        From the shares of states (outputs, states) and the labels (outputs,) of an example to its loss and the
        derivatives by the shares. It must be analytic in the shares, if Hessian-vector products are to be right.
    decoder, temperature
        As for every `DecodedLoss`; by default "mpm".

    Examples
    --------
    The squared difference of two counts, of decisions and of labels that are 1:

    >>> import isinglass as ig
    >>> def count(shares, labels):
    ...     miss = shares[:, 1].sum() - (labels == 1).sum()
    ...     return miss**2, np.stack([np.zeros(len(labels)), np.full(len(labels), 2 * miss)], axis=1)
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0,), (1,)]), np.log([[1.0, 3.0], [3.0, 1.0]]))
    >>> TaskLoss(cost=count, temperature=1.0)(ig.infer(p), [1, 1]).value.tolist()
    [1.0]
    """

    cost: Cost | None = None

    name: ClassVar[str] = "task"
    facts: ClassVar[LossFacts] = LossFacts("l(q, y)", note="a function of your own")
    matched: ClassVar[str] = "mpm"

    def task(self, decided: Decided) -> tuple[Array, Array]:
        """Call the function for each example."""
        if not callable(self.cost):
            raise InputError("cost", "a function of shares and labels", type(self.cost).__name__)
        graph = decided.graph
        first = np.cumsum(graph.cards) - graph.cards
        weights = component_weights(decided.weights, graph)
        value, bars = np.zeros(graph.n_components, decided.shares.dtype), np.zeros_like(decided.shares)
        for c, mine in enumerate(outputs_by_component(decided.outputs, graph)):
            if not len(mine):
                continue
            cards = graph.cards[mine]
            if (cards != cards[0]).any():
                raise InputError("cost", "outputs of equal numbers of states", f"{sorted(set(cards.tolist()))}")
            entries = first[mine][:, None] + np.arange(cards[0])
            loss, slopes = self._called(decided.shares[entries], decided.labels[mine])
            value[c], bars[entries] = weights[c] * loss, weights[c] * slopes
        return value, bars

    def _called(self, shares: Array, labels: IntArray) -> tuple[Any, Array]:
        assert self.cost is not None
        answer = self.cost(shares.copy(), labels.copy())
        if not isinstance(answer, tuple | list) or len(answer) != 2 or np.shape(answer[1]) != shares.shape:
            expected = f"a function that returns a loss and its derivatives {shares.shape}"
            raise InputError("cost", expected, f"{answer!r:.60}")
        return answer[0], np.asarray(answer[1])


def require_decoded(loss: Loss) -> DecodedLoss:
    """Refuse a loss without a temperature."""
    if not isinstance(loss, DecodedLoss):
        raise InputError("loss", "a loss of decisions, with a temperature, such as 'l1' or 'f1'", repr(loss.name))
    return loss
