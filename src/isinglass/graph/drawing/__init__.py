"""Drawings of graphs: where things lie, what is drawn, and SVG without any other package."""
