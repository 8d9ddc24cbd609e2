"""How threads share the work on a graph.

The partition depends on the graph alone, never on the number of threads, and neither does the order of sums: so any
number of threads gives the same bits. A small component is worked on by one thread. A large one is cut into blocks:
rows of a grid, or ranges of variables and of links. Where several blocks add to one number, each has a copy of its own,
and the copies are added up in their order.

What is computed entry by entry, or is a maximum, has the same bits however it is cut: ranges of flat arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from isinglass.runtime.threads import ThreadMap
from isinglass.typing import Array

BLOCK = 2**18  # entries of tables that a block of a large component has at least: a fraction of a millisecond
LARGE = 4  # a component with work for fewer blocks is small
BLOCKS = 64  # of a component, or pieces of a batch, at most
RANGE = 2**16  # entries of a range at least


def block_count(work: int) -> int:
    """Return the number of blocks of a component whose tables have so many entries; one if it is small.

    Examples
    --------
    >>> block_count(1000), block_count(10 * BLOCK), block_count(10**12)
    (1, 10, 64)
    """
    return min(BLOCKS, work // BLOCK) if work >= LARGE * BLOCK else 1


def cut(length: int, count: int) -> list[tuple[int, int]]:
    """Cut a length into ranges of about equal size, none of them empty.

    Examples
    --------
    >>> cut(10, 3), cut(2, 3)
    ([(0, 3), (3, 6), (6, 10)], [(0, 1), (1, 2)])
    """
    count = max(1, min(length, count))
    return list(pairwise(length * i // count for i in range(count + 1)))


def in_ranges(spread: ThreadMap, length: int, function: Callable[[int, int], object], least: int = RANGE) -> None:
    """Call a function with the bounds of ranges; what it does must not depend on how they are cut."""
    count = 1 if spread.threads == 1 else min(BLOCKS, length // least)
    spread(function, cut(length, count))


def fill(spread: ThreadMap, out: Array, value: float) -> None:
    """Fill a contiguous array."""
    flat = out.reshape(-1)
    in_ranges(spread, flat.size, lambda first, last: flat[first:last].fill(value))


def copy(spread: ThreadMap, out: Array, values: Array | float) -> None:
    """Copy values into an array of any strides."""
    _along(spread, out, values, lambda one, two: np.copyto(one, two))


def add(spread: ThreadMap, out: Array, values: Array) -> None:
    """Add values to an array of any strides."""
    _along(spread, out, values, lambda one, two: np.add(one, two, out=one))


def _along(spread: ThreadMap, out: Array, values: Array | float, function: Callable[[Array, Array], object]) -> None:
    """Call a function with parts of two arrays, cut along the longest axis but the last (or along the only one)."""
    given = np.broadcast_to(values, out.shape)
    axis = int(np.argmax(out.shape[:-1])) if out.ndim > 1 else 0
    count = 1 if spread.threads == 1 or not out.size else min(BLOCKS, out.size // RANGE)

    def part(first: int, last: int) -> None:
        where = (slice(None),) * axis + (slice(first, last),)
        function(out[where], given[where])

    spread(part, cut(out.shape[axis] if out.ndim else 1, count))
