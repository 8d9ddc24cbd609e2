"""Beliefs and their diagnostics.

Beliefs and their standard errors are running means over all sweeps (`isinglass.inference.sampling.means`). R-hat and
effective sample sizes are those of the stored samples, one of every `thin` sweeps. A mean over all sweeps is at least
as good as a mean over some of them, so these effective sizes are conservative.

Traces of conditional probabilities are computed from the samples for some variables at a time, to save memory.

Batches know nothing of what they have not seen. Independent draws of a state would have the standard error of its
belief b, if there were b (1 - b) / error^2 of them. Let n be the smallest such number in the component: so many
independent assignments were seen, at most. A state of a probability below 1 / n may be missing, whatever the batches
say (without an event in n draws it has at most 3 / n, at 95 %: Hanley and Lippman-Hand 1983). So

    standard error  =  ( error of the batches^2 + 1 / n^2 )^(1/2)

unless hard zeros or evidence decide, or if all neighbours of the variable are decided and the state was neither always
drawn nor never.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.incidences import Unsigned
from isinglass.graph.layout import belief_components, belief_entries, first_beliefs, first_states
from isinglass.inference.sampling.chains import Chains, States
from isinglass.inference.sampling.diagnostics import Diagnostics, diagnose
from isinglass.inference.sampling.means import RunningMeans, rows_of
from isinglass.inference.sampling.sampler import Sampler
from isinglass.inference.support import support_of
from isinglass.potentials import Potentials
from isinglass.segments import ranges, starts
from isinglass.typing import FloatArray, IntArray, Mask

AT_ONCE = 2**22  # numbers of a trace in memory
OTHERS, SETTLING = 128, 16  # further chains that estimates are compared with, and their sweeps


class Owned(NamedTuple):
    """Factors by their owners, with their slots."""

    factor: IntArray
    owner: IntArray
    own: IntArray  # step in the table when the owner's state grows
    size: IntArray  # of the table


@dataclass(frozen=True, eq=False)
class Estimate:
    """Beliefs of variables and factors (flat, as in results), and their diagnostics."""

    variables: FloatArray
    factors: FloatArray
    of_variables: Diagnostics
    of_factors: Diagnostics
    independent: FloatArray  # n of the component of each entry, of variables and then of factors


def estimate(sampler: Sampler, draws: States, found: RunningMeans) -> Estimate:
    """Return the beliefs from running means, with diagnostics from draws (draws, variables, chains) of a sampler."""
    graph, rows = sampler.graph, rows_of(sampler.potentials)
    lanes, states = draws.shape[0] * draws.shape[2], int(first_states(graph)[-1])
    variables, factors = np.empty((2, states)), np.empty((2, belief_entries(graph)))
    for part in trace_parts(sampler, draws):
        of_variables, of_factors = diagnose(part.of_variables), diagnose(part.of_factors)
        variables[:, part.states] = of_variables.r_hat, of_variables.ess
        factors[:, part.entries] = of_factors.r_hat, of_factors.ess
    for group in graph.groups:
        if group.arity == 0:  # a constant
            factors[:, first_beliefs(graph)[group.factors]] = np.array([1.0, lanes])[:, None]
    means, errors = found.means, found.errors
    means[rows.certain], errors[rows.certain] = 1.0, 0.0
    beliefs, error = np.concatenate([means[:states], means[rows.of_factors]]), errors[np.r_[:states, rows.of_factors]]
    draws_used, component = float(found.chains * found.sweeps), np.concatenate(belief_components(graph))
    with np.errstate(divide="ignore", invalid="ignore"):
        alike = beliefs * (1 - beliefs) / error**2
    size = np.full(graph.n_components, draws_used)
    np.minimum.at(size, component, np.where((alike > 0) & undecided_entries(sampler.potentials)[0], alike, np.inf))
    independent = np.maximum(size, 1.0)[component]
    error = with_unseen(sampler.potentials, beliefs, error, draws_used, independent)
    of_variables = Diagnostics(variables[0], variables[1], error[:states])
    return Estimate(
        beliefs[:states],
        beliefs[states:],
        of_variables,
        Diagnostics(factors[0], factors[1], error[states:]),
        independent,
    )


def conditionals_of(sampler: Sampler, states: States) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield entries of the beliefs of variables and then factors, with their conditional probabilities in chains."""
    split = int(first_states(sampler.graph)[-1])
    for part in trace_parts(sampler, states[None]):
        yield part.states, part.of_variables[:, :, 0]
        yield split + part.entries, part.of_factors[:, :, 0]


def settled(sampler: Sampler, chains: Chains, threads: int = 1) -> States:
    """Return the states of `OTHERS` chains after `SETTLING` sweeps from dispersed starts, seeded by other chains."""
    seed = int(chains.keys.ravel()[0] >> np.uint64(1))
    others = Chains.start(sampler.potentials, OTHERS * sampler.replicas, seed)
    sampler.advance(others, SETTLING, threads)
    return np.ascontiguousarray(others.states[:, :OTHERS])


def overlooked(sampler: Sampler, states: States, beliefs: FloatArray, independent: FloatArray) -> Mask:
    """Tell in which components other chains (variables, chains) meet what the beliefs hardly have.

    `beliefs` are those of variables and factors, and `independent` is n for each. The sum over C other chains of the
    conditional probabilities of an entry is about a Poisson number; its mean is at most m = C (belief + 1 / n), if the
    beliefs are right. More than m + 4 m^(1/2) + 1/2 is too much.
    """
    graph, met = sampler.graph, np.zeros(len(beliefs))
    for entries, values in conditionals_of(sampler, states):
        met[entries] = values.sum(axis=1)
    most = states.shape[1] * (beliefs + 1 / independent)
    more = met > most + 4 * np.sqrt(most) + 0.5
    return np.bincount(np.concatenate(belief_components(graph))[more], minlength=graph.n_components) > 0


def with_unseen(
    potentials: Potentials, beliefs: FloatArray, errors: FloatArray, draws: float, independent: FloatArray
) -> FloatArray:
    """Return standard errors that count states of a probability below 1 / n, which no draw may have seen.

    All arrays are those of variables and factors; `independent` is n for each.
    """
    undecided, coupled = undecided_entries(potentials)
    unsure = undecided & (coupled | (np.minimum(beliefs, 1 - beliefs) * draws < 1))
    return np.where(unsure, np.hypot(errors, 1 / independent), errors)


def undecided_entries(potentials: Potentials) -> tuple[Mask, Mask]:
    """Tell which entries of beliefs neither hard zeros nor evidence decide, and which belong to coupled variables."""
    graph, support = potentials.graph, support_of(potentials)
    possible = np.concatenate([support.states, support.entries])
    sizes = np.concatenate([graph.cards, *(np.full(len(group), group.table_size) for group in graph.groups)])
    owner = np.repeat(np.arange(len(sizes)), sizes)
    several = np.bincount(owner, possible, len(sizes)) > 1
    free, coupled = several[: graph.n_variables], np.zeros(graph.n_variables, bool)
    for group in graph.groups:
        coupled[group.scopes[free[group.scopes].sum(axis=1) > 1]] = True
    coupled &= free
    undecided = np.asarray(possible & several[owner])
    mine = np.concatenate([coupled, *(coupled[group.scopes].any(axis=1) for group in graph.groups)])
    return undecided, undecided & mine[owner]


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
