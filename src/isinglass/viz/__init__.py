"""Pictures and pages: what draws returns a Matplotlib Figure, which nobody shows or saves but the caller."""

from isinglass.viz.curves import convergence, lines
from isinglass.viz.drawing import draw
from isinglass.viz.pages import Table, html_page
from isinglass.viz.pictures import marginals, panel

__all__ = ["Table", "convergence", "draw", "html_page", "lines", "marginals", "panel"]
