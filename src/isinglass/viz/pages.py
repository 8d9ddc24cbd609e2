"""A report as one HTML page that needs nothing else; see `isinglass.pages`. Matplotlib figures are pictures in it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, ClassVar

from isinglass.io.files import PathLike, write_text_atomically
from isinglass.pages import Part, page_of
from isinglass.pages.part import framed
from isinglass.pages.png import data_uri


def html_page(title: str, sections: Sequence[tuple[str, Sequence[object]]], path: PathLike) -> None:
    r"""Write a report as one self-contained HTML page, atomically.

    Parameters
    ----------
    title : str
    sections : sequence of (heading, parts)
        A part is text (an empty line begins a new paragraph), a `Table`, a Matplotlib figure, or any other part of
        `isinglass.pages`: ``Lines``, ``Bars``, ``Heat``, ``Pictures``, ``Facts``, ``Code``.
    path : str or os.PathLike

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from isinglass.pages import Table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "page.html")
    ...     html_page("Noise", [("Errors", ["a < b", Table(["method"], [["bp"]])])], path)
    ...     "<p>a &lt; b</p>" in path.read_text()
    True
    """
    write_text_atomically(path, page_of(title, [_with_figures(section) for section in sections]))


def _with_figures(section: Any) -> Any:
    """Put Matplotlib figures into parts; what is no section is left to be refused."""
    if not isinstance(section, tuple | list) or len(section) != 2 or isinstance(section[1], str):
        return section
    heading, parts = section
    if not isinstance(parts, Sequence):
        return section
    return heading, [_Figure(part, str(heading)) if hasattr(part, "savefig") else part for part in parts]


@dataclass(frozen=True, eq=False)
class _Figure(Part):
    """A Matplotlib figure as a picture; its titles are the text for those who cannot see it."""

    drawn: Any
    heading: str

    figure: ClassVar[bool] = True

    def html(self) -> str:
        file = io.BytesIO()
        self.drawn.savefig(file, format="png")
        titles = [axes.get_title() or axes.get_ylabel() for axes in getattr(self.drawn, "axes", [])]
        described = ", ".join([self.heading, *dict.fromkeys(title for title in titles if title)])
        return framed("", f'<img alt="{escape(described)}" src="{data_uri(file.getvalue())}">', wide=True)
