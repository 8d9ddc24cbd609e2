"""Derivatives of beliefs along a direction, by one inference on complex potentials.

Where log Z is a smooth function of the log potentials phi and its gradient is the beliefs b, the Jacobian db/dphi is
symmetric. So the derivative of a loss L(b) is the derivative of the beliefs along dL/db:

    dL/dphi  =  d/dh b(phi + h dL/db)  =  Im b(phi + i h dL/db) / h    with h so small that h² vanishes

(Domke 2010; the complex step of Squire and Trapp 1998). A fixed point depends on phi only through the sum of all
tables, so a loss of a variable's belief perturbs the smallest factor that holds the variable.
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

EXPONENT = -66  # of a step as a power of two


def small_step(largest: FloatArray) -> IntArray:
    """Return the exponents of steps so small that their squares vanish."""
    return EXPONENT - np.frexp(largest)[1].astype(np.int64)


def along_beliefs(
    run: Callable[[Potentials], Result],
    potentials: Potentials,
    z_bar: Array,
    variables_bar: Array,
    factors_bar: Array,
    shifts: Callable[[FloatArray], IntArray] = small_step,
) -> Gradients:
    """Carry derivatives by log Z and the (flat) beliefs back to the log tables; `run` infers.

    A step is a power of two, of each component its own: so nobody's gradient depends on the others. `shifts` chooses
    the exponents by the largest derivatives.
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
    """Return gradients of an exact inference, given the derivatives by the table of each factor, group by group."""
    graph, groups = potentials.graph, sum_tables(potentials, slopes)
    of_factors = LogTables(graph, groups, potentials.table_ids)
    return Gradients(groups, of_factors, np.zeros(0), 0.0, lambda: np.zeros(graph.n_factors))


def direction(
    graph: FactorGraph, variables_bar: Array, factors_bar: Array, shift: IntArray | None = None
) -> list[FloatArray]:
    """Add up derivatives by all beliefs, times 2^shift in each component, in one table for each factor."""
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
    """Return the size of the largest derivative in each component."""
    if graph.n_components == 1:
        return np.array([max(np.abs(variables_bar).max(initial=0.0), np.abs(factors_bar).max(initial=0.0))])
    largest = np.zeros(graph.n_components)
    np.maximum.at(largest, np.repeat(graph.variable_component, graph.cards), np.abs(variables_bar))
    for group, part in iter_groups(graph):
        rows = np.abs(factors_bar[part]).reshape(len(group), group.table_size)
        np.maximum.at(largest, graph.factor_component[group.factors], rows.max(axis=1, initial=0.0))
    return largest


def _hosts(graph: FactorGraph) -> Iterator[tuple[int, int, IntArray, IntArray]]:
    """Yield (group, axis, rows, variables) so that each variable with a factor comes once, at one of least arity."""
    missing = np.ones(graph.n_variables, bool)
    for g in np.argsort([group.arity for group in graph.groups], kind="stable").tolist():
        for axis in range(graph.groups[g].arity):
            variables, rows = np.unique(graph.groups[g].scopes[:, axis], return_index=True)
            new = missing[variables]
            missing[variables] = False
            yield g, axis, rows[new], variables[new]
