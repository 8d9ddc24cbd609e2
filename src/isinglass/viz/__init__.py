"""Pictures by Matplotlib: what draws returns a Figure, which nobody shows or saves but the caller."""

from isinglass.removed import missing_attribute
from isinglass.viz.curves import convergence, lines
from isinglass.viz.drawing import draw
from isinglass.viz.heat import heat_map, reliability_diagram
from isinglass.viz.pictures import marginals, panel

__all__ = ["convergence", "draw", "heat_map", "lines", "marginals", "panel", "reliability_diagram"]
__getattr__ = missing_attribute(__name__)
