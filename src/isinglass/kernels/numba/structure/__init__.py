"""Loops over the structure of a graph: elimination, blocks, spanning trees."""
