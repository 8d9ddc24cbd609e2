"""Arithmetic that other loops are made of: semirings, runs of numbers, powers, matrix products."""
