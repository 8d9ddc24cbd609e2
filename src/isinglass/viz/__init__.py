"""Pictures: every function returns a matplotlib Figure, which nobody shows or saves but the caller."""

from isinglass.viz.pictures import marginals, panel

__all__ = ["marginals", "panel"]
