"""The page of an experiment, whichever it is: its pictures, its curves, its table in bars, the table, the notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from isinglass.pages import Bars, Lines, Note, Part, Pictures, Table
from isinglass.pages.table import leading_number
from isinglass.typing import Array

if TYPE_CHECKING:
    from isinglass.pages.page import Section
    from isinglass_experiments.catalogue import Report

MOST_BARS = 40  # rows of a table that is also shown in bars
MOST_CHARTS = 8  # its columns


def experiment_sections(report: Report, compared: Sequence[str] | None = None) -> list[Section]:
    """Return the sections of a page.

    Parameters
    ----------
    report : Report
    compared : sequence of str, optional
        Columns of the table that are shown in bars; by default all that have numbers, where there are no curves.
    """
    figures: list[Part | str] = [*_curves(report)]
    if compared is not None or not figures:
        figures += _bars(report, compared)
    sections: list[Section] = [("Pictures", _pictures(report)), ("At a glance", figures)]
    sections.append(("Results", [Table(report.columns, report.rows), *(Note(f"{note}.") for note in report.notes)]))
    return [(heading, parts) for heading, parts in sections if parts]


def _pictures(report: Report) -> list[Part | str]:
    if not report.pictures:
        return []
    stacks = [np.asarray(stack) for rows in report.pictures.values() for _, stack in rows]
    starts = {name.partition("-")[0] for name in report.pictures}
    shared = f"{starts.pop()}-" if len(starts) == 1 < len(report.pictures) else ""
    panels = {name.removeprefix(shared): rows for name, rows in report.pictures.items()}
    return [Pictures(panels, label_count(stacks), slider=report.varied or "panel")]


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
    return [
        Lines(plot.lines, plot.across, plot.upwards, _title(report, name), log_x=plot.log, log_y=plot.log)
        for name, plot in report.plots.items()
    ]


def _title(report: Report, name: str) -> str:
    """Return the name of a picture in words, without that of the experiment; if nothing is left, what goes upwards."""
    words = name.replace("-", " ").replace("_", " ").split()
    rest = " ".join(words[1:] if words[:1] == [report.data.get("experiment")] else words) or report.plots[name].upwards
    return f"{rest[:1].upper()}{rest[1:]}"


def _bars(report: Report, compared: Sequence[str] | None) -> list[Part]:
    """Return the columns of the table that have numbers; the columns of text before them are the names of bars."""
    columns = list(map(list, zip(*report.rows, strict=True)))
    if not 1 < len(report.rows) <= MOST_BARS:
        return []
    numbers = [[leading_number(cell) for cell in column] for column in columns]
    numeric = [j > 0 and sum(value is not None for value in column) > 1 for j, column in enumerate(numbers)]
    differ = [len({value for value in column if value is not None}) > 1 for column in numbers]
    first = next((j for j, fine in enumerate(numeric) if fine), 1)
    names = [" ".join(map(str, row[:first])) for row in report.rows]
    wanted = [j for j in range(len(columns)) if numeric[j] and differ[j]]
    wanted = [j for j in wanted if compared is None or report.columns[j] in compared]
    return [
        Bars(names, numbers[j], report.columns[j], [str(cell) for cell in columns[j]]) for j in wanted[:MOST_CHARTS]
    ]
