"""The base of moves on regular grids: messages are stored in planes during the whole run.

Messages are copied into planes before the first iteration and back to edges after the last. If a product is close to an
underflow, this iteration and all later ones are done by a move for general graphs.

One call of a compiled loop does all iterations of some grids, as many as take a fraction of a second, so that Ctrl-C
works. A grid that takes longer is done iteration by iteration. Messages that are not needed later (initial uniform
messages, and those between iterations) use the planes of one grid, which all grids share in turn and which stay in the
processor's cache. A large grid, on which several threads work, has its own planes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from isinglass.inference.message_passing import shares
from isinglass.inference.message_passing.moves.move import Move
from isinglass.inference.message_passing.moves.planes import (
    Planes,
    is_short,
    on_edges,
    row_pieces,
    spread_out,
    write_borders,
)
from isinglass.inference.message_passing.run import Run, Step, unwatched
from isinglass.kernels.backend import GridKernels
from isinglass.kernels.layout import WIDE, Beliefs, Status
from isinglass.runtime.deferring import deferred
from isinglass.typing import FloatArray, Mask


class Way(NamedTuple):
    """Where messages lie in iterations that are done at once."""

    t: int  # the first iteration
    iterations: int
    source: FloatArray  # of all grids, or of one
    stack: FloatArray  # planes between iterations, used in turn; if empty, grids that are not large use some for one
    out: FloatArray  # the last messages; may be in the stack, where its turn is

    def after(self, done: int) -> FloatArray:
        """Return the planes after one of the iterations, which are counted from zero."""
        return self.out if done == self.iterations - 1 else self.stack[done % len(self.stack)]


def grid_kernels(run: Run) -> GridKernels | None:
    """Return the loops for grids, if a run has what they expect: plain real messages without hard zeros."""
    kernels = run.kernels.grids
    served = kernels is not None and run.is_plain and run.dtype.kind == "f" and run.back.positive(run).all()
    return kernels if served else None


@dataclass(eq=False)
class PlaneMove(Move):
    """All iterations in planes: linear values, counting numbers of one, no damping, no zeros."""

    kernels: GridKernels
    general: Move
    inbox: FloatArray | None = field(default=None, init=False)
    final: FloatArray | None = field(default=None, init=False)  # the last messages, between `finish` and the read-out
    spare: FloatArray | None = field(default=None, init=False)
    start: FloatArray | None = field(default=None, init=False)  # the uniform messages, for one grid
    borrowed: list[FloatArray] = field(default_factory=list, init=False)  # from the pool, where no tape keeps them

    @property
    @abstractmethod
    def planes(self) -> Planes:
        """Where the messages lie."""

    @property
    @abstractmethod
    def n_models(self) -> int:
        """How many models there are: one for all iterations, or one for each."""

    @property
    @abstractmethod
    def last_potentials(self) -> FloatArray:
        """The potentials of the last model, in planes."""

    @property
    @abstractmethod
    def is_large(self) -> bool:
        """Whether threads share a grid."""

    @abstractmethod
    def iterate(self, run: Run, way: Way, status: Status, tol: float = -1.0) -> Mask:
        """Do iterations.

        Where `measures_effects` holds, residuals of at most `tol` become those of `effects`. Returns in which grids a
        product nearly underflowed: what it wrote of these is of no use.
        """

    @property
    def measures_effects(self) -> bool:
        """Whether `iterate` measures what small changes can do to a probability."""
        return False

    def keeps(self, iterations: int) -> bool:
        """Tell whether a tape keeps the messages after so many iterations; else they are done again on the way back."""
        return True

    def into_planes(self, run: Run, taped: bool) -> FloatArray:
        """Return the messages in planes; take them there before the first iteration."""
        if self.inbox is None:
            if run.uniform:
                self.inbox = self.start = self._uniform(run, taped)
            else:
                self.inbox = self.take(run, self.planes.shape, taped)
                shares.fill(run.spread, self.inbox, 1)
                spread_out(self.kernels, run.spread, run.m, self.inbox, self.planes.of_edges)
            run.uniform = False
        return self.inbox

    def _uniform(self, run: Run, taped: bool) -> FloatArray:
        """Return uniform messages."""

        def fill(planes: FloatArray) -> None:
            shares.fill(run.spread, planes, 1 / self.planes.card)
            write_borders(run.spread, self.planes, planes, 1, inside=True)

        room = run.pool.take_with(self._content(), self.planes.shape_of_one, WIDE, fill)
        if not taped:
            self.borrowed.append(room)
        return room

    def _content(self) -> Hashable:
        """Name the content of uniform messages of such grids."""
        return "uniform", self.planes.height, self.planes.width

    def _known(self, room: FloatArray | None) -> Hashable:
        """Return the name of the content of planes, if it is known."""
        return self._content() if room is not None and room is self.start else None

    def forward(self, run: Run, t: int, status: Status, taped: bool) -> Step:
        """Do iteration t."""
        old = self.into_planes(run, taped)
        new = self.take(run, self.planes.shape, taped) if taped or self.spare is None else self.spare
        if self.iterate(run, Way(t, 1, old, new[None][:0], new), status).any():
            self.finish(run)
            return self.general.forward(run, t, status, taped)
        self.inbox, self.spare = new, None if taped or old is self.start else old
        return run.step(Step(self, t, status.active, old, after=new if taped else None), taped, self._known(old))

    def forward_all(self, run: Run, iterations: int, status: Status, taped: bool, tol: float = -1.0) -> Step | None:
        """Do all iterations, grid after grid: a small one stays in the cache."""
        short = is_short(self.planes, iterations) or self.is_large
        if self.n_models > 1 or iterations == 0 or not short:
            return None
        start = self.into_planes(run, taped)
        stack, out = self._room_for(run, iterations, taped and self.keeps(iterations))
        if self.iterate(run, Way(0, iterations, start, stack, out), status, tol).any():
            self.inbox = None
            return None
        self.inbox = out
        step = run.step(
            Step(self, 0, status.active, start, stack=stack, iterations=iterations), taped, self._known(start)
        )
        if status.watched and not self.measures_effects:
            self.look_closely(run, step, status, tol)
        return step

    def _room_for(self, run: Run, iterations: int, kept: bool) -> tuple[FloatArray, FloatArray]:
        """Return planes for the messages between iterations, none where loops have their own, and for the last ones.

        The messages of a single grid alternate between two planes.
        """
        shape, alone = self.planes.shape, self.is_large or self.planes.shape == self.planes.shape_of_one
        count = iterations if kept else min(2, iterations) if alone else 0
        stack = self.take(run, (count, *shape), kept)
        return stack, stack[(iterations - 1) % count] if count else self.take(run, shape, False)

    def finish(self, run: Run) -> None:
        """Leave the messages in planes, until they are needed on edges; what else was borrowed goes back."""
        last = None if self.inbox is self.start else self.inbox  # where nothing was done, run.m is still uniform
        self.final, self.inbox, self.spare = last, None, None
        kept = [room for room in self.borrowed if last is not None and np.may_share_memory(room, last)]
        while self.borrowed:
            room = self.borrowed.pop()
            if not any(room is one for one in kept):
                run.pool.give(room, self._known(room))
        if last is not None:
            loans = [run.pool.lend(room) for room in kept]  # none: a tape keeps them
            run.m = deferred(partial(on_edges, self.kernels, run.spread, last, self.planes.of_edges, loans))

    def read_out(self, run: Run, beliefs: Beliefs, active: Mask) -> float | None:
        """Read the beliefs of variables out, in planes if the messages are still there."""
        final, self.final = self.final, None
        if final is None or not self.planes.in_order or not active.all():
            return super().read_out(run, beliefs, active)
        grid, messages, phi = self.planes, final.reshape(-1), self.last_potentials.reshape(-1)

        def read(*piece: int) -> float:
            return self.kernels.read_out(
                phi, messages, grid.steps, grid.card, grid.height, grid.width, *piece, beliefs.variables,
                beliefs.z_variables,
            )  # fmt: skip

        return min(run.spread(read, row_pieces(run.spread, grid, len(active))))

    def take(self, run: Run, shape: tuple[int, ...], taped: bool) -> FloatArray:
        """Return room for planes; without a tape it goes back to the pool when the run has ended."""
        room = run.pool.take(shape, WIDE)
        if not taped:
            self.borrowed.append(room)
        return room

    def before(self, run: Run, step: Step, t: int) -> FloatArray:
        """Return the planes before iteration t of a step, for all grids or for one; do what was not kept again."""
        if t == 0 or step.stack is None:
            return step.before
        if len(step.stack):
            kept: FloatArray = step.stack[(t - 1) % len(step.stack)]
            return kept
        again = np.empty(self.planes.shape)
        self.iterate(run, Way(step.t, t, step.before, step.stack, again), unwatched(step.active))
        return again

    def messages_before(self, run: Run, step: Step, t: int) -> FloatArray:
        """Return the messages before iteration t of a step, on edges."""
        planes = self.planes.of_all(self.before(run, step, t))
        return on_edges(self.kernels, run.spread, planes, self.planes.of_edges)
