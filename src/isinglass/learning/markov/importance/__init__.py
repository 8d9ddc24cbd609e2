"""The likelihood by importance sampling from a reference."""
