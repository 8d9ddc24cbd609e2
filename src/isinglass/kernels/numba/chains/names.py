"""Numbers of names, found by their bytes: a hash table with open addresses, whose matches are compared byte by byte.

Names are strings in lists: sequences of tokens, which are lists of names. They are read as words of eight bytes
(`isinglass.kernels.numba.chains.strings`), and multiplied and folded to a hash.

A slot holds the first two words of a name, its length and number, and its hash, in one half of a cache line: a name of
at most 16 bytes costs one miss of the cache. Looking up Python strings in a dict costs three or four.

Costs, for 204,000 tokens of 10 names: the strings are two lines of the cache each, half of them shared, with the lists
230 MB, 12 ms at the 20 GB/s of memory; the table's 8 MB are in the third cache. Measured: 30 ms; 20 ms if all is in the
second cache, a third each to walk the lists, to read and hash, and to look up. These three take turns, so that
strings and slots are on their way meanwhile.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.arithmetic.prefetch import ask
from isinglass.kernels.numba.chains.strings import (
    ask_at,
    byte_at,
    forget_error,
    list_item,
    list_size,
    short_word,
    text_of,
    type_of,
    word_at,
)
from isinglass.runtime.compilation.jit import compiled, holding, inner

FREE, LONGEST = 0xFFFFFFFF, 2**31
HEAD = 48  # bytes of a string before its text, about
LOW_HALF = np.uint64(0xFFFFFFFF)
ODD1, ODD2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
ONE, TOP, HALF = np.uint64(1), np.uint64(29), np.uint64(32)


@inner
def words_of(p, n):
    """Return the first two words of a name of n bytes, and its hash."""
    first, second = short_word(p, n), np.uint64(0)
    if n > 16:
        second = word_at(p + 8)
    elif n > 8:
        second = word_at(p + n - 8) >> np.uint64(8 * (16 - n))
    h = (first * ODD1) ^ (second * ODD2)
    h ^= h >> TOP
    if n > 16:
        for i in range(16, n - 8, 8):
            h = (h ^ word_at(p + i)) * ODD1
            h ^= h >> TOP
        h = (h ^ word_at(p + n - 8)) * ODD1
        h ^= h >> TOP
    return first, second, (h ^ np.uint64(n)) * ODD2


@inner
def same_rest(p, q, n):
    """Tell whether two names of n bytes agree after 16 of them."""
    for i in range(16, n - 8, 8):
        if word_at(p + i) != word_at(q + i):
            return False
    return n <= 16 or word_at(p + n - 8) == word_at(q + n - 8)


@inner
def place_of(p, first, second, length, h, texts, begins, slots):
    """Return the slot of a name, or the free one where it belongs; `texts`: the address of what is copied."""
    mask = np.uint64(slots.shape[0] - 1)
    slot = (h >> TOP) & mask
    while True:
        meta = slots[slot, ix(2)]
        if meta & LOW_HALF == FREE:
            return slot
        if slots[slot, ix(0)] == first and slots[slot, ix(1)] == second and meta >> HALF == np.uint64(length):
            if length <= 16:
                return slot
            if slots[slot, ix(3)] == h and same_rest(p, texts + begins[ix(meta & LOW_HALF)], length):
                return slot
        slot = (slot + ONE) & mask


@inner
def enter(p, first, second, length, h, slot, names, begins, slots, known):
    """Give a name the next number, and copy its bytes; `known`: how many names there are, and how many bytes."""
    number, begin = known[ix(0)], known[ix(1)]
    for i in range(length):
        names[ix(begin + i)] = byte_at(p + i)
    begins[ix(number)] = begin
    slots[slot, ix(0)], slots[slot, ix(1)], slots[slot, ix(3)] = first, second, h
    slots[slot, ix(2)] = np.uint64(length) << HALF | np.uint64(number)
    known[ix(0)], known[ix(1)] = number + 1, begin + length


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


@inner
def count_of(one, plain):
    """Return how many items a list has; -1 for what is none."""
    return list_size(one) if type_of(one) == plain else -1


@inner
def bytes_of(token):
    """Return how many bytes the names of a token have; -1 where one is no text."""
    total = 0
    for j in range(list_size(token)):
        p, n = text_of(list_item(token, j))
        if p == 0:
            forget_error()
            return -1
        total += n
    return total


@holding
def measure(sequences, plain, counts, texts):
    """Write how many names each token has; return how many bytes these have, 0 without `texts`.

    -1 where something is no list (their type is `plain`), a name no text, or where there are more tokens than counts.
    """
    at, total = 0, 0
    for s in range(list_size(sequences)):
        tokens = list_item(sequences, s)
        size = count_of(tokens, plain)
        if size < 0 or at + size > len(counts):
            return -1
        for t in range(size):
            ask_at(list_item(tokens, t))
        for t in range(size):
            token = list_item(tokens, t)
            counts[ix(at)] = count_of(token, plain)
            more = bytes_of(token) if texts and counts[ix(at)] >= 0 else 0
            if counts[ix(at)] < 0 or more < 0:
                return -1
            at, total = at + 1, total + more
    return total if at == len(counts) else -1


@inner
def hash_name(i, slots, ring):
    """Read name i of all and ask for its slot; tell whether it is text, and not too long."""
    r = ix(i & (len(ring) - 1))
    p, length = text_of(np.int64(ring[r, ix(4)]))
    if p == 0 or length >= LONGEST:
        forget_error()
        return False
    first, second, h = words_of(p, length)
    ask(slots, (h >> TOP) & np.uint64(slots.shape[0] - 1), ix(0))
    ring[r, ix(0)], ring[r, ix(1)], ring[r, ix(2)], ring[r, ix(3)], ring[r, ix(4)] = first, second, ix(length), h, ix(p)
    return True


@inner
def number_name(i, old, names, begins, slots, known, ring, found, fresh):
    """Write the number of name i; tell whether there is room for its bytes if it is new."""
    r = ix(i & (len(ring) - 1))
    first, second, h = ring[r, ix(0)], ring[r, ix(1)], ring[r, ix(3)]
    length, p = np.int64(ring[r, ix(2)]), np.int64(ring[r, ix(4)])
    slot = place_of(p, first, second, length, h, names.ctypes.data, begins, slots)
    if len(fresh) > 0 and slots[slot, ix(2)] & LOW_HALF == FREE:
        if known[ix(1)] + length > len(names):
            return False
        fresh[ix(known[ix(0)] - old)] = i
        enter(p, first, second, length, h, slot, names, begins, slots, known)
    found[ix(i)] = np.int32(np.uint32(slots[slot, ix(2)] & LOW_HALF))
    return True


@holding
def number_names(first, last, sequences, plain, names, begins, slots, known, ring, found, fresh):
    """Write the numbers of the names of sequences `first` to `last`; of those that are new -1, or the next number.

    A name goes through three steps: its string is asked for, it is read and its slot asked for, it is looked up. Some
    other names come between two steps, so that the processor waits for many strings and slots at once.
    Returns whether these are lists of strings, as many as have room.

    Parameters
    ----------
    plain : int
        The type of lists.
    names, begins : arrays
        The bytes of the names that have numbers, with room for more, and where each begins.
    slots : uint64 array (2^n, 4)
        With room for twice the names.
    known : int array (2,)
        How many names have numbers, and how many bytes these take.
    ring : uint64 array (2^m, 5)
        For twice the names between two steps: words, length, hash, and address of the string, then of its text.
    fresh : int array
        Which names are new is written here; without room, new names get no numbers.
    """
    n, old, gap = 0, known[ix(0)], len(ring) // 2
    for s in range(first, min(last, list_size(sequences))):
        tokens = list_item(sequences, s)
        for t in range(count_of(tokens, plain)):
            token = list_item(tokens, t)
            size = count_of(token, plain)
            if size < 0 or n + size > len(found):
                return False
            for j in range(size):
                ahead = n - 2 * gap
                if ahead >= 0 and not number_name(ahead, old, names, begins, slots, known, ring, found, fresh):
                    return False
                if n >= gap and not hash_name(n - gap, slots, ring):
                    return False
                string = list_item(token, j)
                ask_at(string)
                ask_at(string + HEAD)
                ring[ix(n & (len(ring) - 1)), ix(4)] = ix(string)
                n += 1
    for i in range(max(n - gap, 0), n):
        if not hash_name(i, slots, ring):
            return False
    for i in range(max(n - 2 * gap, 0), n):
        if not number_name(i, old, names, begins, slots, known, ring, found, fresh):
            return False
    return n == len(found)
