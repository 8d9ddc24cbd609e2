"""Figures that notebooks show by themselves.

A Matplotlib Figure that was made without pyplot is shown in notebooks only after pyplot has been imported. This one
brings its picture along.
"""

from __future__ import annotations

from base64 import b64encode
from io import BytesIO

from matplotlib.figure import Figure

__all__ = ["ShownFigure"]


class ShownFigure(Figure):
    """A Matplotlib figure with a picture for notebooks and pages.

    Examples
    --------
    >>> ShownFigure(figsize=(1, 1))._repr_html_()[:28]
    '<img alt="" width="100" src='
    """

    def _repr_html_(self) -> str:
        file = BytesIO()
        self.savefig(file, format="png", dpi=200)
        data = b64encode(file.getvalue()).decode("ascii")
        return f'<img alt="" width="{round(100 * self.get_figwidth())}" src="data:image/png;base64,{data}">'
