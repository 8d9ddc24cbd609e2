"""Pseudolikelihood: each variable given its neighbours, without inference (Besag 1975; Domke 2009, section 3.4).

    L  =  - sum_i log p(y_i | y_rest)  =  sum_i ( log sum_x exp s_i(x) - s_i(y_i) ),

    s_i(x)  =  sum_{a at i} phi_a(x, y_{a less i}),        dL / ds_i(x)  =  p(x | y_rest) - [x = y_i]

Only the neighbours of i, the variables that share a factor with it, matter to its term. The sum is over the variables
that are observed and all of whose neighbours are observed; any other is left out. The evidence of the potentials counts
as observed: it stands among the neighbours, and a variable with evidence has no term of its own, as its conditional is
certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph, FactorGroup
from isinglass.graph.layout import first_states, state_blocks
from isinglass.losses.loss import Differentiate, Evaluation, Loss, LossFacts, LossProblem, register
from isinglass.losses.observed import checked_weights, known_states, table_entries, table_strides
from isinglass.potentials import Potentials
from isinglass.removed import RemovedOptions
from isinglass.segments import sum_at
from isinglass.typing import Array, FloatArray, IntArray, Mask
from isinglass.validation import instance


@register
@dataclass(frozen=True)
class Pseudolikelihood(RemovedOptions, Loss):
    """Minus the log-probability of each label given those of all other variables: ``"pseudo"``.

    Labels with a neighbour that was not observed are left out.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[3.0, 1.0], [2.0, 2.0]])])
    >>> value, (slope,) = ig.losses.Pseudolikelihood().value_and_grad(p, [0, 0])
    >>> np.exp(-value).round(4).tolist()  # 3/5 times 3/4
    [0.45]
    >>> slope.round(4).tolist()
    [[[-0.65, 0.25], [0.4, 0.0]]]
    """

    name: ClassVar[str] = "pseudo"
    facts: ClassVar[LossFacts] = LossFacts(
        "- sum_i log p(y_i | y_rest)",
        convex=True,
        consistent=True,
        uses="potentials",
        note="needs no inference; over observed variables with observed neighbours; poor where the model is wrong",
        given="neighbours",
    )

    def used(self, labels: IntArray, scopes: Sequence[IntArray]) -> Mask:
        """Leave out labels with a neighbour that was not observed."""
        found = labels >= 0
        for scope in scopes:
            found[scope[(labels[scope] < 0).any(axis=1)]] = False
        return found

    def evaluate(self, problem: LossProblem, differentiate: Differentiate) -> Evaluation:
        """Return the loss; nothing is inferred."""
        return Evaluation(*self.value_and_grad(problem.shared(self.name), problem.labels, problem.weights))

    def terms(self, potentials: Potentials, labels: ArrayLike) -> PseudoTerms:
        """Tell which observed variables have a term, and lay out what does not change with the log tables.

        Parameters
        ----------
        potentials : Potentials
            Their tables are not looked at.
        labels : int array (variables,)
            -1 where a variable was not observed.
        """
        instance(potentials, Potentials, "potentials")
        graph, y = potentials.graph, known_states(labels, potentials)
        slots = [_slots(graph, g, ids, y) for g, ids in zip(graph.groups, potentials.table_ids, strict=True)]
        observed = y >= 0
        observed[list(potentials.evidence)] = False
        used = observed.copy()
        for group in graph.groups:
            used[group.scopes[(y[group.scopes] < 0).any(axis=1)]] = False
        return PseudoTerms(y, slots, used, observed)

    def value_and_grad(
        self, potentials: Potentials, labels: ArrayLike, weights: ArrayLike | None = None
    ) -> tuple[Array, tuple[Array, ...]]:
        """Return the loss of each component, and the derivative of their sum by the log tables.

        Parameters
        ----------
        potentials : Potentials
            Complex ones give complex values and derivatives.
        labels : int array (variables,)
            -1 where a variable was not observed.
        weights : array (variables,), optional
            Not negative; each multiplies the term of its variable.

        Returns
        -------
        value : array (components,)
        slopes : tuple of arrays (tables, k_1, ..., k_r)
            Like ``potentials.groups``.
        """
        terms = self.terms(potentials, labels)
        return terms.value_and_grad(potentials, checked_weights(weights, potentials.graph))


class PseudoTerms(NamedTuple):
    """The terms of a pseudolikelihood, for any log tables on one graph.

    Attributes
    ----------
    labels : int array (variables,)
        With the evidence; -1 is hidden.
    slots : list, for each group, of lists of `_Slot`
    used : bool array (variables,)
        Which variables have a term.
    observed : bool array (variables,)
        Which were observed, and not by evidence: those that should have one.
    """

    labels: IntArray
    slots: list[list[_Slot]]
    used: Mask
    observed: Mask

    def value_and_grad(self, potentials: Potentials, weights: FloatArray) -> tuple[Array, tuple[Array, ...]]:
        """Return the loss of each component, and the derivative of their sum by the log tables."""
        graph, groups = potentials.graph, potentials.groups
        weight = np.where(self.used, weights, 0.0)
        value, bars = _terms(graph, local_scores(potentials, self.slots), self.labels, weight)
        return value, tuple(carried(bars, tables, slots) for tables, slots in zip(groups, self.slots, strict=True))


class _Slot(NamedTuple):
    """One slot of a group's known factors: its variable runs through its states, the others keep theirs.

    Attributes
    ----------
    entries, states : int arrays (factors, k)
        Where these lie in the group's flat tables, and in the flat states of all variables.
    """

    entries: IntArray
    states: IntArray


def _slots(graph: FactorGraph, group: FactorGroup, table_ids: IntArray, y: IntArray) -> list[_Slot]:
    """Lay out the slots of all factors of a group whose variables are known."""
    first = first_states(graph)
    rows = np.flatnonzero((y[group.scopes] >= 0).all(axis=1))
    scopes, strides = group.scopes[rows], table_strides(group)
    base = table_ids[rows] * group.table_size + table_entries(group, y)[rows]
    found = []
    for s, (k, stride) in enumerate(zip(group.shape, strides.tolist(), strict=True)):
        states = np.arange(k)
        entries = (base - y[scopes[:, s]] * stride)[:, None] + states * stride
        found.append(_Slot(entries, first[scopes[:, s], None] + states))
    return found


def local_scores(potentials: Potentials, slots: list[list[_Slot]]) -> Array:
    """Return s_i(x) for all variables, flat."""
    n_states = int(first_states(potentials.graph)[-1])
    scores = np.zeros(n_states, potentials.dtype)
    for tables, of_group in zip(potentials.groups, slots, strict=True):
        for slot in of_group:
            scores += sum_at(slot.states, tables.reshape(-1)[slot.entries], n_states)
    return scores


def _terms(graph: FactorGraph, scores: Array, y: IntArray, weight: FloatArray) -> tuple[Array, Array]:
    """Return the loss of each component, and its derivative by the flat scores."""
    total, bars = np.zeros(graph.n_components, scores.dtype), np.zeros_like(scores)
    for variables, entries in state_blocks(graph):
        rows = weight[variables] > 0
        i, places = variables[rows], entries[rows]
        right = scores[places[np.arange(len(i)), y[i]]]
        require_possible(right, i, y)
        top = scores[places].real.max(axis=1, initial=-np.inf, keepdims=True)
        mass = np.exp(scores[places] - top)
        norm = mass.sum(axis=1, keepdims=True)
        values = np.log(norm[:, 0]) + top[:, 0] - right
        total += sum_at(graph.variable_component[i], weight[i] * values, graph.n_components)
        slopes = mass / norm
        slopes[np.arange(len(i)), y[i]] -= 1.0
        bars[places] = weight[i, None] * slopes
    return total, bars


def carried(bars: Array, tables: Array, slots: list[_Slot]) -> Array:
    """Carry derivatives by the scores back to the tables of a group."""
    total = np.zeros(tables.size, bars.dtype)
    for slot in slots:
        total += sum_at(slot.entries, bars[slot.states], tables.size)
    return total.reshape(tables.shape)


def require_possible(right: Array, variables: IntArray, y: IntArray) -> None:
    """Refuse a label that a hard zero forbids."""
    bad = right.real == -np.inf
    if bad.any():
        i = int(variables[np.argmax(bad)])
        got = f"label {y[i]} for variable {i}, which has probability zero given its neighbours' labels"
        raise InputError("labels", "labels that the model allows", got, "a hard zero (-inf) forbids it; use -1 for it")
