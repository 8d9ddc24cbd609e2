"""Colours of variables, such that no factor has two of one colour: the loop of `graph.colouring`."""

from __future__ import annotations

from isinglass.runtime.compilation.jit import compiled


@compiled
def colour_greedily(first, rest, variable, colour, seen):
    """Give each variable, in sequence, the first colour that no earlier neighbour has; return how many there are.

    `seen` holds for each colour the last variable at which a neighbour had it; it begins with -1.
    """
    count = 0
    for i in range(len(colour)):
        for r in range(rest[first[i]], rest[first[i + 1]]):
            if variable[r] < i:
                seen[colour[variable[r]]] = i
        k = 0
        while k < count and seen[k] == i:
            k += 1
        colour[i] = k
        count = max(count, k + 1)
    return count
