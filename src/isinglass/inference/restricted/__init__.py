"""Sampling and log Z of restricted Boltzmann machines, layer by layer."""
