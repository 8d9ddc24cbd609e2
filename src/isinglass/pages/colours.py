"""Pictures in colours or greys: labels have a colour each, and beliefs that of the most probable one, paler if unsure.

A belief b over K labels is drawn in the colour of its most probable label, faded to white by what it lacks in
confidence, c = (max b - 1/K) / (1 - 1/K), as `isinglass.viz.panel` does.
"""

from __future__ import annotations

import colorsys

import numpy as np

from isinglass.typing import Array, FloatArray

_FIRST = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf")
MISSING = "#ffe9a8"  # not observed


def label_colours(count: int) -> list[str]:
    """Return a colour for each label.

    Examples
    --------
    >>> label_colours(2)
    ['#1f77b4', '#ff7f0e']
    >>> len(set(label_colours(30)))
    30
    """
    if count <= len(_FIRST):
        return list(_FIRST[:count])
    hues = [(k * (5**0.5 - 1) / 2 % 1, 0.75 - 0.25 * (k % 3), 0.85 - 0.2 * (k % 2)) for k in range(count)]
    return [_hex(colorsys.hsv_to_rgb(*hue)) for hue in hues]


def labels_as_pixels(labels: Array, count: int) -> Array:
    """Return bytes (height, width, 3): the colour of each label; below 0 is not observed."""
    table = _bytes([*label_colours(count), MISSING])
    known = (labels >= 0) & (labels < count)
    return np.asarray(table[np.where(known, labels, count).astype(np.int64)].astype(np.uint8))


def beliefs_as_pixels(beliefs: Array) -> Array:
    """Return bytes (height, width, 3) of beliefs (height, width, labels): the less certain, the paler."""
    count = beliefs.shape[-1]
    share = np.clip((beliefs.max(axis=-1) - 1 / count) / (1 - 1 / count), 0.0, 1.0)[..., None]
    full = _bytes(label_colours(count))[beliefs.argmax(axis=-1)]
    return np.asarray(np.rint(255 + share * (full - 255)).astype(np.uint8))


def greys_as_pixels(values: Array, low: float, high: float) -> Array:
    """Return bytes: white at `low`, black at `high`, as ink on paper; coloured where a value is missing."""
    missing = ~np.isfinite(values)
    share = np.clip((np.where(missing, low, values) - low) / ((high - low) or 1.0), 0.0, 1.0)
    grey = np.rint(255 * (1 - share)).astype(np.uint8)
    if not missing.any():
        return np.asarray(grey)
    colours = np.repeat(grey[..., None], 3, axis=-1)
    colours[missing] = _bytes([MISSING])[0].astype(np.uint8)
    return colours


def _bytes(colours: list[str]) -> FloatArray:
    return np.array([[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in colours], np.float64)


def _hex(shares: tuple[float, float, float]) -> str:
    return "#" + "".join(f"{round(255 * share):02x}" for share in shares)
