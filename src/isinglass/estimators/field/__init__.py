"""Markov random fields: the estimator, the data that it takes, its queries and its statistics."""
