"""The labels that violate their margin most, compared with the right ones.

For each component c, with y the right labels, x the labels that were found and s(x) = sum_a phi_a(x_a):

    L_c  =  w_c (Delta_c + f_c (s(x) - s(y))),         or 0 where that is negative: x = y is always a candidate

f_c is 1 for margin rescaling and Delta_c for slack rescaling. A subgradient is w_c f_c (indicator of x - that of y).
Where L_c is zero there are several; without costs it is this one, or the perceptron would never leave zero parameters.

A search for x is *under-generating* where it may have missed the best x, so that L is too small, and *over-generating*
where it maximised over more than assignments, so that L is too large (Finley and Joachims 2008). The `Info` of a
search tells which: its `bound` is "exact", "lower" or "upper", and `note` says it in words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from isinglass.errors import ImpossibleLabelError, InputError
from isinglass.graph.factor_graph import FactorGraph, FactorGroup
from isinglass.inference.algorithm import Algorithm
from isinglass.inference.api import map_assignment
from isinglass.inference.assignment import Assignment, require_decided
from isinglass.inference.map.solver import Solver
from isinglass.inference.result import Info
from isinglass.losses.loss import Evaluation
from isinglass.losses.observed import table_entries
from isinglass.potentials import Potentials
from isinglass.segments import sum_at
from isinglass.typing import Array, FloatArray, IntArray

UNDER = "under-generating: better labels may have been missed, and the loss may be too small"
OVER = "over-generating: a relaxation was maximised, and the loss may be too large"


class Violation(ABC):
    """What a search for the most violated margin found."""

    @abstractmethod
    def compared(self, potentials: Potentials, right: IntArray, weights: FloatArray) -> Evaluation:
        """Return the loss of each component, given the right labels and the weights of the components."""


@dataclass(frozen=True, eq=False)
class Assigned(Violation):
    """Labels that violate their margin.

    Attributes
    ----------
    states : int array (variables,)
    costs, factors : arrays (components,)
        Delta_c and f_c.
    infos : tuple of Info
    """

    states: IntArray
    costs: FloatArray
    factors: FloatArray
    infos: tuple[Info, ...]

    def compared(self, potentials: Potentials, right: IntArray, weights: FloatArray) -> Evaluation:
        """Return the loss of each component."""
        graph = potentials.graph
        difference = component_scores(potentials, self.states) - right_scores(potentials, right)
        value = self.costs.astype(potentials.dtype) + self.factors * difference
        active = (value.real > 0) | ((value.real == 0) & (self.costs == 0))  # a tie without costs has this subgradient
        scaled = np.where(active, weights * self.factors, 0.0)
        slopes = []
        for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
            amounts = scaled[graph.factor_component[group.factors]]
            slope = added(group, tables, ids, self.states, amounts) - added(group, tables, ids, right, amounts)
            slopes.append(slope)
        return Evaluation(weights * np.where(active, value, 0.0), tuple(slopes), self.infos)


def component_scores(potentials: Potentials, states: IntArray) -> Array:
    """Return the score of an assignment in each component.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0,), (1,)]), [[1.0, 2.0], [0.5, 0.0]])
    >>> component_scores(p.repeat(2), np.array([0, 0, 1, 1])).tolist()
    [1.5, 2.0]
    """
    graph = potentials.graph
    total = np.zeros(graph.n_components, potentials.dtype)
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        chosen = tables.reshape(-1)[ids * group.table_size + table_entries(group, states)]
        total += sum_at(graph.factor_component[group.factors], chosen, graph.n_components)
    return total


def right_scores(potentials: Potentials, right: IntArray) -> Array:
    """Return the score of the right labels in each component; refuse labels that the model forbids."""
    scores = component_scores(potentials, right)
    if not np.isfinite(scores).all():
        bad = int(np.argmin(np.isfinite(scores)))
        got = f"labels of example {bad} that a hard zero (-inf) forbids"
        raise ImpossibleLabelError("labels", "labels that the model allows", got, "use -1 there")
    return scores


def added(group: FactorGroup, tables: Array, ids: IntArray, states: IntArray, amounts: FloatArray) -> FloatArray:
    """Return an amount for each factor, at the entry of its table that an assignment chooses; shared tables add up."""
    places = ids * group.table_size + table_entries(group, states)
    return np.asarray(sum_at(places, amounts, tables.size).reshape(tables.shape))


def component_costs(graph: FactorGraph, costs: FloatArray, states: IntArray) -> FloatArray:
    """Return the cost of an assignment in each component, from that of each state (flat)."""
    first = np.cumsum(graph.cards) - graph.cards
    return sum_at(graph.variable_component, costs[first + states], graph.n_components).real


def best_assignment(potentials: Potentials, solver: str | Algorithm | Solver) -> Assignment:
    """Find a most probable assignment; errors name the argument of the loss, `solver`."""
    try:
        return map_assignment(potentials, solver)
    except InputError as error:
        if error.argument != "algorithm":
            raise
        raise type(error)("solver", error.expected, error.got, error.remedy) from None


def info_of(found: Assignment, solver: str | Algorithm | Solver) -> Info:
    """Report a maximisation over assignments as an inference: it converged if it proved its maximum."""
    require_decided(found)
    name = solver if isinstance(solver, str) else solver.name
    iterations, seconds = (1, 0.0) if found.info is None else (found.info.iterations, found.info.seconds)
    gap, proved = float(found.bound - found.score), bool(found.optimal)
    return Info(
        name, proved, iterations, gap, "exact" if proved else "lower", seconds, note="" if proved else UNDER
    )  # fmt: skip
