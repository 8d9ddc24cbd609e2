"""Numbers of names, found by their bytes: a hash table with open addresses, whose matches are compared byte by byte.

A name of a text is what stands before each line end; eight bytes, all line ends, follow the last one. Names are read as
words of eight bytes, the last one filled up with zeros. A line end in a word is found by
arithmetic: of x = w XOR eight line ends, the first byte that is zero is the first whose highest bit is set in
(x - 1) & ~x, where 1 stands in each byte (Mycroft 1987).

A slot holds the first two words of a name, its length and number, and its hash, in one half of a cache line: a name of
at most 16 bytes costs one miss of the cache. Looking up Python strings in a dict costs three or four.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.arithmetic.prefetch import ask
from isinglass.runtime.jit import compiled, inner

LINE_END = 10
WORD = 8
FREE = 0xFFFFFFFF
ENDS, ONES = np.uint64(0x0A0A0A0A0A0A0A0A), np.uint64(0x0101010101010101)
HIGH, LOW_HALF = np.uint64(0x8080808080808080), np.uint64(0xFFFFFFFF)
ODD1, ODD2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
ONE, TOP, HALF, SHIFT7, TOP_BYTE = np.uint64(1), np.uint64(29), np.uint64(32), np.uint64(7), np.uint64(56)


@inner
def word_at(text, p):
    """Return eight bytes from p on as a number."""
    return (
        np.uint64(text[ix(p)])
        | np.uint64(text[ix(p + 1)]) << np.uint64(8)
        | np.uint64(text[ix(p + 2)]) << np.uint64(16)
        | np.uint64(text[ix(p + 3)]) << np.uint64(24)
        | np.uint64(text[ix(p + 4)]) << np.uint64(32)
        | np.uint64(text[ix(p + 5)]) << np.uint64(40)
        | np.uint64(text[ix(p + 6)]) << np.uint64(48)
        | np.uint64(text[ix(p + 7)]) << np.uint64(56)
    )


@inner
def name_at(text, start):
    """Return the first two words of a name, its length and its hash."""
    first, second, h, p = np.uint64(0), np.uint64(0), np.uint64(0), start
    while True:
        w = word_at(text, p)
        x = w ^ ENDS
        found = (x - ONES) & ~x & HIGH
        last = found & (~found + ONE)
        length = np.int64(8)
        if found != 0:
            below = (last >> SHIFT7) - ONE
            w &= below
            length = np.int64(((below & ONES) * ONES) >> TOP_BYTE)
        if p == start:
            first = w
        elif p == start + WORD:
            second = w
        h = (h ^ w) * ODD1
        h ^= h >> TOP
        p += length
        if found != 0:
            return first, second, p - start, (h ^ np.uint64(p - start)) * ODD2


@inner
def same_rest(text, start, names, first, length):
    """Tell whether two names of the same length agree after 16 bytes."""
    p = 16
    while p < length and text[ix(start + p)] == names[ix(first + p)]:
        p += 1
    return p >= length


@inner
def place_of(text, start, word, second, length, h, names, begins, slots):
    """Return the slot of a name, or the free one where it belongs."""
    mask = np.uint64(slots.shape[0] - 1)
    slot = (h >> TOP) & mask
    while True:
        meta = slots[slot, ix(2)]
        if meta & LOW_HALF == FREE:
            return slot
        if slots[slot, ix(0)] == word and slots[slot, ix(1)] == second and meta >> HALF == np.uint64(length):
            if length <= 16:
                return slot
            if slots[slot, ix(3)] == h and same_rest(text, start, names, begins[ix(meta & LOW_HALF)], length):
                return slot
        slot = (slot + ONE) & mask


@inner
def enter(text, start, word, second, length, h, slot, names, begins, slots, known):
    """Give a name the next number, and copy its bytes; `known`: how many names there are, and how many bytes."""
    number, first = known[ix(0)], known[ix(1)]
    for p in range(length):
        names[ix(first + p)] = text[ix(start + p)]
    names[ix(first + length)] = LINE_END
    begins[ix(number)] = first
    slots[slot, ix(0)], slots[slot, ix(1)], slots[slot, ix(3)] = word, second, h
    slots[slot, ix(2)] = np.uint64(length) << HALF | np.uint64(number)
    known[ix(0)], known[ix(1)] = number + 1, first + length + 1


@compiled
def move_names(old, slots):
    """Move names to an empty table that is larger."""
    mask = np.uint64(slots.shape[0] - 1)
    for i in range(old.shape[0]):
        if old[ix(i), ix(2)] & LOW_HALF != FREE:
            slot = (old[ix(i), ix(3)] >> TOP) & mask
            while slots[slot, ix(2)] & LOW_HALF != FREE:
                slot = (slot + ONE) & mask
            for j in range(4):
                slots[slot, ix(j)] = old[ix(i), ix(j)]


@compiled
def number_names(text, size, names, begins, slots, known, batch, found, fresh):
    """Write the numbers of the names of a text of `size` bytes; for those that are not there -1, or the next number.

    Names are read some at a time, into `batch` (names, 5), before they are looked up, and their slots asked for: the
    processor then waits for many slots at once. Returns how many names there are, at most one more than there is room
    for.

    Parameters
    ----------
    names, begins : arrays
        The bytes of the names that have numbers, with room for more, and where each begins.
    slots : uint64 array (2^n, 4)
        With room for twice the names.
    known : int array (2,)
        How many names have numbers, and how many bytes these take.
    fresh : int array
        Where each new name is in the text is written here; without room, new names get no numbers.
    """
    mask, old, k, start = np.uint64(slots.shape[0] - 1), known[ix(0)], 0, 0
    while start < size and k < len(found):
        n = 0
        while n < len(batch) and k + n < len(found) and start < size:
            word, second, length, h = name_at(text, start)
            ask(slots, (h >> TOP) & mask, ix(0))
            r = ix(n)
            batch[r, ix(0)], batch[r, ix(1)], batch[r, ix(2)], batch[r, ix(3)] = word, second, ix(length), h
            batch[r, ix(4)] = ix(start)
            n, start = n + 1, start + length + 1
        for i in range(n):
            word, second, h = batch[ix(i), ix(0)], batch[ix(i), ix(1)], batch[ix(i), ix(3)]
            length, first = np.int64(batch[ix(i), ix(2)]), np.int64(batch[ix(i), ix(4)])
            slot = place_of(text, first, word, second, length, h, names, begins, slots)
            if len(fresh) > 0 and slots[slot, ix(2)] & LOW_HALF == FREE:
                fresh[ix(known[ix(0)] - old)] = k + i
                enter(text, first, word, second, length, h, slot, names, begins, slots, known)
            found[ix(k + i)] = np.int32(np.uint32(slots[slot, ix(2)] & LOW_HALF))
        k += n
    return k + (start < size)
