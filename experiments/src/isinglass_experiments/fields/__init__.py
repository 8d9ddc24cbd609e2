"""Experiments on learning Markov random fields."""
