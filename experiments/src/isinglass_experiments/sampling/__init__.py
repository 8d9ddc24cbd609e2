"""Experiments with samplers: phase transitions, and a race of samplers and approximations."""
