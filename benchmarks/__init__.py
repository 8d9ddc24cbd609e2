"""Benchmarks: ours beside a plain loop and the recorded figures of the peers, in one table."""
