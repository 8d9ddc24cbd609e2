"""Message passing on regular grids: flooding and sweeps, in planes."""
