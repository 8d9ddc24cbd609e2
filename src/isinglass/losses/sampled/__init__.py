"""Losses whose derivatives are estimates, by Markov chains of each example."""
