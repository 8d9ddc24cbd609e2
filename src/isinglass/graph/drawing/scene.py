"""What a drawing shows: variables as circles filled by their beliefs, factors as squares, interactions as lines.

The line of a factor of two variables is as wide as the factor is strong: with the means of rows and columns taken off,

    w_ab = phi_ab - mean_b phi_ab - mean_a phi_ab + mean phi,    strength = max |w|

It is blue where equal states attract (the mean of the diagonal of w is positive), red where they repel, and grey where
the two have different numbers of states or a hard zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from isinglass.graph.drawing.positions import Positions, positions
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.names import Names, variable_keys
from isinglass.typing import Array, FloatArray, Mask

LIGHT, DARK = "#e3e9f1", "#1f5fa8"
PALETTE = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#eeca3b", "#9d755d", "#ff9da6", "#79706e")
ATTRACTS, REPELS, PLAIN = "#1f5fa8", "#c8443c", "#8a8f98"
MOST_NAMED = 150  # variables whose names are drawn
MOST_SQUARES = 80  # factors that are drawn as squares
MOST_UNARY = 14  # variables whose own factors are drawn
RADIUS = 0.24


class Line(NamedTuple):
    """A line between two points."""

    start: FloatArray
    end: FloatArray
    width: float  # 0 to 1
    colour: str
    tip: str = ""


class Scene(NamedTuple):
    """All that a drawing shows."""

    places: Positions
    names: list[str]
    inside: bool  # whether names fit into circles
    above: Mask  # the variables whose names are above them, not below
    beliefs: Sequence[Array] | None
    observed: Mask
    lines: list[Line]
    squares: FloatArray
    states: list[str]  # of a legend; none, where variables differ
    known: Names | None  # of the graph

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, width and height, with a margin for circles and names."""
        points = np.concatenate([self.places.variables, self.squares, np.zeros((1, 2))[: not len(self.names)]])
        low, high = points.min(axis=0), points.max(axis=0)
        outside = bool(self.names) and not self.inside
        below = 0.5 if outside else 0.4
        margin = 0.6 if outside and self.above.any() else 0.45
        width, height = (high - low).tolist()
        return float(low[0]) - 0.55, float(low[1]) - margin, width + 1.1, height + margin + below


def colours(card: int) -> list[str]:
    """Return a colour for each state: light and dark for two, else different ones.

    Examples
    --------
    >>> colours(2)
    ['#e3e9f1', '#1f5fa8']
    """
    return [LIGHT, DARK] if card == 2 else [PALETTE[k % len(PALETTE)] for k in range(card)]


def coupling(table: Array) -> tuple[float, str]:
    """Return the strength of a table of two variables, and the colour of its line.

    Examples
    --------
    >>> coupling(np.array([[1.0, 0.0], [0.0, 1.0]]))
    (0.5, '#1f5fa8')
    """
    if not np.isfinite(table).all():
        return float("inf"), PLAIN
    inner = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    strength = float(np.abs(inner).max())
    if table.shape[0] != table.shape[1] or strength < 1e-12:
        return strength, PLAIN
    return strength, ATTRACTS if float(np.diag(inner).mean()) > 0 else REPELS


def scene(
    graph: FactorGraph,
    tables: Sequence[Array] | None = None,
    beliefs: Sequence[Array] | None = None,
    observed: Sequence[int] = (),
) -> Scene:
    """Compose the drawing of a graph, with the log tables of its factors and the beliefs of its variables."""
    places = positions(graph)
    seen = np.zeros(graph.n_variables, bool)
    seen[list(observed)] = True
    is_grid = places.shapes is not None and all(min(shape) > 1 for shape in places.shapes)
    named = graph.n_variables <= MOST_NAMED and not (is_grid and graph.names is None and beliefs is not None)
    names = [_short(key) for key in variable_keys(graph)] if named else []
    lines, squares = _lines(graph, places, tables)
    if graph.n_factors <= MOST_SQUARES and not is_grid:
        squares = [*squares, *(places.factors[a] for g in graph.groups if g.arity == 2 for a in g.factors)]
    if graph.n_variables <= MOST_UNARY and not is_grid:
        for group in graph.groups:
            for a, scope in zip(group.factors, group.scopes, strict=True) if group.arity == 1 else ():
                lines.append(Line(places.factors[a], places.variables[scope[0]], 0.0, PLAIN))
                squares.append(places.factors[a])
    inside = beliefs is None and all(len(name) <= 3 for name in names)
    places_of_squares = np.array(squares).reshape(-1, 2)
    return Scene(
        places, names, inside, places.above, beliefs, seen, lines, places_of_squares, _states(graph), graph.names
    )


def _lines(
    graph: FactorGraph, places: Positions, tables: Sequence[Array] | None
) -> tuple[list[Line], list[FloatArray]]:
    """Return the lines of factors of two variables and more, and the squares of those of three and more."""
    lines: list[Line] = []
    squares: list[FloatArray] = []
    keys = variable_keys(graph)
    strengths: dict[int, tuple[float, str]] = {}
    if tables is not None:
        strengths = {a: coupling(tables[a]) for g in graph.groups if g.arity == 2 for a in g.factors.tolist()}
    for group in graph.groups:
        for a, scope in zip(group.factors.tolist(), group.scopes.tolist(), strict=True) if group.arity > 1 else ():
            ends = places.variables[scope]
            if group.arity == 2:
                strength, colour = strengths.get(a, (0.25, PLAIN))
                tip = f"{keys[scope[0]]} - {keys[scope[1]]}" + (f": {strength:.3g}" if a in strengths else "")
                lines.append(Line(ends[0], ends[1], _width(strength), colour, tip))
            else:
                lines += [Line(places.factors[a], end, 0.2, PLAIN) for end in ends]
                squares.append(places.factors[a])
    return lines, squares


def _width(strength: float) -> float:
    """Return a width between 0 and 1, the same for the same strength in all drawings."""
    return strength / (1.0 + strength) if np.isfinite(strength) else 1.0


def _states(graph: FactorGraph) -> list[str]:
    """Return the names of states, if all variables have the same ones."""
    if not graph.n_variables or (graph.cards != graph.cards[0]).any() or graph.cards[0] > len(PALETTE):
        return []
    if graph.names is None:
        return [str(k) for k in range(int(graph.cards[0]))]
    listed = {graph.names.state_names(i, int(graph.cards[0])) for i in range(graph.n_variables)}
    return [str(s) for s in listed.pop()] if len(listed) == 1 else []


def _short(key: object) -> str:
    text = f"{key[0]} {key[1]}" if isinstance(key, tuple) else str(key)
    return text if len(text) <= 14 else text[:13] + "…"
