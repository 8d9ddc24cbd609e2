"""Samplers: Markov chains whose states have the distribution of the model in the long run."""
