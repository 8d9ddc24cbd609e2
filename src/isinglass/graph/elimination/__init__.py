"""Elimination orders and the bucket trees that they give."""
