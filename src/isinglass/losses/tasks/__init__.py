"""Losses of decisions: what a task is judged by, behind a decoder."""
