"""A table that sorts by a click on a head."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from isinglass.errors import require
from isinglass.pages.part import Part, is_number, number_text

_NUMBER = re.compile(r"[<>~ ]*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(?![\w.-])", re.IGNORECASE)  # as in script.js


@dataclass(frozen=True)
class Table(Part):
    """A table for a page. A click on a head sorts by that column, a second one the other way round.

    Parameters
    ----------
    columns : sequence of str
        The heads.
    rows : sequence of sequences
        One value for each column; a float is written with four significant digits, None as a dash.
    caption : str

    Examples
    --------
    >>> Table(["method", "error"], [["bp", 0.0599]]).columns
    ['method', 'error']
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""

    def html(self) -> str:
        """Return the table; columns of numbers are aligned at the right."""
        for i, row in enumerate(self.rows):
            require(len(row) == len(self.columns), f"rows[{i}]", f"{len(self.columns)} values", f"{len(row)}")
        right = [_are_numbers([row[j] for row in self.rows]) for j in range(len(self.columns))]
        heads = "".join(_head(str(name), numbers) for name, numbers in zip(self.columns, right, strict=True))
        caption = f"<caption>{escape(self.caption)}</caption>" if self.caption else ""
        lines = [f'<div class="scroll"><table class="sortable">{caption}<thead><tr>{heads}</tr></thead>', "<tbody>"]
        lines += ["<tr>" + "".join(map(_cell, row, right)) + "</tr>" for row in self.rows]
        return "\n".join([*lines, "</tbody></table></div>"])


def leading_number(value: object) -> float | None:
    """Return the number of a cell, or the one that its text begins with; None if there is none.

    Examples
    --------
    >>> leading_number(".0607* (0.01)"), leading_number("16 x 16"), leading_number("12.5%"), leading_number("2-best")
    (0.0607, 16.0, 12.5, None)
    """
    if is_number(value):
        return float(value)  # type: ignore[arg-type]
    found = _NUMBER.match(str(value).strip())
    return None if found is None else float(found[1])


def _missing(value: object) -> bool:
    return value is None or str(value).strip() in ("", "-")


def _are_numbers(column: Sequence[object]) -> bool:
    """Tell whether a column has numbers, and nothing else but dashes."""
    known = [value for value in column if not _missing(value)]
    return bool(known) and all(leading_number(value) is not None for value in known)


def _head(name: str, numbers: bool) -> str:
    look = ' class="number"' if numbers else ""
    return f'<th scope="col"{look}><button type="button">{escape(name)}</button></th>'


def _cell(value: object, right: bool) -> str:
    look = ' class="number"' if right else ""
    exact = f' data-value="{float(value)!r}"' if is_number(value) and math.isfinite(float(value)) else ""  # type: ignore[arg-type]
    return f"<td{look}{exact}>{escape(number_text(value))}</td>"
