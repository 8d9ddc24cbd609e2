"""The grid schedule on copies of a grid that differ in the potentials of variables, from these to beliefs.

A copy is done before the next one begins: potentials and messages lie in planes for one grid, which stay in a cache.
The arithmetic is that of `sweeps` and of `read_out`.
"""

from __future__ import annotations

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.grids.read_out import read_grid
from isinglass.kernels.numba.grids.sweeps import sweep_one
from isinglass.kernels.numba.grids.turning import into_strip
from isinglass.runtime.compilation.jit import compiled, inner


@inner
def take_potentials(planes, values, first, card, sites):
    """Write the potentials of a grid, which lie site by site from `first` on, plane by plane."""
    for i in range(sites):
        for k in range(card):
            planes[ix(k * sites + i)] = values[ix(first + i * card + k)]


@compiled
def sweep_copies(values, z, start, planes, steps, iterations, across, along, work, limit, own, lanes):
    """Replace the potentials of copies, flat and site by site, by their beliefs, after iterations from one `start`.

    Returns a lower bound of the beliefs before their normalisation, at most one; zero if a product that a site sends is
    below the `limit`. It stops there. `z` is the sums before the normalisation.
    """
    card, height, width = planes.phi.shape
    sites, least = height * width, 1.0
    for c in range(len(z) // sites):
        first, old = c * sites * card, start[0]
        take_potentials(planes.flat_phi, values, first, card, sites)
        into_strip(work.strips[0], planes.phi, 0, height, lanes)
        for t in range(iterations):
            new = planes.messages[t % 2]
            _, low = sweep_one(planes.phi, old, new, across, along, 0, t > 0, t == iterations - 1, False, work, limit,
                               own, lanes)  # fmt: skip
            if low:
                return 0.0
            old = new
        beliefs, sums = values[first : first + sites * card], z[c * sites : (c + 1) * sites]
        found = read_grid(planes.flat_phi, planes.flat_messages[(iterations - 1) % 2], steps, card, height, width, 0, 0,
                          height, beliefs, sums)  # fmt: skip
        least = min(least, found)
    return least
