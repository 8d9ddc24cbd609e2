"""Numbers of names, found by their bytes: a hash table with open addresses, whose matches are compared byte by byte.

A name of a text is what stands before each line end. Slots hold a hash and a number, -1 where free; the hash of a name
is FNV-1a with 64 bits (Fowler, Noll and Vo), spread by a last multiplication. Looking up Python strings in a dict costs
three or four misses of the cache each; here it is two.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.jit import compiled, inner

LINE_END = 10


@inner
def hash_of(text, start, end):
    """Return the hash of text[start:end]."""
    h = np.uint64(0xCBF29CE484222325)
    for p in range(start, end):
        h = (h ^ np.uint64(text[ix(p)])) * np.uint64(0x100000001B3)
    h ^= h >> np.uint64(29)
    return h * np.uint64(0x9E3779B97F4A7C15)


@inner
def place_of(text, start, end, h, names, ends, hashes, numbers):
    """Return the slot of a name, or the free one where it belongs."""
    mask = np.uint64(len(numbers) - 1)
    slot = (h >> np.uint64(20)) & mask
    while numbers[slot] >= 0:
        if hashes[slot] == h:
            k = numbers[slot]
            first = ends[ix(k - 1)] + 1 if k > 0 else 0
            same = ends[ix(k)] - first == end - start
            p = 0
            while same and p < end - start:
                same = names[ix(first + p)] == text[ix(start + p)]
                p += 1
            if same:
                break
        slot = (slot + np.uint64(1)) & mask
    return slot


@compiled
def enter_names(names, ends, hashes, numbers):
    """Enter all names of a text into an empty table, 2^n slots for at most half as many names; write their ends."""
    k = start = 0
    for p in range(len(names)):
        if names[ix(p)] == LINE_END:
            ends[ix(k)] = p
            h = hash_of(names, start, p)
            slot = place_of(names, start, p, h, names, ends, hashes, numbers)
            hashes[slot], numbers[slot] = h, k
            k, start = k + 1, p + 1
    return k


@compiled
def find_names(text, names, ends, hashes, numbers, found):
    """Write the numbers of the names of a text, -1 for those that are not there; return how many names it has."""
    k = start = 0
    for p in range(len(text)):
        if text[ix(p)] == LINE_END:
            if k < len(found):
                h = hash_of(text, start, p)
                found[ix(k)] = numbers[place_of(text, start, p, h, names, ends, hashes, numbers)]
            k, start = k + 1, p + 1
    return k
