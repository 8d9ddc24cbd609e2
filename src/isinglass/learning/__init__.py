"""Learning: what is minimised, how, and how a long run is kept."""
