"""Exact inference by elimination."""
