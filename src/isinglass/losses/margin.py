"""Structured hinge losses: how far the best wrong labels outscore the right ones (Murphy 2012, section 19.7).

With s(x) = sum_a phi_a(x_a), the cost Delta of wrong labels (`costs`), and y the labels:

    margin       L  =  max_x [Delta(x, y) + s(x)] - s(y)              margin rescaling (eq. 19.92-19.94)
    perceptron   L  =  max_x s(x) - s(y)                              (Collins 2002)

Both are convex in phi; a subgradient is the indicator of the best x less that of y. The margin loss is an upper bound
on the cost of the most probable assignment. If some labels are hidden, s(y) is the maximum over the assignments that
agree with y (Yu and Joachims 2009), and the loss is a difference of convex functions.

With log Z in place of max_x s(x) the perceptron loss would be the likelihood. It is the likelihood with maxima for
sums, "Viterbi" or MAP-based training, and so it has the name "viterbi", too.

The maximum is found by any algorithm or solver that `map_assignment` takes. An inexact one may miss the best x: the
value is then too small (it is *under-generating*), but not below zero, as the right labels are always a candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.graph.factor_graph import FactorGraph, FactorGroup
from isinglass.inference.algorithm import Algorithm
from isinglass.inference.api import map_assignment
from isinglass.inference.assignment import Assignment
from isinglass.inference.map.augmented import with_costs
from isinglass.inference.map.solver import Solver
from isinglass.inference.result import Info
from isinglass.losses.costs import HAMMING, Costs, costs_of
from isinglass.losses.loss import CostTables, Differentiate, Evaluation, Loss, LossFacts, LossProblem, register
from isinglass.losses.observed import checked_labels, known_states, table_entries
from isinglass.potentials import Potentials
from isinglass.segments import sum_at
from isinglass.typing import Array, FloatArray, IntArray


class HingeLoss(Loss):
    """Base class of losses that compare the best assignment with the labels; subclasses are frozen dataclasses.

    Attributes
    ----------
    cost : str, array (states, states) or None
        What wrong labels cost; None: nothing.
    solver : str, Algorithm or Solver
        What maximises.
    """

    cost: str | ArrayLike | None
    solver: str | Algorithm | Solver

    def evaluate(self, problem: LossProblem, differentiate: Differentiate) -> Evaluation:
        """Maximise with the costs, and, if labels are hidden, over what agrees with the labels."""
        potentials = problem.shared(self.name)
        graph, y = potentials.graph, known_states(problem.labels, potentials)
        costs = self._costs(graph, problem)
        real = Potentials._build(
            graph, [tables.real for tables in potentials.groups], potentials.table_ids, potentials.evidence
        )
        right, infos = y, []
        if (y < 0).any():
            best = self._maximise(_clamped(real, y))
            right, infos = best.states, [_info(best, self.solver)]
        worst = self._maximise(real if self.cost is None else with_costs(real, costs.states))
        return _difference(potentials, worst.states, right, costs, (*infos, _info(worst, self.solver)))

    def cost_tables(self, graph: FactorGraph, labels: ArrayLike, weights: ArrayLike | None = None) -> CostTables:
        """Return the cost of each state, given the label of its variable."""
        y = checked_labels(labels, graph)
        if self.cost is None:
            return CostTables(None, None)
        found = costs_of(graph, y, weights, self.cost)
        return CostTables(np.repeat(found.weights[graph.variable_component], graph.cards) * found.states, None)

    def _costs(self, graph: FactorGraph, problem: LossProblem) -> Costs:
        """Return the weights of examples, and what wrong labels cost."""
        y = checked_labels(problem.labels, graph)
        found = costs_of(graph, y, problem.weights, HAMMING if self.cost is None else self.cost)
        return found if self.cost is not None else Costs(found.weights, np.zeros_like(found.states))

    def _maximise(self, potentials: Potentials) -> Assignment:
        return map_assignment(potentials, self.solver)


@register
@dataclass(frozen=True, eq=False)
class Margin(HingeLoss):
    """The structured hinge with margin rescaling: ``"margin"``.

    Parameters
    ----------
    cost : "hamming" or array (states, states)
        What a state costs given the label, (label, state): not negative, and zero for the label itself.
    solver : str, Algorithm or Solver
        What finds the best assignment: "exact", or any that `map_assignment` takes.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[3.0, 0.0], [0.0, 1.5]]])
    >>> Margin().evaluate(ig.losses.LossProblem(p, np.array([0, 0])), None).value.tolist()
    [0.5]
    """

    cost: str | ArrayLike = HAMMING
    solver: str | Algorithm | Solver = "exact"

    name: ClassVar[str] = "margin"
    facts: ClassVar[LossFacts] = LossFacts(
        "max_x [cost(x, y) + s(x)] - s(y)",
        convex=True,
        consistent=False,
        uses="potentials",
        note="has kinks; a bound on the cost of the most probable assignment; not convex where labels are hidden",
    )


@register
@dataclass(frozen=True, eq=False)
class Perceptron(HingeLoss):
    """How far the most probable assignment outscores the labels: ``"perceptron"``.

    Zero parameters minimise it, so it is for the averaged perceptron, or where it only has to be small.

    Parameters
    ----------
    solver : str, Algorithm or Solver
        What finds the best assignment.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[3.0, 0.0], [0.0, 4.5]]])
    >>> Perceptron().evaluate(ig.losses.LossProblem(p, np.array([0, 0])), None).value.tolist()
    [1.5]
    """

    solver: str | Algorithm | Solver = "exact"

    name: ClassVar[str] = "perceptron"
    cost: ClassVar[None] = None  # type: ignore[misc]
    facts: ClassVar[LossFacts] = LossFacts(
        "max_x s(x) - s(y)",
        convex=True,
        consistent=False,
        uses="potentials",
        note="has kinks, and is least at zero parameters; not convex where labels are hidden",
    )


@register
@dataclass(frozen=True, eq=False)
class Viterbi(Perceptron):
    """The likelihood with maxima in place of sums, -log of max-product "probabilities": ``"viterbi"``.

    The same function as the perceptron loss; hidden labels are completed by their best states.

    Parameters
    ----------
    solver : str, Algorithm or Solver
        What finds the best assignment.
    """

    name: ClassVar[str] = "viterbi"


def _clamped(potentials: Potentials, y: IntArray) -> Potentials:
    known = np.flatnonzero(y >= 0)
    evidence = dict(zip(known.tolist(), y[known].tolist(), strict=True))
    return Potentials._build(potentials.graph, potentials.groups, potentials.table_ids, evidence)


def _info(found: Assignment, solver: str | Algorithm | Solver) -> Info:
    """Report a maximisation as an inference: it converged if it proved its maximum."""
    name = solver if isinstance(solver, str) else solver.name
    iterations, seconds = (1, 0.0) if found.info is None else (found.info.iterations, found.info.seconds)
    gap = found.bound - found.score
    return Info(name, found.optimal, iterations, float(gap), "exact" if found.optimal else "lower", seconds)


def _difference(
    potentials: Potentials, worst: IntArray, right: IntArray, costs: Costs, infos: tuple[Info, ...]
) -> Evaluation:
    """Return, for each component, how far `worst` with its cost outscores `right`, or zero, and the derivative."""
    graph = potentials.graph
    first = np.cumsum(graph.cards) - graph.cards
    value = sum_at(graph.variable_component, costs.states[first + worst], graph.n_components).astype(potentials.dtype)
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        flat, component = tables.reshape(-1), graph.factor_component[group.factors]
        scores = [flat[ids * group.table_size + table_entries(group, states)] for states in (worst, right)]
        value += sum_at(component, scores[0] - scores[1], graph.n_components)
    active = value.real > 0
    weights = np.where(active, costs.weights, 0.0)
    slopes = tuple(
        _slope(group, tables, ids, weights[graph.factor_component[group.factors]], worst, right)
        for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True)
    )
    return Evaluation(weights * np.where(active, value, 0.0), slopes, infos)


def _slope(
    group: FactorGroup, tables: Array, ids: IntArray, weights: FloatArray, worst: IntArray, right: IntArray
) -> Array:
    found = np.zeros(tables.size)
    for sign, states in ((1.0, worst), (-1.0, right)):
        found += sum_at(ids * group.table_size + table_entries(group, states), sign * weights, tables.size)
    return found.reshape(tables.shape)
