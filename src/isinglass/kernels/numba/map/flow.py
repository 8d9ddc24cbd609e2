"""Maximum flow by incremental breadth-first search (Goldberg, Hed, Kaplan, Tarjan and Werneck 2011).

As in the algorithm of Boykov and Kolmogorov (2004), a tree S of nodes that the source reaches and a tree T of nodes
that reach the sink grow through arcs with residual capacity r > 0, are kept from one augmentation to the next, and

    f  =  min r on the path,       r(path)  -=  f,       r(reversed path)  +=  f

where an arc leads from S to T. Here both are breadth-first trees: a node's level d is its distance from the terminal,
d(child) = d(parent) + 1, and they grow by whole levels in turn. A node whose arc to its parent is full (an *orphan*)
takes the next neighbour of level d - 1 for a parent. If there is none, it is *loose*, and its children become orphans.
Then breadth-first search from the rest of the tree gives loose nodes their new levels, which are higher (Ramalingam and
Reps 1996); those that would be beyond the last level leave the tree.

Levels never fall, and the least r of a path becomes exactly zero. So the number of augmentations is bounded by the
numbers of nodes and arcs alone, in floating point too, whatever the capacities are. Capacities of arcs may be infinite,
those of terminals not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.compilation.jit import compiled, inner
from isinglass.typing import FloatArray, IntArray

TERMINAL, ORPHAN, LOOSE = -1, -2, -3  # parents that are no arcs
SIDE, NEXT, LEAST, WAITING = range(4)  # what `Flow.at` counts


class Flow(NamedTuple):
    """A maximum flow under way. Side 0 is S, side 1 is T; `level` is negative in T, and 0 in no tree.

    The arcs from v are ``first[v] : first[v + 1]``; each has a sister that leads back. Nodes of level d that still have
    to grow are in row ``2 * side + d % 2`` of `queue`.
    """

    first: IntArray
    head: NDArray[np.int32]
    sister: NDArray[np.int32]
    residual: FloatArray
    excess: FloatArray  # what is left of the arc from the source, or minus what is left of that to the sink
    level: NDArray[np.int32]
    parent: NDArray[np.int32]  # the arc to the parent
    current: NDArray[np.int32]  # no arc before this one leads to a parent of level d - 1
    queue: NDArray[np.int32]  # (4, nodes)
    filled: IntArray  # (4,)
    orphans: NDArray[np.int32]  # (nodes + 2,), the last orphan of each level, or -1
    after: NDArray[np.int32]  # the orphan of the same level before it
    loose: NDArray[np.int32]
    wave: NDArray[np.int32]  # loose nodes with a new level, the lowest first
    depth: IntArray  # (2,), the last level of each tree that is complete
    at: IntArray


@compiled
def connect(tails, heads, capacities, back, flow):
    """Lay out the arcs by the nodes that they leave, with their sisters (`back`); start both trees."""
    first, place = flow.first, flow.current
    for k in range(len(tails)):
        first[ix(tails[ix(k)] + 1)] += 1
        first[ix(heads[ix(k)] + 1)] += 1
    for v in range(len(place)):
        first[ix(v + 1)] += first[ix(v)]
        place[ix(v)] = first[ix(v)]
    for k in range(len(tails)):
        i, j = tails[ix(k)], heads[ix(k)]
        a = place[ix(i)]
        place[ix(i)] += 1
        b = place[ix(j)]
        place[ix(j)] += 1
        back[ix(k)] = b
        flow.head[ix(a)], flow.head[ix(b)] = j, i
        flow.sister[ix(a)], flow.sister[ix(b)] = b, a
        flow.residual[ix(a)], flow.residual[ix(b)] = capacities[ix(k)], 0.0
    for v in range(len(place)):
        place[ix(v)] = first[ix(v)]
        excess = flow.excess[ix(v)]
        if excess != 0:
            side = 0 if excess > 0 else 1
            flow.parent[ix(v)] = TERMINAL
            join(v, 1, side, flow)
    flow.depth[0] = flow.depth[1] = 1
    flow.at[LEAST] = len(place)


@inner
def join(v, d, side, flow):
    """Give a node a level; it waits for growing."""
    flow.level[ix(v)] = d if side == 0 else -d
    row = 2 * side + (d & 1)
    flow.queue[ix(row), ix(flow.filled[ix(row)])] = v
    flow.filled[ix(row)] += 1


@inner
def abandon(v, flow):
    """Make a node an orphan."""
    d = abs(flow.level[ix(v)])
    flow.parent[ix(v)] = ORPHAN
    flow.after[ix(v)] = flow.orphans[ix(d)]
    flow.orphans[ix(d)] = v
    flow.at[LEAST] = min(flow.at[LEAST], d)
    flow.at[WAITING] += 1


@inner
def augment(a, flow):
    """Push what the path through an arc from S to T has room for; return its length."""
    head, sister, residual, parent, excess = flow.head, flow.sister, flow.residual, flow.parent, flow.excess
    f, steps = residual[ix(a)], 2
    x = head[ix(sister[ix(a)])]
    while parent[ix(x)] >= 0:
        f = min(f, residual[ix(sister[ix(parent[ix(x)])])])
        x = head[ix(parent[ix(x)])]
        steps += 1
    f = min(f, excess[ix(x)])
    x = head[ix(a)]
    while parent[ix(x)] >= 0:
        f = min(f, residual[ix(parent[ix(x)])])
        x = head[ix(parent[ix(x)])]
        steps += 1
    f = min(f, -excess[ix(x)])
    residual[ix(a)] -= f
    residual[ix(sister[ix(a)])] += f
    x = head[ix(sister[ix(a)])]
    while parent[ix(x)] >= 0:
        b = parent[ix(x)]
        residual[ix(b)] += f
        residual[ix(sister[ix(b)])] -= f
        if residual[ix(sister[ix(b)])] == 0:
            abandon(x, flow)
        x = head[ix(b)]
    excess[ix(x)] -= f
    if excess[ix(x)] == 0:
        abandon(x, flow)
    x = head[ix(a)]
    while parent[ix(x)] >= 0:
        b = parent[ix(x)]
        residual[ix(b)] -= f
        residual[ix(sister[ix(b)])] += f
        if residual[ix(b)] == 0:
            abandon(x, flow)
        x = head[ix(b)]
    excess[ix(x)] += f
    if excess[ix(x)] == 0:
        abandon(x, flow)
    return steps


@inner
def room(a, side, flow):
    """Return the residual capacity of arc a, in S away from the source, in T of its sister, towards the sink."""
    return flow.residual[ix(a)] if side == 0 else flow.residual[ix(flow.sister[ix(a)])]


@inner
def find_loose(flow):
    """Give orphans, by rising level, a parent of the level before theirs; the others are loose; return how many."""
    level, parent, sister, at = flow.level, flow.parent, flow.sister, flow.at
    d, loose = at[LEAST], 0
    while at[WAITING] > 0:
        v = flow.orphans[ix(d)]
        if v < 0:
            d += 1
            continue
        flow.orphans[ix(d)] = flow.after[ix(v)]
        at[WAITING] -= 1
        side, last = 0 if level[ix(v)] > 0 else 1, flow.first[ix(v + 1)]
        sign, arc = 1 - 2 * side, -1
        for a in range(flow.current[ix(v)], last if d > 1 else 0):
            u = flow.head[ix(a)]
            if level[ix(u)] == sign * (d - 1) and parent[ix(u)] != LOOSE and room(sister[ix(a)], side, flow) > 0:
                arc = a
                break
        if arc >= 0:
            parent[ix(v)] = flow.current[ix(v)] = arc
            continue
        parent[ix(v)] = LOOSE
        flow.loose[ix(loose)] = v
        loose += 1
        for a in range(flow.first[ix(v)], last):
            u = flow.head[ix(a)]
            if level[ix(u)] == sign * (d + 1) and parent[ix(u)] == sister[ix(a)]:
                abandon(u, flow)
    at[LEAST] = len(level)
    return loose


@inner
def highest(side, flow):
    """Return the last level of a tree: it is complete, or growing."""
    return flow.depth[ix(side)] + (1 if flow.at[SIDE] == side else 0)


@inner
def settle(v, d, side, arc, count, flow):
    """Give a loose node a level and a parent."""
    flow.parent[ix(v)] = arc
    flow.wave[ix(count)] = v
    if d >= flow.depth[ix(side)]:
        join(v, d, side, flow)
    else:
        flow.level[ix(v)] = d if side == 0 else -d


@inner
def adopt_all(flow):
    """Give all orphans parents and levels, or take them out of the tree; return the number of steps."""
    level, parent, sister, orphans = flow.level, flow.parent, flow.sister, flow.orphans
    loose = find_loose(flow)
    steps, waiting, d = loose, 0, len(level)
    for k in range(loose):
        v = flow.loose[ix(k)]
        side = 0 if level[ix(v)] > 0 else 1
        best, arc = highest(side, flow), -1
        for a in range(flow.first[ix(v)], flow.first[ix(v + 1)]):
            u = flow.head[ix(a)]
            e = level[ix(u)] * (1 - 2 * side)
            if e > 0 and e < best and parent[ix(u)] != LOOSE and room(sister[ix(a)], side, flow) > 0:
                best, arc = e, a
        steps += flow.first[ix(v + 1)] - flow.first[ix(v)]
        flow.current[ix(v)] = arc
        if arc >= 0:
            flow.after[ix(v)] = orphans[ix(best + 1)]
            orphans[ix(best + 1)] = v
            waiting += 1
            d = min(d, best + 1)
    done = count = 0
    while waiting > 0 or done < count:
        v = orphans[ix(d)]
        orphans[ix(d)] = -1
        while v >= 0:
            waiting -= 1
            if parent[ix(v)] == LOOSE:
                settle(v, d, 0 if level[ix(v)] > 0 else 1, flow.current[ix(v)], count, flow)
                count += 1
            v = flow.after[ix(v)]
        end = count
        while done < end:
            v = flow.wave[ix(done)]
            done += 1
            side = 0 if level[ix(v)] > 0 else 1
            if d < highest(side, flow):
                for a in range(flow.first[ix(v)], flow.first[ix(v + 1)]):
                    w = flow.head[ix(a)]
                    if parent[ix(w)] == LOOSE and level[ix(w)] * (1 - 2 * side) > 0 and room(a, side, flow) > 0:
                        settle(w, d + 1, side, sister[ix(a)], count, flow)
                        count += 1
        d += 1
    for k in range(loose):
        v = flow.loose[ix(k)]
        flow.current[ix(v)] = flow.first[ix(v)]
        if parent[ix(v)] == LOOSE:
            parent[ix(v)], level[ix(v)] = ORPHAN, 0
    return steps


@compiled
def flow_on(flow, piece):
    """Go on for about `piece` steps; tell whether the flow is maximal, and T is all that reaches the sink."""
    level, depth, filled, at = flow.level, flow.depth, flow.filled, flow.at
    left = piece
    while True:
        side = at[SIDE]
        sign, d = 1 - 2 * side, depth[ix(side)]
        row = 2 * side + (d & 1)
        while at[NEXT] < filled[ix(row)]:
            if left < 0:
                return False
            v = flow.queue[ix(row), ix(at[NEXT])]
            a, last = flow.first[ix(v)], flow.first[ix(v + 1)]
            left -= last - a
            while a < last and level[ix(v)] == sign * d:
                out = a if side == 0 else flow.sister[ix(a)]
                w = flow.head[ix(a)]
                if flow.residual[ix(out)] > 0 and level[ix(w)] * sign <= 0:
                    if level[ix(w)] == 0:
                        flow.parent[ix(w)] = flow.sister[ix(a)]
                        join(w, d + 1, side, flow)
                    else:
                        left -= augment(out, flow)
                        left -= adopt_all(flow)
                        if left < 0:
                            return False  # v is looked at again
                        continue
                a += 1
            at[NEXT] += 1
        filled[ix(row)] = at[NEXT] = 0
        depth[ix(side)] = d + 1
        if filled[ix(row ^ 1)] == 0 and side == 1:
            return True
        other = 1 - side
        if filled[ix(row ^ 1)] == 0 or filled[ix(2 * other + (depth[ix(other)] & 1))] > 0:
            at[SIDE] = other
