"""The layout of a convex free energy in arrays: variables and links, unknowns, ties, and places in matrices."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from isinglass.inference.free_energy.linear.system import Local, Pattern
from isinglass.runtime.caching import Cache
from isinglass.segments import starts
from isinglass.typing import FloatArray, IntArray, Mask

if TYPE_CHECKING:
    from isinglass.kernels.numba.free_energy.newton import Blocks
    from isinglass.kernels.numba.free_energy.ties import Ties


KEPT = 8
_LAST = Cache(KEPT)


class Tie(NamedTuple):
    """A linear equation between the beliefs of a link's variables: coefficients of all their states."""

    link: int
    row: FloatArray


class Structure(NamedTuple):
    """Variables and links, both sorted by component, with what is left of their states and configurations."""

    cards: IntArray  # (variables,)
    variable_component: IntArray
    slot_variable: IntArray
    arity: IntArray  # (links,)
    sizes: IntArray
    general: Mask
    digits: list[IntArray]  # (configurations, arity), of general links
    link_component: IntArray
    ties: list[Tie]
    n_components: int

    def first_of(self, component: IntArray) -> IntArray:
        """Return where the components begin in something sorted by component."""
        return np.searchsorted(component, np.arange(self.n_components + 1)).astype(np.int64)


class Layout(NamedTuple):
    """The patterns of components, and where their unknowns begin."""

    patterns: list[Pattern]  # (components,), equal ones shared
    first_unknown: IntArray  # (components + 1,)
    ties: Ties


class _Places(NamedTuple):
    """Where lower triangles go: all places, and where those of each variable, link and tie begin."""

    patterns: list[Pattern]
    target: IntArray
    variable: IntArray
    link: IntArray
    tie: IntArray
    first_value: IntArray  # (components + 1,)


def lay_out(s: Structure, banded: bool, system: str = "auto") -> tuple[Blocks, Layout]:
    """Number the unknowns and find the patterns of their system."""
    from isinglass.kernels.numba.free_energy.newton import Blocks

    ties = _flat_ties(s)
    places = _places(s, ties, banded, system)
    unknowns = np.bincount(s.variable_component, s.cards - 1, s.n_components).astype(np.int64) + np.diff(ties.first_tie)
    first_unknown = starts(unknowns)
    component = s.link_component[ties.link]
    of_ties = first_unknown[1:][component] - ties.first_tie[1:][component] + np.arange(len(component))
    first_slot, m = starts(s.arity), _unknowns_of_links(s)
    blocks = Blocks(
        cards=s.cards,
        first_state=starts(s.cards),
        first_unknown=starts(s.cards - 1)[:-1] + ties.first_tie[s.variable_component],
        variable_target=places.variable,
        first_slot=first_slot,
        slot_variable=s.slot_variable,
        slot_first=starts(s.cards[s.slot_variable]),
        kind=_kinds(s),
        first_entry=starts(s.sizes),
        first_digit=starts(np.where(s.general, s.sizes * s.arity, 0))[:-1],
        digits=np.concatenate([np.zeros(0, np.int64), *(d.ravel() for d in s.digits)]),
        first_work=starts(np.where(s.general, (m + 1) ** 2, _ends(s, 0) + (_ends(s, 1) - 1) ** 2)),
        link_target=places.link,
        target=places.target,
        first_variable=s.first_of(s.variable_component),
        first_link=s.first_of(s.link_component),
        first_value=places.first_value,
    )
    ties = ties._replace(unknown=of_ties, target=places.target, first_target=places.tie)
    return blocks, Layout(places.patterns, first_unknown, ties)


def _kinds(s: Structure) -> IntArray:
    from isinglass.kernels.numba.free_energy.newton import GENERAL, PAIR, TWO

    two = (_ends(s, 0) == 2) & (_ends(s, 1) == 2)
    return np.where(s.general, GENERAL, np.where(two, TWO, PAIR)).astype(np.int64)


def _ends(s: Structure, end: int) -> IntArray:
    """Return the cards of the first or the last slot of each link."""
    first_slot = starts(s.arity)
    places = first_slot[:-1] if end == 0 else first_slot[1:] - 1
    return s.cards[s.slot_variable[places]]


def _unknowns_of_links(s: Structure) -> IntArray:
    if not len(s.arity):
        return np.zeros(0, np.int64)
    return np.asarray(np.add.reduceat(s.cards[s.slot_variable] - 1, starts(s.arity)[:-1]))


def _flat_ties(s: Structure) -> Ties:
    """Lay out ties; unknowns and places come later."""
    from isinglass.kernels.numba.free_energy.ties import Ties

    first_slot, none = starts(s.arity), np.zeros(0, np.int64)
    link = np.array([tie.link for tie in s.ties], np.int64)
    scopes = [s.slot_variable[first_slot[a] : first_slot[a + 1]] for a in link.tolist()]
    variable = np.concatenate([none, *scopes])
    row = np.concatenate([np.zeros(0), *(tie.row for tie in s.ties)])
    first = starts(s.arity[link])
    first_tie = s.first_of(s.link_component[link])
    return Ties(link, first, variable, starts(s.cards[variable]), row, none, none, none, first_tie)


def _places(s: Structure, ties: Ties, banded: bool, system: str) -> _Places:
    """Find the pattern of each component, and the places of all that is added up in its matrix."""
    m = _unknowns_of_links(s)
    lengths = ((s.cards - 1) * s.cards // 2, m * (m + 1) // 2, m[ties.link] + 1)
    begin = [np.zeros(len(length), np.int64) for length in lengths]
    ranges = (s.first_of(s.variable_component), s.first_of(s.link_component), ties.first_tie)
    known: dict[bytes, Pattern] = {}
    patterns, targets, values, place = [], [np.zeros(0, np.int64)], [0], 0
    for c in range(s.n_components):
        parts = [slice(int(a[c]), int(a[c + 1])) for a in ranges]
        local = _local(s, ties, *parts)
        key = local.key()
        if key not in known:
            known[key] = pattern_of(local, key, banded, system)
        patterns.append(known[key])
        targets.append(known[key].target + values[-1])
        values.append(values[-1] + known[key].size)
        for at, length, part in zip(begin, lengths, parts, strict=True):
            at[part] = place + starts(length[part])[:-1]
            place += int(length[part].sum())
    variable, link, tie = begin
    return _Places(patterns, np.concatenate(targets), variable, link, tie, np.array(values, np.int64))


def pattern_of(local: Local, key: bytes, banded: bool, system: str) -> Pattern:
    """Return the pattern of a structure; recent ones are cached, because many examples have the same shape."""
    digest = hashlib.sha256(key).digest() + bytes([banded]) + system.encode()
    return _LAST.get(digest, lambda: local.pattern(banded, system))


def _local(s: Structure, ties: Ties, variables: slice, links: slice, of_ties: slice) -> Local:
    """Cut out the structure of a component."""
    first_slot = starts(s.arity)
    slots = slice(int(first_slot[links.start]), int(first_slot[links.stop]))
    scopes = [
        ties.variable[ties.first[j] : ties.first[j + 1]] - variables.start for j in range(of_ties.start, of_ties.stop)
    ]
    return Local(s.cards[variables], s.slot_variable[slots] - variables.start, s.arity[links], scopes)
