"""What moves on regular grids share: messages stay in planes for the whole run.

They move into planes when the first iteration begins and back to edges when the last has ended. Where a product comes
near to an underflow, the iteration is done by a move for other graphs, and so are those after it.

A call of a loop does all iterations of some grids, as many as take a fraction of a second: then Ctrl-C is heard. A grid
that takes longer by itself is done iteration by iteration.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from isinglass.inference.message_passing.moves.lattices import Lattice, Sheets
from isinglass.inference.message_passing.moves.move import Move
from isinglass.inference.message_passing.run import Run, Step
from isinglass.kernels.backend import GridKernels
from isinglass.kernels.layout import Span, Status
from isinglass.typing import FloatArray, IntArray, Mask

PIECE = 2**27  # entries of tables that are multiplied between two moments at which Ctrl-C is heard
TOPS = 1024  # entries of planes that are looked at together


Planes = Lattice | Sheets
"""Where the messages of regular grids of one size lie in planes."""


def work_of(grid: Planes) -> int:
    """Return the number of entries of the tables of a grid, of one direction."""
    return grid.height * grid.width * grid.card**2


def grids_at_once(work: int) -> int:
    """Return how many grids a loop may do at once, each of them so much work."""
    return max(1, PIECE // max(1, work))


def used_places(size: int, of_edges: tuple[IntArray, int, int]) -> Mask:
    """Tell which entries of planes hold messages of edges."""
    place, card, apart = of_edges
    used = np.zeros(size, bool)
    used[place[:, None] + apart * np.arange(card)] = True
    return used


def largest_of_grids(
    kernels: GridKernels, planes: FloatArray, used: Mask, runs: int, grids: int, first: int, last: int
) -> FloatArray:
    """Return the largest used entry of the grids from `first` to before `last`; zero for the others.

    Planes consist of `runs`, each with a stretch for every grid.
    """
    cut, found = (runs, grids, planes.size // (runs * grids)), np.zeros(grids)
    kernels.largest(planes.reshape(cut), used.reshape(cut), first, last, np.empty(min(TOPS, cut[2])), found)
    return found


def grid_kernels(run: Run) -> GridKernels | None:
    """Return the loops for grids, if a run has what they expect: plain real messages without hard zeros."""
    kernels = run.kernels.grids
    served = kernels is not None and run.is_plain and run.m.dtype.kind == "f" and run.back.positive(run).all()
    return kernels if served else None


@dataclass(eq=False)
class PlaneMove(Move):
    """All iterations in planes: linear values, counting numbers of one, no damping, no zeros."""

    kernels: GridKernels
    general: Move
    inbox: FloatArray | None = field(default=None, init=False)
    spare: FloatArray | None = field(default=None, init=False)
    borrowed: list[FloatArray] = field(default_factory=list, init=False)  # from the pool, where no tape keeps them

    @property
    @abstractmethod
    def planes(self) -> Planes:
        """Where the messages lie."""

    @property
    @abstractmethod
    def n_models(self) -> int:
        """How many models there are: one for all iterations, or one for each."""

    @abstractmethod
    def iterate(self, run: Run, t: int, old: FloatArray, stack: FloatArray, iterations: int, status: Status) -> bool:
        """Do iterations from t on, to the planes of a stack in turn. Returns whether no product nearly underflowed."""

    def into_planes(self, run: Run, taped: bool) -> FloatArray:
        """Return the messages in planes; take them there before the first iteration."""
        if self.inbox is None:
            self.inbox = self.take(run, self.planes.shape, taped)
            self.inbox.fill(1)
            if run.uniform:
                for side in range(4):
                    self.planes.reached(self.inbox, side)[:] = 1 / self.planes.card
            else:
                self.kernels.spread(run.m, self.inbox.ravel(), *self.planes.of_edges)
            run.uniform = False
        return self.inbox

    def forward(self, run: Run, t: int, status: Status, taped: bool) -> Step:
        """Do iteration t."""
        old = self.into_planes(run, taped)
        new = self.take(run, old.shape, taped) if taped or self.spare is None else self.spare
        if not self.iterate(run, t, old, new[None], 1, status):
            self.finish(run)
            return self.general.forward(run, t, status, taped)
        self.inbox, self.spare = new, None if taped else old
        return run.step(Step(self, t, status.active, old), taped)

    def forward_all(self, run: Run, iterations: int, status: Status, taped: bool) -> Step | None:
        """Do all iterations, grid after grid: a small one stays in the cache."""
        if self.n_models > 1 or iterations == 0 or iterations * work_of(self.planes) > PIECE:
            return None
        start = self.into_planes(run, taped)
        stack = self.take(run, (iterations if taped else 2, *start.shape), taped)
        if not self.iterate(run, 0, start, stack, iterations, status):
            self.inbox = None
            return None
        self.inbox = stack[(iterations - 1) % len(stack)]
        return run.step(Step(self, 0, status.active, start, stack=stack, iterations=iterations), taped)

    def pieces(self, run: Run, iterations: int) -> Iterator[Span]:
        """Cut the grids of a run into as many as a loop may do at once."""
        span, step = run.span, grids_at_once(iterations * work_of(self.planes))
        for first in range(span.first_component, span.last_component, step):
            yield span._replace(first_component=first, last_component=min(first + step, span.last_component))

    def finish(self, run: Run) -> None:
        """Move the messages back to the edges."""
        if self.inbox is not None:
            run.m = self.messages(self.inbox)
        self.inbox = self.spare = None
        while self.borrowed:
            run.pool.give(self.borrowed.pop())

    def take(self, run: Run, shape: tuple[int, ...], taped: bool) -> FloatArray:
        """Return room for planes; without a tape it goes back to the pool when the run has ended."""
        room = run.pool.take(shape, run.m.dtype)
        if not taped:
            self.borrowed.append(room)
        return room

    def before(self, step: Step, t: int) -> FloatArray:
        """Return the planes before iteration t of a step."""
        return step.before if t == 0 or step.stack is None else step.stack[(t - 1) % len(step.stack)]

    def messages(self, planes: FloatArray) -> FloatArray:
        """Return the messages in planes as those of edges."""
        place, card, _ = self.planes.of_edges
        m = np.empty(len(place) * card)
        self.kernels.collect(planes.ravel(), m, *self.planes.of_edges)
        return m
