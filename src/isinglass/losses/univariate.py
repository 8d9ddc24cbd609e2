"""Univariate losses: each observed variable's belief against its label (Domke 2009, section 3.5).

With b_i the belief of variable i and i over the observed variables,

    ucl     L  =  - sum_i log b_i(y_i)                                 (Kakade, Teh and Roweis 2002)
    uquad   L  =  sum_i ( -2 b_i(y_i) + sum_x b_i(x)² )

They ask for good marginals and for nothing else of the joint distribution. They are not consistent: another
distribution may have the marginals of the true one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import ImpossibleLabelError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.layout import first_states, state_blocks
from isinglass.inference.result import Result
from isinglass.losses.loss import CostTables, LossFacts, LossValue, ScoringLoss, register
from isinglass.losses.observed import checked_labels, checked_weights
from isinglass.losses.rules import Rule, error_rule, log_rule, quadratic_rule
from isinglass.segments import sum_at
from isinglass.typing import Array, IntArray

REMEDY = "a hard zero (-inf) or evidence forbids it, or it underflows; use -1 there, or a loss without logarithms"


class UnivariateLoss(ScoringLoss):
    """A sum over observed variables; subclasses supply the term of one belief, `terms`."""

    over: ClassVar[Literal["variables", "factors"]] = "variables"

    def __call__(self, result: Result, labels: ArrayLike, weights: ArrayLike | None = None) -> LossValue:
        """Compare the variables' beliefs with labels."""
        graph, name = result.potentials.graph, result.info.algorithm
        total, bars = _summed(self.terms, result.variables.flat, graph, labels, weights, name)
        return LossValue(total, np.zeros_like(total), bars, None)

    def cost_tables(self, graph: FactorGraph, labels: ArrayLike, weights: ArrayLike | None = None) -> CostTables:
        """Return the weight of each observed variable for all states but its label."""
        beliefs = np.zeros(int(first_states(graph)[-1]))
        return CostTables(_summed(error_rule, beliefs, graph, labels, weights)[1], None)


def _summed(
    rule: Rule, flat: Array, graph: FactorGraph, labels: ArrayLike, weights: ArrayLike | None, algorithm: str = ""
) -> tuple[Array, Array]:
    """Sum a scoring rule over the observed variables of each component, with the derivatives by the flat beliefs."""
    y, w = checked_labels(labels, graph), checked_weights(weights, graph)
    counts = (y >= 0) & (w > 0)
    total, bars = np.zeros(graph.n_components, flat.dtype), np.zeros_like(flat)
    for variables, entries in state_blocks(graph):
        rows = counts[variables]
        if len(rows) == graph.n_variables and rows.all():  # one number of states, all observed: nothing to choose
            values, slopes = rule(flat.reshape(entries.shape), y)
            _require_possible(values, variables, y, algorithm)
            return sum_at(graph.variable_component, w * values, graph.n_components), (w[:, None] * slopes).ravel()
        i, places = variables[rows], entries[rows]
        values, slopes = rule(flat[places], y[i])
        _require_possible(values, i, y, algorithm)
        total += sum_at(graph.variable_component[i], w[i] * values, graph.n_components)
        bars[places] = w[i, None] * slopes
    return total, bars


def _require_possible(values: Array, variables: IntArray, labels: IntArray, algorithm: str) -> None:
    """Refuse a label that the model forbids."""
    bad = ~np.isfinite(values)
    if bad.any():
        i = int(variables[np.argmax(bad)])
        got = f"label {labels[i]} for variable {i}, whose belief is zero under {algorithm!r}"
        raise ImpossibleLabelError("labels", "labels that the model allows", got, REMEDY)


@register
@dataclass(frozen=True)
class UnivariateLikelihood(UnivariateLoss):
    """Minus the log-belief of each label: ``"ucl"``.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[3.0, 1.0], [2.0, 2.0]])])
    >>> loss = ig.losses.UnivariateLikelihood()(ig.infer(p), [0, -1])
    >>> loss.value.round(4).tolist(), loss.variables.round(4).tolist()
    ([0.6931], [-2.0, 0.0, 0.0, 0.0])
    """

    name: ClassVar[str] = "ucl"
    facts: ClassVar[LossFacts] = LossFacts(
        "- sum_i log b_i(y_i)", note="true marginals minimise it, but so does any distribution that has them"
    )

    def terms(self, beliefs: Array, labels: IntArray) -> tuple[Array, Array]:
        """Return minus the logarithm of each label's belief."""
        return log_rule(beliefs, labels)


@register
@dataclass(frozen=True)
class UnivariateQuadratic(UnivariateLoss):
    """The squared error of each variable's belief, less 1 for each observed variable: ``"uquad"``.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2], [(0,)]), [np.log([1.0, 3.0])])
    >>> ig.losses.UnivariateQuadratic()(ig.infer(p), [0]).value.round(4).tolist()
    [0.125]
    """

    name: ClassVar[str] = "uquad"
    facts: ClassVar[LossFacts] = LossFacts(
        "sum_i (-2 b_i(y_i) + sum_x b_i(x)^2)",
        note="the squared distance from the indicator of the label, less 1 for each observed variable",
    )

    def terms(self, beliefs: Array, labels: IntArray) -> tuple[Array, Array]:
        """Return the quadratic score of each belief."""
        return quadratic_rule(beliefs, labels)
