"""Minimum probability flow (Sohl-Dickstein, Battaglino and DeWeese 2011): changes of one variable, without log Z.

With the local score s_i(x) = sum_{a at i} phi_a(x, y_{a less i}), the ratio of the probabilities of two assignments
that differ in variable i alone is exp(s_i(x) - s_i(y_i)). The loss is

    sum_i sum_{x != y_i}  exp( (s_i(x) - s_i(y_i)) / 2 )

It is convex, and minimal at the true parameters in the limit of many samples of the model. It is the rate at which
probability leaves the samples, if a Markov chain of single changes starts there that has the model as its equilibrium;
changes that lead to another sample count as well.

The sum is over the variables that are observed and all of whose neighbours are observed, as in the pseudolikelihood.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.graph.layout import state_blocks
from isinglass.losses.loss import Differentiate, Evaluation, Loss, LossFacts, LossProblem, register
from isinglass.losses.observed import checked_weights
from isinglass.losses.pseudo import Pseudolikelihood, carried, local_scores, require_possible
from isinglass.segments import sum_at
from isinglass.typing import Array, IntArray


@register
@dataclass(frozen=True)
class MinimumProbabilityFlow(Loss):
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
        rows = np.arange(len(labels))
        with np.errstate(over="ignore"):  # an infinite value shortens the step of a line search
            flow = np.exp((scores - scores[rows, labels][:, None]) / 2)
        flow[rows, labels] = 0.0
        value, slopes = flow.sum(axis=1), flow / 2
        slopes[rows, labels] = -slopes.sum(axis=1)
        return value, slopes
