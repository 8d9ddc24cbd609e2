"""Curves: named lines with their points, whose values are shown under the pointer."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import ClassVar

from isinglass.errors import require
from isinglass.pages.axes import Axis, tick_text
from isinglass.pages.part import Part, framed, number_text

WIDTH, HEIGHT = 480, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 34, 44
COLOURS = 10  # in the style sheet
MOST_POINTS = 150  # of a curve that can be pointed at
MOST_MARKS = 40  # points that are drawn
Point = tuple[float, float, str]


@dataclass(frozen=True)
class Lines(Part):
    """Curves. The names below it hide and show them.

    Parameters
    ----------
    curves : mapping from a name to places and heights
        What is not finite, or not above 0 on a logarithmic axis, is left out.
    across, upwards, title : str
    log_x, log_y : bool
        Logarithmic axes.
    dashed : collection of str
        Names of curves that are dashed and have no points, such as a diagonal.
    notes : mapping from a name to texts
        What is said of each point of a curve, under the pointer, besides its values.
    steps : str, optional
        In `Steps`: the curve whose point belongs to each step, which is marked.

    Examples
    --------
    >>> Lines({"squares": ([1, 2, 3], [1, 4, 9])}, "n", "n²").html().count("<circle")
    3
    """

    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    across: str = ""
    upwards: str = ""
    title: str = ""
    log_x: bool = False
    log_y: bool = False
    dashed: Collection[str] = ()
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    steps: str | None = None

    figure: ClassVar[bool] = True

    def html(self) -> str:
        """Return the figure, with a legend if there are several curves."""
        require(
            isinstance(self.curves, Mapping), "curves", "a mapping from names to curves", type(self.curves).__name__
        )
        runs = {str(name): self._visible(str(name), *curve) for name, curve in self.curves.items()}
        points = [point for run in runs.values() for part in run for point in part]
        if not points:
            return framed(self.title, '<p class="note">no values that can be drawn</p>')
        x = Axis.around([p[0] for p in points], LEFT, WIDTH - RIGHT, log=self.log_x, pad=0.02)
        y = Axis.around([p[1] for p in points], HEIGHT - BOTTOM, TOP, log=self.log_y)
        drawn = [self._curve(i, name, run, x, y) for i, (name, run) in enumerate(runs.items())]
        described = escape(self.title or f"{self.upwards} against {self.across}")
        head = f'<svg class="chart" data-near viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{described}">'
        return framed(self.title, "".join([head, *self._frame(x, y), *drawn, "</svg>", self._legend(list(runs))]))

    def _visible(self, name: str, places: Sequence[float], heights: Sequence[float]) -> list[list[Point]]:
        """Return the points that can be drawn, in runs without gaps."""
        require(len(places) == len(heights), f"curves[{name!r}]", "as many places as heights",
                f"{len(places)} and {len(heights)}")  # fmt: skip
        runs: list[list[Point]] = [[]]
        notes = self.notes.get(name, [""] * len(places))
        for a, b, note in zip(places, heights, notes, strict=True):
            x, y = float(a), float(b)
            fine = math.isfinite(x) and math.isfinite(y) and (x > 0 or not self.log_x) and (y > 0 or not self.log_y)
            if fine:
                runs[-1].append((x, y, note))
            elif runs[-1]:
                runs.append([])
        return [run for run in runs if run]

    def _frame(self, x: Axis, y: Axis) -> list[str]:
        """Return grid lines, ticks and names of the axes."""
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        found = []
        for value in y.ticks():
            at = y.place(value)
            found.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>')
            found.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{tick_text(value)}</text>')
        found.append(f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>')
        for value in x.ticks(5):
            at = x.place(value)
            found.append(f'<text x="{at:.1f}" y="{bottom + 17}" text-anchor="middle">{tick_text(value)}</text>')
        scale_x, scale_y = (" (log)" if log else "" for log in (self.log_x, self.log_y))
        found.append(f'<text x="{right}" y="{HEIGHT - 6}" text-anchor="end">{escape(self.across)}{scale_x}</text>')
        found.append(f'<text x="4" y="15">{escape(self.upwards)}{scale_y}</text>')
        return found

    def _curve(self, i: int, name: str, runs: list[list[Point]], x: Axis, y: Axis) -> str:
        colour, dashed = self._colour(i, name), name in self.dashed
        look = ' class="curve dashed"' if dashed or i >= COLOURS else ' class="curve"'
        parts = [f'<g data-series="{i}" stroke="{colour}" fill="{colour}">']
        for run in runs:
            path = "L".join(f"{x.place(a):.1f} {y.place(b):.1f}" for a, b, _ in run)
            parts.append(f'<path{look} d="M{path}"/>')
        points = [] if dashed else [point for run in runs for point in run]
        radius = 3.2 if len(points) <= MOST_MARKS else 1.2
        for a, b, note in _some(points):
            tip = escape(f"{name}\n{self.across or 'x'} {number_text(a)}: {number_text(b)}\n{note}".strip())
            at = f'cx="{x.place(a):.1f}" cy="{y.place(b):.1f}"'
            parts.append(f'<circle {at} r="{radius}" stroke="none" data-tip="{tip}"/>')
        if self.steps == name:
            parts += [
                f'<circle data-step="{a:.0f}" cx="{x.place(a):.1f}" cy="{y.place(b):.1f}" r="6" fill="var(--c1)"/>'
                for a, b, _ in points
            ]
        return "".join([*parts, "</g>"])

    def _colour(self, i: int, name: str) -> str:
        return "var(--soft)" if name in self.dashed else f"var(--c{i % COLOURS})"

    def _legend(self, names: list[str]) -> str:
        if len(names) < 2:
            return ""
        buttons = [
            f'<button type="button" aria-pressed="true" data-series="{i}">'
            f'<i style="background:{self._colour(i, name)}"></i>{escape(name)}</button>'
            for i, name in enumerate(names)
        ]
        return f'<div class="legend">{"".join(buttons)}</div>'


def _some(points: list[Point]) -> list[Point]:
    """Return the points that can be pointed at: all, or of very many every k-th and the last."""
    if len(points) <= MOST_POINTS:
        return points
    every = -(-len(points) // MOST_POINTS)
    return [*points[:-1:every], points[-1]]
