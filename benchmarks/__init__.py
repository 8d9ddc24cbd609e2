"""Benchmarks: ours beside a plain loop in C, PGMax, and the recorded figures of other libraries."""
