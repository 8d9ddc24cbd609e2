"""What stands on a page: each part writes itself as HTML, and escapes the text that it was given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import ClassVar

import numpy as np

from isinglass.errors import require


class Part(ABC):
    """A part of a section.

    Attributes
    ----------
    figure : bool
        Whether it is a figure; those that follow each other stand side by side, where there is room.
    """

    figure: ClassVar[bool] = False

    @abstractmethod
    def html(self) -> str:
        """Return it as HTML."""


def framed(title: str, content: str, wide: bool = False) -> str:
    """Return a figure with its title."""
    caption = f"<figcaption>{escape(title)}</figcaption>" if title else ""
    look = ' class="wide"' if wide else ""
    return f"<figure{look}>{caption}{content}</figure>"


def number_text(value: object) -> str:
    """Write a number with four significant digits, None as a dash, and anything else as it is.

    Examples
    --------
    >>> number_text(0.0599123), number_text(1200), number_text(None), number_text("bp")
    ('0.05991', '1200', '-', 'bp')
    """
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def is_number(value: object) -> bool:
    """Tell whether a value is a number; true and false are none."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)


@dataclass(frozen=True)
class Text(Part):
    """Paragraphs; an empty line begins a new one."""

    text: str
    look: str = ""

    def html(self) -> str:
        """Return the paragraphs."""
        look = f' class="{escape(self.look)}"' if self.look else ""
        return "\n".join(f"<p{look}>{escape(p.strip())}</p>" for p in self.text.split("\n\n") if p.strip())


class Note(Text):
    """Paragraphs in small print.

    Examples
    --------
    >>> Note("a < b").html()
    '<p class="note">a &lt; b</p>'
    """

    def __init__(self, text: str) -> None:
        super().__init__(text, "note")


@dataclass(frozen=True)
class Code(Part):
    """Text as it is, such as a command.

    Examples
    --------
    >>> Code("isinglass demo > log").html()
    '<pre><code>isinglass demo &gt; log</code></pre>'
    """

    text: str

    def html(self) -> str:
        """Return the text in a box."""
        return f"<pre><code>{escape(self.text)}</code></pre>"


@dataclass(frozen=True)
class Facts(Part):
    """A few important values, in large print.

    Examples
    --------
    >>> Facts({"iterations": 12}).html()
    '<dl class="facts"><div><dt>iterations</dt><dd>12</dd></div></dl>'
    """

    values: Mapping[str, object]

    def html(self) -> str:
        """Return a box for each value."""
        require(
            isinstance(self.values, Mapping), "values", "a mapping from names to values", type(self.values).__name__
        )
        boxes = [
            f"<div><dt>{escape(str(name))}</dt><dd>{escape(number_text(value))}</dd></div>"
            for name, value in self.values.items()
        ]
        return f'<dl class="facts">{"".join(boxes)}</dl>'
