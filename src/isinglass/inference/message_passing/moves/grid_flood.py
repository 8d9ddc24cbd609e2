"""Flooding on regular grids, in planes; see `isinglass.kernels.numba.grids.flooding`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.message_passing.moves.flood import Flooding, FloodPairs
from isinglass.inference.message_passing.moves.lattices import Lattice, lattice_of
from isinglass.inference.message_passing.moves.planes import (
    PlaneMove,
    grid_kernels,
    grids_at_once,
    largest_of_grids,
    used_places,
    work_of,
)
from isinglass.inference.message_passing.run import Derivatives, Run, Step
from isinglass.kernels.backend import GridKernels
from isinglass.kernels.layout import Span, Status, Values
from isinglass.runtime.array_pool import Pool
from isinglass.typing import FloatArray, IntArray, Mask

STRIP = 256  # sites that are updated at a time: their messages stay in the fastest cache


class PlaneModel(NamedTuple):
    """The potentials and tables of one model, in planes."""

    phi: FloatArray  # (states, sites)
    each: FloatArray  # (2, states, states, sites) the table of each link; empty if no grid needs them
    shared: FloatArray  # (2, states, states, grids) the table of the first link of each axis; empty likewise
    alike: Mask  # (grids,) whether all links of an axis share it

    def tables(self, grid: int) -> tuple[FloatArray, tuple[int, ...]]:
        """Return the tables that the loops use for a grid, and how they tell which ones these are."""
        return (self.shared, ()) if self.alike[grid] else (self.each, (0,))

    def like_zeros(self) -> PlaneModel:
        """Return zeros of the same shapes, for derivatives."""
        return PlaneModel(np.zeros_like(self.phi), np.zeros_like(self.each), np.zeros_like(self.shared), self.alike)


@dataclass(frozen=True, eq=False)
class Grids:
    """Some components of a graph, regular grids of one size, and their numbers in planes."""

    lattice: Lattice
    models: list[PlaneModel]
    kernels: GridKernels

    @classmethod
    def of(cls, lattice: Lattice, run: Run, kernels: GridKernels) -> Grids:
        """Lay the potentials and tables of a run out in planes."""
        return cls(lattice, [_plane_model(lattice, values, kernels) for values in run.models], kernels)

    def model_of(self, t: int) -> int:
        """Return the number of the model of iteration t."""
        return min(t, len(self.models) - 1)

    @property
    def pitch(self) -> int:
        """How far a site is from the one below it."""
        return self.lattice.width + 2

    @property
    def rows(self) -> int:
        """How many rows a strip has."""
        return min(max(STRIP // self.pitch, 1), self.lattice.height)

    def scratch(self) -> tuple[FloatArray, ...]:
        """Return working memory for a strip."""
        card, size = self.lattice.card, self.rows * self.pitch
        size += (40 - size) % 512  # runs that lie 4096 bytes apart get in each other's way
        return np.empty((4, card, size)), np.empty((card, size)), np.empty((2, size))

    def pieces(self, span: Span, iterations: int, alike: Mask) -> Iterator[tuple[int, int]]:
        """Cut the grids in a span into runs with one kind of tables, as long as a loop may do at once."""
        first, last = np.searchsorted(self.lattice.members, [span.first_component, span.last_component]).tolist()
        most = grids_at_once(iterations * work_of(self.lattice))
        while first < last:
            others = np.flatnonzero(alike[first : min(first + most, last)] != alike[first])
            size = int(others[0]) if len(others) else min(most, last - first)
            yield first, first + size
            first += size

    def backward(self, run: Run, step: Step, active: Mask, bars: GridBars) -> None:
        """Reverse a step on the active grids."""
        at, kept = self.model_of(step.t), step.move.planes_of(step)
        if kept is None:
            source = bars.planes_of(step.move.messages_before(step, 0), run.pool)
            kept = source, source[None]
        source, stack = kept
        model, (strip, message, scale) = self.models[at], self.scratch()
        back = np.empty_like(strip)
        for first, last in self.pieces(run.span, step.iterations, model.alike):
            weights, own = model.tables(first)
            weights_bar, _ = bars.models[at].tables(first)
            self.kernels.flood_back(
                model.phi, source, stack, step.iterations, bars.m, bars.spare, bars.models[at].phi, weights,
                weights_bar, self.lattice.height, self.pitch, self.rows, active, strip, message, back, scale, first,
                last, own,
            )  # fmt: skip
        if step.iterations % 2:
            bars.m, bars.spare = bars.spare, bars.m


@dataclass(eq=False)
class GridFlood(PlaneMove, Flooding):
    """Flooding on regular grids."""

    general: FloodPairs
    grids: Grids

    @classmethod
    def of(cls, graph: FactorGraph, run: Run, general: FloodPairs) -> GridFlood | None:
        """Return the move for a run, if it can be used."""
        kernels = None if lattice_of(graph) is None else grid_kernels(run)
        if kernels is None:
            return None
        (grids,) = run.back.grids(run)
        return cls(kernels, general, grids)

    @property
    def planes(self) -> Lattice:
        """Where the messages lie."""
        return self.grids.lattice

    @property
    def n_models(self) -> int:
        """How many models there are."""
        return len(self.grids.models)

    def iterate(self, run: Run, t: int, old: FloatArray, stack: FloatArray, iterations: int, status: Status) -> bool:
        """Do iterations; return whether no product came near to an underflow."""
        grids, suspect = self.grids, np.zeros(len(status.active), bool)
        model, scratch, limit = grids.models[grids.model_of(t)], grids.scratch(), run.values(t).limit
        for first, last in grids.pieces(run.span, iterations, model.alike):
            weights, own = model.tables(first)
            self.kernels.flood(
                model.phi, old, stack, iterations, weights, grids.lattice.height, grids.pitch, grids.rows,
                status.active, suspect, status.residual, status.watched, *scratch, limit, first, last, own,
            )  # fmt: skip
        return not suspect.any()

    def planes_of(self, step: Step) -> tuple[FloatArray, FloatArray]:
        """Return the planes before a step, and those after each of its iterations."""
        return step.before, step.before[None] if step.stack is None else step.stack

    def messages_before(self, step: Step, t: int) -> FloatArray:
        """Return the messages before iteration t of a step."""
        return self.messages(self.before(step, t))

    def at_rest(self, run: Run, active: Mask) -> Step:
        """Return a step that was not done: to go back, the messages before it are enough."""
        before, self.inbox = self.into_planes(run, True), None
        self.borrowed = [room for room in self.borrowed if room is not before]  # the step gives it back
        return run.step(Step(self, 0, active, before), True)

    def effects(self, run: Run, step: Step, status: Status) -> None:
        """Compare the messages before and after the last iteration."""
        assert self.inbox is not None
        pitch, span = self.grids.pitch, run.span
        self.kernels.effects(
            self.before(step, step.iterations - 1), self.inbox, (self.grids.lattice.height + 2) * pitch, pitch,
            status.active, span.first_component, span.last_component, *np.empty((2, STRIP)), status.residual,
        )  # fmt: skip


@dataclass(eq=False)
class GridBars:
    """Derivatives in planes."""

    grids: Grids
    m: FloatArray
    spare: FloatArray
    models: list[PlaneModel]
    source: FloatArray | None = None
    used: Mask | None = None  # the places in planes that hold derivatives by messages

    @classmethod
    def of(cls, grids: Grids, bars: Derivatives, pool: Pool) -> GridBars:
        """Move the derivatives by messages into planes."""
        lattice = grids.lattice
        planes, spare = (pool.take(lattice.shape, bars.m.dtype) for _ in range(2))
        planes.fill(0)
        lattice.spread(grids.kernels, bars.m, planes)
        mine = cls(grids, planes, spare, [model.like_zeros() for model in grids.models])
        pool.give_back_with(mine, planes)
        pool.give_back_with(mine, spare)
        return mine

    def planes_of(self, m: FloatArray, pool: Pool) -> FloatArray:
        """Return the messages of edges in planes, which the next call overwrites."""
        if self.source is None:
            self.source = pool.take(self.grids.lattice.shape, m.dtype)
            self.source.fill(1)
            pool.give_back_with(self, self.source)
        self.grids.lattice.spread(self.grids.kernels, m, self.source)
        return self.source

    def sizes(self, span: Span) -> FloatArray:
        """Return the largest derivative by a log message of each grid in a span."""
        lattice, kernels = self.grids.lattice, self.grids.kernels
        if self.used is None:
            self.used = used_places(self.m.size, lattice.of_edges)
        first, last = np.searchsorted(lattice.members, [span.first_component, span.last_component]).tolist()
        return largest_of_grids(kernels, self.m, self.used, 4 * lattice.card, len(lattice.members), first, last)

    def give(self, bars: Derivatives) -> None:
        """Move them to edges, and add those by potentials and by tables."""
        lattice, kernels = self.grids.lattice, self.grids.kernels
        lattice.collect(kernels, self.m, bars.m)
        for mine, phi, psi, places in zip(self.models, bars.phi, bars.psi, bars.places, strict=True):
            phi[lattice.entries] += np.moveaxis(lattice.inside(mine.phi), 0, -1).ravel()
            table = places.table[lattice.links].reshape(len(lattice.members), -1)
            _add_tables(mine, lattice, table, psi, kernels)


def _add_tables(mine: PlaneModel, lattice: Lattice, table: IntArray, psi: FloatArray, kernels: GridKernels) -> None:
    """Add the derivatives by the tables of links, which begin at `table` (grids, links), grid after grid."""
    alike, card = mine.alike, lattice.card
    if not alike.any():
        kernels.add_tables(mine.each, psi, table.ravel(), lattice.link_axis, lattice.link_site)
        return
    firsts = table[alike][:, [lattice.first_link(axis) for axis in range(2)]]
    found = mine.shared[..., alike].reshape(2, card * card, -1)
    np.add.at(psi, firsts[..., None] + np.arange(card * card), np.moveaxis(found, -1, 0))
    if not alike.all():
        links = np.repeat(~alike, table.shape[1])
        kernels.add_tables(mine.each, psi, table.ravel()[links], lattice.link_axis[links], lattice.link_site[links])


def _plane_model(lattice: Lattice, values: Values, kernels: GridKernels) -> PlaneModel:
    """Lay potentials and tables out in planes."""
    card, height, width = lattice.card, lattice.height, lattice.width
    phi = np.ones((card, lattice.sites))
    lattice.inside(phi)[:] = np.moveaxis(values.phi[lattice.entries].reshape(-1, height, width, card), -1, 0)
    table = values.table[lattice.links].reshape(len(lattice.members), -1)
    cut = lattice.first_link(1)
    alike: Mask = (table[:, :cut] == table[:, :1]).all(axis=1) & (table[:, cut:] == table[:, cut : cut + 1]).all(axis=1)
    shared = each = np.empty((2, card, card, 0))
    if alike.any():
        places = table[:, [0, cut]].T[..., None] + np.arange(card * card)
        shared = np.ascontiguousarray(np.moveaxis(values.psi[places].reshape(2, -1, card, card), 1, -1))
    if not alike.all():
        each = np.ones((2, card, card, lattice.sites))
        kernels.spread_tables(values.psi, each, table.ravel(), lattice.link_axis, lattice.link_site)
    return PlaneModel(phi, each, shared, alike)
