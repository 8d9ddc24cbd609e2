"""Disjoint sets as trees, in plain Python: every member has a parent, and a set is known by its root."""

from __future__ import annotations


def root_of(parent: list[int], i: int) -> int:
    """Return the root of a member's tree; paths become shorter on the way.

    Examples
    --------
    >>> parent = [0, 0, 1, 3]
    >>> root_of(parent, 2), parent
    (0, [0, 0, 0, 3])
    """
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i
