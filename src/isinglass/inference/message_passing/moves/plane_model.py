"""Potentials and tables of regular grids in planes, for flooding; see `isinglass.kernels.numba.grids.flooding`."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import NamedTuple

import numpy as np

from isinglass.inference.message_passing import shares
from isinglass.inference.message_passing.moves.lattices import Lattice
from isinglass.inference.message_passing.moves.planes import EDGES
from isinglass.inference.message_passing.run import Run
from isinglass.kernels.backend import GridKernels
from isinglass.kernels.layout import WIDE, Values
from isinglass.runtime.threads import ThreadMap
from isinglass.typing import FloatArray, IntArray, Mask


class PlaneModel(NamedTuple):
    """The potentials and tables of one model, in planes."""

    phi: FloatArray  # (states, sites)
    each: FloatArray  # (2, states, states, sites) the table of each link; empty if no grid needs them
    shared: FloatArray  # (2, states, states, grids) the table of the first link of each axis; empty likewise
    alike: Mask  # (grids,) whether all links of an axis share it
    limit: float  # a product below is suspect

    def tables(self, grid: int) -> tuple[FloatArray, tuple[int, ...]]:
        """Return the tables that the loops use for a grid, and how they tell which ones these are."""
        return (self.shared, ()) if self.alike[grid] else (self.each, (0,))

    def zeros(self, blocks: int, run: Run, with_phi: bool) -> PlaneModel:
        """Return zeros of the same shapes, for derivatives; those by shared tables apart for each block."""
        shared, phi = np.zeros((blocks, *self.shared.shape)), self.phi[:, :0]
        if with_phi:
            phi = run.pool.take(self.phi.shape, self.phi.dtype)
            shares.fill(run.spread, phi, 0)
        each = shares.zeros(run.spread, self.each.shape, self.each.dtype)
        return self._replace(phi=phi, each=each, shared=shared)


def plane_model(lattice: Lattice, values: Values, kernels: GridKernels, run: Run) -> PlaneModel:
    """Lay potentials and tables out in planes; those of potentials are from the pool."""
    card, height, width, spread = lattice.card, lattice.height, lattice.width, run.spread
    ones = partial(shares.fill, spread, value=1)
    phi = run.pool.take_with(walled(lattice), (card, lattice.sites), WIDE, ones)
    given = values.phi[lattice.entries].reshape(-1, height, width, card)
    shares.copy(spread, lattice.inside(phi), given.transpose(3, 0, 1, 2))
    table = values.table[lattice.links].reshape(len(lattice.members), -1)
    cut, alike = lattice.first_link(1), _known_alike(lattice, values.table, table, run)
    shared = each = np.empty((2, card, card, 0))
    if alike.any():
        places = table[:, [0, cut]].T[..., None] + np.arange(card * card)
        tables = np.moveaxis(values.psi[places].reshape(2, -1, card, card), 1, -1)
        shared = np.ascontiguousarray(tables)
    if not alike.all():
        each, flat = _ones((2, card, card, lattice.sites), run), table.ravel()

        def some(first: int, last: int) -> None:
            part = slice(first, last)
            kernels.spread_tables(values.psi, each, flat[part], lattice.link_axis[part], lattice.link_site[part])

        shares.in_ranges(spread, len(flat), some, EDGES)
    return PlaneModel(phi, each, shared, alike, values.limit)


def walled(lattice: Lattice) -> Hashable:
    """Name the content of planes with ones on their border."""
    return "walled", lattice.height, lattice.width


def _known_alike(lattice: Lattice, of_links: IntArray, table: IntArray, run: Run) -> Mask:
    """Return what `_alike` does; it is kept while the tables of links are the same array."""

    def look() -> tuple[IntArray, Lattice, Mask]:
        return of_links, lattice, _alike(table, lattice.first_link(1), run.spread)

    key = "alike", lattice.height, lattice.width, lattice.card
    return run.back.graph.cached(key, look, lambda kept: kept[0] is of_links and kept[1] is lattice)[2]


def _alike(table: IntArray, cut: int, spread: ThreadMap) -> Mask:
    """Tell in which grids all links of an axis (to `cut`, and from there on) have the same table."""
    alike = np.empty(len(table), bool)

    def compare(first: int, last: int) -> None:
        rows = table[first:last]
        across = (rows[:, :cut] == rows[:, :1]).all(axis=1)
        alike[first:last] = across & (rows[:, cut:] == rows[:, cut : cut + 1]).all(axis=1)

    shares.in_ranges(spread, len(table), compare, 1 + shares.RANGE // table.shape[1])
    return alike


def _ones(shape: tuple[int, ...], run: Run) -> FloatArray:
    ones, spread = np.empty(shape), run.spread
    shares.fill(spread, ones, 1)
    return ones
