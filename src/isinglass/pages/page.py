"""The page itself: its head, its sections, and what is below them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby

from isinglass.errors import InputError, require
from isinglass.pages.part import Part, Text

Section = tuple[str, Sequence[Part | str]]

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
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
<header><h1>{title}</h1><button class="theme" type="button" aria-label="light or dark">◐</button></header>
{body}
<script>{script}</script>
</body>
</html>
"""


def page_of(title: str, sections: Iterable[Section], *, lead: str = "", below: Sequence[Part | str] = ()) -> str:
    """Return a page.

    Parameters
    ----------
    title : str
    sections : iterable of (heading, parts)
        A part is text (an empty line begins a new paragraph) or a `Part`.
    lead : str
        A sentence or two below the title.
    below : sequence of parts
        How the page was made, at its end.

    Examples
    --------
    >>> page = page_of("Noise", [("Errors", ["a < b"])])
    >>> "<p>a &lt; b</p>" in page
    True
    """
    require(isinstance(title, str), "title", "text", type(title).__name__)
    body = [Text(lead, "lead").html()] if lead else []
    body += [_section(section, f"sections[{i}]") for i, section in enumerate(sections)]
    if below:
        body.append("\n".join(["<footer>", *_contents(below, "below"), "</footer>"]))
    style, script, digest = _assets()
    page = _PAGE.format(
        policy=_POLICY.format(digest=digest), title=escape(title), style=style, body="\n".join(body), script=script
    )
    return page.encode("utf-8", "xmlcharrefreplace").decode()  # a lone surrogate is no UTF-8


@cache
def _assets() -> tuple[str, str, str]:
    """Return the style sheet, the script, and the digest by which a browser knows the script."""
    folder = files("isinglass.pages")
    style, script = (folder.joinpath(name).read_text("utf-8") for name in ("style.css", "script.js"))
    return style, script, base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _section(section: object, argument: str) -> str:
    if not isinstance(section, tuple | list) or len(section) != 2 or not isinstance(section[0], str):
        raise InputError(argument, "a heading and a sequence of parts", repr(section)[:80])
    heading, parts = section
    if isinstance(parts, str) or not isinstance(parts, Sequence):
        raise InputError(f"{argument}[1]", "a sequence of parts", type(parts).__name__, "put a single part in a list")
    head = [f"<h2>{escape(heading)}</h2>"] if heading else []
    return "\n".join(["<section>", *head, *_contents(parts, f"{argument}[1]"), "</section>"])


def _contents(parts: Sequence[object], argument: str) -> list[str]:
    """Return the parts; figures that follow each other are side by side."""
    written = [(_is_figure(part), _part(part, f"{argument}[{i}]")) for i, part in enumerate(parts)]
    found = []
    for figures, group in groupby(written, key=lambda pair: pair[0]):
        inside = "\n".join(text for _, text in group)
        found.append(f'<div class="figures">\n{inside}\n</div>' if figures else inside)
    return found


def _is_figure(part: object) -> bool:
    return isinstance(part, Part) and part.figure


def _part(part: object, argument: str) -> str:
    if isinstance(part, str):
        return Text(part).html()
    if not isinstance(part, Part):
        raise InputError(argument, "text, a Table, a figure or another part of a page", type(part).__name__)
    try:
        return part.html()
    except InputError as error:
        raise InputError(f"{argument}.{error.argument}", error.expected, error.got, error.remedy) from None
