"""Loop-erased random walks: the loop of `graph.forests.wilson`."""

from __future__ import annotations

import numpy as np

from isinglass.runtime.compilation.jit import compiled


@compiled
def walk(first, neighbour, link, uniforms, left_by, inside, links, at):
    """Go on as long as there are numbers; return how many were used.

    `at`: the vertex whose walk is under way, where that walk is, and how many links the tree has.
    """
    start, v, taken = at[0], at[1], at[2]
    used = 0
    while start < len(inside):
        while not inside[v] and used < len(uniforms):
            left_by[v] = first[v] + np.int64(uniforms[used] * (first[v + 1] - first[v]))
            v = neighbour[left_by[v]]
            used += 1
        if not inside[v]:
            break
        v = start
        while not inside[v]:
            inside[v] = True
            links[taken] = link[left_by[v]]
            taken += 1
            v = neighbour[left_by[v]]
        start += 1
        v = start
    at[0], at[1], at[2] = start, v, taken
    return used
