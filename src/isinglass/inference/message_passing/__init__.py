"""Belief propagation and its relatives: one engine for every schedule, semiring and counting number."""
