"""Clique losses: each observed factor's belief against the labels of its variables (Domke 2009, section 3.6).

With b_a the belief of factor a, and a over the factors of arity two or more whose variables are all observed,

    ccl     L  =  - sum_a log b_a(y_a)
    cquad   L  =  sum_a ( -2 b_a(y_a) + sum_{x_a} b_a(x_a)² )

An exponential family with indicators of clique states as statistics is determined by its clique marginals, so under
exact inference both are consistent. A clique with a variable that was not observed contributes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import ImpossibleLabelError
from isinglass.graph.factor_graph import FactorGraph, FactorGroup, iter_groups
from isinglass.graph.layout import belief_entries
from isinglass.inference.result import Result
from isinglass.losses.loss import CostTables, LossFacts, LossValue, ScoringLoss, register
from isinglass.losses.observed import checked_labels, checked_weights, chosen, table_entries
from isinglass.losses.rules import Rule, error_rule, log_rule, quadratic_rule
from isinglass.losses.univariate import REMEDY
from isinglass.segments import sum_at
from isinglass.typing import Array, IntArray, Mask


class CliqueLoss(ScoringLoss):
    """A sum over observed factors of arity two or more; subclasses supply the term of one belief, `terms`."""

    over: ClassVar[Literal["variables", "factors"]] = "factors"

    def __call__(self, result: Result, labels: ArrayLike, weights: ArrayLike | None = None) -> LossValue:
        """Compare the factors' beliefs with labels."""
        graph, name = result.potentials.graph, result.info.algorithm
        total, bars = _summed(self.terms, result.factors.groups, graph, labels, weights, name)
        return LossValue(total, np.zeros_like(total), np.zeros_like(result.variables.flat), bars)

    def used(self, labels: IntArray, scopes: Sequence[IntArray]) -> Mask:
        """Leave out labels all of whose factors have others that were not observed."""
        found = labels >= 0
        for scope in scopes:
            found[scope] = False
        for scope in scopes:
            found[scope[(labels[scope] >= 0).all(axis=1)]] = True
        return found

    def cost_tables(self, graph: FactorGraph, labels: ArrayLike, weights: ArrayLike | None = None) -> CostTables:
        """Return the weight of each observed factor of arity two or more for all entries but that of its labels."""
        beliefs = [np.zeros((len(group), *group.shape)) for group in graph.groups]
        return CostTables(None, _summed(error_rule, beliefs, graph, labels, weights)[1])


def _summed(
    rule: Rule,
    groups: Sequence[Array],
    graph: FactorGraph,
    labels: ArrayLike,
    weights: ArrayLike | None,
    algorithm: str = "",
) -> tuple[Array, Array]:
    """Sum a scoring rule over the observed factors of each component, with the derivatives by the flat beliefs."""
    y, w = checked_labels(labels, graph), checked_weights(weights, graph)
    dtype = np.result_type(np.float64, *groups)
    total, bars = np.zeros(graph.n_components, dtype), np.zeros(belief_entries(graph), dtype)
    for (group, part), beliefs in zip(iter_groups(graph), groups, strict=True):
        if group.arity < 2:
            continue
        weight = w[group.scopes].mean(axis=1) if weights is not None else np.ones(len(group))
        rows = chosen((y[group.scopes] >= 0).all(axis=1) & (weight > 0))
        entries, tables = table_entries(group, y)[rows], (len(group), group.table_size)
        values, slopes = rule(beliefs.reshape(tables)[rows], entries)
        _require_possible(values, group, rows, y, algorithm)
        component = graph.factor_component[group.factors[rows]]
        total += sum_at(component, weight[rows] * values, graph.n_components)
        bars[part].reshape(tables)[rows] = slopes if weights is None else weight[rows, None] * slopes
    return total, bars


def _require_possible(
    values: Array, group: FactorGroup, rows: IntArray | slice, labels: IntArray, algorithm: str
) -> None:
    """Refuse labels that the model forbids."""
    bad = ~np.isfinite(values)
    if bad.any():
        row = np.arange(len(group))[rows][np.argmax(bad)]
        scope = group.scopes[row]
        got = (
            f"labels {tuple(labels[scope].tolist())} for factor {group.factors[row]} on variables "
            f"{tuple(scope.tolist())}, whose belief is zero under {algorithm!r}"
        )
        raise ImpossibleLabelError("labels", "labels that the model allows", got, REMEDY)


@register
@dataclass(frozen=True)
class CliqueLikelihood(CliqueLoss):
    """Minus the log-belief of each clique's labels: ``"ccl"``.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[3.0, 1.0], [2.0, 2.0]])])
    >>> loss = ig.losses.CliqueLikelihood()(ig.infer(p), [1, 0])
    >>> loss.value.round(4).tolist(), loss.factors.round(4).tolist()
    ([1.3863], [0.0, 0.0, -4.0, 0.0])
    """

    name: ClassVar[str] = "ccl"
    facts: ClassVar[LossFacts] = LossFacts(
        "- sum_a log b_a(y_a)",
        consistent=True,
        note="over factors of arity two or more whose variables are all observed",
    )

    def terms(self, beliefs: Array, labels: IntArray) -> tuple[Array, Array]:
        """Return minus the logarithm of each clique's belief at its labels."""
        return log_rule(beliefs, labels)


@register
@dataclass(frozen=True)
class CliqueQuadratic(CliqueLoss):
    """The squared error of each clique's belief, less 1 for each observed clique: ``"cquad"``.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[3.0, 1.0], [2.0, 2.0]])])
    >>> ig.losses.CliqueQuadratic()(ig.infer(p), [1, 0]).value.round(3).tolist()
    [-0.219]
    """

    name: ClassVar[str] = "cquad"
    facts: ClassVar[LossFacts] = LossFacts(
        "sum_a (-2 b_a(y_a) + sum_{x_a} b_a(x_a)^2)",
        consistent=True,
        note="the squared distance from the indicator of the labels, less 1 for each observed clique",
    )

    def terms(self, beliefs: Array, labels: IntArray) -> tuple[Array, Array]:
        """Return the quadratic score of each belief."""
        return quadratic_rule(beliefs, labels)
