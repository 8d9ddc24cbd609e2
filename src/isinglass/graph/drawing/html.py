"""What a notebook shows of a graph, of potentials and of a result: a line of text, a drawing if small, a table."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from isinglass.errors import InputError
from isinglass.graph.drawing.scene import scene
from isinglass.graph.drawing.svg import MOST_CELLS, svg_of
from isinglass.graph.factor_graph import FactorGraph
from isinglass.typing import Array

MOST_ROWS = 12  # of a table
_CELL = "padding:.1em .7em;text-align:left;border-bottom:1px solid rgba(128,128,128,.3)"


def card(title: str, *parts: str) -> str:
    """Return a title and what is below it.

    Examples
    --------
    >>> card("a < b", "<p>text</p>")
    '<div class="isinglass"><div>a &lt; b</div><p>text</p></div>'
    """
    return f'<div class="isinglass"><div>{escape(title)}</div>{"".join(parts)}</div>'


def table(heads: Sequence[str], rows: Sequence[Sequence[object]], most: int = MOST_ROWS) -> str:
    """Return a table, of at most so many rows; numbers with three digits.

    Examples
    --------
    >>> table(["a"], [[0.12345], ["x"]]).count("<tr>")
    3
    """
    top = "".join(f'<th style="{_CELL}">{escape(head)}</th>' for head in heads)
    body = "".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in rows[:most])
    more = f"<div>… and {len(rows) - most} more</div>" if len(rows) > most else ""
    return f'<table style="border-collapse:collapse"><tr>{top}</tr>{body}</table>{more}'


def _cell(value: object) -> str:
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return f'<td style="{_CELL}">{escape(text)}</td>'


def drawing(
    graph: FactorGraph,
    tables: Sequence[Array] | None = None,
    beliefs: Sequence[Array] | None = None,
    observed: Sequence[int] = (),
) -> str:
    """Return the drawing of a graph as SVG; nothing, where it is too large for one."""
    if not 0 < graph.n_variables <= MOST_CELLS:
        return ""
    try:
        return svg_of(scene(graph, tables, beliefs, observed))
    except InputError:  # too many points for a drawing that is no grid
        return ""
