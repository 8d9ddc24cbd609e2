"""The figure that notebooks show by itself, without pyplot; a file of its own, as it needs Matplotlib."""

from __future__ import annotations

from matplotlib.figure import Figure

from isinglass.pages import Picture


class ShownFigure(Figure):
    """A Matplotlib figure with a picture for notebooks.

    Examples
    --------
    >>> "data:image/png;base64," in ShownFigure(figsize=(1, 1))._repr_html_()
    True
    """

    def _repr_html_(self) -> str:
        return Picture(self).html()
