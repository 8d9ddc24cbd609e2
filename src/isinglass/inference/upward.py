"""The upward pass of exact inference: the part that sums, maxima, samples and n-best lists share.

It prepares the tables (largest entry one), allocates the messages and the scratch memory, and runs the
compiled kernel over the buckets. Components whose products could underflow are done with logarithms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isinglass.errors import ImpossibleEvidenceError
from isinglass.graph.bucket_tree import BucketTree, bucket_tree
from isinglass.graph.elimination import EliminationOrder, elimination_order
from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.algorithm import Progress
from isinglass.inference.evidence import base_states, impossible
from isinglass.inference.memory import memory_limit_bytes, require_memory
from isinglass.potentials import Potentials
from isinglass.validation import IntArray, bytes_text

if TYPE_CHECKING:
    from isinglass.kernels.numba.buckets import Tables, Workspace

CHUNK = 20_000_000  # bucket entries between two reports of progress, where Ctrl-C is heard


@dataclass(frozen=True, eq=False)
class Upward:
    """What the upward pass leaves.

    Attributes
    ----------
    tree : BucketTree
    tables : tuple of Tables
        Linear values and their logarithms, in this order.
    messages, peak : arrays
        All messages, flat, and what each was divided by.
    semiring_of : int array (components,)
        The semiring that each component was done in.
    component_log_z : array (components,)
        log Z of each component; in the max semiring, the best score.
    """

    tree: BucketTree
    tables: tuple[Tables, Tables]
    messages: NDArray[Any]
    peak: NDArray[np.float64]
    semiring_of: IntArray
    component_log_z: NDArray[Any]
    workspace: Workspace
    in_local: NDArray[np.bool_]


def upward(
    potentials: Potentials,
    maximise: bool,
    memory_limit: str | int | float | None,
    progress: Progress | None = None,
) -> Upward:
    """Run the upward pass; refuse if it does not fit, or if every assignment has probability zero."""
    from isinglass.kernels.numba import buckets
    from isinglass.kernels.numba.strided import LOG_MAX, LOG_SUM, SUM

    tree = _affordable_tree(potentials, memory_limit)
    n_components = potentials.graph.n_components
    tables, log_tops = _tables(potentials)
    workspace, in_local = _workspace(tree, potentials, memory_limit)
    messages = np.empty(tree.arrays.first_message[-1], potentials.dtype)
    peak, low = np.zeros(tree.n_buckets), np.ones(tree.n_buckets)
    semiring_of = np.full(n_components, LOG_MAX if maximise else SUM, np.int64)
    flagged = np.zeros(n_components, bool)

    def run(semiring: int, wanted: NDArray[np.bool_]) -> None:
        for first, last, fraction in chunks(tree):
            buckets.up(
                tree.arrays, first, last, tables[semiring != SUM], messages, peak, low, wanted, flagged, semiring,
                in_local, workspace,
            )  # fmt: skip
            if progress is not None:
                progress("summing out" if semiring != LOG_MAX else "maximising", fraction)

    if maximise:
        run(LOG_MAX, np.ones(n_components, bool))
    else:
        run(SUM, np.ones(n_components, bool))
        if flagged.any():
            again = flagged.copy()
            semiring_of[again], flagged[:] = LOG_SUM, False
            run(LOG_SUM, again)
    log_z = _log_z(potentials, tree, tables, log_tops, messages, peak, semiring_of == SUM)
    if (log_z.real == -np.inf).any():
        raise ImpossibleEvidenceError(impossible(potentials))
    return Upward(tree, tables, messages, peak, semiring_of, log_z, workspace, in_local)


def order_of(potentials: Potentials) -> EliminationOrder:
    """Return the elimination order for these potentials' evidence."""
    return elimination_order(potentials.graph, clamped=tuple(potentials.evidence))


def chunks(tree: BucketTree) -> Iterator[tuple[int, int, float]]:
    """Cut the buckets into runs of about CHUNK entries: (first, last, fraction done after it)."""
    total = np.cumsum(tree.work)
    if not len(total):
        return
    cuts = np.unique([*np.searchsorted(total, np.arange(CHUNK, total[-1], CHUNK)), len(total)])
    first = 0
    for last in cuts.tolist():
        if last > first:
            yield first, last, float(total[last - 1] / total[-1])
        first = last


def _affordable_tree(potentials: Potentials, memory_limit: str | int | float | None) -> BucketTree:
    order = order_of(potentials)
    more = "" if order.complete else "more than "
    _require(order.bytes, memory_limit, f"{more}{bytes_text(order.bytes)}", order)
    return bucket_tree(potentials.graph, tuple(potentials.evidence))


def _require(needed: float, memory_limit: str | int | float | None, text: str, order: EliminationOrder) -> None:
    remedy = "raise memory_limit (--memory), observe more variables, or use an approximate algorithm"
    more = "" if order.complete else "more than "
    what = f"exact inference needs {text} (width {more}{order.width}, largest table 2^{order.log2_largest:.1f} entries)"
    require_memory(needed if order.complete else np.inf, memory_limit_bytes(memory_limit), what, remedy)


def _tables(potentials: Potentials) -> tuple[tuple[Tables, Tables], NDArray[np.float64]]:
    """Scale every table to a largest entry of one. Returns both representations and each factor's log top."""
    from isinglass.kernels.numba.buckets import Tables

    graph = potentials.graph
    start, low, top = np.zeros(graph.n_factors, np.int64), np.ones(graph.n_factors), np.zeros(graph.n_factors)
    logs: list[NDArray[Any]] = [np.zeros(0, potentials.dtype)]
    offset = 0
    for group, values, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        size = group.table_size
        rows = values.reshape(len(values), size)
        tops = rows.real.max(axis=1, initial=-np.inf)
        scaled = rows - np.where(tops > -np.inf, tops, 0.0)[:, None]
        lowest = np.where(scaled.real > -np.inf, scaled.real, 0.0).min(axis=1, initial=0.0)
        logs.append(scaled.ravel())
        start[group.factors] = offset + ids * size
        low[group.factors] = np.exp(lowest)[ids]
        top[group.factors] = tops[ids]
        offset += scaled.size
    start += evidence_shift(graph, base_states(potentials))
    log_values = np.concatenate(logs)
    return (Tables(np.exp(log_values), start, low), Tables(log_values, start, low)), top


def evidence_shift(graph: FactorGraph, states: IntArray) -> IntArray:
    """Return how far the observed states move each factor's start in its table."""
    flat = graph.flat_scopes
    steps = np.concatenate([[0], np.cumsum(states[flat.variable] * flat.stride)])
    shift: IntArray = steps[flat.first_slot[1:]] - steps[flat.first_slot[:-1]]
    return shift


def _workspace(
    tree: BucketTree, potentials: Potentials, memory_limit: str | int | float | None
) -> tuple[Workspace, NDArray[np.bool_]]:
    """Measure what the buckets need, compare it with the limit, and allocate it."""
    from isinglass.kernels.numba import buckets

    arrays = tree.arrays
    axes = int(np.diff(arrays.first_axis).max(initial=1))
    children = int(np.diff(arrays.first_child).max(initial=0))
    axis_of = np.full(potentials.graph.n_variables, -1, np.int64)
    ints = np.zeros(axes + 1, np.int64)
    in_local = np.zeros(axes, bool)
    local, n_large, sums = buckets.scratch_sizes(arrays, axis_of, ints, in_local, np.zeros(children + 1, np.int64))
    dtype = potentials.dtype
    needed = dtype.itemsize * (float(arrays.first_message[-1]) + 2.0 * local + sums)
    _require(needed, memory_limit, bytes_text(needed), tree.order)

    def views() -> IntArray:
        return np.zeros((n_large + 2, axes + 1), np.int64)

    block = max(buckets.BLOCK, int(potentials.graph.cards.max(initial=1)))
    return buckets.Workspace(
        axis_of, *(ints.copy() for _ in range(4)), views(), views(), np.zeros(n_large + 2, np.int64), views(),
        *(ints.copy() for _ in range(4)), np.zeros(n_large + 1, np.int64), *(np.empty(local, dtype) for _ in range(2)),
        np.empty(block, dtype), np.empty(sums, dtype),
    ), in_local  # fmt: skip


def _log_z(
    potentials: Potentials,
    tree: BucketTree,
    tables: tuple[Tables, Tables],
    log_tops: NDArray[np.float64],
    messages: NDArray[Any],
    peak: NDArray[np.float64],
    linear: NDArray[np.bool_],
) -> NDArray[Any]:
    """Add up the log peaks, the tables' tops, the constants and the roots, component by component."""
    graph, arrays = potentials.graph, tree.arrays

    def by_component(values: NDArray[Any], component: IntArray) -> NDArray[Any]:
        n = graph.n_components
        real = np.bincount(component, values.real, minlength=n)
        return real + 1j * np.bincount(component, values.imag, minlength=n) if np.iscomplexobj(values) else real

    roots = np.flatnonzero(arrays.parent < 0)
    at_root = messages[arrays.first_message[roots]]
    in_logs = ~linear[arrays.component]
    with np.errstate(divide="ignore"):
        log_peak = np.where(in_logs, peak, np.log(np.where(in_logs, 1.0, peak)))
        log_root = np.where(in_logs[roots], at_root, np.log(np.where(in_logs[roots], 1.0, at_root)))
    log_root[log_peak[roots] == -np.inf] = 0  # what was not normalised is zero already by its peak
    constants = tables[1].values[tables[1].start[tree.constants]]
    with np.errstate(invalid="ignore"):
        return (
            by_component(log_peak, arrays.component)
            + by_component(log_tops, graph.factor_component)
            + by_component(constants, graph.factor_component[tree.constants])
            + by_component(log_root, arrays.component[roots])
        )
