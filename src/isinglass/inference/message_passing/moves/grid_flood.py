"""Flooding on regular grids, in planes; see `isinglass.kernels.numba.grids.flooding`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.message_passing.moves.lattices import Lattice, lattice_of
from isinglass.inference.message_passing.moves.move import Derivatives, Fate, FloodPairs, Run, Step
from isinglass.inference.message_passing.moves.planes import PlaneMove, grids_at_once, largest_of_grids, used_places
from isinglass.segments import Largest
from isinglass.typing import IntArray, Mask

if TYPE_CHECKING:
    from isinglass.kernels.numba.messages.passes import Span, Values
    from isinglass.runtime.array_pool import Pool

STRIP = 256  # sites that are worked on at a time: their messages stay in the fastest cache

Array = NDArray[np.float64]


class Stage(NamedTuple):
    """The numbers of one stage."""

    phi: Array  # (states, sites)
    own: Array  # (2, states, states, sites) the table of each link; empty if no grid needs them
    shared: Array  # (2, states, states, grids) the table of the first link of each axis; empty likewise
    alike: Mask  # (grids,) whether all links of an axis share it

    def tables(self, grid: int) -> tuple[Array, tuple[int, ...]]:
        """Return the tables that the loops use for a grid, and how they tell which ones these are."""
        return (self.shared, ()) if self.alike[grid] else (self.own, (0,))

    def like_zeros(self) -> Stage:
        """Return zeros of the same shapes, for derivatives."""
        return Stage(np.zeros_like(self.phi), np.zeros_like(self.own), np.zeros_like(self.shared), self.alike)


@dataclass(frozen=True, eq=False)
class Grids:
    """Some components of a graph, regular grids of one size, and their numbers in planes."""

    lattice: Lattice
    stages: list[Stage]

    @classmethod
    def of(cls, lattice: Lattice, run: Run) -> Grids:
        """Lay the potentials and tables of a run out in planes."""
        return cls(lattice, [_stage(lattice, values) for values in run.stages])

    def stage(self, t: int) -> int:
        """Return which stage iteration t is of."""
        return min(t, len(self.stages) - 1)

    @property
    def work(self) -> int:
        """Entries of the tables of a grid, of one direction."""
        return self.lattice.height * self.lattice.width * self.lattice.card**2

    @property
    def pitch(self) -> int:
        """How far a site is from the one below it."""
        return self.lattice.width + 2

    @property
    def rows(self) -> int:
        """How many rows a strip has."""
        return min(max(STRIP // self.pitch, 1), self.lattice.height)

    def scratch(self) -> tuple[Array, ...]:
        """Return working memory for a strip."""
        card, size = self.lattice.card, self.rows * self.pitch
        size += (40 - size) % 512  # runs that lie 4096 bytes apart get in each other's way
        return np.empty((4, card, size)), np.empty((card, size)), np.empty((2, size))

    def pieces(self, span: Span, iterations: int, alike: Mask) -> Iterator[tuple[int, int]]:
        """Cut the grids in a span into runs with one kind of tables, as long as a loop may do at once."""
        first, last = np.searchsorted(self.lattice.members, [span.first_component, span.last_component]).tolist()
        most = grids_at_once(iterations * self.work)
        while first < last:
            others = np.flatnonzero(alike[first : min(first + most, last)] != alike[first])
            size = int(others[0]) if len(others) else min(most, last - first)
            yield first, first + size
            first += size

    def backward(self, run: Run, step: Step, active: Mask, bars: GridBars) -> None:
        """Reverse a step on the active grids."""
        from isinglass.kernels.numba.grids.flooding import flood_grid_back

        at, kept = self.stage(step.t), step.move.planes_of(step)
        if kept is None:
            source = bars.planes_of(self.lattice, step.move.messages_before(step, 0), run.pool)
            kept = source, source[None]
        source, stack = kept
        stage, (strip, message, scale) = self.stages[at], self.scratch()
        back = np.empty_like(strip)
        for first, last in self.pieces(run.span, step.iterations, stage.alike):
            weights, own = stage.tables(first)
            weights_bar, _ = bars.stages[at].tables(first)
            flood_grid_back(
                stage.phi, source, stack, step.iterations, bars.m, bars.spare, bars.stages[at].phi, weights,
                weights_bar, self.lattice.height, self.pitch, self.rows, active, strip, message, back, scale, first,
                last, own,
            )  # fmt: skip
        if step.iterations % 2:
            bars.m, bars.spare = bars.spare, bars.m


@dataclass(eq=False)
class GridFlood(PlaneMove):
    """All links of regular grids at once."""

    floods: ClassVar[bool] = True
    general: FloodPairs
    grids: Grids

    @classmethod
    def of(cls, graph: FactorGraph, run: Run, general: FloodPairs) -> GridFlood | None:
        """Return the move for a run, if it can be used."""
        if lattice_of(graph) is None or not cls.serves(run):
            return None
        (grids,) = run.back.grids(run)
        return cls(general, grids)

    @property
    def of_edges(self) -> tuple[IntArray, int, int]:
        """Where the messages of edges lie."""
        return self.grids.lattice.of_edges

    @property
    def n_stages(self) -> int:
        """How many models there are."""
        return len(self.grids.stages)

    @property
    def work(self) -> int:
        """Entries of the tables of a grid, of one direction."""
        return self.grids.work

    def iterate(self, run: Run, t: int, old: Array, stack: Array, iterations: int, fate: Fate) -> bool:
        """Do iterations; return whether no product came near to an underflow."""
        from isinglass.kernels.numba.grids.flooding import flood_grid

        grids, suspect = self.grids, np.zeros(len(fate.active), bool)
        stage, scratch, limit = grids.stages[grids.stage(t)], grids.scratch(), run.values(t).limit
        for first, last in grids.pieces(run.span, iterations, stage.alike):
            weights, own = stage.tables(first)
            flood_grid(
                stage.phi, old, stack, iterations, weights, grids.lattice.height, grids.pitch, grids.rows, fate.active,
                suspect, fate.residual, fate.watched, *scratch, limit, first, last, own,
            )  # fmt: skip
        return not suspect.any()

    def planes_of(self, step: Step) -> tuple[Array, Array]:
        """Return the planes before a step, and those after each of its iterations."""
        return step.before, step.before[None] if step.stack is None else step.stack

    def messages_before(self, step: Step, t: int) -> Array:
        """Return the messages before iteration t of a step."""
        return self.messages(self.before(step, t))

    def backward(self, run: Run, step: Step, moved: Mask, bars: Derivatives) -> None:
        """Reverse a step."""
        run.back.backward(run, step, moved, bars)

    def finish_back(self, run: Run, bars: Derivatives) -> None:
        """Leave the derivatives in bars.m."""
        run.back.finish(run, bars)

    def sizes_back(self, run: Run, bars: Derivatives, largest: Largest) -> Array:
        """Look at the derivatives where they are."""
        return run.back.sizes(run, bars, largest)

    def at_rest(self, run: Run, active: Mask) -> Step:
        """Return a step that need not be done: to go back, the messages before it are enough."""
        before, self.inbox = self.into_planes(run), None
        return run.step(Step(self, 0, active, before), True)

    def effects(self, run: Run, step: Step, fate: Fate) -> None:
        """Compare the messages before and after the last iteration."""
        from isinglass.kernels.numba.messages.changes import effects_in_planes

        assert self.inbox is not None
        pitch, span = self.grids.pitch, run.span
        effects_in_planes(
            self.before(step, step.iterations - 1), self.inbox, (self.grids.lattice.height + 2) * pitch, pitch,
            fate.active, span.first_component, span.last_component, *np.empty((2, STRIP)), fate.residual,
        )  # fmt: skip

    def into_planes(self, run: Run) -> Array:
        """Return the messages in planes."""
        lattice = self.grids.lattice
        if self.inbox is None:
            self.inbox = run.pool.take(lattice.shape, run.m.dtype)
            self.inbox.fill(1)
            if run.uniform:
                for side, plane in enumerate(self.inbox):
                    lattice.reached(plane, side)[:] = 1 / lattice.card
            else:
                lattice.spread(run.m, self.inbox)
            run.uniform = False
        return self.inbox


@dataclass(eq=False)
class GridBars:
    """Derivatives in planes."""

    m: Array
    spare: Array
    stages: list[Stage]
    source: Array | None = None
    used: Mask | None = None  # the places in planes that hold derivatives by messages

    @classmethod
    def of(cls, grids: Grids, bars: Derivatives, pool: Pool) -> GridBars:
        """Move the derivatives by messages into planes."""
        lattice = grids.lattice
        planes, spare = (pool.take(lattice.shape, bars.m.dtype) for _ in range(2))
        planes.fill(0)
        lattice.spread(bars.m, planes)
        zeros = [stage.like_zeros() for stage in grids.stages]
        mine = cls(planes, spare, zeros)
        pool.give_back_with(mine, planes)
        pool.give_back_with(mine, spare)
        return mine

    def planes_of(self, lattice: Lattice, m: Array, pool: Pool) -> Array:
        """Return the messages of edges in planes, which the next call overwrites."""
        if self.source is None:
            self.source = pool.take(lattice.shape, m.dtype)
            self.source.fill(1)
            pool.give_back_with(self, self.source)
        lattice.spread(m, self.source)
        return self.source

    def sizes(self, lattice: Lattice, span: Span) -> Array:
        """Return the largest derivative by a log message of each grid in a span."""
        if self.used is None:
            self.used = used_places(self.m.size, lattice.of_edges)
        first, last = np.searchsorted(lattice.members, [span.first_component, span.last_component]).tolist()
        return largest_of_grids(self.m, self.used, 4 * lattice.card, len(lattice.members), first, last)

    def give(self, lattice: Lattice, bars: Derivatives) -> None:
        """Move them to edges, and add those by potentials and by tables."""
        lattice.collect(self.m, bars.m)
        for mine, phi, psi, places in zip(self.stages, bars.phi, bars.psi, bars.places, strict=True):
            phi[lattice.entries] += np.moveaxis(lattice.inside(mine.phi), 0, -1).ravel()
            _add_tables(mine, lattice, places.table[lattice.links].reshape(len(lattice.members), -1), psi)


def _add_tables(mine: Stage, lattice: Lattice, table: IntArray, psi: Array) -> None:
    """Add the derivatives by the tables of links, which begin at `table` (grids, links), grid after grid."""
    from isinglass.kernels.numba.grids.flooding import add_tables

    alike, card = mine.alike, lattice.card
    if not alike.any():
        add_tables(mine.own, psi, table.ravel(), lattice.link_axis, lattice.link_site)
        return
    firsts = table[alike][:, [lattice.first_link(axis) for axis in range(2)]]
    found = mine.shared[..., alike].reshape(2, card * card, -1)
    np.add.at(psi, firsts[..., None] + np.arange(card * card), np.moveaxis(found, -1, 0))
    if not alike.all():
        links = np.repeat(~alike, table.shape[1])
        add_tables(mine.own, psi, table.ravel()[links], lattice.link_axis[links], lattice.link_site[links])


def _stage(lattice: Lattice, values: Values) -> Stage:
    """Lay potentials and tables out in planes."""
    from isinglass.kernels.numba.grids.flooding import spread_tables

    card, height, width = lattice.card, lattice.height, lattice.width
    phi = np.ones((card, lattice.sites))
    lattice.inside(phi)[:] = np.moveaxis(values.phi[lattice.entries].reshape(-1, height, width, card), -1, 0)
    table = values.table[lattice.links].reshape(len(lattice.members), -1)
    cut = lattice.first_link(1)
    alike: Mask = (table[:, :cut] == table[:, :1]).all(axis=1) & (table[:, cut:] == table[:, cut : cut + 1]).all(axis=1)
    shared = own = np.empty((2, card, card, 0))
    if alike.any():
        places = table[:, [0, cut]].T[..., None] + np.arange(card * card)
        shared = np.ascontiguousarray(np.moveaxis(values.psi[places].reshape(2, -1, card, card), 1, -1))
    if not alike.all():
        own = np.ones((2, card, card, lattice.sites))
        spread_tables(values.psi, own, table.ravel(), lattice.link_axis, lattice.link_site)
    return Stage(phi, own, shared, alike)
