"""The posterior expected loss: what a random assignment from the model costs (Murphy 2012, eq. 19.80).

    expected        L  =  E_{x ~ p} Delta(x, y)  =  sum_i sum_x b_i(x) C(y_i, x)
    log-expected    L  =  log E_{x ~ p} Delta(x, y)                                     R_EL of eq. 19.80

The costs C are those of `costs`. Both are smooth, and not convex. They look at univariate beliefs alone, of any
inference. The logarithm has no lower bound: it rewards what is nearly certain more and more, and needs a penalty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.inference.result import Result
from isinglass.losses.costs import HAMMING, cost_matrix, costs_of
from isinglass.losses.loss import BeliefLoss, LossFacts, LossValue, register
from isinglass.losses.observed import checked_labels
from isinglass.losses.univariate import UnivariateLoss
from isinglass.segments import sum_at
from isinglass.typing import Array, IntArray


@register
@dataclass(frozen=True, eq=False)
class ExpectedCost(UnivariateLoss):
    """The expected cost of labels drawn from the beliefs: ``"expected"``.

    Parameters
    ----------
    cost : "hamming" or array (states, states)
        What a state costs given the label, (label, state): not negative, and zero for the label itself.

    Examples
    --------
    >>> import numpy as np
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2], [(0,)]), [np.log([1.0, 3.0])])
    >>> ExpectedCost()(ig.infer(p), [0]).value.round(6).tolist()
    [0.75]
    """

    cost: str | ArrayLike = HAMMING

    name: ClassVar[str] = "expected"
    facts: ClassVar[LossFacts] = LossFacts(
        "sum_i sum_x b_i(x) C(y_i, x)",
        convex=False,
        consistent=False,
        uses="beliefs",
        note="the expected number of errors of a random assignment",
        starts_from="ucl",
    )

    def terms(self, beliefs: Array, labels: IntArray) -> tuple[Array, Array]:
        """Return the expected cost of each belief."""
        slopes = cost_matrix(self.cost, beliefs.shape[1])[labels]
        return (beliefs * slopes).sum(axis=1), slopes.astype(beliefs.dtype)


@register
@dataclass(frozen=True, eq=False)
class LogExpectedCost(BeliefLoss):
    """The logarithm of the expected cost of an example's labels: ``"log-expected"``, R_EL.

    Parameters
    ----------
    cost : "hamming", array (states,) or array (states, states)
        As for `ExpectedCost`.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2], [(0,)]), [np.log([1.0, 3.0])])
    >>> np.exp(LogExpectedCost()(ig.infer(p), [0]).value).round(6).tolist()
    [0.75]
    """

    cost: str | ArrayLike = HAMMING

    name: ClassVar[str] = "log-expected"
    facts: ClassVar[LossFacts] = LossFacts(
        "log sum_i sum_x b_i(x) C(y_i, x)",
        convex=False,
        consistent=False,
        uses="beliefs",
        note="R_EL; has no lower bound; examples without labels, or without an expected cost, count nothing",
        starts_from="ucl",
    )

    def __call__(self, result: Result, labels: ArrayLike, weights: ArrayLike | None = None) -> LossValue:
        """Compare the variables' beliefs with labels."""
        graph = result.potentials.graph
        costs = costs_of(graph, checked_labels(labels, graph), weights, self.cost)
        owner = np.repeat(graph.variable_component, graph.cards)
        expected = sum_at(owner, costs.states * result.variables.flat, graph.n_components)
        counts = expected.real > 0
        safe = np.where(counts, expected, 1.0)
        value = costs.weights * np.log(safe)
        slopes = np.where(counts, costs.weights, 0.0) / safe
        return LossValue(value, np.zeros_like(value), slopes[owner] * costs.states, None)
