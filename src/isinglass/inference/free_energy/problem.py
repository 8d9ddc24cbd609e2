"""A convex free energy in flat arrays, component by component, without what hard zeros and evidence remove.

The tables of factors of arity one belong to their variables, and constants to log Z. Arrays over *states* (of
variables) and *entries* (configurations of links, the factors with two or more variables) are sorted by component, so
that a component is contiguous, and its numbers do not depend on the other components.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from isinglass.graph.factor_graph import FactorGraph, iter_groups
from isinglass.graph.layout import belief_entries, first_beliefs, first_states
from isinglass.graph.message_graph import edges_of
from isinglass.inference.free_energy.layout import Layout, Structure, Tie, lay_out
from isinglass.inference.message_passing.model.group_places import layout_of, move_unary_bars, share_unary_beliefs
from isinglass.inference.support import Support, support_of, ties_of
from isinglass.potentials import Potentials
from isinglass.segments import ranges, starts, sum_at
from isinglass.typing import Array, FloatArray, IntArray, Mask

if TYPE_CHECKING:
    from isinglass.kernels.numba.free_energy.newton import Blocks


FLOOR = 1e-16  # least belief during the iteration: it bounds the condition of the linear system
LOWEST = 1e-200  # least final belief
INSIDE = 1e-12  # least initial belief: large enough that rounding does not hide its growth
LEAST_MASS = 0.5  # least mass of given beliefs on the remaining states of a region; with less they are ignored


class Shape(NamedTuple):
    """The structure of a problem: where its states and entries are in results, and the linear system."""

    state_at: IntArray  # (states,) in the flat beliefs of variables
    entry_at: IntArray  # (entries,) in the flat beliefs of factors
    state_component: IntArray
    entry_component: IntArray
    blocks: Blocks
    layout: Layout


@dataclass(frozen=True, eq=False)
class Problem:
    """Costs v = -log tables and weights w of what is left, and the constants."""

    potentials: Potentials
    shape: Shape
    vp: Array
    vq: Array
    wp: FloatArray
    wq: FloatArray
    constant: Array  # (components,)

    @classmethod
    def of(cls, potentials: Potentials, wp: FloatArray, wq: FloatArray, system: str = "auto") -> Problem:
        """Build the problem; `wp` and `wq` are weights by state and by configuration, flat, as in results."""
        graph, support = potentials.graph, support_of(potentials)
        real = potentials.dtype.kind == "f"
        shape = graph.cached(("convex", support.key, real, system), lambda: _shape(graph, support, real, system))
        phi, tables = np.zeros(int(first_states(graph)[-1]), potentials.dtype), []
        constant = np.zeros(graph.n_components, potentials.dtype)
        for (group, _), distinct, ids in zip(iter_groups(graph), potentials.groups, potentials.table_ids, strict=True):
            rows = distinct[ids].ravel()
            tables.append(rows)
            if group.arity == 0:
                constant += sum_at(graph.factor_component[group.factors], rows, graph.n_components)
        flat = np.concatenate([np.zeros(0, potentials.dtype), *tables])
        move_unary_bars(graph, np.where(flat.real > -np.inf, flat, 0), phi)
        return cls(
            potentials, shape, -phi[shape.state_at], -flat[shape.entry_at], wp[shape.state_at], wq[shape.entry_at],
            constant,
        )  # fmt: skip

    @property
    def n_components(self) -> int:
        """Number of components."""
        return len(self.shape.blocks.first_variable) - 1

    def start(self, variables: Array | None = None, factors: Array | None = None) -> tuple[Array, Array]:
        """Return initial beliefs: uniform over the remaining states, or given ones (flat), moved into the interior.

        Given beliefs are ignored in components where some region has most of its mass on removed states. With complex
        potentials they are those of a minimum, and are not moved.
        """
        dtype, blocks = self.potentials.dtype, self.shape.blocks
        sizes = np.diff(blocks.first_entry)
        start = [np.repeat(1 / n, n).astype(dtype) for n in (blocks.cards, sizes)]
        if variables is None or factors is None:
            return start[0], start[1]
        given = variables[self.shape.state_at], factors[self.shape.entry_at]
        owners = self.shape.state_component, self.shape.entry_component
        firsts, useless = (blocks.first_state, blocks.first_entry), np.zeros(self.n_components, bool)
        for b, first, owner in zip(given, firsts, owners, strict=True):
            if len(b):
                mass = np.add.reduceat(np.clip(b.real, 0, 1), first[:-1])
                useless[owner[first[:-1]][~(mass >= LEAST_MASS)]] = True
        return tuple(
            np.where(useless[owner], cold, inside(b, INSIDE if dtype.kind == "f" else FLOOR)).astype(dtype)
            for cold, b, owner in zip(start, given, owners, strict=True)
        )  # type: ignore[return-value]

    def energy(self, p: Array, q: Array) -> Array:
        """Return the free energy of each component, constants included."""
        n, shape = self.n_components, self.shape
        of_states = p * (self.wp * _log(p) + self.vp)
        of_entries = q * (self.wq * _log(q) + self.vq)
        total = sum_at(shape.state_component, of_states, n) + sum_at(shape.entry_component, of_entries, n)
        return np.asarray(total - self.constant)

    def beliefs(self, p: Array, q: Array) -> tuple[Array, Array]:
        """Return the flat beliefs of variables and factors, as results hold them; zero for what was removed."""
        graph = self.potentials.graph
        variables = np.zeros(int(first_states(graph)[-1]), p.dtype)
        factors = np.zeros(belief_entries(graph), p.dtype)
        variables[self.shape.state_at], factors[self.shape.entry_at] = p, q
        share_unary_beliefs(graph, variables, factors)
        return variables, factors

    def gathered(self, variables_bar: Array, factors_bar: Array) -> tuple[Array, Array]:
        """Return derivatives by the beliefs of results as ones by p and q."""
        variables = variables_bar.copy()
        move_unary_bars(self.potentials.graph, factors_bar, variables)
        return variables[self.shape.state_at], factors_bar[self.shape.entry_at]

    def to_tables(self, by_p: Array, by_q: Array) -> list[Array]:
        """Return derivatives by v as tables of factors, (factors, k_1, ..., k_r) for each group."""
        graph, layout = self.potentials.graph, layout_of(self.potentials.graph)
        states = np.zeros(int(first_states(graph)[-1]), by_p.dtype)
        entries = np.zeros(belief_entries(graph), by_p.dtype)
        states[self.shape.state_at], entries[self.shape.entry_at] = by_p, by_q
        parts = []
        for g, (group, part) in enumerate(iter_groups(graph)):
            flat = states[layout.unary[g].entries] if group.arity == 1 else entries[part]
            parts.append(flat.reshape(len(group), *group.shape))
        return parts


def inside(b: Array, least: float = INSIDE) -> Array:
    """Move beliefs into the interior."""
    return np.asarray(np.where(b.real < least, least, b))


def _log(b: Array) -> Array:
    """Return logarithms; zero where a belief has underflowed, which then counts nothing."""
    return np.log(np.where(b.real > 0, b, 1))


def _shape(graph: FactorGraph, support: Support, banded: bool, system: str) -> Shape:
    """Number what is left, component by component."""
    edges, first = edges_of(graph), first_states(graph)
    variables = np.argsort(graph.variable_component, kind="stable")
    links = np.argsort(edges.component, kind="stable")
    sizes = np.add.reduceat(support.states, first[:-1], dtype=np.int64) if graph.n_variables else graph.cards
    number, cards = np.empty_like(variables), sizes[variables]
    number[variables] = np.arange(len(variables))
    order = ranges(first[variables], graph.cards[variables])
    state_at = order[support.states[order]]
    rank = _ranks(support.states, first)
    parts = _links(graph, support, links, rank)
    slot_order = ranges(edges.first_slot[links], np.diff(edges.first_slot)[links])
    structure = Structure(
        cards, graph.variable_component[variables], number[edges.slot_variable[slot_order]],
        np.diff(edges.first_slot)[links], parts.sizes, parts.general, parts.digits, edges.component[links], parts.ties,
        graph.n_components,
    )  # fmt: skip
    blocks, layout = lay_out(structure, banded, system)
    state_component = np.repeat(graph.variable_component[variables], cards)
    entry_component = np.repeat(edges.component[links], parts.sizes)
    return Shape(state_at, parts.entry_at, state_component, entry_component, blocks, layout)


class _Links(NamedTuple):
    """Links in their new order: how many configurations are left, where, and the states of general ones."""

    sizes: IntArray
    general: Mask
    entry_at: IntArray
    digits: list[IntArray]  # (configurations, arity), for general links
    ties: list[Tie]


def _links(graph: FactorGraph, support: Support, links: IntArray, rank: IntArray) -> _Links:
    edges, first, first_state = edges_of(graph), first_beliefs(graph), first_states(graph)
    begin, whole = first[edges.link_factor[links]], edges.size[links]
    entries = ranges(begin, whole)
    left = support.entries[entries]
    owner = np.repeat(np.arange(len(links)), whole)
    sizes = np.bincount(owner[left], minlength=len(links))
    arity = np.diff(edges.first_slot)[links]
    counts = np.add.reduceat(support.states, first_state[:-1], dtype=np.int64) if graph.n_variables else graph.cards
    dense, digits, ties = np.zeros(len(links), bool), [], []
    pairs = arity == 2
    slots = edges.first_slot[links]
    if pairs.any():
        one, two = edges.slot_variable[slots[pairs]], edges.slot_variable[slots[pairs] + 1]
        dense[pairs] = sizes[pairs] == counts[one] * counts[two]
    for a in np.flatnonzero(~dense).tolist():
        scope = edges.slot_variable[slots[a] : slots[a] + arity[a]]
        kept = np.flatnonzero(support.entries[begin[a] : begin[a] + whole[a]])
        full = np.stack(np.unravel_index(kept, tuple(graph.cards[scope].tolist())), axis=1)
        local = rank[first_state[scope] + full]
        digits.append(np.ascontiguousarray(local))
        if sizes[a] < np.prod(counts[scope]):
            found = ties_of(digits[-1], tuple(counts[scope].tolist()))
            ties += [Tie(a, row) for row in found]
    return _Links(sizes, ~dense, entries[left], digits, ties)


def _ranks(kept: Mask, first: IntArray) -> IntArray:
    """Return the number of each kept state among those of its variable."""
    before = starts(kept)
    ranks: IntArray = before[:-1] - np.repeat(before[first[:-1]], np.diff(first))
    return ranks
