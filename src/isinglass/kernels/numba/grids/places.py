"""From edges and links to their places in the planes of grids, and back."""

from __future__ import annotations

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.compilation.jit import compiled


@compiled
def spread(m, planes, place, card, sites):
    """Write the messages of edges to their places in (flat) planes."""
    for e in range(len(place)):
        for k in range(card):
            planes[ix(place[ix(e)] + k * sites)] = m[ix(e * card + k)]


@compiled
def collect(planes, m, place, card, sites):
    """Write the messages in (flat) planes to their edges."""
    for e in range(len(place)):
        for k in range(card):
            m[ix(e * card + k)] = planes[ix(place[ix(e)] + k * sites)]


@compiled
def spread_tables(psi, planes, table, axis, site):
    """Write the tables of links to their places in planes."""
    card = planes.shape[1]
    for f in range(len(table)):
        for x in range(card):
            for y in range(card):
                planes[ix(axis[ix(f)]), ix(x), ix(y), ix(site[ix(f)])] = psi[ix(table[ix(f)] + x * card + y)]


@compiled
def add_tables(planes, psi, table, axis, site):
    """Add what planes hold for each link to its table."""
    card = planes.shape[1]
    for f in range(len(table)):
        for x in range(card):
            for y in range(card):
                psi[ix(table[ix(f)] + x * card + y)] += planes[ix(axis[ix(f)]), ix(x), ix(y), ix(site[ix(f)])]
