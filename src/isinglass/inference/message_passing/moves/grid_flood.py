"""Flooding on regular grids, in planes; see `isinglass.kernels.numba.grids.flooding`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.message_passing.moves.flood import Flooding, FloodPairs
from isinglass.inference.message_passing.moves.grids import STRIP, Grids, Piece
from isinglass.inference.message_passing.moves.lattices import Lattice, lattice_of
from isinglass.inference.message_passing.moves.plane_move import PlaneMove, Way, grid_kernels
from isinglass.inference.message_passing.moves.planes import is_short
from isinglass.inference.message_passing.run import Run, Step
from isinglass.kernels.layout import Beliefs, GridBeliefs, Status
from isinglass.runtime.deferring import deferred
from isinglass.typing import FloatArray, Mask

AGAIN = 2**20  # bytes of the messages of a grid, of all iterations, that a cache holds: then they are not kept


@dataclass(eq=False)
class GridFlood(PlaneMove, Flooding):
    """Flooding on regular grids."""

    general: FloodPairs
    grids: Grids
    read: float | None = field(default=None, init=False)  # where beliefs were read out: a lower bound of them

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

    def forward_all(self, run: Run, iterations: int, status: Status, taped: bool, tol: float = -1.0) -> Step | None:
        """Do all iterations. Of many grids, the beliefs are read out at once, and no messages are kept."""
        many = iterations > 0 and is_short(self.planes, iterations) and not self.keeps(iterations)
        if not (many and run.uniform and self._can_read_out(run, status)):
            return super().forward_all(run, iterations, status, taped, tol)
        start, none = self.into_planes(run, taped), self.grids.nothing
        suspect, least = self._flood(run, Way(0, iterations, start, none, none), status, tol)
        self.inbox = None
        if suspect.any():
            return None
        self.read = least
        step = Step(self, 0, status.active, start, stack=none, iterations=iterations)
        alone = replace(run, m=none, n=none)  # the messages do not refer to their own run
        run.m = deferred(lambda: self.messages_before(alone, step, iterations))
        return run.step(step, taped, self._known(start))

    def _can_read_out(self, run: Run, status: Status) -> bool:
        """Tell whether loops may read out beliefs of variables."""
        plain = not self.is_large and self.n_models == 1
        return plain and self.planes.in_order and bool(status.active.all())

    def read_out(self, run: Run, beliefs: Beliefs, active: Mask) -> float | None:
        """Read the beliefs of variables out, unless that has been done."""
        least, self.read = self.read, None
        return super().read_out(run, beliefs, active) if least is None else least

    def iterate(self, run: Run, way: Way, status: Status, tol: float = -1.0) -> Mask:
        """Do iterations; return in which grids a product came near to an underflow."""
        if not self.is_large:
            return self._flood(run, way, status, tol)[0]
        suspect, old = np.zeros(len(status.active), bool), way.source
        for done in range(way.iterations):
            now = status._replace(watched=status.watched and done == way.iterations - 1)
            suspect |= self._flood(run, way._replace(iterations=1, source=old, out=way.after(done)), now, -1.0)[0]
            if suspect.any():
                break
            old = way.after(done)
        return suspect

    def _flood(self, run: Run, way: Way, status: Status, tol: float) -> tuple[Mask, float]:
        """Let pieces do iterations; each has its own residuals, since several may belong to one grid.

        If there are no planes for the last messages, beliefs are read out, and a lower bound of them is returned, too.
        """
        grids, iterations, stack, read = self.grids, way.iterations, way.stack, not way.out.size
        at, lattice = grids.model_of(way.t), grids.lattice
        model, pieces = grids.models[at], grids.pieces(run, iterations, at)

        def flood(piece: Piece) -> tuple[FloatArray, Mask, float]:
            weights, own = model.tables(piece.first)
            suspect = np.zeros(len(status.active), bool)
            residual = np.zeros(len(status.active)) if len(pieces) > 1 else status.residual
            rooms = 0 if len(stack) else min(2, iterations - 1)
            room = grids.planes_of_one(run, rooms + read)
            between, last = stack if len(stack) else room[:rooms], room[-1] if read else way.out
            beliefs = self._beliefs(run, model.phi, last) if read else grids.no_beliefs
            least = self.kernels.flood(
                model.phi, way.source, between, last, iterations, weights, lattice.height, lattice.pitch, grids.rows,
                piece.top, piece.bottom, status.active, suspect, residual, status.watched, tol, *grids.scratch(),
                np.empty((2, STRIP)), model.limit, piece.first, piece.last, beliefs, own,
            )  # fmt: skip
            run.pool.give(room)
            return residual[piece.first : piece.last], suspect, least

        found = run.spread(flood, [(piece,) for piece in pieces])
        _keep_largest(status, pieces, [residual for residual, _, _ in found])
        suspect: Mask = np.logical_or.reduce([one for _, one, _ in found])
        return suspect, min(least for _, _, least in found)

    def _beliefs(self, run: Run, phi: FloatArray, messages: FloatArray) -> GridBeliefs:
        """Return where a loop reads beliefs out to."""
        assert run.variables is not None
        flat = phi.reshape(-1), messages.reshape(-1)
        return self.grids.no_beliefs._replace(variables=run.variables, z=run.log_zi, phi=flat[0], messages=flat[1])

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
        pitch, plane = self.planes.pitch, self.planes.sites_of_one
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
