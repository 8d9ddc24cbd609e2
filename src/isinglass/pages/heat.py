"""A table of numbers in colours: blue where positive, red where negative, the stronger the larger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import ClassVar

import numpy as np

from isinglass.errors import InputError
from isinglass.pages.part import Part, framed, number_text
from isinglass.typing import Array
from isinglass.validation import real_numbers

WIDTH = 480  # at most
LARGEST = 52.0  # side of a cell
LONGEST = 12  # characters of a name
CHARACTER = 7.4  # pixels, about
MOST_NUMBERS = 9  # columns of a table whose cells have numbers


@dataclass(frozen=True, eq=False)
class Heat(Part):
    """A heat map.

    Parameters
    ----------
    values : array (rows, columns)
    rows, columns : sequences
        Their names.
    title : str
    across : str
        What the columns are.
    tips : sequence of sequences of str, optional
        What is shown under the pointer, by row and column, after the names.

    Examples
    --------
    >>> Heat(np.eye(2), ["a", "b"], ["a", "b"], "confusion").html().count("<rect")
    4
    """

    values: Array
    rows: Sequence[object]
    columns: Sequence[object]
    title: str = ""
    across: str = ""
    tips: Sequence[Sequence[str]] | None = None

    figure: ClassVar[bool] = True

    def html(self) -> str:
        """Return the figure."""
        values = real_numbers(self.values, "values", "an array of numbers (rows, columns)")
        if values.shape != (len(self.rows), len(self.columns)) or not values.size:
            got = f"shape {values.shape}"
            raise InputError("values", f"an array ({len(self.rows)}, {len(self.columns)}) with some cells", got)
        rows, columns = ([_short(str(name)) for name in names] for names in (self.rows, self.columns))
        left = 14 + CHARACTER * max(map(len, rows))
        side = min(LARGEST, (WIDTH - left) / values.shape[1])
        leaning = CHARACTER * max(map(len, columns)) > side
        top = (24 if self.across else 4) + (12 + 0.75 * CHARACTER * max(map(len, columns)) if leaning else 20)
        width, height = left + side * values.shape[1] + (24 if leaning else 4), top + side * values.shape[0] + 4
        head = f'<svg class="chart heat" viewBox="0 0 {width:.0f} {height:.0f}" style="max-width:{1.3 * width:.0f}px"'
        parts = [f'{head} role="img" aria-label="{escape(self.title)}">']
        parts.append(f'<text x="{left:.0f}" y="13">{escape(self.across)}</text>')
        parts += _names(rows, columns, side, (left, top), leaning)
        return framed(self.title, "".join([*parts, *self._cells(values, side, (left, top)), "</svg>"]))

    def _cells(self, values: Array, side: float, corner: tuple[float, float]) -> list[str]:
        finite = np.abs(values[np.isfinite(values)])
        largest = float(finite.max(initial=0.0)) or 1.0
        found = []
        for (i, j), value in np.ndenumerate(values):
            shown = number_text(float(value)) if self.tips is None else self.tips[i][j]
            tip = escape(f"{self.rows[i]} → {self.columns[j]}\n{shown}")
            place = corner[0] + side * j, corner[1] + side * i
            found.append(self._cell(place, float(value), largest, side, tip))
        return found

    def _cell(self, corner: tuple[float, float], value: float, largest: float, side: float, tip: str) -> str:
        x, y = corner
        strength = min(abs(value) / largest, 1.0) if np.isfinite(value) else 0.0
        colour = f'fill="var(--c{0 if value >= 0 else 3})" fill-opacity="{0.04 + 0.82 * strength:.3f}"'
        box = f'x="{x + 0.5:.1f}" y="{y + 0.5:.1f}" width="{side - 1:.1f}" height="{side - 1:.1f}"'
        rect = f'<rect {box} {colour} data-tip="{tip}"/>'
        if max(len(self.rows), len(self.columns)) > MOST_NUMBERS:
            return rect
        look = ' style="fill:var(--paper)"' if strength > 0.55 else ' class="name"'
        place = f'x="{x + side / 2:.1f}" y="{y + side / 2 + 4:.1f}" text-anchor="middle" pointer-events="none"'
        return f"{rect}<text {place}{look}>{value:.2g}</text>"


def _names(rows: list[str], columns: list[str], side: float, corner: tuple[float, float], leaning: bool) -> list[str]:
    """Return the names, as many as there is room for; those of columns lean, where they are long."""
    left, top = corner
    every = max(1, int(np.ceil(13 / side)))
    found = []
    for i, name in list(enumerate(rows))[::every]:
        y = top + side * (i + 0.5) + 4
        found.append(f'<text class="name" x="{left - 7:.1f}" y="{y:.1f}" text-anchor="end">{escape(name)}</text>')
    for j, name in list(enumerate(columns))[::every]:
        x = left + side * (j + 0.5)
        turn = f'transform="translate({x + 3:.1f} {top - 6:.1f}) rotate(-45)"'
        place = turn if leaning else f'x="{x:.1f}" y="{top - 7:.1f}" text-anchor="middle"'
        found.append(f'<text class="name" {place}>{escape(name)}</text>')
    return found


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
