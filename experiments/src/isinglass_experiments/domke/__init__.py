"""Experiments of J. Domke, *Tractable Learning and Inference in High-Treewidth Graphical Models* (2009)."""
