"""Piecewise likelihood: every factor is normalised by itself (Sutton and McCallum 2005).

    L  =  sum_a ( log sum_{x_a} exp phi_a(x_a) - phi_a(y_a) ),

over the factors whose variables are all observed. For exact inference it is an upper bound of the negative
log-likelihood if phi_a <= 0 can be assumed; it is fast and convex, and not consistent: factors that share variables
count their evidence twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.errors import InputError
from isinglass.losses.loss import Differentiate, Evaluation, Loss, LossFacts, LossProblem, register
from isinglass.losses.observed import checked_weights, known_states, table_entries
from isinglass.potentials import sum_tables
from isinglass.segments import sum_at
from isinglass.typing import Array


@register
@dataclass(frozen=True)
class Piecewise(Loss):
    """Minus the log-probability of each factor's labels, normalised over that factor alone: ``"piecewise"``.

    Examples
    --------
    >>> import isinglass as ig
    >>> from isinglass.losses import LossProblem
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[3.0, 1.0], [2.0, 2.0]])])
    >>> found = Piecewise().evaluate(LossProblem(p, np.array([0, 0])), None)
    >>> np.exp(-found.value).round(4).tolist(), found.groups[0].round(4).tolist()
    ([0.375], [[[-0.625, 0.125], [0.25, 0.25]]])
    """

    name: ClassVar[str] = "piecewise"
    facts: ClassVar[LossFacts] = LossFacts(
        "sum_a (log sum exp phi_a - phi_a(y_a))",
        convex=True,
        uses="potentials",
        note="needs no inference; over factors whose variables are all observed; counts what factors share twice",
    )

    def evaluate(self, problem: LossProblem, differentiate: Differentiate | None) -> Evaluation:
        """Return the loss; nothing is inferred."""
        potentials = problem.shared(self.name)
        graph, y = potentials.graph, known_states(problem.labels, potentials)
        weights = checked_weights(problem.weights, graph)
        total, slopes = np.zeros(graph.n_components, potentials.dtype), []
        for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
            flat = tables.reshape(len(tables), group.table_size)[ids]
            mean = weights[group.scopes].sum(axis=1) / max(group.arity, 1)  # a constant has weight zero
            weight = np.where((y[group.scopes] >= 0).all(axis=1), mean, 0.0)
            value, bars = _terms(flat, np.where(weight > 0, table_entries(group, y), 0), weight)
            total += sum_at(graph.factor_component[group.factors], value, graph.n_components)
            slopes.append(bars.reshape(len(group), *group.shape))
        return Evaluation(total, sum_tables(potentials, slopes))


def _terms(tables: Array, entries: Array, weight: Array) -> tuple[Array, Array]:
    """Return the terms of factors, by weight, and their derivatives by the tables."""
    rows = np.arange(len(tables))
    if (np.isneginf(tables[rows, entries].real) & (weight > 0)).any():
        raise InputError("labels", "labels that the model allows", "others", "a hard zero (-inf) forbids them")
    top = tables.real.max(axis=1, initial=-np.inf, keepdims=True)
    mass = np.exp(tables - np.where(np.isfinite(top), top, 0.0))
    norm = mass.sum(axis=1, keepdims=True)
    right = np.where(weight > 0, tables[rows, entries], 0.0)
    value = weight * (np.log(np.where(norm.real > 0, norm, 1.0))[:, 0] + np.where(weight > 0, top[:, 0], 0.0) - right)
    bars = mass / np.where(norm.real > 0, norm, 1.0)
    bars[rows, entries] -= 1.0
    return value, weight[:, None] * bars
