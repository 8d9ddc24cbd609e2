"""Pieces of work that threads make in any order, and that others add up in order, while they are in a cache.

A thread takes the next piece (`take_piece`), makes it, and tells that it is made (`tell_made`). What is added up has
several parts, such as ranges of a vector. A part takes the pieces in their order, so that its sums have the same bits
for any number of threads; different parts are worked on side by side. Whoever has made a piece then looks at all parts:
it claims one that nobody has (`claim`), and goes on with it as long as its next piece is made (`go_on`). Nobody waits
for a part. Where another thread has it, that one looks once more after it has let it go, and so finds the piece.

Pieces are taken in order, and each is made by the loop that took it. So when all loops have ended, every piece is in
every part; also, whoever waits for the oldest piece (`oldest`) waits for a loop that runs.

`queue` is an array of zeros at first, but for the numbers of pieces and parts:

    queue[TAKEN]                   how many pieces were taken
    queue[PIECES], queue[PARTS]
    queue[LINE (j + 1)]            which piece part j is at, and in the next entry, whether a thread has it
    queue[LINE (parts + 1) + p]    whether piece p is made
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.together import exchange, fetch_and_add, look
from isinglass.runtime.jit import cold
from isinglass.typing import IntArray

TAKEN, PIECES, PARTS = 0, 1, 2
LINE = 8  # numbers of a line of the cache, which threads had better not share


def new_queue(pieces: int, parts: int) -> IntArray:
    """Return the array for so many pieces, each of which goes into so many parts."""
    queue = np.zeros(LINE * (parts + 1) + pieces, np.int64)
    queue[PIECES], queue[PARTS] = pieces, parts
    return queue


@cold
def take_piece(queue):
    """Take the next piece; one beyond the last if there is none."""
    return fetch_and_add(queue, TAKEN, 1) if look(queue, TAKEN) < queue[PIECES] else queue[PIECES]


@cold
def tell_made(queue, piece):
    """Tell that a piece is made."""
    exchange(queue, LINE * (queue[PARTS] + 1) + piece, 1)


@cold
def is_made(queue, piece):
    """Tell whether there is such a piece, and whether it is made."""
    return piece < queue[PIECES] and look(queue, LINE * (queue[PARTS] + 1) + piece) != 0


@cold
def claim(queue, part):
    """Return the piece that a part is at; -1 if it is not made yet, or another thread has the part."""
    at = LINE * (part + 1)
    while is_made(queue, look(queue, at)):
        if exchange(queue, at + 1, 1) != 0:
            return -1
        piece = look(queue, at)
        if is_made(queue, piece):
            return piece
        exchange(queue, at + 1, 0)
    return -1


@cold
def go_on(queue, part, piece):
    """Tell that a piece is in a part; return the next one, or let the part go and return -1."""
    at = LINE * (part + 1)
    exchange(queue, at, piece + 1)
    if is_made(queue, piece + 1):
        return piece + 1
    exchange(queue, at + 1, 0)
    return claim(queue, part)


@cold
def oldest(queue):
    """Return the first piece that is not in all parts yet."""
    piece = queue[PIECES]
    for part in range(queue[PARTS]):
        piece = min(piece, look(queue, LINE * (part + 1)))
    return piece
