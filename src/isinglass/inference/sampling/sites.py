"""A model as samplers see it: the potential of each variable, and the tables of the factors around it.

Unary tables are added up in `phi`; the tables of larger factors lie in `psi` as they are (shared ones once). Evidence
is not part of these numbers: a sampler does not move observed variables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.incidences import Incidences, Indices, Unsigned, incidences_of
from isinglass.graph.layout import first_states
from isinglass.graph.message_graph import edges_of
from isinglass.potentials import Potentials
from isinglass.segments import distinct_rows, ranges, starts
from isinglass.typing import FloatArray, IntArray, Mask

MOST_LINKS = 64  # of a variable, for a table of its odds


class SiteModel(NamedTuple):
    """Log-potentials of variables, and tables of incidences (see `isinglass.graph.incidences`)."""

    phi: FloatArray  # flat, state by state
    psi: FloatArray
    at: Unsigned  # (incidences,) where the table of its factor begins in psi


def site_model(potentials: Potentials) -> SiteModel:
    """Return the numbers that samplers use.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials.from_groups(ig.chain_graph(3, 2), [np.zeros((3, 2)), np.eye(2)[None]])
    >>> site_model(p).at.tolist(), site_model(p).psi.tolist()
    ([0, 0, 0, 0], [1.0, 0.0, 0.0, 1.0])
    """
    graph = potentials.graph
    edges, first = edges_of(graph), first_states(graph)
    phi, psi = np.zeros(int(first[-1])), [np.zeros(0)]
    address, filled = np.zeros(graph.n_factors, np.int64), 0
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        if group.arity == 1 and len(group):
            places = first[group.scopes[:, 0]][:, None] + np.arange(group.shape[0])
            np.add.at(phi, places, tables[ids])
        elif group.arity > 1:
            psi.append(tables.ravel())
            address[group.factors] = filled + ids * group.table_size
            filled += tables.size
    return SiteModel(phi, np.concatenate(psi), address[edges.link_factor][edges.edge_link].astype(np.uint64))


def free_variables(potentials: Potentials) -> Mask:
    """Tell which variables can move: those with several states that are not observed."""
    free = potentials.graph.cards > 1
    free[list(potentials.evidence)] = False
    return free


class BinaryModel(NamedTuple):
    """Log-odds of listed variables as linear functions of their neighbours (`kernels.numba.sampling.binary`)."""

    variable: Indices  # (listed,)
    bias: FloatArray
    first: Indices  # (listed + 1,)
    slope: FloatArray
    other: NDArray[np.uint32]


class EqualLinks(NamedTuple):
    """Listed variables each of whose links have one slope: what counts is how many neighbours have state 1.

    Given n of them, the odds of state 1 are 1 / (factors[row, n] - 1) (`kernels.numba.sampling.equal`).
    """

    variable: NDArray[np.uint32]  # (listed,)
    first: Indices  # (listed + 1,)
    links: NDArray[np.uint8]  # (listed,) how many
    other: NDArray[np.uint32]
    row: NDArray[np.uint32]  # (listed,)
    factors: FloatArray  # (rows, most links + 1)


def equal_links(model: BinaryModel) -> EqualLinks | None:
    """Return the table of a model whose variables have equal slopes; None for others.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.models.Ising(ig.chain_graph(3, 2)).potentials(coupling=0.5)
    >>> model = binary_layout(p.graph, np.arange(3)).model(site_model(p))
    >>> equal_links(model).factors.shape  # of variables with one and with two links
    (2, 3)
    """
    from isinglass.kernels.numba.sampling.equal import odds_factors

    count: IntArray = np.diff(model.first.astype(np.int64)).astype(np.int64)
    own = np.zeros(len(count))
    own[count > 0] = model.slope[model.first[:-1][count > 0]]
    if count.max(initial=0) > MOST_LINKS or not np.array_equal(model.slope, np.repeat(own, count)):
        return None
    pairs = np.stack([model.bias, own], axis=1)
    first, row = distinct_rows(pairs) if _few(pairs) else (np.arange(len(pairs)),) * 2
    distinct = pairs[first]
    log_odds = np.empty((len(distinct), int(count.max(initial=0)) + 1))
    log_odds[:, 0] = distinct[:, 0]
    for n in range(1, log_odds.shape[1]):
        log_odds[:, n] = log_odds[:, n - 1] + distinct[:, 1]  # link by link, as the other loop adds them
    factors = np.empty_like(log_odds)
    odds_factors(log_odds, factors)
    numbers = model.variable.astype(np.uint32), model.first, count.astype(np.uint8), model.other
    return EqualLinks(*numbers, row.ravel().astype(np.uint32), factors)


def _few(pairs: FloatArray) -> bool:
    """Tell whether few rows are different, from some of them."""
    some = pairs[:: max(1, len(pairs) // 1000)]
    return len(np.unique(some[:, 0])) <= len(some) // 10 + 3


class BinaryLayout(NamedTuple):
    """The incidences of listed variables with two states, around which all factors have two variables."""

    variable: IntArray  # (listed,)
    state: IntArray  # (listed,) where its states begin in phi
    incidence: IntArray
    owner: IntArray  # (incidences,) the place of its variable in the list
    first: Indices
    other: NDArray[np.uint32]
    own: Indices
    step: Indices

    def model(self, sites: SiteModel) -> BinaryModel:
        """Return the log-odds; the tables must be finite."""
        phi, psi, at = sites.phi, sites.psi, sites.at[self.incidence]
        low = psi[at + self.own] - psi[at]
        slope = (psi[at + self.own + self.step] + psi[at]) - (psi[at + self.step] + psi[at + self.own])  # of both ends
        bias = phi[self.state + 1] - phi[self.state]
        bias += np.bincount(self.owner, low, len(bias))
        return BinaryModel(self.variable.astype(np.uint64), bias, self.first, slope, self.other)


def binary_components(potentials: Potentials) -> Mask:
    """Tell in which components all variables have two states, and no factor has three variables or a hard zero.

    (Hard zeros of one variable do no harm.)
    """
    graph = potentials.graph
    found = np.ones(graph.n_components, bool)
    found[graph.variable_component[graph.cards != 2]] = False
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        if group.arity > 2:
            found[graph.factor_component[group.factors]] = False
        elif group.arity == 2 and not np.isfinite(tables).all():
            soft: Mask = np.asarray(np.isfinite(tables).all(axis=(1, 2)))[ids]
            found[graph.factor_component[group.factors[~soft]]] = False
    return found


def binary_layout(graph: FactorGraph, variables: IntArray) -> BinaryLayout:
    """Lay out the incidences of listed variables."""
    near: Incidences = incidences_of(graph)
    first = near.first.astype(np.int64)
    count = np.diff(first)[variables]
    incidence = ranges(first[variables], count)
    return BinaryLayout(
        variables,
        first_states(graph)[variables],
        incidence,
        np.repeat(np.arange(len(variables)), count),
        starts(count).astype(np.uint64),
        near.variable[near.rest[incidence]].astype(np.uint32),
        near.own[incidence],
        near.stride[near.rest[incidence]],
    )
