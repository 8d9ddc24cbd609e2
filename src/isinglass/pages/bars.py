"""Bars: one value for each name, to compare them at a glance.

Bars begin at 0. Where the values lie so close together that all bars would look alike, they are points on a scale of
their own, without bars.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import ClassVar

from isinglass.errors import require
from isinglass.pages.axes import Axis, tick_text
from isinglass.pages.part import Part, framed, is_number, number_text

WIDTH, STEP = 480, 26
TOP, BOTTOM = 4, 24
LONGEST = 20  # characters of a name, and of a text, that there is room for
CHARACTER = 8.6  # pixels, at most; the print is larger on a narrow screen
CLOSE = 0.7  # the least value, as a share of the largest, from which on bars are points


@dataclass(frozen=True)
class Bars(Part):
    """A bar for each name.

    Parameters
    ----------
    names : sequence of str
    values : sequence of float or None
        What is missing, or not finite, has no bar.
    title : str
    from_zero : bool, optional
        Bars from 0, or points; by default as the values need it.
    texts : sequence of str, optional
        What is written beside each bar, instead of its value.

    Examples
    --------
    >>> Bars(["bp", "exact"], [0.0599, 0.0525], "error").html().count("<rect")
    0
    >>> Bars(["bp", "pixels"], [0.0599, 0.19], "error").html().count("<rect")
    2
    """

    names: Sequence[str]
    values: Sequence[float | None]
    title: str = ""
    texts: Sequence[str] | None = None
    from_zero: bool | None = None

    figure: ClassVar[bool] = True

    def html(self) -> str:
        """Return the figure."""
        count = len(self.names)
        require(len(self.values) == count, "values", f"one for each of {count} names", f"{len(self.values)}")
        others = [value for value in self.values if value is not None and not is_number(value)]
        require(not others, "values", "numbers, or None", f"{others[:1]}")
        texts = [number_text(value) for value in self.values] if self.texts is None else list(self.texts)
        require(len(texts) == count, "texts", f"one for each of {count} names", f"{len(texts)}")
        known = [value for value in self.values if value is not None and math.isfinite(value)]
        zero = _from_zero(known) if self.from_zero is None else self.from_zero
        left, right = (14 + CHARACTER * max([len(_short(str(one))) for one in some], default=0)
                       for some in (self.names, texts))  # fmt: skip
        axis = Axis.around([*known, 0.0] if zero else known, left, WIDTH - right, pad=0.0 if zero else 0.06)
        height = TOP + STEP * count + BOTTOM
        head = f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(self.title)}">'
        rows = [self._row(i, axis, zero, text, TOP + STEP * i) for i, text in enumerate(texts)]
        return framed(self.title, "".join([head, *_scale(axis, height, zero), *rows, "</svg>"]))

    def _row(self, i: int, axis: Axis, zero: bool, text: str, top: float) -> str:
        name, value = str(self.names[i]), self.values[i]
        middle, left = top + STEP / 2, axis.start - 8
        shown = escape(_short(name))
        parts = [f'<text class="name" x="{left:.1f}" y="{middle + 4}" text-anchor="end">{shown}</text>']
        end = axis.start
        if value is not None and math.isfinite(value):
            base, end = axis.place(0.0) if zero else axis.place(value), axis.place(value)
            if zero:
                left, width = min(base, end), max(abs(end - base), 0.5)
                parts.append(f'<rect x="{left:.1f}" y="{top + 5}" width="{width:.1f}" height="{STEP - 10}" rx="2" fill="var(--c0)"/>')  # fmt: skip  # noqa: E501
            else:
                parts.append(f'<circle cx="{end:.1f}" cy="{middle}" r="5.5" fill="var(--c0)"/>')
            end = max(base, end)
        parts.append(f'<text class="number" x="{end + 9:.1f}" y="{middle + 4}">{escape(_short(text))}</text>')
        target = f'<path d="M0 {top}h{WIDTH}v{STEP}H0z" fill="none" pointer-events="all"/>'
        tip = escape(f"{name}: {text}")
        return f'<g data-tip="{tip}">{"".join(parts)}{target}</g>'


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _from_zero(values: Sequence[float]) -> bool:
    """Tell whether bars from 0 show how the values differ."""
    if not values or min(values) < 0 < max(values):
        return True
    small, large = sorted((abs(min(values)), abs(max(values))))
    return small <= CLOSE * large or small == large


def _scale(axis: Axis, height: float, zero: bool) -> list[str]:
    """Return a few ticks below the bars."""
    found = []
    for value in axis.ticks(4):
        at = axis.place(value)
        look = "axis" if zero and value == 0 else "grid"
        found.append(f'<line class="{look}" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{height - BOTTOM}"/>')
        found.append(f'<text x="{at:.1f}" y="{height - 8}" text-anchor="middle">{tick_text(value)}</text>')
    return found
