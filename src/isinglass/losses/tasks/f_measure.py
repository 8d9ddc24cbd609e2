"""One minus the F-measure of an example, of soft counts.

With q_i the share of the positive state in the decision about output i and y_i = 1 for a positive label,

    L  =  1 - (1 + beta²) sum_i q_i y_i / (beta² sum_i y_i + sum_i q_i),        F(0, 0) = 1.

For hard decisions this is 1 - F_beta of the example: beta > 1 weighs recall more, beta < 1 precision. It is summed over
examples. F of a corpus, where counts are added up over examples before the ratio is taken, is another number, and no
sum over examples: `isinglass.metrics.f_measure` has both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.decoding import f1
from isinglass.decoding.f_measure import checked_beta
from isinglass.errors import InputError
from isinglass.graph.layout import first_states
from isinglass.losses.loss import LossFacts, register
from isinglass.losses.observed import component_weights
from isinglass.losses.tasks.decoded import Decided, DecodedLoss
from isinglass.segments import sum_at
from isinglass.typing import Array, FloatArray
from isinglass.validation import whole_number


@register
@dataclass(frozen=True)
class FMeasure(DecodedLoss):
    """One minus the F-measure of each example: ``"f1"``.

    An example without positive labels costs 1 whatever the share of positives, and 0 if that is exactly zero.

    Parameters
    ----------
    decoder, temperature
        As for every `DecodedLoss`; by default "f1" with the same positive state and beta.
    positive : int
        The positive state.
    beta : float
        Positive; recall counts beta times as much as precision.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0,), (1,)]), np.log([[1.0, 3.0], [1.0, 1.0]]))
    >>> loss = ig.losses.FMeasure(decoder="identity")
    >>> round(float(loss(ig.infer(p), [1, 0]).value[0]), 4)  # 1 - 2 (.75) / (1 + 1.25)
    0.3333
    """

    positive: int = 1
    beta: float = 1.0

    name: ClassVar[str] = "f1"
    facts: ClassVar[LossFacts] = LossFacts(
        "1 - (1 + beta^2) sum_i q_i y_i / (beta^2 sum_i y_i + sum_i q_i)",
        note="of each example, not of the corpus; an example without positive labels has no slope",
        starts_from="ucl",
    )
    matched: ClassVar[str] = "f1"

    def __post_init__(self) -> None:
        """Refuse another positive state than that of the decoder."""
        chosen = self.decoder
        if isinstance(chosen, f1.F1) and chosen.positive != self.positive:
            expected = f"a decoder with positive={self.positive}, as the loss has"
            raise InputError("decoder", expected, f"positive={chosen.positive}", "give both the same")

    def own_decoder(self) -> f1.F1:
        """Return the decoder of highest expected F, of independent outputs."""
        return f1.F1(positive=self.positive, beta=self.beta)

    def task(self, decided: Decided) -> tuple[Array, Array]:
        """Return one minus F of the soft counts."""
        graph, b2 = decided.graph, checked_beta(self.beta) ** 2
        state, where = whole_number(self.positive, "positive"), np.flatnonzero(decided.outputs)
        if (graph.cards[where] <= state).any():
            i = int(where[np.argmax(graph.cards[where] <= state)])
            got = f"variable {i} of {graph.cards[i]} states"
            raise InputError("positive", f"outputs with the state {state}", got)
        place, component = first_states(graph)[:-1][where] + state, graph.variable_component[where]
        truth: FloatArray = (decided.labels[where] == state).astype(np.float64)
        q, n = decided.shares[place], graph.n_components
        right, found, true = (sum_at(component, one, n) for one in (q * truth, q, truth))
        top, bottom = (1 + b2) * right, b2 * true + found
        some = bottom.real > 0
        safe = np.where(some, bottom, 1.0)
        weights = component_weights(decided.weights, graph)
        value = weights * np.where(some, 1 - top / safe, 0.0)
        slope_right, slope_found = np.where(some, -(1 + b2) / safe, 0.0), np.where(some, top / safe**2, 0.0)
        bars = np.zeros_like(decided.shares)
        bars[place] = weights[component] * (slope_right[component] * truth + slope_found[component])
        return value, bars
