"""Derivatives of the grid schedule in planes, on the way back; see `isinglass.kernels.numba.grids.sweeps_back`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from isinglass.inference.message_passing import shares
from isinglass.inference.message_passing.moves.planes import on_edges, spread_out
from isinglass.inference.message_passing.moves.sheets import Sheets, SweepModel
from isinglass.inference.message_passing.run import Derivatives, Run
from isinglass.kernels.backend import GridKernels
from isinglass.kernels.layout import WIDE
from isinglass.runtime.deferring import deferred
from isinglass.segments import sum_at
from isinglass.typing import FloatArray, IntArray, Mask


@dataclass(eq=False)
class SweepBars:
    """Derivatives in planes; of large binary grids, those by state 1 are written at the end."""

    sheets: Sheets
    m: FloatArray
    models: list[SweepModel]
    fresh: Mask  # (grids,) of which nothing was reversed so far

    @classmethod
    def of(cls, kernels: GridKernels, sheets: Sheets, models: list[SweepModel], run: Run, m: FloatArray) -> SweepBars:
        """Move the derivatives by messages into planes."""
        planes = run.pool.take(sheets.shape, WIDE)
        shares.fill(run.spread, planes, 0)
        spread_out(kernels, run.spread, m, planes, sheets.of_edges)
        return cls.zeros(sheets, models, run, planes)

    @classmethod
    def zeros(cls, sheets: Sheets, models: list[SweepModel], run: Run, planes: FloatArray) -> SweepBars:
        """Return derivatives by messages with zeros for the others; those by shared tables are apart for each chunk."""
        chunks = 1 if models[0].own else sheets.chunks

        def each(tables: FloatArray) -> FloatArray:
            return np.zeros((chunks, sheets.grids, *tables.shape[1:]))

        def room(phi: FloatArray) -> FloatArray:
            found = run.pool.take(phi.shape, phi.dtype)
            shares.fill(run.spread, found, 0)
            return found

        zeros = [one._replace(phi=room(one.phi), across=each(one.across), along=each(one.along)) for one in models]
        return cls(sheets, planes, zeros, np.ones(sheets.grids, bool))

    def give(self, kernels: GridKernels, run: Run, bars: Derivatives) -> None:
        """Move them to edges, and add those by potentials and tables."""
        if self.sheets.is_large and self.models[0].lanes:
            self._mirror(run)
        planes, spread, of_edges = run.pool.lend(self.m), run.spread, self.sheets.of_edges
        bars.m = deferred(lambda: on_edges(kernels, spread, planes.array, of_edges))
        for t, mine in enumerate(self.models):
            phi = np.moveaxis(mine.phi, 1, -1)
            shares.add(run.spread, bars.phi[t].reshape(phi.shape), phi)
            run.pool.give(mine.phi)
            self._give_tables(mine, bars.psi[t], bars.places[t].table)

    def _mirror(self, run: Run) -> None:
        """Write the derivatives by state 1, which are minus those by state 0."""
        for c in np.flatnonzero(~self.fresh).tolist():
            for planes in (*self.m[c], *(mine.phi[c] for mine in self.models)):
                zero, one = planes.reshape(2, -1)
                shares.in_ranges(run.spread, len(one), partial(_negative, zero, one))

    def _give_tables(self, mine: SweepModel, psi: FloatArray, table: IntArray) -> None:
        """Add derivatives by tables, which are kept by lines, to `psi`, where the table of each link has its place."""
        found = [apart.sum(axis=0) if len(apart) > 1 else apart[0] for apart in (mine.along, mine.across)]
        sheets, size = self.sheets, self.sheets.card**2
        if not len(mine.own):
            for links, one in zip(sheets.links(table), found, strict=True):
                tables = one.reshape(sheets.grids, -1)
                first = links.reshape(sheets.grids, -1)[:, :1]
                np.add.at(psi, first + np.arange(size), tables)  # grid after grid
            return
        entries = [np.moveaxis(one, (1, 2), (-2, -1)) for one in found]
        rows = table.reshape(sheets.grids, -1)
        step = int(rows[0, 1] - rows[0, 0])
        if step >= size and (rows == rows[:, :1] + step * np.arange(rows.shape[1])).all():  # link after link
            psi += _sums(sheets, rows[:, 0], step, entries, len(psi))
            return
        for links, one in zip(sheets.links(table), entries, strict=True):
            psi += sum_at(links[..., None] + np.arange(size), one.reshape(*links.shape, size), len(psi))


def _negative(values: FloatArray, out: FloatArray, first: int, last: int) -> None:
    """Write a range of minus the values."""
    np.negative(values[first:last], out=out[first:last])


def _sums(sheets: Sheets, first: IntArray, step: int, entries: list[FloatArray], length: int) -> FloatArray:
    """Add up tables (grids, lines, places, card, card); those of a grid lie at its `first` place, `step` apart."""
    one, links = sheets._replace(grids=1), sum(part.shape[1] * part.shape[2] for part in entries)
    total = np.zeros(length + step)
    for grid, start in enumerate(first.tolist()):
        rows = total[start : start + links * step].reshape(links, step)
        tables = rows[:, : sheets.card**2].reshape(links, sheets.card, sheets.card)
        for out, values in zip(one.links(tables), entries, strict=True):
            out[0] += values[grid]
    return total[:length]
