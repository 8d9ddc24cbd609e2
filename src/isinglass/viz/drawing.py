"""Graphs, potentials and results as figures: variables as circles filled by their beliefs, couplings as lines.

Grids lie as grids; other graphs where the Kamada-Kawai layout of NetworkX has them, or, without it, on a circle. The
line of a factor of two variables is as wide as the factor is strong: with the means of rows and columns taken off,

    w_ab = phi_ab - mean_b phi_ab - mean_a phi_ab + mean phi,    strength = max |w|

It is blue where equal states attract (the mean of the diagonal of w is positive), red where they repel, and grey where
the two have different numbers of states or a hard zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.grids import grid_shapes
from isinglass.graph.names import variable_keys
from isinglass.inference import Result
from isinglass.pages import label_colours
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray
from isinglass.viz.pictures import figure_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INCH = 0.9  # of one step, in a small drawing
_LARGEST = 9.0  # inches
_RADIUS = 0.24
_CLOSEST = 0.6  # two points
_TWO = ["#e3e9f1", "#1f5fa8"]  # the states of a binary variable
ATTRACTS, REPELS, PLAIN = "#1f5fa8", "#c8443c", "#8a8f98"
MOST_POINTS = 300  # of a graph that is no grid
MOST_NAMED = 150  # variables whose names are drawn
MOST_SQUARES = 80  # factors of two variables that are drawn as squares


def draw(what: FactorGraph | Potentials | Result, *, title: str = "") -> Figure:
    """Draw a factor graph, with the strengths of its couplings and the beliefs of its variables if they are known.

    Circles are variables, squares factors of two and more; a circle with a thick line is observed. With a result each
    circle shows the belief of its variable: the sectors are the states. With potentials, or a result, a line is as wide
    as its factor is strong: blue where equal states attract, red where they repel. Grids are drawn as grids; NetworkX
    places other graphs, if it is installed.

    Parameters
    ----------
    what : FactorGraph, Potentials or Result
    title : str

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.datasets.denoising_model([[0, 1, 1], [0, 1, -1]])
    >>> figure = draw(ig.infer(p), title="beliefs")
    >>> figure.axes[0].get_title()
    'beliefs'
    """
    graph, p, beliefs = _drawn(what)
    variables, joints = positions(graph)
    points = np.concatenate([variables, *(place[None] for place in joints.values())])
    points = points if len(points) else np.zeros((1, 2))
    low, (width, height) = points.min(axis=0) - 0.6, np.ptp(points, axis=0) + 1.2
    unit = min(_INCH, _LARGEST / max(width, height))
    states = [] if beliefs is None else _states(graph)
    figure = figure_of((max(unit * width, 1.5), max(unit * height, 1.0) + 0.3 * bool(title) + 0.35 * bool(states)))
    ax = figure.subplots()
    ax.set(xlim=(low[0], low[0] + width), ylim=(low[1] + height, low[1]), aspect="equal", title=title)
    ax.axis("off")
    _add_factors(ax, graph, variables, joints, None if p is None else p.log_tables, 72 * unit)
    _add_variables(ax, graph, variables, beliefs, [] if p is None else list(p.evidence), 72 * unit)
    if states:
        _add_legend(figure, states)
    return figure


def _drawn(what: object) -> tuple[FactorGraph, Potentials | None, Sequence[Array] | None]:
    """Return what there is to draw: a graph, its potentials, beliefs of its variables."""
    if isinstance(what, FactorGraph):
        return what, None, None
    if isinstance(what, Potentials):
        return what.graph, what, None
    if isinstance(what, Result):
        return what.potentials.graph, what.potentials, what.variables
    raise InputError("what", "a FactorGraph, Potentials or a Result", type(what).__name__)


def positions(graph: FactorGraph) -> tuple[FloatArray, dict[int, FloatArray]]:
    """Return where the variables are (variables, 2), and the factors of three and more; neighbours are about 1 apart.

    Examples
    --------
    >>> from isinglass.graph import grid_graph
    >>> positions(grid_graph(2, 2, 2))[0].tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    """
    shapes = grid_shapes(graph) if graph.n_factors else None
    if shapes is not None:
        parts = [np.stack(np.divmod(np.arange(h * w), w)[::-1], axis=1).astype(np.float64) for h, w in shapes]
        return _side_by_side(parts), {}
    joints = [a for a, scope in enumerate(graph.scopes) if len(scope) > 2]
    number = {a: graph.n_variables + k for k, a in enumerate(joints)}
    size = graph.n_variables + len(joints)
    if size > MOST_POINTS:
        remedy = "draw a part of it, or a grid"
        raise InputError("graph", f"at most {MOST_POINTS} variables and large factors in a drawing", f"{size}", remedy)
    links = [
        (number[a], i) if a in number else (scope[0], scope[1])
        for a, scope in enumerate(graph.scopes)
        for i in (scope if a in number else scope[:1] if len(scope) == 2 else ())
    ]
    places = _placed(size, links)
    return places[: graph.n_variables], dict(zip(joints, places[graph.n_variables :], strict=True))


def _placed(size: int, links: Sequence[tuple[int, int]]) -> FloatArray:
    """Place the points of a graph, its connected parts one beside the other."""
    try:
        import networkx as nx
    except ImportError:
        return _circle(size)
    net = nx.Graph(links)
    net.add_nodes_from(range(size))
    parts = sorted(sorted(part) for part in nx.connected_components(net))
    places, found = np.zeros((size, 2)), []
    for part in parts:
        layout = nx.kamada_kawai_layout(net.subgraph(part), pos=dict(zip(part, _circle(len(part)), strict=True)))
        points = np.array([layout[i] for i in part])
        steps = [np.linalg.norm(layout[i] - layout[j]) for i, j in net.subgraph(part).edges]
        apart = np.linalg.norm(points[:, None] - points, axis=-1)[np.triu_indices(len(part), 1)]
        found.append(
            points / max(min(np.mean(steps), apart.min() / _CLOSEST), 0.5 * np.mean(steps)) if steps else points
        )
    if found:
        places[[i for part in parts for i in part]] = _side_by_side(found)
    return places


def _circle(size: int) -> FloatArray:
    angle = 2 * np.pi * np.arange(size) / max(size, 1)
    return max(0.2 * size, 0.6) * np.stack([np.sin(angle), -np.cos(angle)], axis=1)


def _side_by_side(parts: Sequence[FloatArray]) -> FloatArray:
    """Put parts into the cells of a square."""
    step = max(float(np.ptp(part, axis=0).max()) for part in parts) + 1.2
    side = int(np.ceil(np.sqrt(len(parts))))
    cells = [step * np.array([k % side, k // side]) for k in range(len(parts))]
    return np.concatenate([part - part.min(axis=0) + cell for part, cell in zip(parts, cells, strict=True)])


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


def _add_factors(
    ax: Axes,
    graph: FactorGraph,
    variables: FloatArray,
    joints: dict[int, FloatArray],
    tables: Sequence[Array] | None,
    points: float,
) -> None:
    """Add lines of factors, and squares; `points` are those of one step."""
    from matplotlib.collections import LineCollection

    ends, widths, colours, squares = [], [], [], list(joints.values())
    for a, scope in enumerate(graph.scopes):
        if len(scope) == 2:
            strength, colour = (0.25, PLAIN) if tables is None else coupling(np.real(tables[a]))
            ends.append(variables[list(scope)])
            widths.append(strength / (1.0 + strength) if np.isfinite(strength) else 1.0)
            colours.append(colour)
        for i in scope if a in joints else ():
            ends.append(np.stack([joints[a], variables[i]]))
            widths.append(0.2)
            colours.append(PLAIN)
    if len(ends) <= MOST_SQUARES:
        squares += [variables[list(scope)].mean(axis=0) for scope in graph.scopes if len(scope) == 2]
    wide = [points * (0.018 + 0.085 * width) for width in widths]
    ax.add_collection(LineCollection(ends, linewidths=wide, colors=colours, zorder=1))
    x, y = np.array(squares).reshape(-1, 2).T
    ax.scatter(x, y, s=(0.13 * points) ** 2, marker="s", c="#3c4148", zorder=2)


def _add_variables(
    ax: Axes,
    graph: FactorGraph,
    variables: FloatArray,
    beliefs: Sequence[Array] | None,
    observed: Sequence[int],
    points: float,
) -> None:
    """Add circles and names; `points` are those of one step."""
    from matplotlib.patches import Circle, Wedge
    from matplotlib.patheffects import withStroke

    keys = variable_keys(graph) if graph.n_variables <= MOST_NAMED else []
    names = [" ".join(map(str, key)) if isinstance(key, tuple) else str(key) for key in keys]
    inside = beliefs is None and all(len(name) <= 3 for name in names)
    for i, (x, y) in enumerate(variables.tolist()):
        turn = 0.0
        belief = [] if beliefs is None else np.real(beliefs[i]).tolist()
        for share, colour in zip(belief, _colours(len(belief)), strict=True):
            if share > 1e-9:  # the y axis points down, so that angles grow clockwise
                ends = 360 * turn - 90, 360 * (turn + share) - 90
                ax.add_patch(Wedge((x, y), _RADIUS, *ends, facecolor=colour, linewidth=0, zorder=3))
            turn += share
        edge, width = ("#111111", 0.05) if i in observed else ("#6b7280", 0.02)
        fill = "white" if beliefs is None else "none"
        ring = Circle((x, y), _RADIUS, facecolor=fill, edgecolor=edge, linewidth=width * points, zorder=4)
        ax.add_patch(ring)
    for name, (x, y) in zip(names, variables.tolist(), strict=False):
        at, place = (y, "center") if inside else (y + _RADIUS + 0.06, "top")
        short = name if len(name) <= 14 else name[:13] + "…"
        text = ax.text(x, at, short, ha="center", va=place, fontsize=max(3.0, 0.16 * points), color="#111111", zorder=5)
        text.set_parse_math(False)  # a dollar in a name is a dollar
        text.set_path_effects([withStroke(linewidth=0.04 * points, foreground="white")])  # as lines may pass below


def _colours(card: int) -> list[str]:
    return _TWO if card == 2 else label_colours(card)


def _states(graph: FactorGraph) -> list[str]:
    """Return the names of states, if all variables have the same few ones."""
    if not graph.n_variables or (graph.cards != graph.cards[0]).any() or graph.cards[0] > 10:
        return []
    card = int(graph.cards[0])
    if graph.names is None:
        return [str(k) for k in range(card)]
    listed = {tuple(map(str, graph.names.state_names(i, card))) for i in range(graph.n_variables)}
    return list(listed.pop()) if len(listed) == 1 else []


def _add_legend(figure: Figure, states: Sequence[str]) -> None:
    from matplotlib.patches import Patch

    pairs = zip(states, _colours(len(states)), strict=True)
    handles: list[Any] = [
        Patch(facecolor=colour, edgecolor="#6b7280", linewidth=0.5, label=name) for name, colour in pairs
    ]
    legend = figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=7, frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)
