"""An example as it is written: one plain script.

Its docstring is a title line, a blank line and a short paragraph. Lines `# %%` separate cells. Comment lines directly
after `# %%` are the Markdown text of the cell; what follows is its code.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

MARK = "# %%"


@dataclass(frozen=True)
class Cell:
    """Text in Markdown, then code; `line` is where the code begins in the script, counted from 1."""

    text: str
    code: str
    line: int


@dataclass(frozen=True)
class Script:
    """A script in parts."""

    name: str
    title: str
    summary: str
    cells: tuple[Cell, ...]
    source: str


def read_script(path: Path) -> Script:
    """Read a script; what breaks the convention is an error that names the file and the line."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source, str(path))
    title, _, summary = (ast.get_docstring(tree) or "").partition("\n\n")
    if not title or "\n" in title or not summary.strip():
        raise ValueError(f"{path}: expected a docstring of a title line, a blank line and a short paragraph")
    body = source.splitlines()
    start = tree.body[0].end_lineno or 0
    marks = [k for k in range(start, len(body)) if body[k].startswith(MARK)]
    for k in marks:
        if body[k].rstrip() != MARK:
            raise ValueError(f"{path}, line {k + 1}: expected {MARK!r} alone; text goes into comment lines below it")
    ends = [*marks, len(body)]
    cells = [_cell(body, start, ends[0])]
    cells += [_cell(body, first + 1, last) for first, last in zip(marks, ends[1:], strict=True)]
    kept = tuple(cell for cell in cells if cell.text or cell.code)
    return Script(path.stem, title.rstrip("."), summary.strip(), kept, source)


def _cell(body: list[str], first: int, last: int) -> Cell:
    """Return the cell of the lines from `first` up to `last`, counted from 0."""
    begin = first
    while begin < last and body[begin].startswith("#"):
        begin += 1
    text = "\n".join(line[1:].removeprefix(" ").rstrip() for line in body[first:begin]).strip()
    while begin < last and not body[begin].strip():
        begin += 1
    return Cell(text, "\n".join(body[begin:last]).rstrip(), begin + 1)
