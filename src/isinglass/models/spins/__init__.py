"""Models of spins: Ising, Potts, Boltzmann machines, Hopfield networks."""
