"""Pictures and pages: what draws returns a Matplotlib Figure, which nobody shows or saves but the caller."""

from isinglass.pages import Table
from isinglass.viz.curves import convergence, lines
from isinglass.viz.drawing import draw
from isinglass.viz.heat import heat_map, reliability_diagram
from isinglass.viz.pages import html_page
from isinglass.viz.pictures import marginals, panel

__all__ = [
    "Table",
    "convergence",
    "draw",
    "heat_map",
    "html_page",
    "lines",
    "marginals",
    "panel",
    "reliability_diagram",
]
