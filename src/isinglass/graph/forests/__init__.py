"""Spanning forests of a graph: how likely an edge is in one, and clusters that are trees."""
