"""Optimizers that take some examples at a time."""
