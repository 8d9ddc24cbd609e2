"""Directional derivatives of beliefs, by one inference with complex potentials.

Where log Z is a smooth function of the log potentials phi and its gradient is the beliefs b, the Jacobian db/dphi is
symmetric. So the gradient of a loss L(b) is the directional derivative of the beliefs along dL/db:

    dL/dphi  =  d/dh b(phi + h dL/db)  =  Im b(phi + i h dL/db) / h    with h so small that h² vanishes

(Domke 2010; the complex step of Squire and Trapp 1998). The beliefs depend on phi only through the sum of all tables.
So the derivative by a variable's belief is added to the table of a smallest factor that contains the variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph, iter_groups
from isinglass.graph.layout import first_states
from isinglass.inference.result import Gradients, Result
from isinglass.potentials import LogTables, Potentials, sum_tables
from isinglass.typing import Array, FloatArray, IntArray

EXPONENT = -66  # a step is 2^-66, relative to the size of the derivatives


def small_step(largest: FloatArray) -> IntArray:
    """Return the exponents of steps whose squares vanish in floating point."""
    return EXPONENT - np.frexp(largest)[1].astype(np.int64)


def along_beliefs(
    run: Callable[[Potentials], Result],
    potentials: Potentials,
    z_bar: Array,
    variables_bar: Array,
    factors_bar: Array,
    shifts: Callable[[FloatArray], IntArray] = small_step,
) -> Gradients:
    """Compute derivatives by the log tables from those by log Z and the (flat) beliefs; `run` is the inference.

    Each component has its own step, a power of two, so that its gradient does not depend on the rest of the batch.
    `shifts` maps the largest derivative of each component to the exponent of its step.
    """
    if potentials.dtype.kind == "c":
        raise InputError("potentials", "real log tables for a gradient by perturbation", "complex ones")
    graph = potentials.graph
    shift = shifts(_largest(graph, variables_bar, factors_bar))
    along = direction(graph, variables_bar, factors_bar, shift)
    tables = [t[ids] + 1j * step for t, ids, step in zip(potentials.groups, potentials.table_ids, along, strict=True)]
    ids = [np.arange(len(t)) for t in tables]
    beliefs = run(Potentials._build(graph, tables, ids, potentials.evidence)).factors.groups
    slopes = []
    for group, belief in zip(graph.groups, beliefs, strict=True):
        component = graph.factor_component[group.factors].reshape((-1,) + (1,) * group.arity)
        slopes.append(np.ldexp(belief.imag, -shift[component]) + z_bar[component] * belief.real)
    return by_tables(potentials, slopes)


def by_tables(potentials: Potentials, slopes: Sequence[Array]) -> Gradients:
    """Return the gradients of an exact inference, given the derivatives by each factor's table, group by group."""
    graph, groups = potentials.graph, sum_tables(potentials, slopes)
    of_factors = LogTables(graph, groups, potentials.table_ids)
    return Gradients(groups, of_factors, np.zeros(0), 0.0, lambda: np.zeros(graph.n_factors))


def direction(
    graph: FactorGraph, variables_bar: Array, factors_bar: Array, shift: IntArray | None = None
) -> list[FloatArray]:
    """Return the derivatives by all beliefs as one table per factor, times 2^shift of the component."""
    moved = np.zeros(graph.n_components, np.int64) if shift is None else shift
    by_state = np.repeat(moved[graph.variable_component], graph.cards) if len(moved) > 1 else moved
    of_variables = np.ldexp(variables_bar, by_state)
    first, steps = first_states(graph), []
    for group, part in iter_groups(graph):
        component = graph.factor_component[group.factors].reshape((-1,) + (1,) * group.arity)
        steps.append(np.ldexp(factors_bar[part].reshape(len(group), *group.shape), moved[component]))
    for g, axis, rows, hosted in _hosts(graph):
        card = graph.groups[g].shape[axis]
        own = of_variables[first[hosted][:, None] + np.arange(card)]
        shape = [len(rows)] + [card if k == axis else 1 for k in range(graph.groups[g].arity)]
        steps[g][rows] += own.reshape(shape)
    return steps


def _largest(graph: FactorGraph, variables_bar: Array, factors_bar: Array) -> FloatArray:
    """Return the largest absolute derivative in each component."""
    if graph.n_components == 1:
        return np.array([max(np.abs(variables_bar).max(initial=0.0), np.abs(factors_bar).max(initial=0.0))])
    largest = np.zeros(graph.n_components)
    np.maximum.at(largest, np.repeat(graph.variable_component, graph.cards), np.abs(variables_bar))
    for group, part in iter_groups(graph):
        rows = np.abs(factors_bar[part]).reshape(len(group), group.table_size)
        np.maximum.at(largest, graph.factor_component[group.factors], rows.max(axis=1, initial=0.0))
    return largest


def _hosts(graph: FactorGraph) -> Iterator[tuple[int, int, IntArray, IntArray]]:
    """Yield (group, axis, rows, variables): each variable once, with a smallest factor that contains it."""
    missing = np.ones(graph.n_variables, bool)
    for g in np.argsort([group.arity for group in graph.groups], kind="stable").tolist():
        for axis in range(graph.groups[g].arity):
            variables, rows = np.unique(graph.groups[g].scopes[:, axis], return_index=True)
            new = missing[variables]
            missing[variables] = False
            yield g, axis, rows[new], variables[new]
