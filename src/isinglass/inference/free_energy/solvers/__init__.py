"""The ways in which a convex free energy is minimised, a file each."""
