"""Over-generating separation: the margin over the local polytope instead of assignments (Finley and Joachims 2008).

    L  =  max_{mu in the local polytope} [<phi, mu> + sum_i <cost_i, mu_i>]  -  s(y)

The polytope contains all assignments, so L is at least the loss over assignments. It is convex in phi; a subgradient is
mu less the indicator of y. Linear programming (`map.relaxations.program`) finds a maximum on any graph; where it is
integral, the loss is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from isinglass.errors import ImpossibleEvidenceError
from isinglass.graph.factor_graph import FactorGraph, FactorGroup
from isinglass.graph.layout import first_states
from isinglass.inference.evidence import impossible
from isinglass.inference.map.relaxations.program import program_of
from isinglass.inference.result import Info
from isinglass.losses.hinge.violations import OVER, Assigned, Violation, added, component_costs, right_scores
from isinglass.losses.loss import Evaluation
from isinglass.potentials import Potentials
from isinglass.segments import sum_at
from isinglass.typing import Array, FloatArray, IntArray

INTEGRAL = 1e-6  # how far from 0 and 1 a belief may be and count as one of them


@dataclass(frozen=True, eq=False)
class Relaxed(Violation):
    """Pseudo-marginals that violate the margin.

    Attributes
    ----------
    costs : array (components,)
        The expected cost.
    beliefs : tuple of arrays (factors, table size)
        Of the factors, group after group.
    infos : tuple of Info
    """

    costs: FloatArray
    beliefs: tuple[FloatArray, ...]
    infos: tuple[Info, ...]

    def compared(self, potentials: Potentials, right: IntArray, weights: FloatArray) -> Evaluation:
        """Return the loss of each component."""
        graph = potentials.graph
        value = self.costs - right_scores(potentials, right)
        for group, mu, tables, ids in self._groups(potentials):
            flat = tables.reshape(len(tables), -1)[ids]
            scores = np.where(mu > 0, mu * np.where(mu > 0, flat, 0.0), 0.0).sum(axis=1)
            value = value + sum_at(graph.factor_component[group.factors], scores, graph.n_components)
        active = value.real > 0
        scaled = np.where(active, weights, 0.0)
        slopes = []
        for group, mu, tables, ids in self._groups(potentials):
            amounts = scaled[graph.factor_component[group.factors]]
            total = np.zeros((len(tables), group.table_size))
            np.add.at(total, ids, amounts[:, None] * mu)
            slopes.append(total.reshape(tables.shape) - added(group, tables, ids, right, amounts))
        return Evaluation(weights * np.where(active, value, 0.0), tuple(slopes), self.infos)

    def _groups(self, potentials: Potentials) -> Iterator[tuple[FactorGroup, FloatArray, Array, IntArray]]:
        """Return each group with its beliefs, its tables, and which of these its factors use."""
        yield from zip(potentials.graph.groups, self.beliefs, potentials.groups, potentials.table_ids, strict=True)


def relaxed_violation(potentials: Potentials, costs: FloatArray) -> Violation:
    """Maximise the score with the costs of states (flat) over the local polytope."""
    from scipy.optimize import linprog

    graph = potentials.graph
    soft, allowed = _without_zeros(potentials)
    program = program_of(soft)
    scores = program.scores.copy()
    scores[: len(costs)] += costs
    upper = np.ones(len(scores))
    upper[: len(allowed)] = allowed
    bounds = np.column_stack([np.zeros(len(upper)), upper])
    found = linprog(-scores, A_eq=program.matrix, b_eq=program.right, bounds=bounds, method="highs")
    if found.x is None:
        raise ImpossibleEvidenceError(impossible(potentials))
    mu = np.clip(found.x, 0.0, 1.0)
    states = mu[: len(costs)]
    if (np.minimum(states, 1 - states) <= INTEGRAL).all():  # an assignment: its score is exact
        chosen = program.states(graph, mu)
        info = Info("lp", True, int(found.nit), 0.0, "exact", 0.0)
        return Assigned(chosen, component_costs(graph, costs, chosen), np.ones(graph.n_components), (info,))
    info = Info("lp", True, int(found.nit), 0.0, "upper", 0.0, note=OVER)
    paid = sum_at(np.repeat(graph.variable_component, graph.cards), costs * states, graph.n_components).real
    return Relaxed(paid, _by_group(potentials, mu), (info,))


def _without_zeros(potentials: Potentials) -> tuple[Potentials, FloatArray]:
    """Return potentials whose tables of single variables are finite, and which states are allowed (flat, 0 or 1)."""
    graph, groups = potentials.graph, []
    first = first_states(graph)
    allowed = np.ones(int(first[-1]))
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        if group.arity == 1:
            at = first[group.scopes[:, 0]][:, None] + np.arange(group.shape[0])
            np.minimum.at(allowed, at, (tables[ids] > -np.inf).astype(np.float64))
        groups.append(np.where(tables > -np.inf, tables, 0.0) if group.arity < 2 else tables)
    for i, state in potentials.evidence.items():
        others = np.arange(int(graph.cards[i])) != state
        allowed[first[i] + np.flatnonzero(others)] = 0.0
    return Potentials._build(graph, groups, potentials.table_ids, {}), allowed


def _by_group(potentials: Potentials, mu: FloatArray) -> tuple[FloatArray, ...]:
    """Return the beliefs of each group's factors; entries that a hard zero forbids have none."""
    graph: FactorGraph = potentials.graph
    first, found = first_states(graph), []
    at = int(first[-1])
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        beliefs: Array = np.ones((len(group), group.table_size))
        if group.arity == 1:
            beliefs = mu[first[group.scopes[:, 0]][:, None] + np.arange(group.shape[0])]
        elif group.arity > 1:
            possible = tables[ids].reshape(len(group), -1) > -np.inf
            beliefs = np.zeros(possible.shape)
            beliefs[possible] = mu[at : at + int(possible.sum())]
            at += int(possible.sum())
        found.append(beliefs)
    return tuple(found)
