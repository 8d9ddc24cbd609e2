"""What the end of a run is worth: the range of log Z, and whether the fixed point is stable."""
