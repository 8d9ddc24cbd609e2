"""Convex free energies: Newton steps, sparse factorisations, messages."""
