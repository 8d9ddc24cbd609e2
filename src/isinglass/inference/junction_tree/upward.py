"""The upward pass of exact inference: the part that sums, maxima, samples and n-best lists share.

It scales the tables (largest entry one), allocates the messages, and passes them (`passes`). If marginals are needed,
the same call also does the downward pass. Components with products that could underflow are computed with logarithms.

The imaginary parts of complex potentials are derivatives (`kernels.numba.arithmetic.dual_numbers`) of any size.
Components with large derivatives are also computed with logarithms: in sums of linear values, small derivatives would
be lost beside large ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isinglass.errors import ImpossibleEvidenceError
from isinglass.graph.elimination.bucket_tree import BucketTree
from isinglass.graph.factor_graph import FactorGraph, iter_groups
from isinglass.graph.layout import belief_entries, first_beliefs, first_states, state_blocks
from isinglass.inference.algorithm import Progress
from isinglass.inference.evidence import base_states, impossible
from isinglass.inference.junction_tree.orders import Wishes, affordable, pool_of
from isinglass.inference.junction_tree.passes import Into, Passes
from isinglass.potentials import Potentials
from isinglass.runtime.threads import team
from isinglass.segments import component_sums
from isinglass.typing import Array, FloatArray, IntArray, Mask

if TYPE_CHECKING:
    from isinglass.kernels.numba.junction_tree.program import Program

MISSED = 1e-12  # by which sums of beliefs may miss one
STEEP = 2.0**100  # a derivative along which linear values cannot be trusted: it may belong to a tiny belief


@dataclass(frozen=True, eq=False)
class Upward:
    """What the upward pass leaves.

    Attributes
    ----------
    passes : Passes
        The tree, and its values: linear tables, their logarithms and the messages, flat.
    semiring_of : int array (components,)
        The semiring that each component was done in.
    component_log_z : array (components,)
        log Z of each component; in the max semiring, the best score.
    variables, factors : array or None
        The flat beliefs, if they were wanted.
    """

    passes: Passes
    semiring_of: IntArray
    component_log_z: Array
    variables: Array | None
    factors: Array | None


@dataclass(frozen=True, eq=False)
class ScaledTables:
    """All distinct tables, flat, as logarithms with a largest entry of zero.

    `start`, `top` and `low` are, for each factor, where its table starts (moved by the observed states), what
    was subtracted from it, and the exponential of its smallest finite entry.
    """

    log_values: Array
    start: IntArray
    top: FloatArray
    low: FloatArray


def upward(
    potentials: Potentials,
    maximise: bool,
    wishes: Wishes,
    progress: Progress | None = None,
    marginals: bool = False,
) -> Upward:
    """Run the upward pass, and the one down if marginals are wanted.

    Refuse if it does not fit, or if every assignment has probability zero.
    """
    from isinglass.kernels.numba.junction_tree.strided import LOG_MAX, LOG_SUM, SUM

    layout = affordable(potentials, wishes, progress)
    tree, program, tables = layout.tree, layout.program, _scaled_tables(potentials)
    n_tables = len(tables.log_values)
    pool = pool_of(potentials.graph)
    values = pool.take((2 * n_tables + layout.message_entries,), potentials.dtype)
    _exp(tables.log_values, values[:n_tables])
    values[n_tables : 2 * n_tables] = tables.log_values
    start_of, low = _inputs(program, tables)
    passes = Passes(layout, values, 2 * n_tables, start_of, np.zeros(tree.n_buckets), low, team(wishes.threads))
    pool.give_back_with(passes, values)
    n_components = potentials.graph.n_components
    semiring_of = np.full(n_components, LOG_MAX if maximise else SUM, np.int64)
    flagged = np.zeros(n_components, bool) if maximise else _steep(potentials)
    stage, into = "maximising" if maximise else "summing out", _no_beliefs(potentials, tree) if marginals else None
    passes.run(LOG_MAX if maximise else SUM, np.ones(n_components, bool), flagged, into, progress, stage)
    if flagged.any():
        again = flagged.copy()
        semiring_of[again], flagged[:] = LOG_SUM, False
        passes.run(LOG_SUM, again, flagged, into, progress, stage)
        if into is not None:
            _normalise(potentials, into[0], into[2], again)
    roots = values[2 * n_tables + program.first_message[program.input_of < 0]]
    log_z = _log_z(potentials, tree, program, tables, roots, passes.peak, semiring_of == SUM)
    if (log_z.real == -np.inf).any():
        raise ImpossibleEvidenceError(impossible(potentials))
    return Upward(passes, semiring_of, log_z, *((None, None) if into is None else (into[0], into[2])))


def _no_beliefs(potentials: Potentials, tree: BucketTree) -> Into:
    """Return the flat beliefs of variables and factors before any is added, and where they start.

    They are zero, and one for the states of what has no bucket: observed variables, and factors of nothing else.
    """
    graph, states = potentials.graph, base_states(potentials)
    first_variable = first_states(graph)
    first_factor = first_beliefs(graph) + evidence_shift(graph, states)
    variables = np.zeros(first_variable[-1], potentials.dtype)
    factors = np.zeros(belief_entries(graph), potentials.dtype)
    variables[(first_variable[:-1] + states)[~tree.arrays.has_bucket]] = 1
    factors[first_factor[tree.constants]] = 1
    return variables, first_variable, factors, first_factor


def _normalise(potentials: Potentials, variables: Array, factors: Array, among: Mask) -> None:
    """Let beliefs of some components sum to one, in place, where the rounding of very large logarithms shows."""
    graph = potentials.graph
    for members, entries in state_blocks(graph):
        chosen = entries[among[graph.variable_component[members]]]
        variables[chosen] = _summing_to_one(variables[chosen])
    for group, part in iter_groups(graph):
        rows = factors[part].reshape(len(group), group.table_size)
        chosen = np.flatnonzero(among[graph.factor_component[group.factors]])
        rows[chosen] = _summing_to_one(rows[chosen])


def _summing_to_one(rows: Array) -> Array:
    total = rows.real.sum(axis=1, keepdims=True)
    missed = (np.abs(total - 1) > MISSED) & (total > 0)
    divided: Array = rows / np.where(missed, total, 1.0)
    return divided


def evidence_shift(graph: FactorGraph, states: IntArray) -> IntArray:
    """Return how far the observed states move each factor's start in its table."""
    flat = graph.flat_scopes
    steps = np.concatenate([[0], np.cumsum(states[flat.variable] * flat.stride)])
    shift: IntArray = steps[flat.first_slot[1:]] - steps[flat.first_slot[:-1]]
    return shift


def _scaled_tables(potentials: Potentials) -> ScaledTables:
    graph = potentials.graph
    start, top, low = np.zeros(graph.n_factors, np.int64), np.zeros(graph.n_factors), np.ones(graph.n_factors)
    logs: list[Array] = [np.zeros(0, potentials.dtype)]
    offset = 0
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        size = group.table_size
        rows = tables.reshape(len(tables), size)
        tops = rows.real.max(axis=1, initial=-np.inf)
        scaled = rows - np.where(tops > -np.inf, tops, 0.0)[:, None]
        lowest = np.where(scaled.real > -np.inf, scaled.real, 0.0).min(axis=1, initial=0.0)
        logs.append(scaled.ravel())
        start[group.factors] = offset + ids * size
        top[group.factors] = tops[ids]
        low[group.factors] = np.exp(lowest)[ids]
        offset += scaled.size
    start += evidence_shift(graph, base_states(potentials))
    return ScaledTables(np.concatenate(logs), start, top, low)


def _steep(potentials: Potentials) -> Mask:
    """Tell which components have large derivatives."""
    graph = potentials.graph
    found = np.zeros(graph.n_components, bool)
    if potentials.dtype.kind == "c":
        for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
            steep = np.abs(tables.imag) > STEEP
            if steep.any():
                used = steep.reshape(len(tables), group.table_size).any(axis=1)[ids]
                found[graph.factor_component[group.factors[used]]] = True
    return found


def _exp(x: Array, out: Array) -> None:
    """Write e^x with its derivative."""
    np.exp(x.real, out=out.real)
    if x.dtype.kind == "c":
        np.multiply(out.real, x.imag, out=out.imag)


def _log(x: Array) -> Array:
    """Return log x with its derivative; that of zero is -inf, without one."""
    log: FloatArray = np.log(x.real)
    if x.dtype.kind == "f":
        return log
    return _dual(log, np.divide(x.imag, x.real, out=np.zeros_like(log), where=x.real != 0))


def _dual(value: FloatArray, derivative: FloatArray) -> NDArray[np.complex128]:
    pair = np.empty(value.shape, np.complex128)
    pair.real, pair.imag = value, derivative
    return pair


def _inputs(program: Program, tables: ScaledTables) -> tuple[IntArray, FloatArray]:
    """Return where each input starts, for each semiring, and its smallest non-zero entry (messages: later)."""
    n = len(tables.log_values)
    n_inputs = len(program.source)
    bucket = np.repeat(np.arange(len(program.first_child)), np.diff(program.first_input))
    of_factor = np.arange(n_inputs) < program.first_child[bucket]
    factors, children = program.source[of_factor], program.source[~of_factor]
    start_of = np.empty((3, n_inputs), np.int64)
    start_of[:, ~of_factor] = 2 * n + program.first_message[children]
    start_of[:, of_factor] = tables.start[factors] + np.array([[0], [n], [n]])
    low = np.ones(n_inputs)
    low[of_factor] = tables.low[factors]
    return start_of, low


def _log_z(
    potentials: Potentials,
    tree: BucketTree,
    program: Program,
    tables: ScaledTables,
    roots: Array,
    peak: FloatArray,
    linear: Mask,
) -> Array:
    """Add up the log peaks, the tables' tops, the constants and the roots, component by component."""
    graph, component = potentials.graph, program.component

    def by_component(values: Array, component: IntArray) -> Array:
        """Sum pairwise (for accuracy) within each component, in an order that no other component changes."""
        if graph.n_components == 1:  # in order
            return component_sums(component, np.zeros(min(len(values), 1), np.int64), values, 1)
        by = np.argsort(component, kind="stable")
        first = np.flatnonzero(np.diff(component[by], prepend=-1))
        return component_sums(component[by], first, values[by], graph.n_components)

    in_logs, is_root = ~linear[component], program.input_of < 0
    with np.errstate(divide="ignore"):
        log_peak = np.where(in_logs, peak, np.log(np.where(in_logs, 1.0, peak)))
        log_root = np.where(in_logs[is_root], roots, _log(np.where(in_logs[is_root], 1.0, roots)))
    log_root[log_peak[is_root] == -np.inf] = 0  # a root of zero mass already counts as -inf by its peak
    constants = tables.log_values[tables.start[tree.constants]]
    log_z: Array = (
        by_component(log_peak, component)
        + by_component(tables.top, graph.factor_component)
        + by_component(constants, graph.factor_component[tree.constants])
        + by_component(log_root, component[is_root])
    )
    return log_z
