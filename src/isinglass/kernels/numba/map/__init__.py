"""Inner loops of solvers for most probable assignments."""
