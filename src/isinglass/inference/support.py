"""The support of a model: the states and configurations that hard zeros and evidence allow (arc consistency).

A configuration of a factor is removed if its table forbids it or if one of its states was removed. A state is removed
if some factor allows no configuration with it. The remaining configurations of a factor may imply linear equations
between the marginals of its variables. For instance, if only equal states are allowed, the marginals are equal. Such
*ties* are the vectors z with z'm = 0 for the marginals m of every remaining configuration, apart from those that only
say that all marginals have the same sum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isinglass.errors import ImpossibleEvidenceError
from isinglass.graph.factor_graph import FactorGroup, iter_groups
from isinglass.graph.layout import belief_entries, first_states
from isinglass.inference.evidence import impossible
from isinglass.potentials import Potentials
from isinglass.runtime.caching import Cache
from isinglass.segments import starts
from isinglass.typing import FloatArray, IntArray, Mask

_TIES = Cache(4096)


class Support(NamedTuple):
    """Flags of the remaining states of variables and configurations of factors (flat, as in results)."""

    states: Mask
    entries: Mask

    @property
    def full(self) -> bool:
        """Whether nothing was removed."""
        return bool(self.states.all() and self.entries.all())

    @property
    def key(self) -> bytes:
        """The support as a key of a cache."""
        return b"" if self.full else np.packbits(self.states).tobytes() + b"/" + np.packbits(self.entries).tobytes()


def support_of(potentials: Potentials) -> Support:
    """Compute the support: remove states and configurations until every state has a configuration in every factor."""
    graph, first = potentials.graph, first_states(potentials.graph)
    states, entries = np.ones(int(first[-1]), bool), np.ones(belief_entries(graph), bool)
    for variable, state in potentials.evidence.items():
        states[first[variable] : first[variable + 1]] = False
        states[first[variable] + state] = True
    soft = all((tables.real > -np.inf).all() for tables in potentials.groups)
    if not soft:
        for (_, part), tables, ids in zip(iter_groups(graph), potentials.groups, potentials.table_ids, strict=True):
            entries[part] = (tables.real > -np.inf)[ids].ravel()
    support = Support(states, entries)
    while not (soft and states.all()) and _narrow(potentials, support):
        pass
    counts = np.add.reduceat(states, first[:-1], dtype=np.int64) if len(states) else np.zeros(0, np.int64)
    constants = [entries[part] for group, part in iter_groups(graph) if group.arity == 0]
    if (counts == 0).any() or not all(part.all() for part in constants):
        raise ImpossibleEvidenceError(impossible(potentials))
    return support


def _narrow(potentials: Potentials, support: Support) -> bool:
    """Pass once over all factors; return whether a state or configuration was removed."""
    graph, first = potentials.graph, first_states(potentials.graph)
    before = int(support.states.sum()) + int(support.entries.sum())
    for group, part in iter_groups(graph):
        if not len(group) or group.arity == 0:
            continue
        left = support.entries[part].reshape(len(group), *group.shape)
        for slot, card in enumerate(group.shape):
            places = first[group.scopes[:, slot]][:, None] + np.arange(card)
            left &= support.states[places].reshape(_along(group, slot, len(group)))
        for slot, card in enumerate(group.shape):
            places = first[group.scopes[:, slot]][:, None] + np.arange(card)
            others = tuple(a + 1 for a in range(group.arity) if a != slot)
            gone = places[~left.any(axis=others)]
            support.states[gone] = False
        support.entries[part] = left.ravel()
    return int(support.states.sum()) + int(support.entries.sum()) < before


def _along(group: FactorGroup, slot: int, length: int) -> list[int]:
    return [length] + [k if a == slot else 1 for a, k in enumerate(group.shape)]


def ties_of(digits: IntArray, cards: tuple[int, ...]) -> FloatArray:
    """Return the ties of a factor, (ties, states of all its variables), given its remaining configurations.

    Examples
    --------
    >>> ties_of(np.array([[0, 0], [1, 1]]), (2, 2)).shape
    (1, 4)
    >>> ties_of(np.array([[0, 0], [0, 1], [1, 1]]), (2, 2)).shape
    (0, 4)
    """
    return _TIES.get((digits.tobytes(), digits.shape, cards), lambda: _ties(digits, cards))


def _ties(states: IntArray, cards: tuple[int, ...]) -> FloatArray:
    from scipy.linalg import null_space

    first = starts(cards)
    marginals = np.zeros((len(states), first[-1]))
    for slot, start in enumerate(first[:-1]):
        marginals[np.arange(len(states)), start + states[:, slot]] = 1
    trivial = np.zeros((len(cards) - 1, first[-1]))
    for slot in range(1, len(cards)):
        trivial[slot - 1, : first[1]] = 1
        trivial[slot - 1, first[slot] : first[slot + 1]] = -1
    found: FloatArray = null_space(np.concatenate([marginals, trivial])).T
    found[np.abs(found) < 1e-12] = 0
    return found
