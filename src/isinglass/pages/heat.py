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

WIDTH, LEFT, TOP = 480, 104, 70
LARGEST = 44.0  # side of a cell
LONGEST = 12  # characters of a name
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
        values = np.asarray(self.values, np.float64)
        if values.shape != (len(self.rows), len(self.columns)) or not values.size:
            got = f"shape {values.shape}"
            raise InputError("values", f"an array ({len(self.rows)}, {len(self.columns)}) with some cells", got)
        side = min(LARGEST, (WIDTH - LEFT) / values.shape[1])
        height = TOP + side * values.shape[0] + 4
        described = escape(self.title)
        head = f'<svg class="chart" viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{described}">'
        across = f'<text x="{LEFT}" y="13">{escape(self.across)}</text>'
        return framed(self.title, "".join([head, across, *self._names(side), *self._cells(values, side), "</svg>"]))

    def _names(self, side: float) -> list[str]:
        """Return the names, as many as there is room for; those of columns lean."""
        every = max(1, int(np.ceil(13 / side)))
        found = []
        for i, name in enumerate(map(str, self.rows)):
            if i % every == 0:
                y = TOP + side * (i + 0.5) + 4
                found.append(f'<text class="name" x="{LEFT - 7}" y="{y:.1f}" text-anchor="end">{_short(name)}</text>')
        for j, name in enumerate(map(str, self.columns)):
            if j % every == 0:
                x, y = LEFT + side * (j + 0.5) + 3, TOP - 6
                turn = f'transform="translate({x:.1f} {y}) rotate(-45)"'
                found.append(f'<text class="name" {turn}>{_short(name)}</text>')
        return found

    def _cells(self, values: Array, side: float) -> list[str]:
        finite = np.abs(values[np.isfinite(values)])
        largest = float(finite.max(initial=0.0)) or 1.0
        found = []
        for (i, j), value in np.ndenumerate(values):
            shown = number_text(float(value)) if self.tips is None else self.tips[i][j]
            tip = escape(f"{self.rows[i]} → {self.columns[j]}\n{shown}")
            found.append(self._cell(i, j, float(value), largest, side, tip))
        return found

    def _cell(self, i: int, j: int, value: float, largest: float, side: float, tip: str) -> str:
        x, y = LEFT + side * j, TOP + side * i
        strength = min(abs(value) / largest, 1.0) if np.isfinite(value) else 0.0
        colour = f'fill="var(--c{0 if value >= 0 else 3})" fill-opacity="{0.04 + 0.82 * strength:.3f}"'
        box = f'x="{x + 0.5:.1f}" y="{y + 0.5:.1f}" width="{side - 1:.1f}" height="{side - 1:.1f}"'
        rect = f'<rect {box} {colour} data-tip="{tip}"/>'
        if max(len(self.rows), len(self.columns)) > MOST_NUMBERS:
            return rect
        look = ' style="fill:var(--paper)"' if strength > 0.55 else ' class="name"'
        place = f'x="{x + side / 2:.1f}" y="{y + side / 2 + 4:.1f}" text-anchor="middle" pointer-events="none"'
        return f"{rect}<text {place}{look}>{value:.2g}</text>"


def _short(name: str) -> str:
    return escape(name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…")
