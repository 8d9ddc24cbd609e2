"""Exact inference on a bucket tree: sums, samples and best assignments."""
