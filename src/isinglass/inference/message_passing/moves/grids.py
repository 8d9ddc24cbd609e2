"""Regular grids of one size in planes, and how their work is cut; see `isinglass.kernels.numba.grids.flooding`."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from isinglass.inference.message_passing.moves.lattices import Lattice
from isinglass.inference.message_passing.moves.plane_model import PlaneModel, plane_model, walled
from isinglass.inference.message_passing.moves.planes import grid_pieces, work_of
from isinglass.inference.message_passing.run import Run
from isinglass.kernels.backend import GridKernels
from isinglass.kernels.layout import GridBeliefs, Span
from isinglass.typing import FloatArray, Mask

STRIP = 256  # sites that are updated at a time: their messages stay in the fastest cache


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

    def zeros(self, run: Run, with_phi: bool = True) -> list[PlaneModel]:
        """Return zeros for derivatives by the models."""
        return [model.zeros(len(self.lattice.row_blocks), run, with_phi) for model in self.models]

    def model_of(self, t: int) -> int:
        """Return the number of the model of iteration t."""
        return min(t, len(self.models) - 1)

    @property
    def rows(self) -> int:
        """How many rows a strip has."""
        return min(max(STRIP // self.lattice.pitch, 1), self.lattice.height)

    def scratch(self) -> tuple[FloatArray, ...]:
        """Return working memory for a strip."""
        card, size, dtype = self.lattice.card, self.rows * self.lattice.pitch, self.models[0].phi.dtype
        size += (320 // dtype.itemsize - size) % (4096 // dtype.itemsize)  # 4096 bytes apart, runs hinder each other
        return np.empty((4, card, size), dtype), np.empty((card, size), dtype), np.empty((2, size), dtype)

    @property
    def nothing(self) -> FloatArray:
        """No planes for one grid."""
        return np.empty((0, *self.lattice.shape_of_one), self.models[0].phi.dtype)

    def planes_of_one(self, run: Run, count: int) -> FloatArray:
        """Take planes for the messages of one grid, so many times, from the pool."""
        return run.pool.take((count, *self.lattice.shape_of_one), self.models[0].phi.dtype)

    @property
    def no_beliefs(self) -> GridBeliefs:
        """What tells a loop to read nothing out."""
        none, planes = np.empty(0), np.empty(0, self.models[0].phi.dtype)
        return GridBeliefs(none, none, planes, planes, self.lattice.steps_of_one)

    @property
    def is_large(self) -> bool:
        """Whether threads share a grid."""
        return len(self.lattice.row_blocks) > 1

    def pieces(self, run: Run, iterations: int, at: int) -> list[Piece]:
        """Cut the grids of a run for a model into blocks of rows, if large; else into runs with one kind of tables."""
        key = run.span, run.spread.threads, iterations, at
        if key not in self.found:
            self.found[key] = self._pieces(run, iterations, self.models[at].alike)
        return self.found[key]

    def _pieces(self, run: Run, iterations: int, alike: Mask) -> list[Piece]:
        blocks = self.lattice.row_blocks
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
