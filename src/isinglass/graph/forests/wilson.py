"""Uniform spanning trees by loop-erased random walks (Wilson 1996).

The tree begins as a root. From each vertex not yet in it, a random walk (every link at a vertex equally likely) runs
until it meets the tree; the walk without its loops is added. The tree that results is uniform over all spanning trees,
whatever the root and the sequence of the vertices, and parallel links count as different. A walk remembers only the
slot by which it last left each vertex, which erases its loops by itself.

The expected number of steps is the mean hitting time of the root: about n log n on a square grid, n² on a long ladder.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.structure.wilson import walk
from isinglass.typing import IntArray

DRAWN = 2**14  # uniform numbers at once


def spanning_tree(
    first: IntArray, neighbour: IntArray, link: IntArray, root: int, rng: np.random.Generator, budget: int
) -> tuple[IntArray, int]:
    """Draw a spanning tree of a connected graph.

    Parameters
    ----------
    first, neighbour, link : int64 arrays
        The slots of each vertex, as `isinglass.graph.forests.blocks.adjacency` returns them.
    root : int
    rng : numpy.random.Generator
        One number is drawn for each step.
    budget : int
        The most steps that the walks may take together.

    Returns
    -------
    links : int64 array (vertices - 1,)
        The links of the tree; empty if the budget was used up.
    steps : int
        Steps taken.
    """
    n = len(first) - 1
    links, left_by, inside = np.empty(n - 1, np.int64), np.full(n, -1), np.zeros(n, np.bool_)
    inside[root] = True
    at, steps = np.zeros(3, np.int64), 0
    while True:
        before = rng.bit_generator.state
        uniforms = rng.random(min(DRAWN, budget - steps))
        used = int(walk(first, neighbour, link, uniforms, left_by, inside, links, at))
        steps += used
        if at[0] == n:  # the generator goes on from the last number that was used
            rng.bit_generator.state = before
            rng.random(used)
            return links, steps
        if steps >= budget:
            return links[:0], steps
