"""Pages: one self-contained HTML file of text, tables and pictures, light and dark, that needs no network.

A page is a title and sections; a section is a heading and parts. All text is escaped. The content security policy lets
the script of the sliders run and no other, and nothing be loaded from elsewhere. Pictures are PNG files in the page;
arrays become such without any other package, and charts are figures of Matplotlib.

Labels have a colour each. A belief b over K labels has the colour of its most probable label, faded to white by what it
lacks in confidence, c = (max b - 1/K) / (1 - 1/K).
"""

from __future__ import annotations

import base64
import colorsys
import hashlib
import io
import os
import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from isinglass.errors import InputError, require
from isinglass.io.files import PathLike, checked_path, shown_path, write_bytes_atomically
from isinglass.removed import RemovedOptions, missing_attribute
from isinglass.typing import Array

__all__ = ["Code", "Part", "Picture", "Pictures", "Steps", "Table", "html_page", "page_of"]
__getattr__ = missing_attribute(__name__)

MARK = "<!-- isinglass page -->"
_COLOURS = (
    "#1f77b4",
    "#ff7f0e",
    "#2ca02c",
    "#d62728",
    "#9467bd",
    "#8c564b",
    "#e377c2",
    "#7f7f7f",
    "#bcbd22",
    "#17becf",
)
MISSING = "#ffe9a8"  # not observed
_MOST_LABELS = 40  # that a legend has
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1, p, figcaption { overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.2; }
h2 { font-size: 1.15rem; margin-top: 2rem; }
figure { margin: .8rem 0; overflow-x: auto; }
figcaption { font-weight: 600; }
img { display: block; max-width: max(100%, 36rem); height: auto; background: #fff; }
img.pixels { image-rendering: pixelated; width: 100%; }
.scroll { overflow: auto; max-height: 36rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .9rem .2rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid #8886; }
.number { text-align: right; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.steps > label { display: flex; flex-wrap: wrap; gap: .7rem; align-items: center; }
.steps input { flex: 1 1 10rem; max-width: 26rem; }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin: 0 .3rem 0 .8rem; }
footer { margin-top: 2rem; border-top: 1px solid #8886; font-size: .9rem; }
@media (max-width: 30rem) { th, td { padding-right: .45rem; } }
@media (prefers-color-scheme: dark) { body { background: #14171c; color: #e6e9ee; } }
"""
_SCRIPT = """
for (const steps of document.querySelectorAll(".steps")) {
  const slider = steps.querySelector("input"), parts = steps.querySelectorAll("[data-step]");
  const show = () => { for (const part of parts) part.hidden = part.dataset.step !== slider.value; };
  slider.addEventListener("input", show);
  show();
}
"""
_DIGEST = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
_HEAD = f"""<!DOCTYPE html>
{MARK}
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{_DIGEST}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{_STYLE}</style>
"""
_END = f"""
<script>{_SCRIPT}</script>
</body>
</html>
"""


class Part(RemovedOptions, ABC):
    """A part of a section: it writes itself as HTML, and escapes the text that it was given."""

    @abstractmethod
    def html(self) -> str:
        """Return it as HTML."""


Section = tuple[str, Sequence[Any]]


def page_of(title: str, sections: Iterable[Section], *, lead: str = "", below: Sequence[Any] = ()) -> str:
    """Return a page.

    Parameters
    ----------
    title : str
    sections : iterable of (heading, parts)
        A part is text (an empty line begins a new paragraph), a `Part` such as `Table`, or a figure of Matplotlib.
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
    body = [f"<h1>{escape(title)}</h1>", _paragraphs(lead)]
    for i, section in enumerate(sections):
        if not isinstance(section, tuple | list) or len(section) != 2 or not isinstance(section[0], str):
            raise InputError(f"sections[{i}]", "a heading and a sequence of parts", repr(section)[:80])
        heading, parts = section
        head = [f"<h2>{escape(heading)}</h2>"] if heading else []
        body += ["<section>", *head, *_written(parts, f"sections[{i}][1]"), "</section>"]
    if below:
        body += ["<footer>", *_written(below, "below"), "</footer>"]
    page = "\n".join([f"{_HEAD}<title>{escape(title)}</title>\n</head>\n<body>", *body]) + _END
    return page.encode("utf-8", "xmlcharrefreplace").decode()  # a lone surrogate is no UTF-8


def html_page(title: str, sections: Iterable[Section], path: PathLike) -> None:
    """Write a page to a file, all or nothing; it takes the place of a page of ours, and of no other file.

    Parameters
    ----------
    title : str
    sections : iterable of (heading, parts)
        See `page_of`.
    path : str or os.PathLike

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     html_page("Noise", [("Errors", [Table(["method"], [["bp"]])])], f"{folder}/page.html")
    """
    write_page(page_of(title, sections), path)


def write_page(page: str, path: PathLike) -> None:
    """Write a page to a file; see `html_page`."""
    require_own(path, "path")
    write_bytes_atomically(path, page.encode())


def require_own(path: PathLike, argument: str) -> None:
    """Refuse a file that is there and is no page of ours, and a link to anything else."""
    name = checked_path(path)
    link = os.path.islink(name) and not name.startswith("/dev/")
    if os.path.isfile(name) or link:
        with open(name if os.path.exists(name) else os.devnull, "rb") as file:
            head = file.read(200)
        if (head or link) and MARK.encode() not in head:
            expected = "a place for a page, or a page of isinglass, which is replaced"
            raise InputError(
                argument, expected, f"another file, {shown_path(path)}", "move it, or choose another place"
            )


def _written(parts: object, argument: str) -> list[str]:
    """Return parts as HTML."""
    if isinstance(parts, str) or not isinstance(parts, Sequence):
        raise InputError(argument, "a sequence of parts", type(parts).__name__, "put a single part in a list")
    found = []
    for i, part in enumerate(parts):
        try:
            if isinstance(part, str):
                found.append(_paragraphs(part))
            elif isinstance(part, Part) or hasattr(part, "savefig"):
                found.append((part if isinstance(part, Part) else Picture(part)).html())
            else:
                raise InputError("", "text, a Table, a figure or another part of a page", type(part).__name__)
        except InputError as error:
            where = ".".join([f"{argument}[{i}]", *filter(None, [error.argument])])
            raise InputError(where, error.expected, error.got, error.remedy) from None
    return found


def _paragraphs(text: str) -> str:
    return "\n".join(f"<p>{escape(part.strip())}</p>" for part in text.split("\n\n") if part.strip())


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
        """Return the text."""
        return f"<pre><code>{escape(self.text)}</code></pre>"


@dataclass(frozen=True)
class Table(Part):
    """A table.

    Parameters
    ----------
    columns : sequence of str
        The heads.
    rows : sequence of sequences
        One value for each column; a float is written with four significant digits, None as a dash.
    caption : str

    Examples
    --------
    >>> Table(["method", "error"], [["bp", 0.0599123]]).html().count("0.05991")
    1
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""

    def html(self) -> str:
        """Return the table; columns of numbers are aligned at the right."""
        for i, row in enumerate(self.rows):
            require(len(row) == len(self.columns), f"rows[{i}]", f"{len(self.columns)} values", f"{len(row)}")
        looks = [' class="number"' * _numeric([row[j] for row in self.rows]) for j in range(len(self.columns))]
        heads = [
            f'<th scope="col"{look}>{escape(str(name))}</th>' for name, look in zip(self.columns, looks, strict=True)
        ]
        head = f"<thead><tr>{''.join(heads)}</tr></thead>" if any(self.columns) else ""
        lines = [
            "".join(f"<td{look}>{escape(_text(value))}</td>" for value, look in zip(row, looks, strict=True))
            for row in self.rows
        ]
        body = "\n".join(f"<tr>{line}</tr>" for line in lines)
        caption = f"<figcaption>{escape(self.caption)}</figcaption>" if self.caption else ""
        return f'<figure>{caption}<div class="scroll"><table>{head}<tbody>\n{body}\n</tbody></table></div></figure>'


def _text(value: object) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def _numeric(column: Sequence[object]) -> bool:
    """Tell whether a column has numbers, and nothing else."""
    known = [value for value in column if value is not None]
    return bool(known) and all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in known)


@dataclass(frozen=True, eq=False)
class Picture(Part):
    """One picture: a figure of Matplotlib, or bytes 0-255 in an array (height, width) or (height, width, 3).

    Examples
    --------
    >>> Picture(np.zeros((2, 3), np.uint8), "nothing").html().count("<img")
    1
    """

    what: Any
    title: str = ""

    def html(self) -> str:
        """Return the picture."""
        if hasattr(self.what, "savefig"):
            file = io.BytesIO()
            self.what.savefig(file, format="png", dpi=150)
            size = f'width="{round(100 * self.what.get_figwidth())}"'
            axes = [ax.get_title() or ax.get_ylabel() for ax in self.what.axes]
            return _figure(self.title, file.getvalue(), size, self.title or ", ".join(filter(None, axes)))
        return _figure(self.title, png(self.what), 'class="pixels"', self.title)


@dataclass(frozen=True, eq=False)
class Pictures(Part):
    """Rows of small pictures, such as truth, input and the beliefs of several methods.

    Parameters
    ----------
    rows : sequence of (name, array)
        An array (n, height, width): numbers in grey, or labels; or (n, height, width, labels): beliefs. What is nan, or
        a label below 0, is marked as not observed.
    labels : int or sequence of str, optional
        Integers are labels, of which there are so many, or which have these names; each has a colour.

    Examples
    --------
    >>> Pictures([("truth", np.eye(4)[None]), ("input", np.ones((1, 4, 4)))]).html().count("<img")
    2
    """

    rows: Sequence[tuple[str, Array]]
    labels: int | Sequence[str] | None = None

    def html(self) -> str:
        """Return a strip of pictures for each row, and the colours of labels."""
        found = []
        for (name, stack), strip in zip(self.rows, self.strips(), strict=True):
            look = f'class="pixels" style="max-width:{max(14, 7 * len(stack))}rem"'
            found.append(_figure(str(name), png(strip), look, str(name)))
        names = self._names()
        shown = list(zip(label_colours(len(names)), names, strict=True)) if len(names) <= _MOST_LABELS else []
        if any(self._unobserved(np.asarray(stack)).any() for _, stack in self.rows):
            shown.append((MISSING, "not observed"))
        entries = "".join(f'<i style="background:{colour}"></i>{escape(name)}' for colour, name in shown)
        return "\n".join([*found, *([f'<p class="legend">{entries}</p>'] if shown else [])])

    def strips(self) -> list[Array]:
        """Return each row as bytes (height, width, 3), its pictures side by side."""
        require(not isinstance(self.rows, Mapping), "rows", "a sequence of names and arrays", "a mapping")
        stacks = [_stack(np.asarray(stack), f"rows[{i}]") for i, (_, stack) in enumerate(self.rows)]
        require(stacks, "rows", "at least one row of pictures", "none")
        greys = [s[np.isfinite(s)] for s in stacks if s.ndim == 3 and not self._are_labels(s)]
        low, high = min([0.0, *(s.min() for s in greys if s.size)]), max([1.0, *(s.max() for s in greys if s.size)])
        found = []
        for stack in stacks:
            if stack.ndim == 4:
                colours = beliefs_as_pixels(stack)
            elif self._are_labels(stack):
                colours = labels_as_pixels(stack, len(self._names()))
            else:
                share = (np.where(np.isfinite(stack), stack, low) - low) / (high - low)
                colours = np.repeat(np.rint(255 * (1 - share))[..., None], 3, axis=-1)
                colours[self._unobserved(stack)] = _rgb([MISSING])[0]
            gap = max(1, stack.shape[2] // 14)
            framed = np.pad(colours.astype(np.uint8), ((0, 0), (0, 0), (0, gap), (0, 0)), constant_values=255)
            found.append(np.concatenate(list(framed), axis=1)[:, :-gap])
        return found

    def _names(self) -> list[str]:
        return list(map(str, range(self.labels) if isinstance(self.labels, int) else self.labels or ()))

    def _are_labels(self, stack: Array) -> bool:
        return self.labels is not None and stack.dtype.kind in "iu"

    def _unobserved(self, stack: Array) -> Array:
        return np.asarray(stack < 0) if self._are_labels(stack) else ~np.isfinite(stack)


@dataclass(frozen=True)
class Steps(Part):
    """A slider that shows one step of several: iterations, noise levels, methods.

    Parameters
    ----------
    label : str
        What the steps are.
    names : sequence of str
        What is said at each step.
    contents : sequence of sequences of parts
        What is shown at each step.

    Examples
    --------
    >>> Steps("noise", ["10%", "50%"], [["a"], ["b"]]).html().count("data-step")
    2
    """

    label: str
    names: Sequence[str]
    contents: Sequence[Sequence[Any]]

    def html(self) -> str:
        """Return the slider and the steps."""
        require(len(self.names) == len(self.contents), "contents", f"one for each of {len(self.names)} names",
                f"{len(self.contents)}")  # fmt: skip
        slider = f'<input type="range" min="0" max="{len(self.names) - 1}" value="0">'
        found = [f'<div class="steps"><label>{escape(self.label)} {slider}</label>']
        for k, (name, parts) in enumerate(zip(self.names, self.contents, strict=True)):
            shown = "\n".join(_written(parts, f"contents[{k}]"))
            found.append(f'<div data-step="{k}"><p>{escape(str(name))}</p>\n{shown}</div>')
        return "\n".join([*found, "</div>"])


def label_colours(count: int) -> list[str]:
    """Return a colour for each label.

    Examples
    --------
    >>> label_colours(2), len(set(label_colours(60)))
    (['#1f77b4', '#ff7f0e'], 60)
    """
    if count <= len(_COLOURS):
        return list(_COLOURS[:count])
    hues = [(k * (5**0.5 - 1) / 2 % 1, 0.75 - 0.25 * (k % 3), 0.85 - 0.2 * (k % 2)) for k in range(count)]
    return ["#" + "".join(f"{round(255 * share):02x}" for share in colorsys.hsv_to_rgb(*hue)) for hue in hues]


def labels_as_pixels(labels: Array, count: int) -> Array:
    """Return the colours of labels, numbers 0-255 in an array (..., 3); below 0 is not observed."""
    known = (labels >= 0) & (labels < count)
    return _rgb([*label_colours(count), MISSING])[np.where(known, labels, count).astype(np.int64)]


def beliefs_as_pixels(beliefs: Array) -> Array:
    """Return the colours of beliefs (..., labels), numbers 0-255 in an array (..., 3): the less certain, the paler.

    Examples
    --------
    >>> beliefs_as_pixels(np.array([0.25, 0.25, 0.25, 0.25])).tolist()
    [255.0, 255.0, 255.0]
    """
    count = beliefs.shape[-1]
    share = np.clip((beliefs.max(axis=-1) - 1 / count) / (1 - 1 / count), 0.0, 1.0)[..., None]
    return np.asarray(255 + share * (_rgb(label_colours(count))[beliefs.argmax(axis=-1)] - 255))


def png(pixels: Array) -> bytes:
    r"""Return bytes 0-255, (height, width) of greys or (height, width, 3) of colours, as a PNG file (ISO/IEC 15948).

    Examples
    --------
    >>> png(np.zeros((2, 3), np.uint8))[:4]
    b'\x89PNG'
    """
    array = np.asarray(pixels)
    if not array.size or array.dtype != np.uint8 or (array.ndim != 2 and (array.ndim != 3 or array.shape[2] != 3)):
        raise InputError("pixels", "bytes (height, width) or (height, width, 3)", f"{array.dtype} {array.shape}")
    height, width = array.shape[:2]
    lines = np.pad(array.reshape(height, -1), ((0, 0), (1, 0)))  # each begins with "no filter"
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if array.ndim == 2 else 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    packed = [struct.pack(">I", len(data)) + k + data + struct.pack(">I", zlib.crc32(k + data)) for k, data in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def _figure(title: str, image: bytes, look: str, alt: str) -> str:
    caption = f"<figcaption>{escape(title)}</figcaption>" if title else ""
    source = f"data:image/png;base64,{base64.b64encode(image).decode()}"
    return f'<figure>{caption}<img {look} alt="{escape(alt)}" src="{source}"></figure>'


def _stack(array: Array, argument: str) -> Array:
    if array.ndim not in (3, 4) or not array.size or array.dtype.kind not in "biuf":
        expected = "real numbers (n, height, width) or beliefs (n, height, width, labels)"
        raise InputError(argument, expected, f"{array.dtype} {array.shape}")
    return array


def _rgb(colours: Sequence[str]) -> Array:
    return np.array([[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in colours], np.float64)
