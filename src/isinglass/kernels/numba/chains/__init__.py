"""Chains with one transition table: forward-backward, best paths, sparse features."""
