"""A report as one HTML page that needs nothing else: no script, no link, pictures inside.

All text is escaped. A content security policy in the page forbids the browser to load anything from elsewhere.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from isinglass.errors import InputError, require
from isinglass.io.files import PathLike, write_text_atomically

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """
body { font: 16px/1.5 Georgia, serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
body { color: #222; background: #fff; }
h1, h2 { font-weight: normal; line-height: 1.2; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
img { max-width: 100%; height: auto; }
figure, table { margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: #666; padding-bottom: .3rem; }
th, td { padding: .15rem .9rem .15rem 0; text-align: left; border-bottom: 1px solid #eee; }
td.number { text-align: right; }
"""
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


@dataclass(frozen=True)
class Table:
    """A table for `html_page`.

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


def html_page(title: str, sections: Sequence[tuple[str, Sequence[object]]], path: PathLike) -> None:
    r"""Write a report as one self-contained HTML page, atomically.

    Parameters
    ----------
    title : str
    sections : sequence of (heading, parts)
        A part is text (an empty line begins a new paragraph), a `Table`, or a Matplotlib figure.
    path : str or os.PathLike

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "page.html")
    ...     html_page("Noise", [("Errors", ["a < b", Table(["method"], [["bp"]])])], path)
    ...     "<p>a &lt; b</p>" in path.read_text()
    True
    """
    require(isinstance(title, str), "title", "text", type(title).__name__)
    body = "\n".join(_section(section, f"sections[{i}]") for i, section in enumerate(sections))
    page = _PAGE.format(policy=_POLICY, title=escape(title), style=_STYLE, body=body)
    write_text_atomically(path, page.encode("utf-8", "xmlcharrefreplace").decode())  # a lone surrogate is no UTF-8


def _section(section: object, argument: str) -> str:
    if not isinstance(section, tuple | list) or len(section) != 2 or not isinstance(section[0], str):
        raise InputError(argument, "a heading and a sequence of parts", repr(section)[:80])
    heading, parts = section
    if isinstance(parts, str) or not isinstance(parts, Sequence):
        raise InputError(f"{argument}[1]", "a sequence of parts", type(parts).__name__, "put a single part in a list")
    content = [_part(part, heading, f"{argument}[1][{i}]") for i, part in enumerate(parts)]
    return "\n".join(["<section>", f"<h2>{escape(heading)}</h2>", *content, "</section>"])


def _part(part: object, heading: str, argument: str) -> str:
    if isinstance(part, str):
        return "\n".join(f"<p>{escape(p.strip())}</p>" for p in part.split("\n\n") if p.strip())
    if isinstance(part, Table):
        return _table(part, argument)
    if hasattr(part, "savefig"):
        return _image(part, heading)
    raise InputError(argument, "text, a Table or a Matplotlib figure", type(part).__name__)


def _table(table: Table, argument: str) -> str:
    heads = "".join(f"<th>{escape(str(column))}</th>" for column in table.columns)
    lines = ["<table>", f"<caption>{escape(table.caption)}</caption>"] if table.caption else ["<table>"]
    lines.append(f"<thead><tr>{heads}</tr></thead>\n<tbody>")
    for i, row in enumerate(table.rows):
        require(len(row) == len(table.columns), f"{argument}.rows[{i}]", f"{len(table.columns)} values", f"{len(row)}")
        lines.append("<tr>" + "".join(_cell(value) for value in row) + "</tr>")
    return "\n".join([*lines, "</tbody>\n</table>"])


def _cell(value: object) -> str:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        return f"<td>{'-' if value is None else escape(str(value))}</td>"
    text = f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
    return f'<td class="number">{escape(text)}</td>'


def _image(figure: Any, heading: str) -> str:
    """Return the figure as a picture inside the page; its titles are the text for those who cannot see it."""
    file = io.BytesIO()
    figure.savefig(file, format="png")
    titles = [axes.get_title() or axes.get_ylabel() for axes in getattr(figure, "axes", [])]
    described = ", ".join([heading, *dict.fromkeys(title for title in titles if title)])
    data = base64.b64encode(file.getvalue()).decode()
    return f'<figure><img alt="{escape(described)}" src="data:image/png;base64,{data}"></figure>'
