"""What samples say of parameters: the Fisher information, and cells that lose all their mass."""
