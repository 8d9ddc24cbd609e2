"""What all hinge losses share: right labels, completed where they are hidden, and a search for those that violate most.

If some labels are hidden, s(y) is the maximum over the assignments that agree with y (Yu and Joachims 2009):

    L(phi)  =  max_x [...]  -  max_{h} s(y, h)

a difference of convex functions. Given a *completion* h of the hidden labels, s(y, h) takes the place of that maximum.
The loss is then convex, at least L, and equal to L where h is the best completion (Murphy 2012, eq. 19.118-19.120).
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from isinglass.decoding.map import MAP
from isinglass.errors import MemoryLimitError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.algorithm import Algorithm
from isinglass.inference.map.solver import Solver
from isinglass.inference.result import Info
from isinglass.losses.costs import F1, HAMMING, Costs, additive, costs_of
from isinglass.losses.hinge.violations import Assigned, Violation, best_assignment, component_costs, info_of
from isinglass.losses.loss import CostTables, Differentiate, Evaluation, Loss, LossProblem
from isinglass.losses.observed import checked_labels, component_weights, known_states
from isinglass.potentials import Potentials
from isinglass.typing import IntArray

FEW = 16  # labellings of an example that are looked at one by one


class HingeLoss(Loss):
    """Base class of losses that compare the best assignment with the labels; subclasses are frozen dataclasses.

    Attributes
    ----------
    cost : str, array or None
        What wrong labels cost; None: nothing.
    solver : str, Algorithm or Solver
        What maximises.
    """

    cost: str | ArrayLike | None
    solver: str | Algorithm | Solver

    @property
    def by_slack(self) -> bool:
        """Whether the difference of scores is multiplied by the cost (slack rescaling)."""
        return False

    @property
    def by_counts(self) -> bool:
        """Whether the cost is a function of counts, and no sum over variables."""
        return isinstance(self.cost, str) and self.cost == F1

    @property
    def decides_by(self) -> MAP:
        """The most probable labelling, by what maximised in training."""
        return MAP("lp" if getattr(self, "relaxed", False) else self.solver)

    @abstractmethod
    def violation(self, potentials: Potentials, labels: IntArray, right: IntArray, costs: Costs) -> Violation:
        """Find, for real potentials, the labels that violate their margin most."""

    def evaluate(self, problem: LossProblem, differentiate: Differentiate) -> Evaluation:
        """Complete hidden labels, unless that was done, and compare with the labels that violate most."""
        potentials = problem.shared(self.name)
        costs = self.costs(potentials.graph, problem)
        real = _real(potentials)
        infos: tuple[Info, ...] = ()
        try:
            if problem.completion is None:
                right, infos = self.completed(real, problem.labels)
            else:
                right = problem.completion
            found = self.violation(real, checked_labels(problem.labels, potentials.graph), right, costs)
        except MemoryLimitError as error:
            remedy = f'in training: loss=ig.losses.{type(self).__name__}(solver="trws")'
            raise MemoryLimitError(f"{error}; {remedy}") from None
        value = found.compared(potentials, right, costs.weights)
        return Evaluation(value.value, value.groups, infos + value.infos)

    def of_each_labelling(self, problem: LossProblem) -> list[Evaluation] | None:
        """Return the loss if each labelling in turn were the best, for one example with few of them; else None.

        The tables are zero, so that each is a plane, and the loss of other tables is the largest of all planes.
        """
        potentials = problem.shared(self.name)
        graph, right = potentials.graph, np.asarray(problem.labels)
        exact = self.solver == "exact" and not (self.by_slack or self.by_counts or getattr(self, "relaxed", False))
        known = bool((right >= 0).all()) and not any(tables.any() for tables in potentials.groups)
        if not (exact and known and graph.n_components == 1 and math.prod(graph.cards.tolist()) <= FEW):
            return None
        costs = self.costs(graph, problem)
        found = []
        for labelling in np.ndindex(*graph.cards.tolist()):
            states = np.array(labelling)
            paid = component_costs(graph, costs.states, states)
            found.append(Assigned(states, paid, np.ones(1), ()).compared(potentials, right, costs.weights))
        return found

    def completed(self, potentials: Potentials, labels: ArrayLike) -> tuple[IntArray, tuple[Info, ...]]:
        """Return the labels, with the best states where they are hidden, and how these were found."""
        y = known_states(labels, potentials)
        if (y >= 0).all():
            return y, ()
        known = np.flatnonzero(y >= 0)
        evidence = dict(zip(known.tolist(), y[known].tolist(), strict=True))
        best = best_assignment(_real(potentials, evidence), self.solver)
        return best.states, (info_of(best, self.solver),)

    def cost_tables(self, graph: FactorGraph, labels: ArrayLike, weights: ArrayLike | None = None) -> CostTables:
        """Return the cost of each state, given the label of its variable."""
        y = checked_labels(labels, graph)
        if self.cost is None:
            return CostTables(None, None)
        found = costs_of(graph, y, weights, additive(self.cost))
        return CostTables(np.repeat(found.weights[graph.variable_component], graph.cards) * found.states, None)

    def costs(self, graph: FactorGraph, problem: LossProblem) -> Costs:
        """Return the weights of examples, and what wrong labels cost; zeros where the cost is no sum."""
        y = checked_labels(problem.labels, graph)
        if self.by_counts:
            component_weights(problem.weights, graph)  # refuses weights of single labels
        plain = self.cost is None or self.by_counts
        found = costs_of(graph, y, problem.weights, HAMMING if plain else self.cost)  # type: ignore[arg-type]
        return Costs(found.weights, np.zeros_like(found.states)) if plain else found


def _real(potentials: Potentials, evidence: dict[int, int] | None = None) -> Potentials:
    """Return the potentials without imaginary parts, with other evidence if there is some."""
    given = potentials.evidence if evidence is None else evidence
    groups = [tables.real for tables in potentials.groups]
    return Potentials._build(potentials.graph, groups, potentials.table_ids, given)
