"""How inner loops are compiled, kept on disk, and called."""
