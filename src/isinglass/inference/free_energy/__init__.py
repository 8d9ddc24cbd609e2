"""Minimisation of a convex free energy."""
