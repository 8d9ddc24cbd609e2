"""Losses of the changes of one variable at a time, without log Z.

With the local score s_i(x) = sum_{a at i} phi_a(x, y_{a less i}), the ratio of the probabilities of two assignments
that differ in variable i alone is exp(s_i(x) - s_i(y_i)). Summed over the variables, and over the states x != y_i,

    mpf             exp( (s_i(x) - s_i(y_i)) / 2 )            minimum probability flow (Sohl-Dickstein et al. 2011)
    ratio-matching  sigma( s_i(x) - s_i(y_i) )²               (Hyvaerinen 2007, for binary variables)

Both are minimal at the true parameters in the limit of many samples of the model. The first is convex. It is the rate
at which probability leaves the samples, if a Markov chain of single changes starts there that has the model as its
equilibrium; changes that lead to another sample count as well.

The sum is over the variables that are observed and all of whose neighbours are observed, as in the pseudolikelihood.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.graph.layout import state_blocks
from isinglass.losses.loss import Differentiate, Evaluation, Loss, LossFacts, LossProblem, register
from isinglass.losses.observed import checked_weights
from isinglass.losses.pseudo import Pseudolikelihood, carried, local_scores, require_possible
from isinglass.segments import sum_at
from isinglass.typing import Array, IntArray


class LocalLoss(Loss):
    """A sum over variables of a function of their local scores; subclasses supply `terms`."""

    @abstractmethod
    def terms(self, scores: Array, labels: IntArray) -> tuple[Array, Array]:
        """Return the terms of some variables of one number of states, and their derivatives by the scores.

        Parameters
        ----------
        scores : array (n, states)
        labels : int array (n,)

        Returns
        -------
        value : array (n,)
        slopes : array (n, states)
        """

    def evaluate(self, problem: LossProblem, differentiate: Differentiate) -> Evaluation:
        """Return the loss; nothing is inferred."""
        potentials = problem.shared(self.name)
        graph, layout = potentials.graph, Pseudolikelihood().terms(potentials, problem.labels)
        weight = np.where(layout.used, checked_weights(problem.weights, graph), 0.0)
        scores = local_scores(potentials, layout.slots)
        total, bars = np.zeros(graph.n_components, scores.dtype), np.zeros_like(scores)
        for variables, entries in state_blocks(graph):
            rows = weight[variables] > 0
            i, places = variables[rows], entries[rows]
            y = layout.labels[i]
            require_possible(scores[places[np.arange(len(i)), y]], i, layout.labels)
            value, slopes = self.terms(scores[places], y)
            total += sum_at(graph.variable_component[i], weight[i] * value, graph.n_components)
            bars[places] = weight[i, None] * slopes
        pairs = zip(potentials.groups, layout.slots, strict=True)
        return Evaluation(total, tuple(carried(bars, tables, slots) for tables, slots in pairs))


def changes(scores: Array, labels: IntArray) -> Array:
    """Return s(x) - s(y) for all states.

    Examples
    --------
    >>> changes(np.array([[1.0, 3.0]]), np.array([1])).tolist()
    [[-2.0, 0.0]]
    """
    return scores - scores[np.arange(len(labels)), labels][:, None]


def without_label(values: Array, labels: IntArray) -> Array:
    """Return values with zero at the labels."""
    found = values.copy()
    found[np.arange(len(labels)), labels] = 0.0
    return found


def by_changes(slopes: Array, labels: IntArray) -> Array:
    """Turn derivatives by the changes, zero at the labels, into derivatives by the scores."""
    found = slopes.copy()
    found[np.arange(len(labels)), labels] = -slopes.sum(axis=1)
    return found


@register
@dataclass(frozen=True)
class MinimumProbabilityFlow(LocalLoss):
    """The flow of probability out of the samples: ``"mpf"``.

    Examples
    --------
    >>> import isinglass as ig
    >>> MinimumProbabilityFlow().terms(np.log([[1.0, 4.0]]), np.array([0]))[0].tolist()
    [2.0]
    """

    name: ClassVar[str] = "mpf"
    facts: ClassVar[LossFacts] = LossFacts(
        "sum_i sum_{x != y_i} exp((s_i(x) - s_i(y_i)) / 2)",
        convex=True,
        consistent=True,
        uses="potentials",
        note="needs no inference; over observed variables with observed neighbours; grows fast with unlikely labels",
    )

    def terms(self, scores: Array, labels: IntArray) -> tuple[Array, Array]:
        """Return square roots of ratios of probabilities."""
        with np.errstate(over="ignore"):  # an infinite value shortens the step of a line search
            flow = without_label(np.exp(changes(scores, labels) / 2), labels)
        return flow.sum(axis=1), by_changes(flow / 2, labels)


@register
@dataclass(frozen=True)
class RatioMatching(LocalLoss):
    """The squared probability of another state than the label, for each pair of the two: ``"ratio-matching"``.

    Examples
    --------
    >>> RatioMatching().terms(np.log([[1.0, 3.0]]), np.array([0]))[0].tolist()
    [0.5625]
    """

    name: ClassVar[str] = "ratio-matching"
    facts: ClassVar[LossFacts] = LossFacts(
        "sum_i sum_{x != y_i} sigma(s_i(x) - s_i(y_i))^2",
        consistent=True,
        uses="potentials",
        note="needs no inference; over observed variables with observed neighbours; outliers count little",
    )

    def terms(self, scores: Array, labels: IntArray) -> tuple[Array, Array]:
        """Return squared logistic functions of differences."""
        change = changes(scores, labels)
        right = change.real > 0
        small = np.exp(np.where(right, -change, change))
        share = without_label(np.where(right, 1.0, small) / (1.0 + small), labels)
        return (share**2).sum(axis=1), by_changes(2 * share**2 * (1.0 - share), labels)
