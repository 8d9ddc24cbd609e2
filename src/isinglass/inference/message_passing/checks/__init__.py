"""Checks at the end of a run: the possible range of log Z, and whether the fixed point is stable."""
