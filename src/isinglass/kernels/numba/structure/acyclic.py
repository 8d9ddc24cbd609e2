"""A greedy forest, with disjoint sets."""

from __future__ import annotations

from isinglass.runtime.compilation.jit import cold, compiled


@compiled
def take_acyclic(first, variables, order, parent, taken):
    """Take scopes in an order, each if its variables lie in different trees so far."""
    for f in order:
        cyclic = False
        for slot in range(first[f], first[f + 1]):
            root = root_of(parent, variables[slot])
            for other in range(first[f], slot):
                cyclic |= root_of(parent, variables[other]) == root
        if not cyclic:
            taken[f] = True
            for slot in range(first[f] + 1, first[f + 1]):
                parent[root_of(parent, variables[slot])] = root_of(parent, variables[first[f]])


@cold
def root_of(parent, v):
    """Find the root of a tree, halving the path."""
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v
