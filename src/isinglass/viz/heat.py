"""Tables of numbers as heat maps: weights, confusions; and how far confidences can be believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isinglass.errors import InputError
from isinglass.metrics import Reliability, Report
from isinglass.typing import FloatArray
from isinglass.validation import real_numbers
from isinglass.viz.pictures import figure_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NUMBERS = 16  # rows and columns of a table whose cells have numbers


def heat_map(
    what: Any,
    rows: Sequence[object] | None = None,
    columns: Sequence[object] | None = None,
    *,
    title: str = "",
) -> Figure:
    """Draw a table of numbers in colours: blue where positive, red where negative.

    Parameters
    ----------
    what : array (rows, columns), Report or Explanation
        A report is drawn by its confusion matrix (shares of each true label), an explanation by all its tables.
    rows, columns : sequences, optional
        Names, for an array.
    title : str

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = heat_map([[1.0, -0.5], [0.0, 2.0]], ["a", "b"], ["c", "d"])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['1', '-0.5', '0', '2']
    """
    tables = _tables(what, rows, columns, title)
    sizes = [(0.42 * values.shape[1] + 1.4, 0.36 * values.shape[0] + 0.9) for _, values, _, _ in tables]
    figure = figure_of((sum(w for w, _ in sizes), max(h for _, h in sizes)))
    axes = figure.subplots(1, len(tables), squeeze=False, width_ratios=[w for w, _ in sizes])[0]
    for ax, (name, values, down, across) in zip(axes, tables, strict=True):
        _draw_table(ax, name, values, down, across)
    return figure


def _tables(what: Any, rows: Any, columns: Any, title: str) -> list[tuple[str, FloatArray, list[str], list[str]]]:
    if isinstance(what, Report):
        shares = what.confusion / np.maximum(what.confusion.sum(axis=1, keepdims=True), 1)
        names = [str(label) for label in what.classes]
        return [(title or "true (rows) and predicted", shares, names, names)]
    if isinstance(matrices := getattr(what, "matrices", None), Mapping):
        if not matrices:
            raise InputError("what", "an explanation with tables of neighbours", "one without")
        return [(name, m.values, list(map(str, m.rows)), list(map(str, m.columns))) for name, m in matrices.items()]
    values = real_numbers(what, "what", "an array (rows, columns), a Report or an Explanation")
    if values.ndim != 2 or not values.size:
        raise InputError("what", "an array (rows, columns)", f"shape {values.shape}")
    down, across = (
        [str(k) for k in range(n)] if given is None else [str(name) for name in given]
        for given, n in zip((rows, columns), values.shape, strict=True)
    )
    if (len(down), len(across)) != values.shape:
        raise InputError("rows", f"names of {values.shape} rows and columns", f"{len(down)} and {len(across)}")
    return [(title, values, down, across)]


def _draw_table(ax: Axes, title: str, values: FloatArray, rows: Sequence[str], columns: Sequence[str]) -> None:
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0
    ax.imshow(values, cmap="RdBu", vmin=-1.7 * largest, vmax=1.7 * largest, aspect="auto", interpolation="nearest")
    ax.set_title(title, fontsize=9)
    ax.set_xticks(range(len(columns)), [name[:14] for name in columns], rotation=45, ha="right", fontsize=7)
    ax.set_yticks(range(len(rows)), [name[:14] for name in rows], fontsize=7)
    for label in (*ax.get_xticklabels(), *ax.get_yticklabels()):
        label.set_parse_math(False)  # a dollar in a name is a dollar
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if max(values.shape) <= MOST_NUMBERS:
        for i, j in np.ndindex(*values.shape):
            ax.text(j, i, f"{values[i, j]:.2g}", ha="center", va="center", fontsize=6.5, color="#111111")


def reliability_diagram(found: Report | Reliability, *, title: str = "") -> Figure:
    """Draw how often predictions were right against their confidence; the diagonal is perfect.

    Parameters
    ----------
    found : Report or Reliability
        A report that was made with probabilities, or `isinglass.metrics.reliability`.
    title : str

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from isinglass.metrics import reliability
    >>> figure = reliability_diagram(reliability([0, 1], [[0.8, 0.2], [0.3, 0.7]]))
    >>> figure.axes[0].get_xlabel()
    'confidence'
    """
    bins = found.reliability if isinstance(found, Report) else found
    if not isinstance(bins, Reliability):
        raise InputError("found", "a report with probabilities", "one without", "give proba= to report")
    figure = figure_of((3.4, 3.6))
    ax, below = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    middle, width = (bins.edges[1:] + bins.edges[:-1]) / 2, np.diff(bins.edges)
    some = bins.counts > 0
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=0.9, linestyle="--")
    ax.bar(middle[some], bins.accuracy[some], 0.92 * width[some], color="#1f5fa8", alpha=0.85)
    ax.plot(bins.confidence[some], bins.accuracy[some], "o", color="#e8820c", markersize=3.5)
    ax.set(xlim=(0, 1), ylim=(0, 1), ylabel="share right")
    ax.set_title(title or f"calibration error {bins.error:.3f}", fontsize=9)
    below.bar(middle, bins.counts / max(int(bins.counts.sum()), 1), 0.92 * width, color="0.6")
    below.set(xlabel="confidence", ylabel="share")
    ax.set_xlabel("confidence")
    ax.xaxis.label.set_visible(False)
    for one in (ax, below):
        one.tick_params(labelsize=7)
        one.spines[["top", "right"]].set_visible(False)
    return figure
