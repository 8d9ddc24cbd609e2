"""What the library needs of the machine: compiled loops, threads, memory, caches, Ctrl-C."""
