"""Potentials with an amount added for each state of each variable: costs of labels, or penalties of states."""

from __future__ import annotations

import numpy as np

from isinglass.graph.factor_graph import FactorGraph, FactorGroup
from isinglass.graph.layout import state_blocks
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray


def with_costs(potentials: Potentials, costs: FloatArray) -> Potentials:
    """Return potentials with an amount added for each state of each variable (flat, like the beliefs of variables).

    The graph gets one more factor of arity one for each variable, and is made once.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.zeros((2, 2))])
    >>> with_costs(p, np.array([0.0, 1.0, 2.0, 0.0])).log_score([1, 0]).item()
    3.0
    """
    graph = potentials.graph
    larger = graph.cached("with costs", lambda: _with_unary(graph))
    extra = [costs[entries] for _, entries in state_blocks(graph)]
    ids = [np.arange(len(variables)) for variables, _ in state_blocks(graph)]
    return Potentials._build(larger, [*potentials.groups, *extra], [*potentials.table_ids, *ids], potentials.evidence)


def _with_unary(graph: FactorGraph) -> FactorGraph:
    groups, start, components = list(graph.groups), graph.n_factors, [graph.factor_component]
    for variables, entries in state_blocks(graph):
        groups.append(FactorGroup(variables[:, None], (entries.shape[1],), start + np.arange(len(variables))))
        components.append(graph.variable_component[variables])
        start += len(variables)
    return FactorGraph._build(
        graph.cards, groups, graph.variable_component, np.concatenate(components), graph.n_components
    )
