"""Optimizers of max-margin learning: for convex losses with kinks and a squared penalty, with duality gaps."""
