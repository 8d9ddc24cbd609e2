"""Inner loops compiled with Numba. Nothing here checks its input or decides what to run."""
