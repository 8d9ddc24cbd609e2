"""What moves on regular grids share: the messages of a run live in planes while it lasts.

They move into planes when the first iteration begins and back when the last has ended. Where a product comes near to an
underflow, the iteration is done by a move for other graphs, and so are those after it.

A call of a loop does all iterations of some grids, as many as take a fraction of a second: then Ctrl-C is heard. A grid
that takes longer by itself is done iteration by iteration.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isinglass.inference.message_passing.moves.move import Fate, Move, Run, Step
from isinglass.typing import IntArray

if TYPE_CHECKING:
    from isinglass.kernels.numba.messages.passes import Span

Planes = NDArray[np.float64]
PIECE = 2**27  # entries of tables that are multiplied between two moments at which Ctrl-C is heard
TOPS = 1024  # entries of planes that are looked at together


def grids_at_once(work: int) -> int:
    """Return how many grids a loop may do at once, each of them so much work."""
    return max(1, PIECE // max(1, work))


def used_places(size: int, of_edges: tuple[IntArray, int, int]) -> NDArray[np.bool_]:
    """Tell which entries of planes hold messages of edges."""
    place, card, apart = of_edges
    used = np.zeros(size, bool)
    used[place[:, None] + apart * np.arange(card)] = True
    return used


def largest_of_grids(
    planes: Planes, used: NDArray[np.bool_], runs: int, grids: int, first: int, last: int
) -> NDArray[np.float64]:
    """Return the largest used entry of the grids from `first` to before `last`; zero for the others.

    Planes consist of `runs`, each with a stretch for every grid.
    """
    from isinglass.kernels.numba.grids.sizes import largest_in_planes

    cut, found = (runs, grids, planes.size // (runs * grids)), np.zeros(grids)
    largest_in_planes(planes.reshape(cut), used.reshape(cut), first, last, np.empty(min(TOPS, cut[2])), found)
    return found


@dataclass(eq=False)
class PlaneMove(Move):
    """All iterations in planes: linear values, counting numbers of one, no damping, no zeros."""

    general: Move
    inbox: Planes | None = field(default=None, init=False)
    spare: Planes | None = field(default=None, init=False)

    @property
    @abstractmethod
    def of_edges(self) -> tuple[IntArray, int, int]:
        """Where the message of each edge begins, its number of states, and how far these lie apart."""

    @property
    @abstractmethod
    def n_stages(self) -> int:
        """How many models there are: one for all iterations, or one for each."""

    @property
    @abstractmethod
    def work(self) -> int:
        """Entries of the tables of a grid, of one direction."""

    @abstractmethod
    def into_planes(self, run: Run) -> Planes:
        """Return the messages in planes; take them there before the first iteration."""

    @abstractmethod
    def iterate(self, run: Run, t: int, old: Planes, stack: Planes, iterations: int, fate: Fate) -> bool:
        """Do iterations from t on, to the planes of a stack in turn. Returns whether no product nearly underflowed."""

    @staticmethod
    def serves(run: Run) -> bool:
        """Tell whether a run has what the loops in planes expect."""
        plain = not len(run.ring) and run.damping == 0 and not len(run.scratch.own) and run.m.dtype.kind == "f"
        return bool(plain and run.back.positive(run).all())

    def forward(self, run: Run, t: int, fate: Fate, taped: bool) -> Step:
        """Do iteration t."""
        old = self.into_planes(run)
        new = run.pool.take(old.shape, old.dtype) if taped or self.spare is None else self.spare
        if not self.iterate(run, t, old, new[None], 1, fate):
            self.finish(run)
            return self.general.forward(run, t, fate, taped)
        self.inbox, self.spare = new, None if taped else old
        return run.step(Step(self, t, fate.active, old), taped)

    def forward_all(self, run: Run, iterations: int, fate: Fate, taped: bool) -> Step | None:
        """Do all iterations, grid after grid: a small one stays in the cache."""
        if self.n_stages > 1 or iterations == 0 or iterations * self.work > PIECE:
            return None
        start = self.into_planes(run)
        stack = run.pool.take((iterations if taped else 2, *start.shape), start.dtype)
        if not self.iterate(run, 0, start, stack, iterations, fate):
            self.inbox = None
            return None
        self.inbox = stack[(iterations - 1) % len(stack)]
        return run.step(Step(self, 0, fate.active, start, stack=stack, iterations=iterations), taped)

    def pieces(self, run: Run, iterations: int) -> Iterator[Span]:
        """Cut the grids of a run into as many as a loop may do at once."""
        span, step = run.span, grids_at_once(iterations * self.work)
        for first in range(span.first_component, span.last_component, step):
            yield span._replace(first_component=first, last_component=min(first + step, span.last_component))

    def finish(self, run: Run) -> None:
        """Move the messages back to the edges."""
        if self.inbox is not None:
            run.m = self.messages(self.inbox)
        self.inbox = self.spare = None

    def before(self, step: Step, t: int) -> Planes:
        """Return the planes before iteration t of a step."""
        return step.before if t == 0 or step.stack is None else step.stack[(t - 1) % len(step.stack)]

    def messages(self, planes: Planes) -> NDArray[np.float64]:
        """Return the messages in planes as those of edges."""
        from isinglass.kernels.numba.grids.flooding import collect

        place, card, _ = self.of_edges
        m = np.empty(len(place) * card)
        collect(planes.ravel(), m, *self.of_edges)
        return m
