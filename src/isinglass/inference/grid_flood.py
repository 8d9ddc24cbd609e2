"""Flooding on regular grids, in planes; see `isinglass.kernels.numba.grids`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isinglass.graph.edges import edges_of
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.schedules import grid_shape
from isinglass.inference.moves import Derivatives, Fate, FloodPairs, Mask, Run, Step
from isinglass.inference.plane_move import PlaneMove
from isinglass.inference.pool import Pool
from isinglass.validation import IntArray

if TYPE_CHECKING:
    from isinglass.kernels.numba.passes import Values

STRIP = 256  # sites that are worked on at a time: their messages stay in the fastest cache


class Lattice(NamedTuple):
    """Where the sites, edges and links of regular grids lie in planes with a border."""

    card: int
    height: int
    width: int
    sites: int  # of a plane
    edge_place: IntArray  # (edges,) where the first entry of the message to a site lies in planes
    link_site: IntArray  # (links,) of the left or upper end
    link_axis: IntArray  # (links,) 0 to the right, 1 downwards

    def inside(self, plane: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sites of planes that are not on a border, (states, grids, height, width)."""
        return plane.reshape(len(plane), -1, self.height + 2, self.width + 2)[..., 1:-1, 1:-1]

    def reached(self, plane: NDArray[np.float64], side: int) -> NDArray[np.float64]:
        """Return the sites that have a neighbour on a side (left, right, up, down)."""
        inner = self.inside(plane)
        cut = slice(1, None) if side % 2 == 0 else slice(None, -1)
        return inner[..., cut] if side < 2 else inner[..., cut, :]

    @property
    def of_edges(self) -> tuple[IntArray, int, int]:
        """What `spread` and `collect` need to know."""
        return self.edge_place, self.card, self.sites


def lattice_of(graph: FactorGraph) -> Lattice | None:
    """Return where a regular grid, or several of one size, lie in planes; None for other graphs."""
    return graph.cached("lattice", lambda: _make(graph))


def _make(graph: FactorGraph) -> Lattice | None:
    shape = grid_shape(graph)
    if shape is None or min(shape) < 2 or (graph.cards != graph.cards[0]).any():
        return None
    height, width = shape
    edges, pitch = edges_of(graph), width + 2
    plane = (height + 2) * pitch
    inner = (np.arange(1, height + 1)[:, None] * pitch + np.arange(1, width + 1)).ravel()
    site = (np.arange(graph.n_components)[:, None] * plane + inner).ravel()
    ends = site[edges.slot_variable.reshape(-1, 2)]
    axis = np.where(ends[:, 1] - ends[:, 0] == 1, 0, 1)
    card, sites = int(graph.cards[0]), plane * graph.n_components
    edge_place = np.empty(len(edges.edge_link), np.int64)
    for slot in range(2):  # the first end receives from the right or from below
        side = 2 * axis + 1 - slot
        edge_place[edges.slot_edge.reshape(-1, 2)[:, slot]] = side * card * sites + ends[:, slot]
    return Lattice(card, height, width, sites, edge_place, ends[:, 0], axis)


class Planes(NamedTuple):
    """The numbers of one stage: potentials, tables, and whether every link has its own table."""

    phi: NDArray[np.float64]  # (states, sites)
    weights: NDArray[np.float64]  # (2, states, states, sites or 1)
    own: tuple[int, ...]


@dataclass(eq=False)
class GridFlood(PlaneMove):
    """All links of regular grids at once."""

    general: FloodPairs
    lattice: Lattice
    stages: list[Planes]
    bars: _Bars | None = field(default=None, init=False)

    @classmethod
    def of(cls, graph: FactorGraph, run: Run, general: FloodPairs) -> GridFlood | None:
        """Return the move for a run, if it can be used."""
        lattice = lattice_of(graph)
        if lattice is None or lattice.card < 2 or not cls.serves(run):
            return None
        return cls(general, lattice, [_planes(lattice, values) for values in run.stages])

    @property
    def of_edges(self) -> tuple[IntArray, int, int]:
        """Where the messages of edges lie."""
        return self.lattice.of_edges

    @property
    def n_stages(self) -> int:
        """How many models there are."""
        return len(self.stages)

    @property
    def work(self) -> int:
        """Entries of the tables of a grid, of one direction."""
        return self.lattice.height * self.lattice.width * self.lattice.card**2

    @property
    def runs_of_grids(self) -> tuple[int, int]:
        """A run for each side and state."""
        lattice = self.lattice
        return 4 * lattice.card, lattice.sites // ((lattice.height + 2) * (lattice.width + 2))

    def iterate(
        self,
        run: Run,
        t: int,
        old: NDArray[np.float64],
        stack: NDArray[np.float64],
        iterations: int,
        fate: Fate,
    ) -> bool:
        """Do iterations; return whether no product came near to an underflow."""
        from isinglass.kernels.numba.grids import flood_grid

        numbers, suspect = self.stages[min(t, len(self.stages) - 1)], np.zeros(len(fate.active), bool)
        scratch, limit = self._scratch(), run.values(t).limit
        for span in self.pieces(run, iterations):
            flood_grid(
                numbers.phi, old, stack, iterations, numbers.weights, self.lattice.height, self.lattice.width + 2,
                self._rows, fate.active, suspect, fate.residual, fate.watched, *scratch, limit, span, numbers.own,
            )  # fmt: skip
        return not suspect.any()

    def backward(self, run: Run, step: Step, moved: Mask, bars: Derivatives) -> None:
        """Reverse a step."""
        from isinglass.kernels.numba.grids import flood_grid_back

        if len(bars.counting):
            self._backward_by_pairs(run, step, moved, bars)
            return
        stage = min(step.t, len(self.stages) - 1)
        if self.bars is None:
            self.bars = _Bars.of(self, bars, run.pool)
        mine, numbers = self.bars, self.stages[stage]
        strip, message, scale = self._scratch()
        stack = step.before[None] if step.stack is None else step.stack
        back = np.empty_like(strip)
        for span in self.pieces(run, step.iterations):
            flood_grid_back(
                numbers.phi, step.before, stack, step.iterations, mine.m, mine.spare, mine.phi[stage], numbers.weights,
                mine.weights[stage], self.lattice.height, self.lattice.width + 2, self._rows, moved, strip, message,
                back, scale, span, numbers.own,
            )  # fmt: skip
        if step.iterations % 2:
            mine.m, mine.spare = mine.spare, mine.m

    def _backward_by_pairs(self, run: Run, step: Step, moved: Mask, bars: Derivatives) -> None:
        """Reverse a step by the loops that know counting numbers."""
        for t in range(step.iterations - 1, -1, -1):
            run.m = self.messages(self.before(step, t))
            self.general.backward(run, Step(self.general, step.t + t, step.active, run.m), moved, bars)

    def finish_back(self, run: Run, bars: Derivatives) -> None:
        """Move the derivatives back to edges, variables and tables."""
        if self.bars is not None:
            self.bars.give(self, run, bars)
        self.bars = None

    def at_rest(self, run: Run, active: Mask) -> Step:
        """Return a step that need not be done: to go back, the messages before it are enough."""
        before, self.inbox = self.into_planes(run), None
        return run.step(Step(self, 0, active, before), True)

    def effects(self, run: Run, step: Step, fate: Fate) -> None:
        """Compare the messages before and after the last iteration."""
        from isinglass.kernels.numba.changes import effects_in_planes

        assert self.inbox is not None
        pitch, span = self.lattice.width + 2, run.span
        effects_in_planes(
            self.before(step, step.iterations - 1), self.inbox, (self.lattice.height + 2) * pitch, pitch, fate.active,
            span.first_component, span.last_component, *np.empty((2, STRIP)), fate.residual,
        )  # fmt: skip

    @property
    def _rows(self) -> int:
        return min(max(STRIP // (self.lattice.width + 2), 1), self.lattice.height)

    def _scratch(self) -> tuple[NDArray[np.float64], ...]:
        card, size = self.lattice.card, self._rows * (self.lattice.width + 2)
        size += (40 - size) % 512  # runs that lie 4096 bytes apart get in each other's way
        return np.empty((4, card, size)), np.empty((card, size)), np.empty((2, size))

    def into_planes(self, run: Run) -> NDArray[np.float64]:
        """Return the messages in planes."""
        from isinglass.kernels.numba.grids import spread

        if self.inbox is None:
            self.inbox = run.pool.take((4, self.lattice.card, self.lattice.sites), run.m.dtype)
            self.inbox.fill(1)
            if run.uniform:
                for side, plane in enumerate(self.inbox):
                    self.lattice.reached(plane, side)[:] = 1 / self.lattice.card
            else:
                spread(run.m, self.inbox.ravel(), *self.lattice.of_edges)
            run.uniform = False
        return self.inbox


@dataclass(eq=False)
class _Bars:
    """Derivatives in planes."""

    m: NDArray[np.float64]
    spare: NDArray[np.float64]
    phi: list[NDArray[np.float64]]
    weights: list[NDArray[np.float64]]

    @classmethod
    def of(cls, move: GridFlood, bars: Derivatives, pool: Pool) -> _Bars:
        """Move the derivatives by messages into planes."""
        from isinglass.kernels.numba.grids import spread

        lattice = move.lattice
        planes, spare = (pool.take((4, lattice.card, lattice.sites), bars.m.dtype) for _ in range(2))
        planes.fill(0)
        spread(bars.m, planes.ravel(), *lattice.of_edges)
        zeros = [np.zeros_like(s.phi) for s in move.stages], [np.zeros_like(s.weights) for s in move.stages]
        mine = cls(planes, spare, *zeros)
        pool.give_back_with(mine, planes)
        pool.give_back_with(mine, spare)
        return mine

    def give(self, move: GridFlood, run: Run, bars: Derivatives) -> None:
        """Move them to edges, and add those by potentials and tables."""
        from isinglass.kernels.numba.grids import add_tables, collect

        lattice = move.lattice
        collect(self.m.ravel(), bars.m, *lattice.of_edges)
        for stage, (phi, weights, numbers) in enumerate(zip(self.phi, self.weights, move.stages, strict=True)):
            values = run.stages[stage]
            bars.phi[stage] += np.moveaxis(lattice.inside(phi), 0, -1).ravel()
            if len(numbers.own):
                add_tables(weights, bars.psi[stage], values.table, lattice.link_axis, lattice.link_site)
            else:
                for axis in range(2):
                    first = values.table[_first_link(lattice, axis)]
                    bars.psi[stage][first : first + weights[axis].size] += weights[axis].ravel()


def _planes(lattice: Lattice, values: Values) -> Planes:
    """Lay potentials and tables out in planes."""
    from isinglass.kernels.numba.grids import spread_tables

    card = lattice.card
    phi = np.ones((card, lattice.sites))
    lattice.inside(phi)[:] = np.moveaxis(values.phi.reshape(-1, lattice.height, lattice.width, card), -1, 0)
    firsts = [values.table[_first_link(lattice, axis)] for axis in range(2)]
    if np.array_equal(values.table, np.asarray(firsts)[lattice.link_axis]):
        shared = [values.psi[first : first + card * card].reshape(card, card, 1) for first in firsts]
        return Planes(phi, np.array(shared), ())
    weights = np.ones((2, card, card, lattice.sites))
    spread_tables(values.psi, weights, values.table, lattice.link_axis, lattice.link_site)
    return Planes(phi, weights, (0,))


def _first_link(lattice: Lattice, axis: int) -> int:
    """Return the first link of an axis: horizontal ones come first."""
    return axis * lattice.height * (lattice.width - 1)
