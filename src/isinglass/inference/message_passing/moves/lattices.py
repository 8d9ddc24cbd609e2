"""Where the regular grids of a graph lie in planes, one run of sites for each state; see `kernels.numba.grids`.

Grids of one size and number of states share their planes, one after the other, each with a border of one site.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.grids import component_shapes, grid_shape
from isinglass.graph.message_graph import edges_of
from isinglass.inference.message_passing.model.group_places import Places, as_places
from isinglass.inference.message_passing.moves.planes import collect, spread_out, work_of
from isinglass.inference.message_passing.shares import block_count, cut
from isinglass.kernels.backend import GridKernels
from isinglass.kernels.layout import PlaneSteps
from isinglass.runtime.cached_property import cached_property
from isinglass.runtime.threads import ThreadMap
from isinglass.segments import distinct_rows
from isinglass.typing import FloatArray, IntArray, Mask


@dataclass(frozen=True, eq=False)
class Lattice:
    """Where the sites, messages and links of some components, grids of one size, lie in planes with a border."""

    card: int
    height: int
    width: int
    members: IntArray  # (grids,) the components
    entries: Places  # of the potentials of their variables, grid after grid
    messages: Places  # entries of their messages
    links: Places
    edge_place: IntArray  # (their edges,) where the first entry of the message to a site lies in planes
    link_site: IntArray  # (their links,) of the left or upper end
    link_axis: IntArray  # (their links,) 0 to the right, 1 downwards

    @cached_property
    def pitch(self) -> int:
        """How far a site is from the one below it."""
        return self.width + 2

    @cached_property
    def sites_of_one(self) -> int:
        """Of a grid, with its border."""
        return (self.height + 2) * self.pitch

    @cached_property
    def sites(self) -> int:
        """Of a plane."""
        return len(self.members) * self.sites_of_one

    @cached_property
    def steps(self) -> PlaneSteps:
        """Where the numbers of a site lie."""
        one, sites = self.sites_of_one, self.sites
        return PlaneSteps(self.card * sites, sites, one, one, self.pitch, self.pitch + 1, sites)

    @cached_property
    def steps_of_one(self) -> PlaneSteps:
        """The same for messages in planes for one grid; potentials are in planes of all."""
        return self.steps._replace(direction=self.card * self.sites_of_one, state=self.sites_of_one, grid=0)

    @property
    def in_order(self) -> bool:
        """Whether the variables of the graph are the sites, grid after grid and row by row."""
        return isinstance(self.entries, slice) and self.entries.start == 0

    @property
    def border(self) -> int:
        """How many rows and columns there are around a grid that are not sites."""
        return 1

    def by_grids(self, planes: FloatArray) -> FloatArray:
        """Return the messages as (grids, directions, states, rows, columns), with the border."""
        return np.moveaxis(planes.reshape(4, self.card, -1, self.height + 2, self.width + 2), 2, 0)

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Of messages: directions, states, sites."""
        return 4, self.card, self.sites

    @cached_property
    def shape_of_one(self) -> tuple[int, int, int]:
        """Of messages in planes for one grid."""
        return 4, self.card, self.sites_of_one

    def of_all(self, planes: FloatArray) -> FloatArray:
        """Return the messages of all grids, from planes for all or for one."""
        return planes if planes.shape == self.shape else np.tile(planes, len(self.members))

    def inside(self, plane: FloatArray) -> FloatArray:
        """Return the sites of planes that are not on a border, (states, grids, height, width)."""
        return plane.reshape(self.card, -1, self.height + 2, self.width + 2)[:, :, 1:-1, 1:-1]

    @cached_property
    def row_blocks(self) -> list[tuple[int, int]]:
        """The rows of each block of a grid; one block, if it is small. The first row has the number 1."""
        count = block_count(2 * work_of(self))
        return [(first + 1, last + 1) for first, last in cut(self.height, count)]

    def first_link(self, axis: int) -> int:
        """Return the first link of an axis in a grid: horizontal ones come first."""
        return axis * self.height * (self.width - 1)

    @property
    def of_edges(self) -> tuple[IntArray, int, int]:
        """What the loops `spread` and `collect` need to know."""
        return self.edge_place, self.card, self.sites

    def spread(self, kernels: GridKernels, threads: ThreadMap, m: FloatArray, planes: FloatArray) -> None:
        """Write messages of the graph to their places in planes."""
        spread_out(kernels, threads, m[self.messages], planes, self.of_edges)

    def collect(self, kernels: GridKernels, threads: ThreadMap, planes: FloatArray, m: FloatArray) -> None:
        """Write the messages in planes to their places in those of the graph."""
        part = m[self.messages]
        collect(kernels, threads, planes, part, self.of_edges)
        if not isinstance(self.messages, slice):  # else it is a view
            m[self.messages] = part

    def collected(self, kernels: GridKernels, threads: ThreadMap, planes: FloatArray) -> FloatArray:
        """Return the messages in planes, where the graph has no others."""
        m = np.empty(len(self.edge_place) * self.card)
        self.collect(kernels, threads, planes, m)
        return m


def lattices_of(graph: FactorGraph) -> tuple[Lattice, ...]:
    """Return the lattices of those components that are regular grids, of two rows and columns or more.

    Examples
    --------
    >>> import isinglass as ig
    >>> graph = ig.disjoint_union([ig.grid_graph(2, 3, 2), ig.chain_graph(4, 2), ig.grid_graph(2, 3, 2)])
    >>> [(one.height, one.width, one.members.tolist()) for one in lattices_of(graph)]
    [(2, 3, [0, 2])]
    """
    return graph.cached("lattices", lambda: _find(graph))


def lattice_of(graph: FactorGraph) -> Lattice | None:
    """Return the lattice of all components, if they are regular grids of one size; None for other graphs."""
    found = () if grid_shape(graph) is None else lattices_of(graph)
    return found[0] if len(found) == 1 and len(found[0].members) == graph.n_components else None


def part_of(graph: FactorGraph, lattice: Lattice, wanted: Mask) -> Lattice:
    """Return the lattice of those of its grids that are wanted."""
    if wanted.all():
        return lattice
    return _make(graph, lattice.card, lattice.height, lattice.width, lattice.members[wanted])


def _find(graph: FactorGraph) -> tuple[Lattice, ...]:
    kinds = _kinds(graph)
    found = []
    first, kind = distinct_rows(kinds)
    for number, (card, height, width) in enumerate(kinds[first].tolist()):
        if card:
            found.append(_make(graph, card, height, width, np.flatnonzero(kind == number)))
    return tuple(found)


def _kinds(graph: FactorGraph) -> IntArray:
    """Return number of states, height and width of each component; zeros for those that are no grids."""
    edges, n = edges_of(graph), graph.n_components
    sites = np.bincount(edges.variable_component, minlength=n)
    links = np.bincount(edges.component, minlength=n)
    low, high, arity = np.full(n, np.iinfo(np.int64).max), np.zeros(n, np.int64), np.zeros(n, np.int64)
    np.minimum.at(low, edges.variable_component, edges.cards)
    np.maximum.at(high, edges.variable_component, edges.cards)
    np.maximum.at(arity, edges.component, np.diff(edges.first_slot))
    kinds = np.zeros((n, 3), np.int64)
    candidates = np.flatnonzero((links >= sites) & (sites >= 4) & (arity == 2) & (low == high) & (low >= 2))
    for c, shape in zip(candidates.tolist(), component_shapes(graph, candidates), strict=True):
        if shape is not None and min(shape) >= 2:
            kinds[c] = (low[c], *shape)
    return kinds


def _make(graph: FactorGraph, card: int, height: int, width: int, members: IntArray) -> Lattice:
    edges, pitch = edges_of(graph), width + 2
    plane = (height + 2) * pitch
    number = np.full(graph.n_components, -1)
    number[members] = np.arange(len(members))
    variables, links = _in_order(number[edges.variable_component]), _in_order(number[edges.component])
    messages = _in_order(number[edges.component[edges.edge_link]])
    inner = (np.arange(1, height + 1)[:, None] * pitch + np.arange(1, width + 1)).ravel()
    site = np.zeros(graph.n_variables, np.int64)
    site[variables] = (np.arange(len(members))[:, None] * plane + inner).ravel()
    slots = edges.first_slot[links][:, None] + np.arange(2)
    ends = site[edges.slot_variable[slots]]
    axis = np.where(ends[:, 1] - ends[:, 0] == 1, 0, 1)
    place = np.empty(len(edges.edge_link), np.int64)
    for slot in range(2):  # the first end receives from the right or from below
        side = 2 * axis + 1 - slot
        place[edges.slot_edge[slots[:, slot]]] = side * card * plane * len(members) + ends[:, slot]
    return Lattice(
        card,
        height,
        width,
        members,
        _entries(edges.first_state[variables], card),
        _entries(edges.start[messages], card),
        as_places(links),
        place[messages],
        ends[:, 0],
        axis,
    )


def _in_order(owner: IntArray) -> IntArray:
    """Return what has an owner, owner after owner."""
    mine = np.flatnonzero(owner >= 0)
    return mine[np.argsort(owner[mine], kind="stable")]


def _entries(first: IntArray, card: int) -> Places:
    """Return the places of all states, from those of the first ones."""
    return as_places((first[:, None] + np.arange(card)).ravel())
