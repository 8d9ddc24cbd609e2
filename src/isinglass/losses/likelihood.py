"""Conditional likelihood under the inference that is run (Domke 2009, sections 3.2 and 3.3, eq. 3.18).

    L  =  - log p(y)  =  log Z - log Z(y),        dL / dphi_a  =  b_a - b_a(. given y)

where Z(y) sums over the assignments that agree with the observed labels y, and b_a are the beliefs of the free and
the clamped model (at the fixed point of a variational inference; of exact inference always). With every variable
observed nothing is left to sum:

    log Z(y)  =  sum_a phi_a(y_a),                b_a(x_a given y)  =  [x_a = y_a]

With an approximate log Z this is the "approximate likelihood" of section 3.3, whose minimum matches approximate
moments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGroup
from isinglass.losses.loss import (
    Differentiate,
    Evaluation,
    Loss,
    LossFacts,
    LossProblem,
    LossValue,
    ResultLoss,
    register,
)
from isinglass.losses.observed import component_weights, known_states, table_entries
from isinglass.potentials import Potentials
from isinglass.segments import sum_at
from isinglass.typing import Array, IntArray


@register
@dataclass(frozen=True)
class Likelihood(Loss):
    """Minus the log-probability of all labels, by log Z of the chosen inference: ``"cl"``.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[3.0, 1.0], [2.0, 2.0]])])
    >>> loss = ig.losses.Likelihood()
    >>> kept, _ = loss.score(p, [0, 0])
    >>> np.exp(kept - ig.infer(p).component_log_z).round(4).tolist()
    [0.375]
    >>> clamped = loss.clamp(p, [0, -1])  # the second variable was not observed
    >>> round(float(np.exp(ig.infer(clamped).log_z - ig.infer(p).log_z)), 4)
    0.5
    """

    name: ClassVar[str] = "cl"
    facts: ClassVar[LossFacts] = LossFacts(
        "log Z - log Z(y)",
        convex=True,
        consistent=True,
        uses="log_z",
        note="not convex where variables are not observed; log Z(y) is then that of a second, clamped inference",
    )

    def evaluate(self, problem: LossProblem, differentiate: Differentiate) -> Evaluation:
        """Return log Z - log Z(y), the latter a score where everything is observed."""
        potentials, labels, weights = problem.shared(self.name), problem.labels, problem.weights
        log_z = log_z_loss(component_weights(weights, potentials.graph))
        free = differentiate(potentials, log_z)
        if self.fully_observed(potentials, labels):
            return free - Evaluation(*self.score(potentials, labels, weights))
        return free - differentiate(self.clamp(potentials, labels), log_z)

    def fully_observed(self, potentials: Potentials, labels: ArrayLike) -> bool:
        """Tell whether labels and evidence leave no variable unknown, so that `score` serves for log Z(y)."""
        return bool((known_states(labels, potentials) >= 0).all())

    def clamp(self, potentials: Potentials, labels: ArrayLike) -> Potentials:
        """Return the potentials with all observed labels as evidence; their log Z is log Z(y)."""
        y = known_states(labels, potentials)
        where = np.flatnonzero(y >= 0)
        evidence = dict(zip(where.tolist(), y[where].tolist(), strict=True))
        return Potentials._build(potentials.graph, potentials.groups, potentials.table_ids, evidence)

    def score(
        self, potentials: Potentials, labels: ArrayLike, weights: ArrayLike | None = None
    ) -> tuple[Array, tuple[Array, ...]]:
        """Return sum_a phi_a(y_a) of each component, and the derivative of their sum by the log tables.

        Parameters
        ----------
        potentials : Potentials
        labels : int array (variables,)
            Only variables with evidence may be -1.
        weights : array (variables,), optional
            Not negative, and the same for all variables of a component, which they multiply: a likelihood is no sum
            over variables.

        Returns
        -------
        value : array (components,)
        slopes : tuple of arrays (tables, k_1, ..., k_r)
            How many factors with each table have each entry as their label, by weight.
        """
        graph, y = potentials.graph, _complete(known_states(labels, potentials))
        weight = component_weights(weights, graph)
        total, slopes = np.zeros(graph.n_components, potentials.dtype), []
        for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
            entries = ids * group.table_size + table_entries(group, y)
            values, component = tables.reshape(-1)[entries], graph.factor_component[group.factors]
            _require_possible(values, group, y)
            total += sum_at(component, weight[component] * values, graph.n_components)
            slopes.append(sum_at(entries, weight[component], tables.size).reshape(tables.shape))
        return total, tuple(slopes)


def log_z_loss(weights: Array) -> ResultLoss:
    """Return log Z of each component, times its weight, as a loss."""
    return lambda result: LossValue(weights * result.component_log_z, weights.copy(), None, None)


def _complete(y: IntArray) -> IntArray:
    """Refuse unknown variables."""
    if (y < 0).any():
        got = f"-1 for variable {int(np.argmax(y < 0))}"
        raise InputError("labels", "a label for each variable", got, "take log Z of Likelihood.clamp instead")
    return y


def _require_possible(values: Array, group: FactorGroup, y: IntArray) -> None:
    """Refuse labels that a hard zero forbids."""
    bad = values.real == -np.inf
    if bad.any():
        row = int(np.argmax(bad))
        scope = group.scopes[row]
        got = f"labels {tuple(y[scope].tolist())} for factor {group.factors[row]} on variables {tuple(scope.tolist())}"
        raise InputError("labels", "labels that the model allows", got, "a hard zero (-inf) forbids them")
