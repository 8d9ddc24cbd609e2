"""Flooding on regular grids, in planes; see `isinglass.kernels.numba.grids.flooding`."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.message_passing import shares
from isinglass.inference.message_passing.moves.flood import Flooding, FloodPairs
from isinglass.inference.message_passing.moves.lattices import Lattice, lattice_of
from isinglass.inference.message_passing.moves.plane_model import PlaneModel, plane_model, walled
from isinglass.inference.message_passing.moves.planes import (
    EDGES,
    BeliefDerivatives,
    PlaneMove,
    beliefs_back,
    grid_kernels,
    grid_pieces,
    largest_of_grids,
    used_places,
    work_of,
    write_borders,
)
from isinglass.inference.message_passing.run import Derivatives, Run, Step
from isinglass.kernels.backend import GridKernels
from isinglass.kernels.layout import Span, Status
from isinglass.runtime.deferring import deferred
from isinglass.runtime.threads import ThreadMap
from isinglass.typing import FloatArray, IntArray, Mask

STRIP = 256  # sites that are updated at a time: their messages stay in the fastest cache
AGAIN = 2**20  # bytes of the messages of a grid, of all iterations, that a cache holds: then they are not kept


class Piece(NamedTuple):
    """What a loop does in one call: the rows ``top:bottom``, which are a block of their grids, of some grids."""

    first: int
    last: int
    top: int
    bottom: int
    block: int


@dataclass(frozen=True, eq=False)
class Grids:
    """Some components of a graph, regular grids of one size, and their numbers in planes."""

    lattice: Lattice
    models: list[PlaneModel]
    kernels: GridKernels
    found: dict[tuple[Span, int, int, int], list[Piece]] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, lattice: Lattice, run: Run, kernels: GridKernels) -> Grids:
        """Lay the potentials and tables of a run out in planes."""
        grids = cls(lattice, [plane_model(lattice, values, kernels, run) for values in run.models], kernels)
        for model in grids.models:
            run.pool.give_back_with(grids, model.phi, walled(lattice))
        return grids

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
        card, size, dtype = self.lattice.card, self.rows * self.pitch, self.models[0].phi.dtype
        size += (320 // dtype.itemsize - size) % (4096 // dtype.itemsize)  # 4096 bytes apart, runs hinder each other
        return np.empty((4, card, size), dtype), np.empty((card, size), dtype), np.empty((2, size), dtype)

    def planes_of_one(self, count: int) -> FloatArray:
        """Return planes for the messages of one grid, so many times."""
        return np.empty((count, *self.lattice.shape_of_one), self.models[0].phi.dtype)

    @property
    def is_large(self) -> bool:
        """Whether threads share a grid."""
        return len(self.blocks) > 1

    @cached_property
    def blocks(self) -> list[tuple[int, int]]:
        """The rows of each block of a grid; one block, if it is small."""
        return self.lattice.row_blocks

    def pieces(self, run: Run, iterations: int, at: int) -> list[Piece]:
        """Cut the grids of a run for a model into blocks of rows, if large; else into runs with one kind of tables."""
        key = run.span, run.spread.threads, iterations, at
        if key not in self.found:
            self.found[key] = self._pieces(run, iterations, self.models[at].alike)
        return self.found[key]

    def _pieces(self, run: Run, iterations: int, alike: Mask) -> list[Piece]:
        blocks = self.blocks
        first, last = self.members_in(run.span)
        if self.is_large:
            return [Piece(c, c + 1, *rows, b) for c in range(first, last) for b, rows in enumerate(blocks)]
        pieces = []
        for one, end in grid_pieces(run.spread, first, last, iterations * work_of(self.lattice)):
            changes = 1 + one + np.flatnonzero(alike[one + 1 : end] != alike[one : end - 1])
            bounds = [one, *changes.tolist(), end]
            pieces += [Piece(a, b, *blocks[0], 0) for a, b in pairwise(bounds)]
        return pieces

    def members_in(self, span: Span) -> tuple[int, int]:
        """Return the first of the grids in a span, and the one after the last."""
        first, last = np.searchsorted(self.lattice.members, [span.first_component, span.last_component]).tolist()
        return first, last

    def backward(self, run: Run, step: Step, active: Mask, bars: GridBars) -> None:
        """Reverse a step on the active grids."""
        kept = step.move.planes_of(step)
        if kept is None:
            source = bars.planes_of(step.move.messages_before(run, step, 0), run)
            kept = source, source[None]
        source, stack = kept
        at = self.model_of(step.t)
        if not self.is_large:
            self._reverse(run, at, source, stack, step.iterations, active, bars)
            return
        for t in range(step.iterations - 1, -1, -1):
            inbox = source if t == 0 else stack[(t - 1) % len(stack)]
            self._reverse(run, at, inbox, inbox[None], 1, active, bars)
            bars.swap()

    def _reverse(
        self, run: Run, at: int, source: FloatArray, stack: FloatArray, iterations: int, active: Mask, bars: GridBars
    ) -> None:
        """Reverse iterations. Two blocks side by side add to the same links, so that every other block comes later.

        An empty stack: the messages between iterations are computed again.
        """
        model, mine, again = self.models[at], bars.models[at], len(stack) == 0

        def reverse(piece: Piece) -> None:
            weights, own = model.tables(piece.first)
            weights_bar = mine.each if own else mine.shared[piece.block]
            strip, message, scale = self.scratch()
            rooms = self.planes_of_one(2) if bars.spare is None else bars.spare[None]
            self.kernels.flood_back(
                model.phi, source, self.planes_of_one(iterations - 1) if again else stack, again, iterations, bars.m,
                rooms, bars.settled, mine.phi, weights, weights_bar, self.lattice.height, self.pitch, self.rows,
                piece.top, piece.bottom, active, strip, message, np.empty_like(strip), scale, piece.first, piece.last,
                own,
            )  # fmt: skip

        pieces = self.pieces(run, iterations, at)
        for odd in range(min(2, len(self.blocks))):
            run.spread(reverse, [(piece,) for piece in pieces if piece.block % 2 == odd])
        bars.settled = True


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

    @property
    def last_potentials(self) -> FloatArray:
        """The potentials of the last model."""
        return self.grids.models[-1].phi

    @property
    def is_large(self) -> bool:
        """Whether threads share a grid."""
        return self.grids.is_large

    @property
    def measures_effects(self) -> bool:
        """Whether `iterate` measures what small changes can do to a probability: of grids that one thread works on."""
        return not self.is_large

    def keeps(self, iterations: int) -> bool:
        """Tell whether a tape keeps messages: not if those of a grid fit into a cache, and those of all do not."""
        lattice = self.grids.lattice
        of_one = iterations * math.prod(lattice.shape_of_one) * self.grids.models[0].phi.itemsize
        return not of_one <= AGAIN < of_one * len(lattice.members)

    def iterate(
        self,
        run: Run,
        t: int,
        old: FloatArray,
        stack: FloatArray,
        out: FloatArray,
        iterations: int,
        status: Status,
        tol: float = -1.0,
    ) -> Mask:
        """Do iterations; return in which grids a product came near to an underflow."""
        if not self.is_large:
            return self._flood(run, t, old, stack, out, iterations, status, tol)
        suspect = np.zeros(len(status.active), bool)
        for done in range(iterations):
            after = out if done == iterations - 1 else stack[done % len(stack)]
            last = status._replace(watched=status.watched and done == iterations - 1)
            suspect |= self._flood(run, t, old, stack, after, 1, last, -1.0)
            if suspect.any() and not run.is_narrow:
                break
            old = after
        return suspect

    def _flood(
        self,
        run: Run,
        t: int,
        old: FloatArray,
        stack: FloatArray,
        out: FloatArray,
        iterations: int,
        status: Status,
        tol: float,
    ) -> Mask:
        """Let pieces do iterations; each has its own residuals, since several may belong to one grid."""
        grids = self.grids
        at = grids.model_of(t)
        model, pieces = grids.models[at], grids.pieces(run, iterations, at)

        def flood(piece: Piece) -> tuple[FloatArray, Mask]:
            weights, own = model.tables(piece.first)
            suspect = np.zeros(len(status.active), bool)
            residual = np.zeros(len(status.active)) if len(pieces) > 1 else status.residual
            between = stack if len(stack) else grids.planes_of_one(min(2, iterations - 1))
            self.kernels.flood(
                model.phi, old, between, out, iterations, weights, grids.lattice.height, grids.pitch, grids.rows,
                piece.top, piece.bottom, status.active, suspect, residual, status.watched, tol, *grids.scratch(),
                np.empty((2, STRIP)), model.limits, piece.first, piece.last, own,
            )  # fmt: skip
            return residual[piece.first : piece.last], suspect

        found = run.spread(flood, [(piece,) for piece in pieces])
        _keep_largest(status, pieces, [residual for residual, _ in found])
        suspect: Mask = np.logical_or.reduce([one for _, one in found])
        return suspect

    def planes_of(self, step: Step) -> tuple[FloatArray, FloatArray]:
        """Return the planes before a step, and those after each of its iterations."""
        return step.before, step.before[None] if step.stack is None else step.stack

    def at_rest(self, run: Run, active: Mask) -> Step:
        """Return a step that was not done: to go back, the messages before it are enough."""
        before, self.inbox = self.into_planes(run, True), None
        self.borrowed = [room for room in self.borrowed if room is not before]  # the step gives it back
        return run.step(Step(self, 0, active, before), True)

    def effects(self, run: Run, step: Step, status: Status) -> None:
        """Compare the messages before and after the last iteration."""
        assert self.inbox is not None
        pitch, plane = self.grids.pitch, (self.grids.lattice.height + 2) * self.grids.pitch
        old, new = self.before(run, step, step.iterations - 1), self.inbox

        def effects(piece: Piece) -> FloatArray:
            residual = np.zeros(len(status.active)) if len(pieces) > 1 else status.residual
            self.kernels.effects(
                old, new, plane, piece.top * pitch, piece.bottom * pitch, status.active, piece.first, piece.last,
                np.empty((2, STRIP)), residual,
            )  # fmt: skip
            return residual[piece.first : piece.last]

        pieces = self.grids.pieces(run, 1, -1)
        _keep_largest(status, pieces, run.spread(effects, [(piece,) for piece in pieces]))


def _keep_largest(status: Status, pieces: list[Piece], residuals: list[FloatArray]) -> None:
    """Set the residuals of the active grids to the largest that a piece of them has found; one has set them itself."""
    if len(pieces) < 2:
        return
    found = np.zeros(len(status.residual))
    for piece, residual in zip(pieces, residuals, strict=True):
        np.maximum(found[piece.first : piece.last], residual, out=found[piece.first : piece.last])
    mine = status.active.copy()
    mine[: pieces[0].first] = mine[pieces[-1].last :] = False
    status.residual[mine] = found[mine]


@dataclass(eq=False)
class GridBars:
    """Derivatives in planes."""

    grids: Grids
    m: FloatArray
    spare: FloatArray | None  # of large grids: for an iteration, threads write them from one to the other
    models: list[PlaneModel]
    settled: bool = False  # whether an iteration has been reversed
    source: FloatArray | None = None
    used: Mask | None = None  # the places in planes that hold derivatives by messages

    @classmethod
    def of(cls, grids: Grids, bars: Derivatives, run: Run) -> GridBars:
        """Move the derivatives by messages into planes."""
        mine = cls._with_room(grids, run)
        shares.fill(run.spread, mine.m, 0)
        grids.lattice.spread(grids.kernels, run.spread, bars.m, mine.m)
        return mine

    @classmethod
    def of_beliefs(cls, grids: Grids, given: BeliefDerivatives, run: Run) -> GridBars:
        """Return the derivatives by messages, given those by the beliefs that were read out from them."""
        mine = cls._with_room(grids, run)
        beliefs_back(grids.kernels, run.spread, grids.lattice, len(grids.lattice.members), given, mine.m)
        return mine

    @classmethod
    def _with_room(cls, grids: Grids, run: Run) -> GridBars:
        lattice = grids.lattice

        def fill(planes: FloatArray) -> None:
            write_borders(run.spread, lattice, planes, 0, inside=False)

        def planes() -> FloatArray:
            return run.pool.take_with(_silent(lattice), lattice.shape, run.in_planes, fill)

        zeros = [model.zeros(len(grids.blocks), run) for model in grids.models]
        return cls(grids, planes(), planes() if grids.is_large else None, zeros)

    def swap(self) -> None:
        """Let the derivatives be those that were written last, of large grids."""
        assert self.spare is not None
        self.m, self.spare = self.spare, self.m

    def planes_of(self, m: FloatArray, run: Run) -> FloatArray:
        """Return the messages of edges in planes, which the next call overwrites."""
        if self.source is None:
            self.source = run.pool.take(self.grids.lattice.shape, run.in_planes)
            shares.fill(run.spread, self.source, 1)
            run.pool.give_back_with(self, self.source)
        self.grids.lattice.spread(self.grids.kernels, run.spread, m, self.source)
        return self.source

    def sizes(self, run: Run) -> FloatArray:
        """Return the largest derivative by a log message of each grid of a run."""
        lattice, kernels = self.grids.lattice, self.grids.kernels
        if self.used is None:
            self.used = used_places(self.m.size, lattice.of_edges)
        bounds = self.grids.members_in(run.span)
        return largest_of_grids(kernels, run.spread, self.m, self.used, 4 * lattice.card, len(lattice.members), bounds)

    def give(self, run: Run, bars: Derivatives) -> None:
        """Move them to edges, and add those by potentials and by tables."""
        lattice, kernels = self.grids.lattice, self.grids.kernels
        self._give_messages(run, bars)
        for mine, phi, psi, places in zip(self.models, bars.phi, bars.psi, bars.places, strict=True):
            found = np.moveaxis(lattice.inside(mine.phi), 0, -1)
            if isinstance(lattice.entries, slice):
                shares.add(run.spread, phi[lattice.entries].reshape(found.shape), found)
            else:
                phi[lattice.entries] += found.ravel()
            run.pool.give(mine.phi)
            table = places.table[lattice.links].reshape(len(lattice.members), -1)
            _add_tables(mine, lattice, table, psi, kernels, run.spread)

    def _give_messages(self, run: Run, bars: Derivatives) -> None:
        """Move those by messages to edges: when they are asked for, if there are no others."""
        lattice, kernels, spread = self.grids.lattice, self.grids.kernels, run.spread
        planes = run.pool.lend(self.m, _silent(lattice))
        if self.spare is not None:
            run.pool.give(self.spare, _silent(lattice))
        if len(lattice.members) < len(run.wanted):
            lattice.collect(kernels, spread, planes.array, bars.m)
        else:
            bars.m = deferred(lambda: lattice.collected(kernels, spread, planes.array))


def _silent(lattice: Lattice) -> Hashable:
    """Name the content of planes of derivatives: zeros on the border, which every loop leaves there."""
    return "silent", lattice.height, lattice.width


def _add_tables(
    mine: PlaneModel, lattice: Lattice, table: IntArray, psi: FloatArray, kernels: GridKernels, spread: ThreadMap
) -> None:
    """Add the derivatives by the tables of links, which begin at `table` (grids, links), grid after grid."""
    alike, card = mine.alike, lattice.card
    if not alike.any():
        _add_each(mine, psi, table.ravel(), lattice.link_axis, lattice.link_site, kernels, spread)
        return
    firsts = table[:, [lattice.first_link(axis) for axis in range(2)]][alike]
    found = mine.shared.sum(axis=0)[..., alike].reshape(2, card * card, -1)
    np.add.at(psi, firsts[..., None] + np.arange(card * card), np.moveaxis(found, -1, 0))
    if not alike.all():
        links = np.repeat(~alike, table.shape[1])
        places = table.ravel()[links], lattice.link_axis[links], lattice.link_site[links]
        _add_each(mine, psi, *places, kernels, spread)


def _add_each(
    mine: PlaneModel,
    psi: FloatArray,
    table: IntArray,
    axis: IntArray,
    site: IntArray,
    kernels: GridKernels,
    spread: ThreadMap,
) -> None:
    """Add the derivatives by the table of each link; in ranges, unless several links have one table."""

    def some(first: int, last: int) -> None:
        part = slice(first, last)
        kernels.add_tables(mine.each, psi, table[part], axis[part], site[part])

    distinct = bool((table[1:] > table[:-1]).all())
    shares.in_ranges(spread, len(table), some, EDGES if distinct else max(1, len(table)))
