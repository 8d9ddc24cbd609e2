"""Colours of classes: maps of labels, beliefs, what is not observed, and the legend of all.

A belief b over K classes is drawn in the colour of its most probable class, faded to white by what it lacks in
confidence, c = (max b - 1/K) / (1 - 1/K): full colour where it is certain, white where all classes are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isinglass.typing import Array, FloatArray, JsonObject, Mask

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HATCH: JsonObject = {"facecolor": "#fff4d6", "edgecolor": "0.5", "hatch": "//////", "linewidth": 0.0}
_LEGEND = 20  # classes that a legend can show


def colours_of(states: int) -> FloatArray:
    """Return a colour for each class, an array (states, 3) of shares of red, green and blue.

    Examples
    --------
    >>> len(np.unique(colours_of(40), axis=0))
    40
    """
    from matplotlib import colormaps

    if states <= 20:
        base = colormaps["tab10" if states <= 10 else "tab20"]
        return np.array([base(k)[:3] for k in range(states)])
    places = np.arange(states) * (np.sqrt(5) - 1) / 2 % 1  # neighbours far apart, no two the same
    return np.asarray(colormaps["turbo"](np.argsort(np.argsort(places)) / (states - 1))[:, :3])


def picture_of(labels: Array, states: int) -> FloatArray:
    """Return the colours (height, width, 4) of labels; none where a label is below 0, not observed, or no class."""
    known = (labels >= 0) & (labels < states)
    rows = np.where(known, labels, 0).astype(np.int64)
    return np.concatenate([colours_of(states)[rows], known[..., None]], axis=-1)


def faded(beliefs: Array) -> FloatArray:
    """Return the colours (height, width, 3) of beliefs (height, width, states): the less certain, the paler.

    Examples
    --------
    >>> faded(np.array([[[0.25, 0.25, 0.25, 0.25]]])).tolist()
    [[[1.0, 1.0, 1.0]]]
    """
    states = beliefs.shape[-1]
    confidence = (beliefs.max(axis=-1) - 1 / states) / (1 - 1 / states)
    share = np.clip(confidence, 0.0, 1.0)[..., None]
    return np.asarray(1 - share + share * colours_of(states)[beliefs.argmax(axis=-1)])


def hatch(ax: Axes, missing: Mask) -> None:
    """Hatch the pixels (height, width) of which nothing is known; one shape, so that the pattern goes on."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if not missing.any():
        return
    edges = np.diff(np.pad(missing, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, left = np.nonzero(edges == 1)  # runs of pixels in a row
    right = np.nonzero(edges == -1)[1]
    x, y = np.stack([left, right, right, left, left], axis=1) - 0.5, rows[:, None] + np.array([0, 0, 1, 1, 0]) - 0.5
    codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(rows))
    ax.add_patch(PathPatch(Path(np.stack([x.ravel(), y.ravel()], axis=1), codes), **HATCH))


def add_legend(figure: Figure, states: int, missing: bool) -> None:
    """Write below the pictures which colour is which class, where there are not too many."""
    from matplotlib.patches import Patch

    handles = [Patch(color=tuple(colour), label=str(k)) for k, colour in enumerate(colours_of(states))]
    handles = handles if states <= _LEGEND else []
    if missing:
        handles.append(Patch(**HATCH, label="not observed"))
    if handles:
        width = max(1, int(figure.get_size_inches()[0] / 0.55) - 2 * missing)
        figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), width), fontsize=7,
                      frameon=False, handlelength=1.2, columnspacing=1.0)  # fmt: skip
