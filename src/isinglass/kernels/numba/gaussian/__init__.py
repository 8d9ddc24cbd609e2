"""Gaussian fields: selected inversion and half solves of a sparse factor."""
