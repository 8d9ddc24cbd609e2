"""Importance sampling and annealed importance sampling: log Z with standard errors."""
