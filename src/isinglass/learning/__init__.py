"""Learning: what is minimised, how, and how a long run is kept."""

from isinglass.learning import checkpoint, optimisers

__all__ = ["checkpoint", "optimisers"]
