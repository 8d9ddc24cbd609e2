"""A model as samplers see it: the potential of each variable, and the tables of the factors around it.

Unary tables are added up in `phi`; the tables of larger factors lie in `psi` as they are (shared ones once). Evidence
is not part of these numbers: a sampler does not move observed variables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.incidences import Incidences, Unsigned, signed_incidences
from isinglass.graph.layout import first_states
from isinglass.graph.message_graph import edges_of
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray, IntArray, Mask


class SiteModel(NamedTuple):
    """Log-potentials of variables, and tables of incidences (see `isinglass.graph.incidences`)."""

    phi: FloatArray  # flat, state by state
    psi: FloatArray
    at: Unsigned  # (incidences,) where the table of its factor begins in psi
    linear: Mask  # (variables,) whether the log-odds are linear in the neighbours (`kernels.numba.sampling.gibbs`)
    bias: FloatArray  # (variables,)
    slope: FloatArray  # (incidences,)


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
    at, entries = address[edges.link_factor][edges.edge_link], np.concatenate(psi)
    return SiteModel(phi, entries, at.astype(np.uint64), *_log_odds(graph, phi, entries, at))


def _log_odds(
    graph: FactorGraph, phi: FloatArray, psi: FloatArray, at: IntArray
) -> tuple[Mask, FloatArray, FloatArray]:
    """Return `linear`, `bias` and `slope` of a model: of binary variables whose factors are finite pairs."""
    near = signed_incidences(graph)
    owner, pair, step = graph.cached("pairs of binary variables", lambda: _binary_pairs(graph, near))
    linear, bias, slope = graph.cards == 2, np.zeros(graph.n_variables), np.zeros(len(at))
    first, base, own = near.first_state, at[pair], near.own[pair]
    with np.errstate(invalid="ignore", over="ignore"):
        low = psi[base + own] - psi[base]
        slope[pair] = psi[base + own + step] - psi[base + step] - low
        bias[linear] = phi[first[linear] + 1] - phi[first[linear]]
        bias += np.bincount(owner[pair], low, graph.n_variables)
    other = np.ones(len(at), bool)
    other[pair] = ~np.isfinite(slope[pair])
    linear[owner[other]] = False
    return linear & np.isfinite(bias), bias, slope


def _binary_pairs(graph: FactorGraph, near: Incidences) -> tuple[IntArray, IntArray, IntArray]:
    """Return the owner of each incidence, those with one other variable, both binary, and the step of the latter."""
    owner = np.repeat(np.arange(graph.n_variables), np.diff(near.first))
    pair = np.flatnonzero((np.diff(near.rest) == 1) & (graph.cards[owner] == 2))
    pair = pair[graph.cards[near.variable[near.rest[pair]]] == 2]
    return owner, pair, near.stride[near.rest[pair]]


def free_variables(potentials: Potentials) -> Mask:
    """Tell which variables can move: those with several states that are not observed."""
    free = potentials.graph.cards > 1
    free[list(potentials.evidence)] = False
    return free
