"""Cuts: binary pairwise models as minimum cuts of a graph, and moves that solve one after the other."""
