"""Exact inference on linear chains."""
