"""Uniform spanning trees by loop-erased random walks (Wilson 1996).

The tree begins as a root. From each vertex not yet in it, a random walk (every link at a vertex equally likely) runs
until it meets the tree; the walk without its loops is added. The tree that results is uniform over all spanning trees,
whatever the root and the sequence of the vertices, and parallel links count as different. A walk remembers only the
slot by which it last left each vertex, which erases its loops by itself.

The expected number of steps is the mean hitting time of the root: about n log n on a square grid, n² on a long ladder.
"""

from __future__ import annotations

import numpy as np

from isinglass.compilation import allocating


@allocating
def spanning_tree(first, neighbour, link, root, rng, budget):
    """Draw a spanning tree of a connected graph.

    Parameters
    ----------
    first, neighbour, link : int64 arrays
        The slots of each vertex, as `isinglass.graph.blocks.adjacency` returns them.
    root : int
    rng : numpy.random.Generator
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
    left_by = np.full(n, -1)
    inside = np.zeros(n, np.bool_)
    inside[root] = True
    links = np.empty(n - 1, np.int64)
    taken = steps = 0
    for start in range(n):
        v = start
        while not inside[v]:
            if steps >= budget:
                return links[:0], steps
            steps += 1
            left_by[v] = first[v] + np.int64(rng.random() * (first[v + 1] - first[v]))
            v = neighbour[left_by[v]]
        v = start
        while not inside[v]:
            inside[v] = True
            links[taken] = link[left_by[v]]
            taken += 1
            v = neighbour[left_by[v]]
    return links, steps
