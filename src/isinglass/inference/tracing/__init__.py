"""Inference step by step."""
