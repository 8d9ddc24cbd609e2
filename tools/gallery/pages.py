"""The pages of the gallery in Markdown: one for each script, and an index with small pictures, by kind of reader."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from gallery.execution import Output, Run
from gallery.script import Script

PLACE = '<div class="gallery-html" data-output="{}"></div>'


@dataclass(frozen=True)
class Group:
    """Examples for one kind of reader; the figure (1 is the first, -1 the last) that is on the card of each."""

    title: str
    summary: str
    examples: dict[str, int]


def read_groups(path: Path, names: Sequence[str]) -> list[Group]:
    """Read the groups of gallery.toml; scripts that no group names come last, in a group of their own."""
    listed = tomllib.loads(path.read_text(encoding="utf-8")).get("group", []) if path.exists() else []
    groups = [Group(one["title"], one["summary"], one["examples"]) for one in listed]
    known = [name for group in groups for name in group.examples]
    for name in known:
        if name not in names or known.count(name) > 1:
            raise ValueError(f"{path}: expected each example once, and a script {name}.py")
    rest = dict.fromkeys(sorted(set(names) - set(known)), -1)
    return groups + ([Group("More", "", rest)] if rest else [])


@dataclass(frozen=True)
class Page:
    """The Markdown of a page, HTML to be put in after it was rendered, and files beside it."""

    markdown: str
    html: list[str]
    files: dict[str, bytes]


def page_of(script: Script, run: Run | None, card: int = -1) -> Page:
    """Return the page of an example; without a run, of its code alone. `card` is the figure for the index."""
    html: list[str] = []
    files: dict[str, bytes] = {}
    took = (
        "It was not run in this build"
        if run is None
        else f"It took {run.seconds:.1f} s of processor time when this page was built"
    )
    parts = ["---\nhide: [toc]\n---", f"# {script.title}", script.summary]
    parts.append(f"*{took}. Download it as a [script]({script.name}.py) or as a [notebook]({script.name}.ipynb).*")
    for k, cell in enumerate(script.cells):
        parts += [cell.text] if cell.text else []
        parts += [_fenced(cell.code, "python")] if cell.code else []
        parts += [_shown(script, out, html, files) for out in (run.outputs[k] if run else [])]
    if run is not None and run.thumbnails:
        files[f"images/{script.name}-small.png"] = run.thumbnails[card - (card > 0)]
    return Page("\n\n".join(parts) + "\n", html, files)


def _fenced(text: str, kind: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence} {kind}\n{text}\n{fence}"


def _shown(script: Script, output: Output, html: list[str], files: dict[str, bytes]) -> str:
    if isinstance(output.content, bytes):
        number = len(files) + 1
        name = f"images/{script.name}-{number}.{output.kind}"
        files[name] = output.content
        return f"![{script.title}, figure {number}]({name}){{ .gallery-picture }}"
    if output.kind == "html":
        html.append(output.content)
        return PLACE.format(len(html) - 1)
    return _fenced(output.content, "{ .text .gallery-output }")


def with_html(page: str, html: Sequence[str]) -> str:
    """Return a rendered page with the HTML that its outputs are."""
    for k, content in enumerate(html):
        page = page.replace(PLACE.format(k), f'<div class="gallery-html">{content}</div>')
    return page


def index_of(groups: Sequence[Group], scripts: Mapping[str, Script], pictured: Mapping[str, bool]) -> str:
    """Return the index: a card with picture, title and summary for each example."""
    intro = (
        "Each example is a short script that was run when these pages were built: the output and the pictures are its "
        "own. Every page has the script and a notebook to download."
    )
    parts = ["---\nhide: [toc]\n---", "# Gallery", intro]
    for group in groups:
        parts += [f"## {group.title}", group.summary]
        cards = [_card(scripts[name], pictured[name]) for name in group.examples]
        parts.append('<div class="gallery-cards" markdown>\n' + "\n".join(cards) + "\n</div>")
    return "\n\n".join(part for part in parts if part) + "\n"


def _card(script: Script, pictured: bool) -> str:
    picture = f"![](images/{script.name}-small.png)" if pictured else ""
    text = f"<strong>{escape(script.title)}</strong><span>{escape(first_sentence(script.summary))}</span>"
    return f'<div class="gallery-card" markdown>[{picture} {text}]({script.name}.md)</div>'


def first_sentence(text: str) -> str:
    """Return the first sentence of a paragraph."""
    flat = " ".join(text.split())
    end = flat.find(". ")
    return flat if end < 0 else flat[: end + 1]
