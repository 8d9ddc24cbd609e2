"""Gradients by perturbation: one more inference, on complex potentials.

Where log Z is a smooth function of the log potentials phi and its gradient is the beliefs b (exact inference, and
converged variational fixed points), the Jacobian db/dphi is symmetric. So the derivative of a loss L(b) is the
derivative of the beliefs along dL/db:

    dL/dphi  =  d/dh b(phi + h dL/db)  =  Im b(phi + i h dL/db) / h    with h so small that h² vanishes

(Domke 2010; the complex step of Squire and Trapp 1998). A loss of a variable's belief perturbs an added unary factor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph, FactorGroup, iter_groups
from isinglass.inference.result import Gradients, Result, first_states
from isinglass.potentials import LogTables, Potentials

STEP = 1e-20


def perturbation(
    run: Callable[[Potentials], Result],
    potentials: Potentials,
    z_bar: NDArray[Any],
    variables_bar: NDArray[Any],
    factors_bar: NDArray[Any],
) -> Gradients:
    """Carry derivatives by log Z and the (flat) beliefs back to the log tables; `run` infers."""
    if potentials.dtype.kind == "c":
        raise InputError("potentials", "real log tables for a gradient by perturbation", "complex ones")
    graph = potentials.graph
    beliefs = run(_perturbed(potentials, variables_bar, factors_bar)).factors.groups
    groups = []
    for group, tables, ids, belief in zip(graph.groups, potentials.groups, potentials.table_ids, beliefs, strict=False):
        weight = z_bar[graph.factor_component[group.factors]].reshape((-1,) + (1,) * group.arity)
        bar = np.zeros(tables.shape)
        np.add.at(bar, ids, belief.imag / STEP + weight * belief.real)
        groups.append(bar)
    of_factors = LogTables(graph, groups, potentials.table_ids)
    return Gradients(tuple(groups), of_factors, np.zeros(0), 0.0, lambda: np.zeros(graph.n_factors))


def _perturbed(potentials: Potentials, variables_bar: NDArray[Any], factors_bar: NDArray[Any]) -> Potentials:
    """Step along the derivatives; every factor gets its own table, and every variable one more unary factor."""
    graph = potentials.graph
    groups, tables = list(graph.groups), []
    for (group, part), shared, ids in zip(iter_groups(graph), potentials.groups, potentials.table_ids, strict=True):
        bar = factors_bar[part].reshape(len(group), *group.shape)
        tables.append(shared[ids] + 1j * STEP * bar)
    first, added = first_states(graph), graph.n_factors
    component = [graph.factor_component]
    for card in np.unique(graph.cards).tolist():
        variables = np.flatnonzero(graph.cards == card)
        groups.append(FactorGroup(variables[:, None], (card,), added + np.arange(len(variables))))
        tables.append(1j * STEP * variables_bar[first[variables][:, None] + np.arange(card)])
        component.append(graph.variable_component[variables])
        added += len(variables)
    larger = FactorGraph._build(
        graph.cards, groups, graph.variable_component, np.concatenate(component), graph.n_components
    )
    return Potentials._build(larger, tables, [np.arange(len(t)) for t in tables], potentials.evidence)
