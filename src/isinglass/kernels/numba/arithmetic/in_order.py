"""Pieces of work that threads make in any order, and that others add up in order, while they are in a cache.

A thread takes the next piece (`take_piece`), makes it, and tells that it is made (`tell_made`). Some pieces in a row
are a group. What is added up has several parts, such as ranges of a vector. A part takes the groups in their order, so
that its sums have the same bits for any number of threads; different parts are worked on side by side. Whoever has made
a piece then looks at all parts: it claims one that nobody has (`claim`), and goes on with it as long as its next group
is made (`go_on`). Nobody waits for a part. Where another thread has it, that one looks once more after it has let it
go, and so finds the group.

Pieces are taken in order, and each is made by the loop that took it. So when all loops have ended, every group is in
every part; also, whoever waits for the oldest group (`oldest`) waits for a loop that runs.

`queue` is an array of zeros at first, but for the numbers of pieces, of parts, and of pieces in a group:

    queue[TAKEN]                   how many pieces were taken
    queue[PIECES], queue[PARTS], queue[GROUP]
    queue[LINE (j + 1)]            which group part j is at, and in the next entry, whether a thread has it
    queue[LINE (parts + 1) + g]    how many pieces of group g are made
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.together import exchange, fetch_and_add, look
from isinglass.runtime.compilation.jit import cold
from isinglass.typing import IntArray

TAKEN, PIECES, PARTS, GROUP = 0, 1, 2, 3
LINE = 8  # numbers of a line of the cache, which threads had better not share


def new_queue(pieces: int, parts: int, group: int) -> IntArray:
    """Return the array for so many pieces, each of which goes into so many parts, so many at a time."""
    queue = np.zeros(LINE * (parts + 1) + -(-pieces // group), np.int64)
    queue[PIECES], queue[PARTS], queue[GROUP] = pieces, parts, group
    return queue


@cold
def take_piece(queue):
    """Take the next piece; one beyond the last if there is none."""
    return fetch_and_add(queue, TAKEN, 1) if look(queue, TAKEN) < queue[PIECES] else queue[PIECES]


@cold
def tell_made(queue, group):
    """Tell that a piece of a group is made."""
    fetch_and_add(queue, LINE * (queue[PARTS] + 1) + group, 1)


@cold
def is_made(queue, group):
    """Tell whether there is such a group, and whether all its pieces are made."""
    pieces = min(queue[GROUP], queue[PIECES] - group * queue[GROUP])
    return pieces > 0 and look(queue, LINE * (queue[PARTS] + 1) + group) == pieces


@cold
def claim(queue, part):
    """Return the group that a part is at; -1 if it is not made yet, or another thread has the part."""
    at = LINE * (part + 1)
    while is_made(queue, look(queue, at)):
        if exchange(queue, at + 1, 1) != 0:
            return -1
        group = look(queue, at)
        if is_made(queue, group):
            return group
        exchange(queue, at + 1, 0)
    return -1


@cold
def go_on(queue, part, group):
    """Tell that a group is in a part; return the next one, or let the part go and return -1."""
    at = LINE * (part + 1)
    exchange(queue, at, group + 1)
    if is_made(queue, group + 1):
        return group + 1
    exchange(queue, at + 1, 0)
    return claim(queue, part)


@cold
def oldest(queue):
    """Return the first group that is not in all parts yet."""
    group = queue[PIECES]
    for part in range(queue[PARTS]):
        group = min(group, look(queue, LINE * (part + 1)))
    return group
