"""Whether chains have converged."""
