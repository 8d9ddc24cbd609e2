"""Compiled loops of samplers."""
