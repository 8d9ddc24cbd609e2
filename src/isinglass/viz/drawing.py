"""Graphs, potentials and results as figures: variables as circles filled by their beliefs, couplings as lines.

What is drawn where is in `isinglass.graph.drawing`; the same drawing is shown in notebooks as SVG.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.drawing.scene import RADIUS, Scene, colours, scene
from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference import Result
from isinglass.potentials import Potentials
from isinglass.viz.pictures import figure_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INCH = 0.9  # of one step, in a small drawing
_LARGEST = 9.0  # inches


def draw(what: FactorGraph | Potentials | Result, *, title: str = "") -> Figure:
    """Draw a factor graph, with the strengths of its couplings and the beliefs of its variables if they are known.

    Grids, chains and trees are laid out as such; other graphs so that distances are numbers of steps. Circles are
    variables, squares factors; a circle with a thick line is observed. With a result each circle shows the belief of
    its variable: the sectors are the states. With potentials, or a result, a line is as wide as its factor is strong:
    blue where equal states attract, red where they repel.

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
    drawn = scene_of(what)
    left, top, width, height = drawn.box
    unit = min(_INCH, _LARGEST / max(width, height))
    legend = drawn.beliefs is not None and bool(drawn.states)
    figure = figure_of((max(unit * width, 1.5), max(unit * height, 1.0) + 0.3 * bool(title) + 0.35 * legend))
    ax = figure.subplots()
    ax.set(xlim=(left, left + width), ylim=(top + height, top), aspect="equal", title=title)
    ax.axis("off")
    _add_lines(ax, drawn, unit)
    _add_variables(ax, drawn, unit)
    if legend:
        _add_legend(figure, drawn)
    return figure


def scene_of(what: FactorGraph | Potentials | Result) -> Scene:
    """Return what a drawing shows."""
    if isinstance(what, FactorGraph):
        return scene(what)
    if isinstance(what, Potentials):
        return scene(what.graph, what.log_tables, None, list(what.evidence))
    if isinstance(what, Result):
        p = what.potentials
        return scene(p.graph, p.log_tables, what.variables, list(p.evidence))
    raise InputError("what", "a FactorGraph, Potentials or a Result", type(what).__name__)


def _add_lines(ax: Axes, drawn: Scene, unit: float) -> None:
    from matplotlib.collections import LineCollection

    ends = [(line.start, line.end) for line in drawn.lines]
    points = 72 * unit  # of one step
    widths = [points * (0.018 + 0.085 * line.width) for line in drawn.lines]
    ax.add_collection(LineCollection(ends, linewidths=widths, colors=[line.colour for line in drawn.lines], zorder=1))
    if len(drawn.squares):
        size = (0.13 * points) ** 2
        x, y = drawn.squares.T
        ax.scatter(x, y, s=size, marker="s", c="#3c4148", edgecolors="white", linewidths=0.012 * points, zorder=2)


def _add_variables(ax: Axes, drawn: Scene, unit: float) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Circle, Wedge
    from matplotlib.patheffects import Normal, Stroke

    patches: list[Any] = []
    fills: list[str] = []
    for i, (x, y) in enumerate(drawn.places.variables.tolist()):
        if drawn.beliefs is None:
            patches.append(Circle((x, y), RADIUS))
            fills.append("white")
            continue
        turn = 0.0
        belief = np.real(drawn.beliefs[i]).tolist()
        for share, colour in zip(belief, colours(len(belief)), strict=True):
            if share > 1e-9:  # the y axis points down, so that angles grow clockwise
                patches.append(Wedge((x, y), RADIUS, 360 * turn - 90, 360 * (turn + share) - 90))
                fills.append(colour)
            turn += share
    ax.add_collection(PatchCollection(patches, facecolors=fills, linewidths=0, zorder=3))
    points = 72 * unit
    rings = [Circle((x, y), RADIUS) for x, y in drawn.places.variables.tolist()]
    edges = np.where(drawn.observed, "#111111", "#6b7280").tolist()
    widths = np.where(drawn.observed, 0.05 * points, 0.02 * points).tolist()
    ax.add_collection(PatchCollection(rings, facecolors="none", edgecolors=edges, linewidths=widths, zorder=4))
    for (x, y), name, above in zip(drawn.places.variables.tolist(), drawn.names, drawn.above, strict=False):
        at = y if drawn.inside else y - RADIUS - 0.06 if above else y + RADIUS + 0.06
        place = "center" if drawn.inside else "bottom" if above else "top"
        text = ax.text(x, at, name, ha="center", va=place, fontsize=max(3.0, 0.16 * points), color="#111111", zorder=5)
        text.set_parse_math(False)  # a dollar in a name is a dollar
        if not drawn.inside:  # a white edge, as lines may pass below
            text.set_path_effects([Stroke(linewidth=0.04 * points, foreground="white"), Normal()])


def _add_legend(figure: Figure, drawn: Scene) -> None:
    from matplotlib.patches import Patch

    pairs = zip(drawn.states, colours(len(drawn.states)), strict=True)
    handles = [Patch(facecolor=colour, edgecolor="#6b7280", linewidth=0.5, label=name) for name, colour in pairs]
    legend = figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=7, frameon=False,
                           handlelength=1.2, columnspacing=1.0)  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)
