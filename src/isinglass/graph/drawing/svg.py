"""Drawings as SVG, for notebooks and pages, without any other package. Text and frames take the colour of the page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import cos, pi, sin

import numpy as np

from isinglass.graph.drawing.scene import RADIUS, Line, Scene, colours
from isinglass.typing import Array

MOST_CELLS = 2500  # variables of a drawing
UNIT = 72.0  # pixels of one step, in a small drawing
WIDEST = 760.0  # pixels


def svg_of(scene: Scene, arrows: Sequence[str] = (), step: float = UNIT) -> str:
    """Return a drawing as an SVG element, with so many pixels a step; `arrows` are drawn above the lines.

    Examples
    --------
    >>> from isinglass.graph import chain_graph
    >>> from isinglass.graph.drawing.scene import scene
    >>> svg_of(scene(chain_graph(2, 2))).count("<circle")
    2
    """
    left, top, width, height = scene.box
    legend = _legend(scene, left, top + height) if scene.beliefs is not None and scene.states else ""
    height += 0.45 if legend else 0.0
    unit = min(step, WIDEST / width)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:.3f} {top:.3f} {width:.3f} {height:.3f}"'
    size = f'width="{unit * width:.0f}" height="{unit * height:.0f}" style="max-width:100%;height:auto" role="img"'
    text = 'font-family="system-ui,sans-serif" font-size="0.17" text-anchor="middle" fill="currentColor"'
    parts = [f"{head} {size} {text}>", *map(_line, scene.lines), *arrows]
    parts += [_square(x, y) for x, y in scene.squares]
    parts += [_variable(scene, i) for i in range(len(scene.places.variables))]
    return "".join([*parts, legend, "</svg>"])


def _line(line: Line) -> str:
    (x1, y1), (x2, y2) = line.start, line.end
    width = 0.018 + 0.085 * line.width
    tip = f"<title>{escape(line.tip)}</title>" if line.tip else ""
    ends = f'x1="{x1:.3f}" y1="{y1:.3f}" x2="{x2:.3f}" y2="{y2:.3f}"'
    return f'<line {ends} stroke="{line.colour}" stroke-width="{width:.3f}">{tip}</line>'


def _square(x: float, y: float) -> str:
    return f'<rect x="{x - 0.065:.3f}" y="{y - 0.065:.3f}" width="0.13" height="0.13" fill="#3c4148" stroke="#fff" stroke-width="0.012"/>'  # fmt: skip  # noqa: E501


def _variable(scene: Scene, i: int) -> str:
    x, y = scene.places.variables[i]
    name = scene.names[i] if scene.names else ""
    edge, width = ("currentColor", 0.05) if scene.observed[i] else ("#6b7280", 0.02)
    fill = "#fff" if scene.beliefs is None else "none"
    pie = "" if scene.beliefs is None else pie_of(scene.beliefs[i], x, y, RADIUS)
    tip = f"<title>{escape(_tip(scene, i, name))}</title>"
    ring = f'<circle cx="{x:.3f}" cy="{y:.3f}" r="{RADIUS}" fill="{fill}" stroke="{edge}" stroke-width="{width}"/>'
    if not name:
        return f"<g>{tip}{pie}{ring}</g>"
    outside = y - RADIUS - 0.07 if scene.above[i] else y + RADIUS + 0.19
    at, colour = (y + 0.06, ' fill="#111"') if scene.inside else (outside, "")
    edge = "" if scene.inside else ' stroke="var(--paper, transparent)" stroke-width="0.05" paint-order="stroke"'
    return f'<g>{tip}{pie}{ring}<text x="{x:.3f}" y="{at:.3f}"{colour}{edge}>{escape(name)}</text></g>'


def _tip(scene: Scene, i: int, name: str) -> str:
    if scene.beliefs is None:
        return name or str(i)
    card = len(scene.beliefs[i])
    states = range(card) if scene.known is None else scene.known.state_names(i, card)
    shares = ", ".join(f"{s}: {p:.3f}" for s, p in zip(states, np.real(scene.beliefs[i]).tolist(), strict=True))
    return f"{name or i}: {shares}"


def pie_of(belief: Array, x: float, y: float, radius: float) -> str:
    """Return the sectors of a circle that show a belief, clockwise from the top.

    Examples
    --------
    >>> pie_of(np.array([0.25, 0.75]), 0, 0, 1).count("<path")
    2
    """
    parts, turn = [], 0.0
    for share, colour in zip(np.real(belief).tolist(), colours(len(belief)), strict=True):
        if share >= 1 - 1e-9:
            return f'<circle cx="{x:.3f}" cy="{y:.3f}" r="{radius}" fill="{colour}"/>'
        if share > 1e-9:
            ends = [(x + radius * sin(2 * pi * t), y - radius * cos(2 * pi * t)) for t in (turn, turn + share)]
            (x1, y1), (x2, y2) = ends
            arc = f"A{radius} {radius} 0 {int(share > 0.5)} 1 {x2:.4f} {y2:.4f}"
            parts.append(f'<path d="M{x:.4f} {y:.4f}L{x1:.4f} {y1:.4f}{arc}Z" fill="{colour}"/>')
        turn += share
    return "".join(parts)


def _legend(scene: Scene, left: float, top: float) -> str:
    parts, x = [], left + 0.3
    for name, colour in zip(scene.states, colours(len(scene.states)), strict=True):
        swatch = f'<rect x="{x:.3f}" y="{top + 0.08:.3f}" width="0.16" height="0.16" fill="{colour}" stroke="#6b7280" stroke-width="0.012"/>'  # fmt: skip  # noqa: E501
        text = f'<text x="{x + 0.22:.3f}" y="{top + 0.22:.3f}" text-anchor="start">{escape(name[:14])}</text>'
        parts.append(swatch + text)
        x += 0.45 + 0.1 * min(len(name), 14)
    return "".join(parts)
