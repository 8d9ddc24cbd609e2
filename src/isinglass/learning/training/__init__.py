"""A training run: choices, the problem that they make, the loop, stages."""
