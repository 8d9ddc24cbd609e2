"""The grid schedule on regular grids, in planes; see `isinglass.kernels.numba.grids.sweeps`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.message_passing.moves.lattices import Sheets, sheets_of
from isinglass.inference.message_passing.moves.planes import PlaneMove, grid_kernels, largest_of_grids, used_places
from isinglass.inference.message_passing.moves.sequence import LinkSequence
from isinglass.inference.message_passing.run import Derivatives, Run, Step, unwatched
from isinglass.kernels.layout import Status, SweepWork, Values
from isinglass.segments import Largest, sum_at
from isinglass.typing import Array, FloatArray, IntArray, Mask


class SweepModel(NamedTuple):
    """One model in planes: potentials, and tables of vertical and horizontal links."""

    phi: FloatArray  # (grids, states, height, width)
    turned: FloatArray  # (grids, states, width, height)
    across: FloatArray  # (grids, states, states, height - 1, width), or (1, states, states, 1, 1) if they are shared
    along: FloatArray  # (grids, states, states, width - 1, height), or the same
    own: tuple[int, ...]


@dataclass(eq=False)
class GridSweep(PlaneMove):
    """The grid schedule, line by line."""

    general: LinkSequence
    sheets: Sheets
    models: list[SweepModel]
    room: SweepWork
    bars: _Bars | None = field(default=None, init=False)
    used: Mask | None = field(default=None, init=False)  # the places in planes that hold messages
    collected: FloatArray | None = field(default=None, init=False)  # that were last moved to the edges

    @classmethod
    def of(cls, graph: FactorGraph, run: Run, general: LinkSequence) -> GridSweep | None:
        """Return the move for a run, if it can be used."""
        sheets, kernels = sheets_of(graph), grid_kernels(run)
        if sheets is None or kernels is None:
            return None
        return cls(kernels, general, sheets, [_model(sheets, values) for values in run.models], _work(sheets))

    @property
    def planes(self) -> Sheets:
        """Where the messages lie."""
        return self.sheets

    @property
    def n_models(self) -> int:
        """How many models there are."""
        return len(self.models)

    def iterate(self, run: Run, t: int, old: FloatArray, stack: FloatArray, iterations: int, status: Status) -> bool:
        """Do iterations; return whether no product came near to an underflow."""
        model, suspect = self._model(t), np.zeros(len(status.active), bool)
        limit = run.values(t).limit
        for span in self.pieces(run, iterations):
            self.kernels.sweep(
                model.phi, model.turned, old, stack, iterations, self._again(t), model.across, model.along,
                status.active, suspect, status.residual, status.watched, self.room, limit, span.first_component,
                span.last_component, model.own,
            )  # fmt: skip
        return not suspect.any()

    def backward(self, run: Run, step: Step, moved: Mask, bars: Derivatives) -> None:
        """Reverse a step."""
        if len(bars.counting):
            self._backward_by_links(run, step, moved, bars)
            return
        if self.bars is None:
            self.bars = _Bars.of(self, bars)
        stack = step.stack
        if stack is None:
            stack = np.empty((1, *self.sheets.shape))
            self.iterate(run, step.t, step.before, stack, 1, unwatched(moved))
        model, mine = self._model(step.t), self.bars.models[min(step.t, len(self.models) - 1)]
        for span in self.pieces(run, step.iterations):
            self.kernels.sweep_back(
                model.phi, model.turned, step.before, stack, step.iterations, self._again(step.t), self.bars.m,
                mine.phi, model.across, mine.across, model.along, mine.along, moved, self.room, span.first_component,
                span.last_component, model.own,
            )  # fmt: skip

    def _backward_by_links(self, run: Run, step: Step, moved: Mask, bars: Derivatives) -> None:
        """Reverse a step by the loops that know counting numbers, which do it again first."""
        for t in range(step.iterations - 1, -1, -1):
            run.m = self.messages(self.before(step, t))
            again = self.general.forward(run, step.t + t, unwatched(moved), True)
            self.general.backward(run, again, moved, bars)

    def finish_back(self, run: Run, bars: Derivatives) -> None:
        """Move the derivatives back to edges, variables and tables."""
        if self.bars is not None:
            self.bars.give(self, run, bars)
        self.bars = None

    def effects(self, run: Run, step: Step, status: Status) -> None:
        """Measure one undamped flooding, as for other sequences, so that a residual does not depend on the batch."""
        assert self.inbox is not None
        self.kernels.collect(self.inbox.ravel(), run.m, *self.planes.of_edges)  # the old messages there are not needed
        self.collected = self.inbox
        self.general.effects(run, step, status)

    def finish(self, run: Run) -> None:
        """Move the messages back to the edges, unless that has been done."""
        if self.inbox is not None and self.inbox is self.collected:
            self.inbox = None
        self.collected = None
        super().finish(run)

    def sizes_back(self, run: Run, bars: Derivatives, largest: Largest) -> FloatArray:
        """Measure the derivatives where they are."""
        if self.bars is None:
            return super().sizes_back(run, bars, largest)
        if self.used is None:
            self.used = used_places(self.bars.m.size, self.planes.of_edges)
        span = run.span
        return largest_of_grids(
            self.kernels, self.bars.m, self.used, 1, self.sheets.grids, span.first_component, span.last_component
        )[None]

    def _model(self, t: int) -> SweepModel:
        return self.models[min(t, len(self.models) - 1)]

    def _again(self, t: int) -> bool:
        """Tell whether the iteration before had the same potentials; this move did it then."""
        return t > 0 and self._model(t) is self._model(t - 1)

    def into_planes(self, run: Run, taped: bool) -> FloatArray:
        """Return the messages in planes."""
        self.collected = None  # an iteration begins
        return super().into_planes(run, taped)


@dataclass(eq=False)
class _Bars:
    """Derivatives in planes."""

    m: FloatArray
    models: list[SweepModel]

    @classmethod
    def of(cls, move: GridSweep, bars: Derivatives) -> _Bars:
        """Move the derivatives by messages into planes."""
        planes = np.zeros(move.sheets.shape)
        move.kernels.spread(bars.m, planes.ravel(), *move.sheets.of_edges)
        nothing = np.zeros((0, 0, 0, 0))

        def each(tables: FloatArray) -> FloatArray:
            return np.zeros((move.sheets.grids, *tables.shape[1:]))

        zeros = [
            SweepModel(np.zeros_like(one.phi), nothing, each(one.across), each(one.along), one.own)
            for one in move.models
        ]
        return cls(planes, zeros)

    def give(self, move: GridSweep, run: Run, bars: Derivatives) -> None:
        """Move them to edges, and add those by potentials and tables."""
        move.kernels.collect(self.m.ravel(), bars.m, *move.sheets.of_edges)
        for t, mine in enumerate(self.models):
            bars.phi[t] += np.moveaxis(mine.phi, 1, -1).ravel()
            psi = bars.psi[t]
            for links, found in zip(move.sheets.links(bars.places[t].table), (mine.along, mine.across), strict=True):
                if not len(mine.own):
                    tables = found.reshape(move.sheets.grids, -1)
                    first = links.reshape(move.sheets.grids, -1)[:, :1]
                    np.add.at(psi, first + np.arange(tables.shape[1]), tables)  # grid after grid
                    continue
                entries = np.moveaxis(found, (1, 2), (-2, -1)).reshape(*links.shape, -1)
                psi += sum_at(links[..., None] + np.arange(entries.shape[-1]), entries, len(psi))


def _model(sheets: Sheets, values: Values) -> SweepModel:
    """Lay potentials and tables out in planes."""
    card, psi = sheets.card, values.psi
    phi = np.moveaxis(values.phi.reshape(sheets.grids, sheets.height, sheets.width, card), -1, 1)
    along, across = (links[:1, :1, :1] if _is_one(links) else links for links in sheets.links(values.table))
    shared = along.size == across.size == 1
    if shared:
        entries = [psi[links[..., None] + np.arange(card * card)] for links in (along, across)]
    else:
        entries = list(sheets.links(_rows(values, card * card)))
    tables = [np.moveaxis(e.reshape(*e.shape[:3], card, card), (-2, -1), (1, 2)) for e in entries]
    turned, (beside, below) = np.ascontiguousarray(phi.swapaxes(2, 3)), map(np.ascontiguousarray, tables)
    return SweepModel(np.ascontiguousarray(phi), turned, below, beside, () if shared else (0,))


def _is_one(links: IntArray) -> bool:
    """Tell whether all links have the same table."""
    return bool((links == links[0, 0, 0]).all())


def _rows(values: Values, size: int) -> Array:
    """Return the table of each link; a view, if they lie in order."""
    table, n = values.table, len(values.table)
    if np.array_equal(table, np.arange(n) * size + table[0]):
        return np.asarray(values.psi[table[0] : table[0] + n * size].reshape(n, size))
    rows: Array = values.psi[table[:, None] + np.arange(size)]
    return rows


def _work(sheets: Sheets) -> SweepWork:
    card, height, width = sheets.shape[2:]
    line = max(height, width)

    def plane() -> FloatArray:
        return np.empty((card, height, width))

    return SweepWork(
        base=plane(),
        up=plane(),
        down=plane(),
        turned=np.empty((5, card, width, height)),
        sent=np.empty((card, line)),
        message=np.empty((card, line)),
        back=np.empty((card, line)),
        run=np.empty((2, line)),
        base_bar=plane(),
        up_bar=plane(),
        down_bar=plane(),
        turned_bar=np.empty((3, card, width, height)),
    )
