"""Rows of small pictures, such as truth, input and the beliefs of several methods; a press enlarges one.

In the enlarged picture a slider goes through the rows, so that methods are compared in place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import ClassVar

import numpy as np

from isinglass.errors import InputError, require
from isinglass.pages.colours import (
    MISSING,
    beliefs_as_pixels,
    greys_as_pixels,
    label_colours,
    labels_as_pixels,
)
from isinglass.pages.part import Part, framed
from isinglass.pages.png import data_uri, png
from isinglass.pages.steps import stepped
from isinglass.typing import Array

MOST_LABELS = 40  # that a legend has
Rows = Sequence[tuple[str, Array]]


@dataclass(frozen=True, eq=False)
class Pictures(Part):
    """Panels of pictures; of several panels, a slider shows one.

    Parameters
    ----------
    panels : mapping from a name to rows
        A row is its name and an array (n, height, width): numbers in grey, or labels; or (n, height, width, labels):
        beliefs. What is nan, or a label below 0, is marked as not observed.
    labels : int or sequence of str, optional
        Integers are labels, of which there are so many, or which have these names; each has a colour.
    title, slider : str
        The slider's name, such as "noise".

    Examples
    --------
    >>> rows = [("truth", np.eye(4)[None]), ("input", np.ones((1, 4, 4)))]
    >>> Pictures({"digits": rows}).html().count("<img")
    2
    """

    panels: Mapping[str, Rows]
    labels: int | Sequence[str] | None = None
    title: str = ""
    slider: str = "panel"

    figure: ClassVar[bool] = True

    def html(self) -> str:
        """Return the figure."""
        require(self.panels, "panels", "at least one", "none")
        written = {str(name): self._panel(str(name), rows) for name, rows in self.panels.items()}
        names = list(written)
        content = written[names[0]] if len(names) == 1 else stepped(self.slider, names, [*written.values()])
        hint = '<p class="note">Press a picture to enlarge it; there, a slider goes through the rows.</p>'
        return framed(self.title, "".join([content, self._legend(), hint]), wide=True)

    def _names(self) -> list[str]:
        if self.labels is None:
            return []
        return [str(k) for k in range(self.labels)] if isinstance(self.labels, int) else [str(k) for k in self.labels]

    def _panel(self, panel: str, rows: Rows) -> str:
        stacks = [(str(name), _stack(pictures, f"panels[{panel!r}]")) for name, pictures in rows]
        require(stacks, f"panels[{panel!r}]", "at least one row of pictures", "none")
        limits = _limits([pictures for _, pictures in stacks])
        several = len(self.panels) > 1
        parts = [self._row(name, pictures, limits, f"{panel}, " * several) for name, pictures in stacks]
        names = json.dumps([[colour, name] for colour, name in self._colours()])
        look = "pictures single" if all(len(pictures) == 1 for _, pictures in stacks) else "pictures"
        return f'<div class="{look}" data-labels="{escape(names)}">{"".join(parts)}</div>'

    def _row(self, name: str, pictures: Array, limits: tuple[float, float], before: str) -> str:
        found = []
        for k, picture in enumerate(pictures):
            pixels, grey = self._pixels(picture, limits)
            ends = f' data-low="{limits[0]:.9g}" data-high="{limits[1]:.9g}"' if grey else ""
            alt = escape(f"{before}{name}, {k + 1} of {len(pictures)}")
            found.append(f'<button type="button"><img alt="{alt}" src="{data_uri(png(pixels))}"{ends}></button>')
        strip = f'<div class="strip" style="--n:{len(pictures)}">{"".join(found)}</div>'
        return f'<div class="row"><div class="name">{escape(name)}</div>{strip}</div>'

    def _pixels(self, picture: Array, limits: tuple[float, float]) -> tuple[Array, bool]:
        """Return a picture as bytes, and whether its greys are values."""
        if picture.ndim == 3:
            return beliefs_as_pixels(picture), False
        if self.labels is not None and picture.dtype.kind in "iu":
            return labels_as_pixels(picture, len(self._names())), False
        return greys_as_pixels(picture.astype(np.float64), *limits), True

    def _colours(self) -> list[tuple[str, str]]:
        names = self._names()
        return list(zip(label_colours(len(names)), names, strict=True))

    def _legend(self) -> str:
        shown = self._colours()
        if not 0 < len(shown) <= MOST_LABELS:
            return ""
        stacks = [np.asarray(pictures) for rows in self.panels.values() for _, pictures in rows]
        if any(stack.dtype.kind in "iu" and bool((stack < 0).any()) for stack in stacks):
            shown.append((MISSING, "not observed"))
        entries = [f'<span><i style="background:{colour}"></i>{escape(name)}</span>' for colour, name in shown]
        return f'<div class="legend">{"".join(entries)}</div>'


def _stack(pictures: Array, argument: str) -> Array:
    array = np.asarray(pictures)
    if array.ndim not in (3, 4) or not array.size or array.dtype.kind not in "biuf":
        expected = "real numbers (n, height, width) or beliefs (n, height, width, labels)"
        raise InputError(argument, expected, f"{array.dtype} {array.shape}")
    return array


def _limits(stacks: Sequence[Array]) -> tuple[float, float]:
    """Return the values that are white and black: 0 and 1, or the least and the largest, if some are beyond."""
    values = np.concatenate([np.asarray(s, np.float64).ravel() for s in stacks if s.ndim == 3] or [np.zeros(1)])
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    return (low, high) if low < 0 or high > 1 else (0.0, 1.0)
