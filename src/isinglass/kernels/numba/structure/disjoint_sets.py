"""Disjoint sets as trees: every member has a parent, and a set is known by the root of its tree."""

from __future__ import annotations

from isinglass.runtime.compilation.jit import inner


@inner
def root_of(parent, i):
    """Return the root of a member's tree; paths become shorter on the way."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i
