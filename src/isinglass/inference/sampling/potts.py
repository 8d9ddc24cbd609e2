"""Models that cluster samplers serve: pairs that like equal states, apart from terms of single variables.

A table of a pair is written as

    phi(x, y) = f(x) + g(y) + J [x = y]

For two states that is always possible, with J of either sign. For more, J must be at least zero, and what is left must
be a sum of f and g. Then f and g join the unary tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.layout import first_states
from isinglass.inference.sampling.sites import site_model
from isinglass.potentials import Potentials
from isinglass.segments import place_in, starts
from isinglass.typing import FloatArray, IntArray

ROUNDING = 1e-9  # of the largest entry of a table
REMEDY = 'use "gibbs" or "tree-gibbs"'


class PottsModel(NamedTuple):
    """Unary tables and links of a model, flat."""

    phi: FloatArray  # (states of all variables,) with hard zeros at states that evidence excludes
    first_state: IntArray  # (variables,)
    cards: IntArray
    component: IntArray
    one: IntArray  # (links,)
    two: IntArray
    strength: FloatArray  # (links,) J
    bond: FloatArray  # (links,) 1 - exp(-|J|)


@dataclass(frozen=True)
class _Split:
    """Tables (tables, k, k) as f(x) + g(y) + J [x = y]."""

    f: FloatArray
    g: FloatArray
    strength: FloatArray


def potts_model(potentials: Potentials, name: str) -> PottsModel:
    """Return a model in the form that clusters need; `name` is that of the sampler, for errors.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.models.Ising(ig.chain_graph(2, 2)).potentials(coupling=0.5, field=0.1)
    >>> potts_model(p, "wolff").strength.tolist()
    [1.0]
    """
    graph, first = potentials.graph, first_states(potentials.graph)
    phi = site_model(potentials).phi
    ends, strengths = [np.zeros((0, 2), np.int64)], [np.zeros(0)]
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        if group.arity < 2 or not len(group):
            continue
        if group.arity > 2:
            raise InputError("potentials", f"factors of at most two variables, for {name!r}", f"{group.arity}", REMEDY)
        found = _split(tables, name)
        for slot, values in enumerate((found.f, found.g)):
            places = first[group.scopes[:, slot]][:, None] + np.arange(group.shape[slot])
            np.add.at(phi, places, values[ids])
        ends.append(group.scopes)
        strengths.append(found.strength[ids])
    for i, state in potentials.evidence.items():
        kept = phi[first[i] + state]
        phi[first[i] : first[i + 1]] = -np.inf
        phi[first[i] + state] = kept
    pairs, strength = np.concatenate(ends), np.concatenate(strengths)
    useful = strength != 0
    pairs, strength = pairs[useful], strength[useful]
    return PottsModel(
        phi,
        first[:-1],
        graph.cards.astype(np.int64),
        graph.variable_component.astype(np.int64),
        np.ascontiguousarray(pairs[:, 0]),
        np.ascontiguousarray(pairs[:, 1]),
        strength,
        -np.expm1(-np.abs(strength)),
    )


def _split(tables: FloatArray, name: str) -> _Split:
    """Split the tables of a group, or say why that is impossible."""
    if not np.isfinite(tables).all():
        raise InputError("potentials", f"no hard zeros in factors of two variables, for {name!r}", "-inf", REMEDY)
    _, k, other = tables.shape
    rows, columns, mean = tables.mean(axis=2), tables.mean(axis=1), tables.mean(axis=(1, 2))
    if min(k, other) == 1:
        strength = np.zeros(len(tables))
    elif k == other:
        centred = tables - rows[:, :, None] - columns[:, None, :] + mean[:, None, None]
        strength = np.trace(centred, axis1=1, axis2=2) / (k - 1)
    else:
        raise InputError("potentials", f"equal cardinalities in a pair, for {name!r}", f"{k} and {other}", REMEDY)
    diagonal = strength[:, None, None] * np.eye(k, other)
    f, g = rows - (strength / k)[:, None], columns - mean[:, None]
    left = tables - diagonal - f[:, :, None] - g[:, None, :]
    size = np.abs(tables).max(axis=(1, 2), initial=1.0)
    if (np.abs(left) > ROUNDING * size[:, None, None]).any() or (k > 2 and (strength < -ROUNDING * size).any()):
        expected = f"couplings J [x = y] with J >= 0 besides unary terms (for {name!r}, more than two states)"
        raise InputError("potentials", expected, "another table of two variables", REMEDY)
    return _Split(f, g, np.where(np.abs(strength) < 1e-15 * size, 0.0, strength))


class WolffModel(NamedTuple):
    """A Potts model with the links around each variable, and the variables of each component."""

    phi: FloatArray
    first_state: IntArray
    cards: IntArray
    strength: FloatArray
    bond: FloatArray
    link_place: np.ndarray[tuple[int], np.dtype[np.uint64]]  # (links,) its number in its component
    first: IntArray  # (variables + 1,)
    other: IntArray
    link: IntArray
    begin: IntArray  # (components + 1,)
    member: IntArray  # the variables of each component that have several states
    per_step: IntArray  # (components,) random numbers of a step


def wolff_model(potts: PottsModel, n_components: int) -> WolffModel:
    """Lay out the links around each variable."""
    links = np.arange(len(potts.one))
    ends = np.concatenate([potts.one, potts.two])
    order = np.argsort(ends, kind="stable")
    of_link = potts.component[potts.one]
    several = np.flatnonzero(potts.cards > 1)
    members = several[np.argsort(potts.component[several], kind="stable")]
    return WolffModel(
        potts.phi,
        potts.first_state,
        potts.cards,
        potts.strength,
        potts.bond,
        place_in(of_link).astype(np.uint64),
        starts(np.bincount(ends, minlength=len(potts.cards))),
        np.concatenate([potts.two, potts.one])[order],
        np.concatenate([links, links])[order],
        starts(np.bincount(potts.component[members], minlength=n_components)),
        members,
        2 + np.bincount(of_link, minlength=n_components),
    )
