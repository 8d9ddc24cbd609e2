"""The page of an experiment, whichever it is: its pictures, its curves, the table, the notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from isinglass.cli.pages import drawn
from isinglass.pages import Part, Pictures, Steps, Table
from isinglass.typing import Array
from isinglass.viz import lines

if TYPE_CHECKING:
    from isinglass.pages import Section
    from isinglass_experiments.catalogue import Report


def experiment_sections(report: Report) -> list[Section]:
    """Return the sections of a page."""
    sections: list[Section] = [("Pictures", _pictures(report)), ("At a glance", _curves(report))]
    sections.append(("Results", [Table(report.columns, report.rows), *(f"{note}." for note in report.notes)]))
    return [(heading, parts) for heading, parts in sections if parts]


def _pictures(report: Report) -> list[Part]:
    if not report.pictures:
        return []
    states = label_count([np.asarray(stack) for rows in report.pictures.values() for _, stack in rows])
    starts = {name.partition("-")[0] for name in report.pictures}
    shared = f"{starts.pop()}-" if len(starts) == 1 < len(report.pictures) else ""
    panels = {name.removeprefix(shared): Pictures(rows, states) for name, rows in report.pictures.items()}
    if len(panels) == 1:
        return [*panels.values()]
    return [Steps(report.varied or "panel", [*panels], [[panel] for panel in panels.values()])]


def label_count(stacks: Sequence[Array]) -> int | None:
    """Return how many labels there are, where all pictures are maps of more than two; None where they are grey.

    Examples
    --------
    >>> label_count([np.array([[[0, 3]]])]), label_count([np.array([[[0, 1]]])]), label_count([np.zeros((1, 1, 1))])
    (4, None, None)
    """
    most = max(int(np.max(stack)) for stack in stacks) + 1
    return most if most > 2 and all(stack.dtype.kind in "iu" for stack in stacks) else None


def _curves(report: Report) -> list[Part]:
    return [_curve(report, name) for name in report.plots]


def _curve(report: Report, name: str) -> Part:
    plot = report.plots[name]
    rows = [[line, x, y] for line, (xs, ys) in plot.lines.items() for x, y in zip(xs, ys, strict=True)]
    table = Table(["", plot.across, plot.upwards], rows, _title(report, name))
    return drawn(lambda: lines(plot.lines, plot.across, plot.upwards, log=plot.log), table)


def _title(report: Report, name: str) -> str:
    """Return the name of a picture in words, without that of the experiment; if nothing is left, what goes upwards."""
    words = name.replace("-", " ").replace("_", " ").split()
    rest = " ".join(words[1:] if words[:1] == [report.data.get("experiment")] else words) or report.plots[name].upwards
    return f"{rest[:1].upper()}{rest[1:]}"
