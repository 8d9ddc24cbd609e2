"""The reverse of flooding on regular grids, in planes; see `isinglass.kernels.numba.grids.flooding_back`."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

import numpy as np

from isinglass.inference.message_passing import shares
from isinglass.inference.message_passing.moves.grids import Grids, Piece
from isinglass.inference.message_passing.moves.lattices import Lattice
from isinglass.inference.message_passing.moves.plane_model import PlaneModel
from isinglass.inference.message_passing.moves.planes import (
    EDGES,
    BeliefDerivatives,
    beliefs_back,
    largest_of_grids,
    used_places,
    write_borders,
)
from isinglass.inference.message_passing.run import Derivatives, Run, Step
from isinglass.kernels.backend import GridKernels
from isinglass.kernels.layout import WIDE, GridBeliefBars
from isinglass.runtime.deferring import deferred
from isinglass.runtime.threads import ThreadMap
from isinglass.typing import FloatArray, IntArray, Mask


@dataclass(eq=False)
class GridBars:
    """Derivatives in planes.

    Where those by beliefs are given, and one step did all iterations, each grid goes back from its beliefs to its
    potentials in a cache: there are no planes of all grids. Derivatives by the first messages are computed when they
    are asked for, which is seldom.
    """

    grids: Grids
    models: list[PlaneModel]
    m: FloatArray | None = None
    spare: FloatArray | None = None  # of large grids: for an iteration, threads write from one to the other
    given: BeliefDerivatives | None = None  # which nothing was made of yet
    settled: bool = False  # whether an iteration has been reversed
    source: FloatArray | None = None
    used: Mask | None = None  # the places in planes that hold derivatives by messages
    again: Callable[[], FloatArray] | None = None  # computes the derivatives by the first messages

    @classmethod
    def of(cls, grids: Grids, bars: Derivatives, run: Run) -> GridBars:
        """Move the derivatives by messages into planes."""
        mine = cls(grids, grids.zeros(run))
        mine.m = mine._with_room(run)
        shares.fill(run.spread, mine.m, 0)
        grids.lattice.spread(grids.kernels, run.spread, bars.m, mine.m)
        return mine

    @classmethod
    def of_beliefs(cls, grids: Grids, given: BeliefDerivatives, run: Run) -> GridBars:
        """Return the derivatives by messages, given those by the beliefs that were read out from them."""
        return cls(grids, grids.zeros(run, with_phi=False), given=given)

    def _into_planes(self, run: Run) -> FloatArray:
        """Return the derivatives by messages in planes; compute them now, if those by beliefs are given."""
        if self.given is not None:
            self.models, self.m = self.grids.zeros(run), self._with_room(run)
            lattice, kernels = self.grids.lattice, self.grids.kernels
            beliefs_back(kernels, run.spread, lattice, len(lattice.members), self.given, self.m)
            self.given = None
        assert self.m is not None
        return self.m

    def _with_room(self, run: Run) -> FloatArray:
        """Return planes, and make others for large grids."""
        lattice = self.grids.lattice

        def fill(planes: FloatArray) -> None:
            write_borders(run.spread, lattice, planes, 0, inside=False)

        def planes() -> FloatArray:
            return run.pool.take_with(_silent(lattice), lattice.shape, WIDE, fill)

        self.spare = planes() if self.grids.is_large else None
        return planes()

    def reverse(self, run: Run, step: Step, active: Mask) -> None:
        """Reverse a step on the active grids."""
        kept = step.move.planes_of(step)
        at_once = len(self.models) == 1 and step.t == 0 and not self.grids.is_large and bool(active.all())
        if self.given is not None and at_once and kept is not None:
            self._reverse_beliefs(run, step, *kept, self.given)
            return
        self._into_planes(run)
        if kept is None:
            source = self.planes_of(step.move.messages_before(run, step, 0), run)
            kept = source, source[None]
        source, stack = kept
        if not self.grids.is_large:
            self._reverse(run, step.t, source, stack, step.iterations, active)
            return
        for t in range(step.iterations - 1, -1, -1):
            inbox = source if t == 0 else stack[(t - 1) % len(stack)]
            self._reverse(run, step.t, inbox, inbox[None], 1, active)
            self.m, self.spare = self.spare, self.m

    def _reverse_beliefs(
        self, run: Run, step: Step, source: FloatArray, stack: FloatArray, given: BeliefDerivatives
    ) -> None:
        """Go from derivatives by beliefs to those by potentials and tables."""
        grids, kept = self.grids, run.pool.lend(run.pool.take(given.bars.shape, given.bars.dtype))
        self._reverse(run, 0, source, stack, step.iterations, np.ones(len(grids.lattice.members), bool), kept.array)
        self.given = None
        alone = replace(run, m=np.empty(0), n=np.empty(0))

        def again() -> FloatArray:
            phi = np.zeros_like(given.phi)
            mine = GridBars(grids, [], given=BeliefDerivatives(given.beliefs, kept.array, phi))
            mine._into_planes(alone)
            mine.reverse(alone, step, np.ones(len(grids.lattice.members), bool))
            assert mine.m is not None
            return grids.lattice.collected(grids.kernels, alone.spread, mine.m)

        self.again = again

    def _reverse(
        self,
        run: Run,
        t: int,
        source: FloatArray,
        stack: FloatArray,
        iterations: int,
        active: Mask,
        kept: FloatArray | None = None,
    ) -> None:
        """Reverse iterations. Two blocks side by side add to the same links, so that every other block comes later.

        An empty stack: the messages between iterations are computed again. With room to keep those that are given, it
        begins with the derivatives by beliefs.
        """
        grids, at, again = self.grids, self.grids.model_of(t), len(stack) == 0
        model, mine, lattice = grids.models[at], self.models[at], grids.lattice

        def reverse(piece: Piece) -> None:
            weights, own = model.tables(piece.first)
            weights_bar = mine.each if own else mine.shared[piece.block]
            strip, message, scale = grids.scratch()
            small = 0 if grids.is_large else 2
            room = grids.planes_of_one(run, small + again * (iterations - 1))
            rooms = room[:small] if self.spare is None else self.spare[None]
            m, phi = (rooms[0], np.empty_like(rooms[0, 0])) if self.m is None else (self.m, mine.phi)
            grids.kernels.flood_back(
                model.phi, source, room[small:] if again else stack, again, iterations, m, rooms, self.settled, phi,
                weights, weights_bar, lattice.height, lattice.pitch, grids.rows, piece.top, piece.bottom, active, strip,
                message, np.empty_like(strip), scale, piece.first, piece.last, self._beliefs(rooms, kept), own,
            )  # fmt: skip
            run.pool.give(room)

        pieces = grids.pieces(run, iterations, at)
        for odd in range(min(2, len(lattice.row_blocks))):
            run.spread(reverse, [(piece,) for piece in pieces if piece.block % 2 == odd])
        self.settled = True

    def _beliefs(self, rooms: FloatArray, kept: FloatArray | None) -> GridBeliefBars:
        """Return what a loop begins with: the derivatives by beliefs, if there is room to keep them."""
        lattice, none = self.grids.lattice, np.empty(0)
        arrays = none, none, none, none
        if kept is not None:
            assert self.given is not None
            rooms[1] = 0  # the border stays so
            arrays = self.given.beliefs, self.given.bars, kept, self.given.phi
        return GridBeliefBars(*arrays, rooms[-1].reshape(-1), lattice.steps_of_one)

    def planes_of(self, m: FloatArray, run: Run) -> FloatArray:
        """Return the messages of edges in planes, which the next call overwrites."""
        if self.source is None:
            self.source = run.pool.take(self.grids.lattice.shape, WIDE)
            shares.fill(run.spread, self.source, 1)
            run.pool.give_back_with(self, self.source)
        self.grids.lattice.spread(self.grids.kernels, run.spread, m, self.source)
        return self.source

    def sizes(self, run: Run) -> FloatArray:
        """Return the largest derivative by a log message of each grid of a run."""
        lattice, kernels, planes = self.grids.lattice, self.grids.kernels, self._into_planes(run)
        if self.used is None:
            self.used = used_places(planes.size, lattice.of_edges)
        bounds = self.grids.members_in(run.span)
        return largest_of_grids(kernels, run.spread, planes, self.used, 4 * lattice.card, len(lattice.members), bounds)

    def give(self, run: Run, bars: Derivatives) -> None:
        """Move them to edges, and add those by potentials and by tables."""
        lattice, kernels = self.grids.lattice, self.grids.kernels
        self._give_messages(run, bars)
        for mine, phi, psi, places in zip(self.models, bars.phi, bars.psi, bars.places, strict=True):
            if self.again is None:
                self._give_potentials(run, mine, phi)
            table = places.table[lattice.links].reshape(len(lattice.members), -1)
            _add_tables(mine, lattice, table, psi, kernels, run.spread)

    def _give_potentials(self, run: Run, mine: PlaneModel, phi: FloatArray) -> None:
        """Add the derivatives by potentials."""
        lattice = self.grids.lattice
        found = lattice.inside(mine.phi).transpose(1, 2, 3, 0)
        if isinstance(lattice.entries, slice):
            shares.add(run.spread, phi[lattice.entries].reshape(found.shape), found)
        else:
            phi[lattice.entries] += found.ravel()
        run.pool.give(mine.phi)

    def _give_messages(self, run: Run, bars: Derivatives) -> None:
        """Move those by messages to edges: when they are asked for, if there are no others."""
        lattice, kernels, spread = self.grids.lattice, self.grids.kernels, run.spread
        if self.again is not None:
            bars.m = deferred(self.again)
            return
        planes = run.pool.lend(self._into_planes(run), _silent(lattice))
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
