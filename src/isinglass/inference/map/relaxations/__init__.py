"""Relaxations: upper bounds on the score of every assignment, by reparameterisation and linear programming."""
