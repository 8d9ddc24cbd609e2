"""Where the variables and factors of a graph lie in a drawing.

Grids lie as grids, chains in a line, trees in levels below their centre. Other graphs minimise the stress

    sum_{i<j} d_ij^-2 (|x_i - x_j| - d_ij)^2,    d_ij the number of steps from i to j

by majorisation from the classical scaling of d (Gansner, Koren and North 2005, "Graph drawing by stress majorization").
Factors of two variables lie between them; those of more are points of the graph like variables. Lengths are in steps,
and y grows downwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.grids import grid_shapes
from isinglass.typing import FloatArray, IntArray, Mask

MOST_POINTS = 1000  # of a graph that is no grid
SWEEPS = 60  # of stress majorisation
CLOSEST = 0.75  # two points
GAP = 1.2  # between connected parts
BESIDE = 0.42  # how far a factor of one variable is from it
STEEPEST = 0.45  # the sine of the steepest direction in which it lies
UP = -np.pi / 2  # as an angle; y grows downwards

Neighbours = list[list[int]]


class Positions(NamedTuple):
    """Where a drawing has everything.

    Coordinates (variables, 2) and (factors, 2), for each variable whether there is more room above it than below it,
    and the height and width of each component, if all are grids.
    """

    variables: FloatArray
    factors: FloatArray
    above: Mask
    shapes: list[tuple[int, int]] | None


def positions(graph: FactorGraph) -> Positions:
    """Place all variables and factors.

    Examples
    --------
    >>> from isinglass.graph import chain_graph, grid_graph
    >>> positions(chain_graph(3, 2)).variables.tolist()
    [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]
    >>> positions(grid_graph(2, 2, 2)).variables.tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    """
    return graph.cached("positions", lambda: _placed(graph))


def _placed(graph: FactorGraph) -> Positions:
    shapes = grid_shapes(graph) if graph.n_factors else None
    joints = [a for g in graph.groups if g.arity > 2 for a in g.factors.tolist()]
    if shapes is not None:
        places = _pack([_lattice(*shape) for shape in shapes])
    else:
        size = graph.n_variables + len(joints)
        if size > MOST_POINTS:
            remedy = "draw a part of it, or a grid"
            raise InputError("graph", f"at most {MOST_POINTS} variables in a drawing", f"{size}", remedy)
        places = _free(_skeleton(graph, joints))
    variables = places[: graph.n_variables]
    of_joints = dict(zip(joints, places[len(variables) :], strict=True))
    angles = _link_angles(graph, variables, of_joints)
    free = np.array([_widest(listed) for listed in angles]).reshape(-1, 2)
    above = np.array([_clearance(listed, -UP) < _clearance(listed, UP) for listed in angles], bool)
    return Positions(variables, _factor_places(graph, variables, of_joints, free), above, shapes)


def _lattice(height: int, width: int) -> FloatArray:
    y, x = np.divmod(np.arange(height * width), width)
    return np.stack([x, y], axis=1).astype(np.float64)


def _skeleton(graph: FactorGraph, joints: Sequence[int]) -> Neighbours:
    """Return the neighbours of each point: variables, then the factors of three and more."""
    near: list[set[int]] = [set() for _ in range(graph.n_variables + len(joints))]
    number = {a: graph.n_variables + k for k, a in enumerate(joints)}
    for a, scope in enumerate(graph.scopes):
        pairs = [(number[a], i) for i in scope] if a in number else [scope] if len(scope) == 2 else []
        for i, j in pairs:
            near[i].add(j)
            near[j].add(i)
    return [sorted(points) for points in near]


def _free(near: Neighbours) -> FloatArray:
    """Place the connected parts of a graph, one after the other."""
    parts, places = _parts(near), np.zeros((len(near), 2))
    order = [i for part in parts for i in part]
    places[order] = _pack([_part(near, part) for part in parts])
    return places


def _parts(near: Neighbours) -> list[list[int]]:
    seen, parts = [False] * len(near), []
    for start in range(len(near)):
        if not seen[start]:
            parts.append(sorted(_levels(near, start)))
            for i in parts[-1]:
                seen[i] = True
    return parts


def _levels(near: Neighbours, start: int) -> dict[int, int]:
    """Return the number of steps from a point to all that can be reached, in the order of a breadth-first search."""
    found, todo = {start: 0}, [start]
    for i in todo:
        for j in near[i]:
            if j not in found:
                found[j] = found[i] + 1
                todo.append(j)
    return found


def _part(near: Neighbours, part: Sequence[int]) -> FloatArray:
    """Place one connected part."""
    number = {i: k for k, i in enumerate(part)}
    inside = [[number[j] for j in near[i]] for i in part]
    if len(part) == 1:
        return np.zeros((1, 2))
    links = sum(map(len, inside)) // 2
    if links == len(part) * (len(part) - 1) // 2 and links > 1:
        return _circle(len(part))
    if links > len(part) - 1:
        return _stressed(inside)
    return _line(inside) if max(map(len, inside)) <= 2 else _tree(inside)


def _circle(n: int) -> FloatArray:
    """Place the points of a complete graph, the first on top."""
    angle = 2 * np.pi * np.arange(n) / n
    radius = max(0.5 / np.sin(np.pi / n), 0.6)
    return np.stack([radius * np.sin(angle), -radius * np.cos(angle)], axis=1)


def _line(near: Neighbours) -> FloatArray:
    ends = [i for i, others in enumerate(near) if len(others) == 1]
    steps = _levels(near, ends[0])
    return np.array([[steps[i], 0.0] for i in range(len(near))])


def _tree(near: Neighbours) -> FloatArray:
    """Place a tree in levels: leaves side by side, the others above the middle of their children."""
    root = min(range(len(near)), key=lambda i: max(_levels(near, i).values()))
    depth = _levels(near, root)
    x = np.zeros(len(near))
    following = 0.0
    for i in _leaves_first(near, depth, root):
        children = [j for j in near[i] if depth[j] > depth[i]]
        if children:
            x[i] = (x[children[0]] + x[children[-1]]) / 2
        else:
            x[i], following = following, following + 1.0
    return np.array([[x[i], depth[i]] for i in range(len(near))])


def _leaves_first(near: Neighbours, depth: dict[int, int], root: int) -> list[int]:
    order, todo = [], [root]
    while todo:
        i = todo.pop()
        order.append(i)
        todo.extend(j for j in near[i] if depth[j] > depth[i])
    return order[::-1]


def _stressed(near: Neighbours) -> FloatArray:
    """Place a part with loops so that distances are numbers of steps, as well as they can be."""
    n = len(near)
    steps = np.array([[levels[j] for j in range(n)] for levels in (_levels(near, i) for i in range(n))], np.float64)
    places = _scaled(steps)
    weight = np.divide(1.0, steps**2, out=np.zeros_like(steps), where=steps > 0)
    laplacian = np.diag(weight.sum(axis=1)) - weight
    inverse = np.linalg.pinv(laplacian)
    for _ in range(SWEEPS):
        apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
        pull = np.divide(weight * steps, apart, out=np.zeros_like(apart), where=apart > 1e-9)
        places = inverse @ ((np.diag(pull.sum(axis=1)) - pull) @ places)
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1) + 9.0 * np.eye(n)
    return _upright(places) * min(1.7, max(1.0, CLOSEST / max(float(apart.min()), 1e-9)))


def _scaled(steps: FloatArray) -> FloatArray:
    """Return the classical scaling of distances in the plane, a little apart where points would be the same."""
    n = len(steps)
    centre = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(-0.5 * centre @ steps**2 @ centre)
    found = vectors[:, -2:][:, ::-1] * np.sqrt(np.maximum(values[-2:][::-1], 0.0))
    found *= np.where(found[np.argmax(np.abs(found).round(9), axis=0), [0, 1]] < 0, -1.0, 1.0)  # one of two signs
    angle = 2.399963 * np.arange(n)  # the golden angle: no two directions the same
    return np.asarray(found + 0.05 * np.stack([np.cos(angle), np.sin(angle)], axis=1))


def _upright(places: FloatArray) -> FloatArray:
    """Turn a drawing so that it is broad rather than high."""
    spread = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(spread, full_matrices=False)
    turned = spread @ axes.T
    turned *= np.where(turned[0] > 0, -1.0, 1.0)  # the first point comes first
    return np.asarray(turned, np.float64)


def _pack(parts: Sequence[FloatArray]) -> FloatArray:
    """Put parts side by side, in rows of about equal width."""
    if not parts:
        return np.zeros((0, 2))
    boxes = [(part - part.min(axis=0), np.ptp(part, axis=0)) for part in parts]
    if len(parts) == 1:
        only: FloatArray = boxes[0][0]
        return only
    area = sum(float(np.prod(size + GAP)) for _, size in boxes)
    limit = max(1.6 * float(np.sqrt(area)), *(float(size[0]) for _, size in boxes))
    found, x, y, height = [], 0.0, 0.0, 0.0
    for places, size in boxes:
        if x > 0 and x + size[0] > limit:
            x, y, height = 0.0, y + height + GAP, 0.0
        found.append(places + np.array([x, y]))
        x, height = x + size[0] + GAP, max(height, size[1])
    return np.concatenate(found)


def _factor_places(
    graph: FactorGraph, variables: FloatArray, joints: dict[int, FloatArray], free: FloatArray
) -> FloatArray:
    places = np.zeros((graph.n_factors, 2))
    for group in graph.groups:
        if group.arity == 2:
            places[group.factors] = variables[group.scopes].mean(axis=1)
    for a, place in joints.items():
        places[a] = place
    for group in graph.groups:
        if group.arity == 1:
            i = group.scopes[:, 0]
            places[group.factors] = variables[i] + BESIDE * _past_names(free[i])
    return places


def _past_names(directions: FloatArray) -> FloatArray:
    """Return directions (n, 2) with those that point straight up or down turned aside, where names are."""
    steep = np.abs(directions[:, 1:]) > STEEPEST
    side = np.where(directions[:, :1] < -1e-9, -1.0, 1.0) * np.sqrt(1 - STEEPEST**2)
    return np.where(steep, np.hstack([side, np.copysign(STEEPEST, directions[:, 1:])]), directions)


def _link_angles(graph: FactorGraph, variables: FloatArray, joints: dict[int, FloatArray]) -> list[list[float]]:
    """Return for each variable the directions of what it is joined to, as angles."""
    angles: list[list[float]] = [[] for _ in variables]
    for a, scope in enumerate(graph.scopes):
        for i in scope if len(scope) > 1 else ():
            ends = [joints[a]] if a in joints else [variables[j] for j in scope if j != i]
            for end in ends:
                dx, dy = end - variables[i]
                angles[i].append(float(np.arctan2(dy, dx)))
    return angles


def _clearance(angles: list[float], direction: float) -> float:
    """Return the angle between a direction and the nearest of others, in tenths of a radian, at most 1.2."""
    apart = [abs((angle - direction + np.pi) % (2 * np.pi) - np.pi) for angle in angles]
    return round(min([1.2, *apart]), 1)


def _widest(angles: list[float]) -> tuple[float, float]:
    if not angles:
        return 0.0, -1.0
    ordered: IntArray | FloatArray = np.sort(angles)
    gaps = np.diff(np.append(ordered, ordered[0] + 2 * np.pi))
    upward = -0.02 * np.sin(ordered + gaps / 2)  # of equal gaps the one that points up
    k = int(np.argmax((gaps + upward).round(6)))
    middle = float(ordered[k] + gaps[k] / 2)
    return float(np.cos(middle)), float(np.sin(middle))
