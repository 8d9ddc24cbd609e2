"""A model in the form that message passing uses: potentials of variables and tables of links (arity two or more).

Factors of arity one, and the evidence, are added to their variable's potential; constants are added to log Z. Every
potential and table is shifted so that its largest logarithm is zero; the sum of the shifts is kept for each component.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from isinglass.graph.message_graph import edges_of, pool_of
from isinglass.inference.message_passing.model.group_places import Places, add_at, layout_of, ones_of
from isinglass.inference.message_passing.shares import component_sums, fill, in_ranges, smallest, zeros
from isinglass.kernels.backend import message_passing_kernels
from isinglass.kernels.layout import SAFE, Edges, Semiring, Values, is_linear
from isinglass.potentials import Potentials
from isinglass.runtime.deferring import defer, deferred
from isinglass.runtime.threads import ThreadMap, team
from isinglass.segments import starts, sum_rows
from isinglass.typing import Array, FloatArray, IntArray, Mask
from isinglass.validation import Evidence

ALONE = team(1)
ROWS = 2**14  # tables of a range, at least
MANY = 2**17  # entries of rows, for which a compiled loop is worth its compilation
BOUND = 1e280  # with shifts below this, no sum of them is infinite


@dataclass(frozen=True, eq=False)
class Block:
    """Where the tables of a group are: rows from `first` on, and, if pairwise, exchanged ones from `flipped` on."""

    group: int
    links: Places
    first: int
    flipped: int
    rows: int
    per_link: bool  # one row for each link, else one for each distinct table


@dataclass(frozen=True, eq=False)
class LinkModel:
    """Log potentials of variables and effective log tables of links, each with a largest entry of zero.

    The tables are followed by the pairwise ones with their axes exchanged, so that the state of either variable can be
    the fastest index.
    """

    phi: Array
    psi: Array
    table: IntArray  # (links,)
    edge_table: IntArray  # (edges,) where a pairwise table starts that has the edge's variable last
    counting: FloatArray
    constant: Array  # (components,) the sum of the shifts; computed when it is first asked for
    bounded: bool  # whether every shift is far from infinite
    least: float  # the smallest entry of phi, at most 0
    low: Mask  # (components,) whether an entry is too small for a linear value
    blocks: tuple[Block, ...]

    @classmethod
    def of(
        cls, potentials: Potentials, counting: FloatArray, own_tables: bool = False, spread: ThreadMap = ALONE
    ) -> LinkModel:
        """Convert potentials; tables are divided by the counting numbers of their links.

        Tables stay shared where that leaves them equal, unless every link gets its own by `own_tables`.
        """
        graph, edges = potentials.graph, edges_of(potentials.graph)
        phi, of_variables, least, size = _variable_potentials(potentials, edges, spread)
        psi, table, edge_table, blocks, of_tables = _effective_tables(potentials, edges, counting, own_tables, spread)
        constant = deferred(lambda: _constant(potentials, of_variables, of_tables, spread))
        bounded = size < BOUND and _are_bounded([*of_tables.values(), *_constants(potentials).values()], spread)
        low = np.zeros(graph.n_components, bool)
        if (tiny := _too_small(phi, least)) is not None:
            low[np.repeat(edges.variable_component, edges.cards)[tiny]] = True
        if (tiny := _too_small(psi, smallest(spread, psi, 0.0))) is not None:
            low[edges.component[links_with(tiny, table, edges.size)]] = True
        return cls(phi, psi, table, edge_table, counting, constant, bounded, least, low, blocks)

    def values(self, semiring: Semiring, raising: FloatArray, spread: ThreadMap = ALONE) -> Values:
        """Return the numbers in the representation of a semiring; `raising` as in `Values`."""
        phi, psi, limit = self.phi, self.psi, 0.0
        if is_linear(semiring):
            phi, psi = _exponentials(phi, spread), _exponentials(psi, spread)
            least = smallest(spread, psi, 1.0)
            if least == 0:
                least = float(psi.real[psi.real > 0].min(initial=1.0))
            limit = SAFE / max(least, SAFE)
        return Values(phi, psi, self.table, self.edge_table, self.counting, raising, limit)

    def gradients(self, potentials: Potentials, phi_bar: Array, psi_bar: Array, z_bar: Array) -> tuple[Array, ...]:
        """Turn derivatives by phi, psi and the constants into those by the distinct tables of each group."""
        graph = potentials.graph
        blocks = {block.group: block for block in self.blocks}
        groups = []
        for g, (group, tables, ids) in enumerate(
            zip(graph.groups, potentials.groups, potentials.table_ids, strict=True)
        ):
            rows: Array
            if group.arity == 0:
                rows = z_bar[graph.factor_component[group.factors]][:, None]
            elif group.arity == 1:
                rows = phi_bar[layout_of(graph).unary[g].entries].reshape(len(group), group.table_size)
            elif g in blocks:
                rows = self._rows(blocks[g], group.shape, psi_bar)
                if not blocks[g].per_link:
                    groups.append(rows.reshape(tables.shape))
                    continue
                rows = rows / self.counting[blocks[g].links][:, None]
            else:
                rows = np.zeros((0, group.table_size), phi_bar.dtype)
            rows = rows if _in_order(potentials, g) else sum_rows(ids, rows, len(tables))
            groups.append(rows.reshape(tables.shape))
        return tuple(groups)

    def _rows(self, block: Block, shape: tuple[int, ...], psi_bar: Array) -> Array:
        """Add the derivatives by a group's tables and by their exchanged copies, (rows, entries)."""
        size = block.rows * int(np.prod(shape))
        rows = psi_bar[block.first : block.first + size].reshape(block.rows, -1)
        if len(shape) == 2:
            flipped = psi_bar[block.flipped : block.flipped + size].reshape(block.rows, shape[1], shape[0])
            rows = rows + flipped.transpose(0, 2, 1).reshape(block.rows, -1)
        return rows


defer(LinkModel, "constant")


def links_with(flags: Mask, table: IntArray, size: IntArray) -> Mask:
    """Tell which links have a flagged entry in their table, given where it starts and its size."""
    before = starts(flags)
    found: Mask = before[table + size] > before[table]
    return found


def observed_entries(edges: Edges, evidence: Evidence) -> tuple[Mask, IntArray]:
    """Return which entries (one for each state of a variable) are of observed variables, and where they were seen."""
    variables, states = (np.fromiter(v, np.int64, len(evidence)) for v in (evidence, evidence.values()))
    observed = np.zeros(len(edges.cards), bool)
    observed[variables] = True
    return np.repeat(observed, edges.cards), edges.first_state[variables] + states


def _variable_potentials(
    potentials: Potentials, edges: Edges, spread: ThreadMap
) -> tuple[Array, FloatArray, float, float]:
    """Return the potentials without each variable's largest entry, these, the smallest potential, the largest shift."""
    card, given = layout_of(potentials.graph).card, only_unary(potentials)
    phi = _sums_of_unary(potentials, edges, spread) if given is None else np.empty(given.size, potentials.dtype)
    if not len(phi):
        return phi, np.zeros(0), 0.0, 0.0
    if not card:
        tops = np.maximum.reduceat(phi.real, edges.first_state[:-1])
        phi -= np.repeat(np.where(tops > -np.inf, tops, 0.0), edges.cards)
        return phi, tops, smallest(spread, phi, 0.0), float(np.abs(tops).max())
    rows, tops, found = phi.reshape(-1, card), np.empty(len(edges.cards)), list[tuple[float, float]]()
    source = rows if given is None else given.reshape(rows.shape)
    in_ranges(spread, len(rows), lambda a, b: found.append(_take_tops(source, rows, tops, a, b)), ROWS)
    least, size = zip(*found, strict=True)
    return phi, tops, float(np.min(least)), float(np.max(size))


def only_unary(potentials: Potentials) -> Array | None:
    """Return the tables of the factors of arity one, if each variable has one, in order, and none is observed."""
    graph, unary = potentials.graph, layout_of(potentials.graph).unary
    size = int(edges_of(graph).first_state[-1])
    for g, places in unary.items() if len(unary) == 1 and not potentials.evidence else ():
        if isinstance(places.entries, slice) and potentials.groups[g].size == size and _in_order(potentials, g):
            return potentials.groups[g]
    return None


def _sums_of_unary(potentials: Potentials, edges: Edges, spread: ThreadMap) -> Array:
    """Add the factors of arity one and the evidence."""
    phi = zeros(spread, (int(edges.first_state[-1]),), potentials.dtype)
    for g, places in layout_of(potentials.graph).unary.items():
        tables, ids = potentials.groups[g], potentials.table_ids[g]
        add_at(phi, places, (tables if _in_order(potentials, g) else tables[ids]).ravel(), spread)
    if potentials.evidence:
        observed, seen = observed_entries(edges, potentials.evidence)
        kept = phi[seen]
        phi[observed], phi[seen] = -np.inf, kept
    return phi


def _constants(potentials: Potentials) -> dict[int, Array]:
    """Return the values of the factors of each group of arity zero."""
    groups = enumerate(potentials.graph.groups)
    return {g: potentials.groups[g][potentials.table_ids[g]] for g, group in groups if group.arity == 0}


def _constant(
    potentials: Potentials, of_variables: FloatArray, of_tables: dict[int, FloatArray], spread: ThreadMap
) -> Array:
    """Add up the shifts of each component, and the factors of arity zero, in the order of variables and factors."""
    graph, layout, pool = potentials.graph, layout_of(potentials.graph), pool_of(potentials.graph)
    n, taken = graph.n_components, pool.take((graph.n_factors,), potentials.dtype)
    fill(spread, taken, 0)
    for g, values in _constants(potentials).items():
        taken[graph.groups[g].factors] = values
    for g, tops in of_tables.items():
        _put(taken, layout.links[g].factors, tops, potentials.table_ids[g], spread)
    total: Array = component_sums(spread, graph.variable_component, layout.variable_starts, of_variables, n)
    total = total.astype(potentials.dtype)
    total = total + component_sums(spread, graph.factor_component, layout.factor_starts, taken, n)
    pool.give(taken)
    return total


def _are_bounded(shifts: list[Array], spread: ThreadMap) -> bool:
    """Tell whether no shift is infinite, or so large that a sum might be."""
    return all(smallest(spread, -np.abs(some), 0.0) > -BOUND for some in shifts)


def _effective_tables(
    potentials: Potentials,
    edges: Edges,
    counting: FloatArray,
    own_tables: bool,
    spread: ThreadMap,
) -> tuple[Array, IntArray, IntArray, tuple[Block, ...], dict[int, FloatArray]]:
    """Scale tables to a largest entry of zero and divide by the counting number; keep them shared if all are one.

    Also returns the largest entries of the distinct tables of each group.
    """
    graph = potentials.graph
    places = layout_of(graph).links
    ones = counting is ones_of(graph)
    per_link = {g: own_tables or not (ones or (counting[p.links] == 1).all()) for g, p in places.items()}
    table, edge_table, blocks, size = _where(potentials, per_link)
    psi, tops = np.empty(size, potentials.dtype), dict[int, FloatArray]()
    for block in blocks:
        g = block.group
        divisor = counting[places[g].links] if per_link[g] else None
        shape, ids = graph.groups[g].shape, potentials.table_ids[g]
        tops[g] = _scale(potentials.groups[g], ids, divisor, block, psi, shape, spread)
    return psi, table, edge_table, blocks, tops


def _scale(
    tables: Array,
    ids: IntArray,
    divisor: FloatArray | None,
    block: Block,
    psi: Array,
    shape: tuple[int, ...],
    spread: ThreadMap,
) -> FloatArray:
    """Write the tables of a block to psi, scaled, and the exchanged ones of pairs; return their largest entries.

    With a `divisor` for each link, every link has a table.
    """
    rows, tops = tables.reshape(len(tables), -1), np.empty(len(tables))
    size = block.rows * rows.shape[1]
    scaled = psi[block.first : block.first + size].reshape(block.rows, -1)
    flipped = psi[block.flipped : block.flipped + size].reshape(block.rows, *shape[::-1]) if len(shape) == 2 else None

    def largest(first: int, last: int) -> None:
        tops[first:last] = _largest(rows[first:last])

    def scale(first: int, last: int) -> None:
        part = scaled[first:last]
        if divisor is None:
            _take_tops(rows, scaled, tops, first, last)
        else:
            mine = ids[first:last]
            np.subtract(rows[mine], _shift(tops[mine])[:, None], out=part)
            np.divide(part, divisor[first:last, None], out=part, where=part.real > -np.inf)
        if flipped is not None:
            flipped[first:last] = part.reshape(-1, *shape).transpose(0, 2, 1)

    if divisor is not None:
        in_ranges(spread, len(rows), largest, ROWS)
    in_ranges(spread, block.rows, scale, ROWS)
    return tops


class _Found(NamedTuple):
    """Where the tables of links and edges start, the blocks and their entries, for these arrays of table ids."""

    ids: tuple[IntArray, ...]
    table: IntArray
    edge_table: IntArray
    blocks: tuple[Block, ...]
    size: int

    def fits(self, ids: tuple[IntArray, ...]) -> bool:
        """Tell whether the ids are the same arrays that it was found for."""
        return all(a is b for a, b in zip(self.ids, ids, strict=True))


def _where(potentials: Potentials, per_link: dict[int, bool]) -> tuple[IntArray, IntArray, tuple[Block, ...], int]:
    """Return what `_Found` has; it is kept while the ids stay the same arrays."""
    ids = tuple(potentials.table_ids[g] for g in per_link)
    key = ("tables", tuple(len(potentials.groups[g]) for g in per_link), tuple(per_link.values()))
    found = potentials.graph.cached(key, lambda: _find(potentials, per_link, ids), lambda kept: kept.fits(ids))
    return found[1:]


def _find(potentials: Potentials, per_link: dict[int, bool], given: tuple[IntArray, ...]) -> _Found:
    graph, edges = potentials.graph, edges_of(potentials.graph)
    table, edge_table = np.zeros(len(edges.link_factor), np.int64), np.zeros(len(edges.edge_link), np.int64)
    blocks: list[Block] = []
    total = 0
    for g, place in layout_of(graph).links.items():
        ids = np.arange(len(graph.groups[g])) if per_link[g] else potentials.table_ids[g]
        rows = len(ids) if per_link[g] else len(potentials.groups[g])
        table[place.links] = total + ids * graph.groups[g].table_size
        blocks.append(Block(g, place.links, total, 0, rows, per_link[g]))
        total += rows * graph.groups[g].table_size
    for j, block in enumerate(blocks):
        if graph.groups[block.group].arity == 2:
            blocks[j] = replace(block, flipped=total)
            ends, starts = layout_of(graph).links[block.group].ends, table[block.links]
            edge_table[ends[1]] = starts
            edge_table[ends[0]] = starts + (total - block.first)
            total += block.rows * graph.groups[block.group].table_size
    return _Found(given, table, edge_table, tuple(blocks), total)


def _too_small(logs: Array, least: float) -> Mask | None:
    """Tell which entries are too small for a linear value, though not zero; None if none is, by the smallest."""
    if not least < np.log(SAFE):
        return None
    tiny: Mask = (logs.real < np.log(SAFE)) & (logs.real > -np.inf)
    return tiny


def _put(out: Array, places: Places, tops: FloatArray, ids: IntArray, spread: ThreadMap) -> None:
    """Write the number of each factor's table to its place; no two factors have the same."""

    def put(first: int, last: int) -> None:
        if isinstance(places, slice):
            out[places][first:last] = tops[ids[first:last]]
        else:
            out[places[first:last]] = tops[ids[first:last]]

    in_ranges(spread, len(ids), put)


def _in_order(potentials: Potentials, g: int) -> bool:
    """Tell whether each factor of a group has a table of its own, in their order; known while the ids are the same."""
    ids, n = potentials.table_ids[g], len(potentials.groups[g])

    def look() -> tuple[IntArray, int, bool]:
        return ids, n, len(ids) == n and bool((ids[1:] > ids[:-1]).all())

    return potentials.graph.cached(("in order", g), look, lambda kept: kept[0] is ids and kept[1] == n)[2]


def _largest(rows: Array) -> FloatArray:
    """Return the largest real part of each row (much faster than along short rows)."""
    tops: FloatArray = np.maximum.reduce(np.ascontiguousarray(rows.real.T))
    return tops


def _shift(tops: FloatArray) -> FloatArray:
    """Return what is taken from rows with these largest entries."""
    return np.where(tops > -np.inf, tops, 0.0)


def _take_tops(rows: Array, out: Array, tops: FloatArray, first: int, last: int) -> tuple[float, float]:
    """Write the largest real part of the rows ``first:last``, and the rows without it.

    Returns the smallest real part that was written, at most zero, and the largest size of a shift.
    """
    if rows.size >= MANY and rows.dtype == np.float64 and rows.flags.c_contiguous:
        return message_passing_kernels().take_tops(rows, out, tops, first, last)
    part = slice(first, last)
    tops[part] = _largest(rows[part])
    np.subtract(rows[part], _shift(tops[part])[:, None], out=out[part])
    return float(out[part].real.min(initial=0.0)), float(np.abs(tops[part]).max(initial=0.0))


def _exponentials(logs: Array, spread: ThreadMap) -> Array:
    out = np.empty_like(logs)
    in_ranges(spread, len(logs), lambda a, b: np.exp(logs[a:b], out=out[a:b]))
    return out
