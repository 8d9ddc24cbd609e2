"""Beliefs and their diagnostics.

Beliefs and their standard errors are running means over all sweeps (`isinglass.inference.sampling.means`). R-hat and
effective sample sizes are those of the stored samples, one of every `thin` sweeps. A mean over all sweeps is at least
as good as a mean over some of them, so these effective sizes are conservative.

Traces of conditional probabilities are computed from the samples for some variables at a time, to save memory. If there
are very many factors, their traces are not ranked, which would take most of the time. Their effective sizes then come
from the means of `BATCHES` batches of each chain, and their R-hat is the split R-hat without ranks (Gelman et al.
2013).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.incidences import Unsigned
from isinglass.graph.layout import belief_entries, first_beliefs, first_states
from isinglass.inference.sampling.chains import States
from isinglass.inference.sampling.convergence.diagnostics import LEAST_DRAWS, Diagnostics, diagnose
from isinglass.inference.sampling.means import RunningMeans, rows_of
from isinglass.inference.sampling.sampler import Sampler
from isinglass.segments import ranges, starts
from isinglass.typing import FloatArray, IntArray

AT_ONCE = 2**22  # numbers of a trace in memory
RANKED = 2**26  # numbers of all traces of factors, at most, for which ranks are computed
BATCHES = 20  # of a chain


class Owned(NamedTuple):
    """Factors by their owners, with their slots."""

    factor: IntArray
    owner: IntArray
    own: IntArray  # step in the table when the owner's state grows
    size: IntArray  # of the table


@dataclass(frozen=True, eq=False)
class Estimate:
    """Beliefs of variables and factors (flat, as in results), and their diagnostics.

    `ranked` tells whether those of factors come from ranks, as those of variables always do.
    """

    variables: FloatArray
    factors: FloatArray
    of_variables: Diagnostics
    of_factors: Diagnostics
    ranked: bool


def estimate(sampler: Sampler, draws: States, found: RunningMeans) -> Estimate:
    """Return the beliefs from running means, with diagnostics from draws (draws, variables, chains) of a sampler."""
    graph, rows = sampler.graph, rows_of(sampler.potentials)
    lanes = draws.shape[0] * draws.shape[2]
    ranked = belief_entries(graph) * lanes <= RANKED
    states = int(first_states(graph)[-1])
    variables, factors = np.empty((3, states)), np.empty((3, belief_entries(graph)))
    for part in trace_parts(sampler, draws):
        variables[:, part.states] = _variable_summary(part.of_variables, graph.cards[part.variables])
        factors[:, part.entries] = _summary(part.of_factors, ranked)
    for group in graph.groups:
        if group.arity == 0:  # a constant
            factors[:, first_beliefs(graph)[group.factors]] = np.array([1.0, lanes, lanes])[:, None]
    means, errors = found.means, found.errors
    means[rows.certain], errors[rows.certain] = 1.0, 0.0
    return Estimate(
        means[:states],
        means[rows.of_factors],
        Diagnostics(variables[0], variables[1], variables[2], errors[:states]),
        Diagnostics(factors[0], factors[1], factors[2], errors[rows.of_factors]),
        ranked,
    )


class TracePart(NamedTuple):
    """The conditional probabilities of some variables and of the factors that they own, (numbers, chains, draws)."""

    variables: IntArray
    states: IntArray  # their places in the flat beliefs of variables
    of_variables: FloatArray
    entries: IntArray  # the places of the factors' entries in their flat beliefs
    of_factors: FloatArray


def trace_parts(sampler: Sampler, draws: States) -> Iterator[TracePart]:
    """Yield the conditional probabilities in draws (draws, variables, chains), as many at a time as fit into memory."""
    graph = sampler.graph
    owned = _owned(sampler)
    for part in _parts(graph, owned, draws.shape[0] * draws.shape[2]):
        trace, cards = sampler.traces(draws, part), graph.cards[part]
        inside = np.flatnonzero(np.isin(owned.owner, part))
        some = Owned(*(column[inside] for column in owned))
        of_owner = starts(cards)[np.searchsorted(part, some.owner)]
        places = ranges(first_states(graph)[part], cards), ranges(first_beliefs(graph)[some.factor], some.size)
        yield TracePart(part, places[0], trace, places[1], _factor_trace(graph, some, of_owner, trace, draws))


def _variable_summary(trace: FloatArray, cards: IntArray) -> FloatArray:
    """Return the summary of variables; of two states, the first has the diagnostics of the second, its complement."""
    last = starts(cards)[1:] - 1
    two = last[cards == 2]
    chosen = np.ones(len(trace), bool)
    chosen[two - 1] = False
    out = np.empty((3, len(trace)))
    out[:, chosen] = _summary(trace[chosen], True)
    out[:, two - 1] = out[:, two]
    return out


def _summary(trace: FloatArray, ranked: bool) -> FloatArray:
    """Return R-hat and the effective sizes of a trace, (3, quantities)."""
    found = diagnose(trace) if ranked else by_batches(trace)
    return np.stack([found.r_hat, found.ess_bulk, found.ess_tail])


def by_batches(trace: FloatArray) -> Diagnostics:
    """Return effective sizes and standard errors by means of batches (Jones et al. 2006), and R-hat of the values."""
    quantities, chains, draws = trace.shape
    if draws < LEAST_DRAWS or not quantities:
        return diagnose(trace)
    count = min(BATCHES, draws)
    length = draws // count
    means = trace[..., : count * length].reshape(quantities, chains * count, length).mean(axis=2)
    stderr = means.std(axis=1, ddof=1) / np.sqrt(chains * count)
    variance, size = trace.reshape(quantities, -1).var(axis=1, ddof=1), float(chains * draws)
    with np.errstate(divide="ignore", invalid="ignore"):
        ess = np.where(variance > 0, variance / stderr**2, size)
    return Diagnostics(split_r_hat(trace), ess, ess, stderr)


def split_r_hat(trace: FloatArray) -> FloatArray:
    """Return R-hat of the halves of all chains, without ranks; one where nothing varies.

    Examples
    --------
    >>> apart = np.array([[[0.0, 0.1, 0.0, 0.1], [1.0, 0.9, 1.0, 0.9]], [[0.0] * 4, [0.0] * 4]])
    >>> split_r_hat(apart).round(1).tolist()
    [7.4, 1.0]
    """
    quantities, chains, draws = trace.shape
    half = draws // 2
    parts = trace[..., : 2 * half].reshape(quantities, 2 * chains, half)
    within, between = parts.var(axis=2, ddof=1).mean(axis=1), parts.mean(axis=2).var(axis=1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.sqrt((half - 1) / half + between / within)
    return np.where(within > 0, found, np.where(between > 0, np.inf, 1.0))


def _owned(sampler: Sampler) -> Owned:
    """Choose the owner of each factor: its first variable that can move, or the first if none can."""
    graph, free = sampler.graph, np.zeros(sampler.graph.n_variables, bool)
    free[sampler.free] = True
    parts = []
    for group in graph.groups:
        if group.arity and len(group):
            slot = np.argmax(free[group.scopes], axis=1)
            strides = np.cumprod([1, *group.shape[:0:-1]])[::-1]
            owner = group.scopes[np.arange(len(group)), slot]
            parts.append((group.factors, owner, strides[slot], np.full(len(group), group.table_size)))
    columns = [np.concatenate([np.zeros(0, np.int64), *column]) for column in zip(*parts, strict=True)]
    return Owned(*(columns or [np.zeros(0, np.int64)] * 4))


def _parts(graph: FactorGraph, owned: Owned, lanes: int) -> list[IntArray]:
    """Cut the variables into parts whose traces, and those of the factors that they own, fit into memory."""
    numbers = (graph.cards + np.bincount(owned.owner, owned.size, graph.n_variables)) * float(lanes)
    number = (np.cumsum(numbers) / AT_ONCE).astype(np.int64)
    cuts = np.flatnonzero(np.diff(number)) + 1
    return [part for part in np.split(np.arange(graph.n_variables), cuts) if len(part)]


def _factor_trace(
    graph: FactorGraph, owned: Owned, of_owner: IntArray, conditionals: FloatArray, draws: States
) -> FloatArray:
    """Return the conditional probabilities of factors, (entries, chains, draws)."""
    from isinglass.kernels.numba.sampling.gibbs import factor_traces

    flat = graph.flat_scopes
    count = np.diff(flat.first_slot)[owned.factor]
    slots = ranges(flat.first_slot[owned.factor], count)
    first = starts(owned.size)
    out = np.empty((int(first[-1]), *conditionals.shape[1:]))

    def unsigned(values: IntArray) -> Unsigned:
        return values.astype(np.uint64)

    arrays = (first[:-1], starts(count), flat.variable[slots], flat.stride[slots], owned.owner, owned.own)
    cards = graph.cards[owned.owner]
    factor_traces(*map(unsigned, arrays), unsigned(cards), unsigned(of_owner), conditionals, draws, out)
    return out
