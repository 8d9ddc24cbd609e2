"""Derivatives of a loss by log Z and beliefs, as users give them to `Result.backward`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.layout import belief_entries
from isinglass.runtime.finite import all_finite
from isinglass.typing import Array
from isinglass.validation import array_of, jobs_of

if TYPE_CHECKING:
    from isinglass.inference.result import Result, VariableBeliefs


def cotangents(
    result: Result,
    log_z: ArrayLike,
    variables: Sequence[ArrayLike] | ArrayLike | None,
    factors: Sequence[ArrayLike | None] | Array | None,
) -> tuple[Array, Array, Array]:
    """Return derivatives by log Z (one for each component), variable and factor beliefs as flat arrays."""
    graph = result.potentials.graph
    given = array_of(log_z, "log_z", "a number, or one for each component")
    z_bar = np.broadcast_to(given.astype(result.variables.flat.dtype), graph.n_components).copy()
    bars = z_bar, _flat_cotangent(result.variables, variables), _factor_cotangent(graph, result, factors)
    jobs = jobs_of(getattr(result.algorithm, "n_jobs", 1))
    for argument, bar in zip(("log_z", "variables", "factors"), bars, strict=True):
        if not all_finite(bar if bar.strides != (0,) else bar[:1], jobs):
            raise InputError(argument, "finite derivatives", "inf or nan", "does the loss divide by a belief of zero?")
    return bars


def nothing(length: int, dtype: DTypeLike) -> Array:
    """Return zeros that take no memory, and that `is_nothing` recognises at once."""
    return np.broadcast_to(np.zeros((), dtype), (length,))


def is_nothing(values: Array) -> bool:
    """Tell whether all values are zero."""
    return values.strides == (0,) or not values.any()


def _flat_cotangent(beliefs: VariableBeliefs, given: Sequence[ArrayLike] | ArrayLike | None) -> Array:
    """Return derivatives by variable beliefs, flat like the beliefs."""
    if given is None:
        return np.zeros_like(beliefs.flat)
    if isinstance(given, Iterable) and not isinstance(given, np.ndarray):
        given = np.concatenate([np.zeros(0), *(array_of(g, "variables", "numbers").ravel() for g in given)])
    flat = array_of(given, "variables", "numbers")
    if flat.size != beliefs.flat.size:
        raise InputError("variables", f"{beliefs.flat.size} numbers, one for each state", str(flat.size))
    bars: Array = flat.reshape(-1).astype(beliefs.flat.dtype, copy=False)
    return bars


def _factor_cotangent(graph: FactorGraph, result: Result, given: Sequence[ArrayLike | None] | Array | None) -> Array:
    """Return derivatives by factor beliefs, flat, group by group."""
    dtype = result.variables.flat.dtype
    if given is None:
        return nothing(belief_entries(graph), dtype)
    if isinstance(given, np.ndarray) and given.ndim == 1 and given.size == belief_entries(graph):
        flat: Array = given.astype(dtype, copy=False)
        return flat
    if len(given) != graph.n_factors:
        raise InputError("factors", f"one entry for each of {graph.n_factors} factors", str(len(given)))
    parts = [np.zeros(0, dtype)]
    for group, beliefs in zip(graph.groups, result.factors.groups, strict=True):
        bars = np.zeros(beliefs.shape, dtype)
        for row, a in enumerate(group.factors.tolist()):
            if given[a] is not None:
                bar = array_of(given[a], f"factors[{a}]", f"numbers of shape {group.shape}")
                if bar.shape != group.shape:
                    raise InputError(f"factors[{a}]", f"shape {group.shape}", f"shape {bar.shape}")
                bars[row] = bar
        parts.append(bars.ravel())
    return np.concatenate(parts)
